"""Ropes in space: their equations against the planar ropes, their energies, dense algebra, and
themselves, turned."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cordax.mechanics import Structure
from cordax.mechanics.constraints import Stabilisation, velocity_on_constraints
from cordax.systems import (
    NaturalBody,
    Platform,
    ProgressiveRope,
    RopeRobot,
    SpatialRopeRobot,
    box_inertia,
)

S = 4
LAW = ProgressiveRope(3.0, 0.2)
NONE = Stabilisation(jnp.zeros(()), jnp.zeros(()))
ZERO = jnp.zeros(())
H, H2 = 3e-3, 5e-6


def relative(x, y):
    return np.abs(np.asarray(x) - np.asarray(y)).max() / np.abs(np.asarray(y)).max()


def in_space(x):
    """Of (..., 2) in the plane (x, z)."""
    return jnp.stack([x[..., 0], 0.0 * x[..., 0], x[..., 1]], axis=-1)


def four_ropes(turn=0.0, count=3):
    """A box on four ropes of different length, the machine turned about the vertical [rad]."""
    c, s = np.cos(turn), np.sin(turn)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    corner = np.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
    root = np.array([[0.3, -0.1, -1.0], [0.0, 0.4, -1.0], [0.1, 0.0, -1.0], [0.0, 0.0, -1.0]])
    root = root / np.linalg.norm(root, axis=1)[:, None]
    return R, SpatialRopeRobot(
        (corner * 2.0 + [0.2, 0.0, 3.0]) @ R.T,
        [3.6, 3.7, 3.5, 3.4],
        EI=0.05,
        root_stiffness=1.0,
        root_direction=root @ R.T,
        platform=NaturalBody(5.0, box_inertia(5.0, (0.4, 0.3, 0.2)), (0.02, 0.01, -0.03)),
        attachments=corner * 0.2,
        position=R @ np.array([0.1, 0.0, 0.6]),
        rotation=R,
        linear_damping=0.3,
        angular_damping=0.2,
        law=LAW,
        count=count,
    )


def thrown(robot, seed=0):
    """A bent, moving state on the constraints, and inputs."""
    rng = np.random.default_rng(seed)
    n = 3 * robot.n_ropes * robot.n_nodes
    bend, v, u = (jnp.asarray(rng.normal(size=k)) for k in (n, robot.n_v, robot.n_u))
    return *_thrown(robot, 0.05 * bend, v), u


@eqx.filter_jit
def _thrown(robot, bend, v):
    q = robot.hanging().q.at[: bend.shape[0]].add(bend)
    return q, (velocity_on_constraints(robot, ZERO, q, v)[0] if robot.n_constraints else v)


@cache
def free_ropes():
    """One rope, clamped and bent at the root."""
    common = {"count": S, "EI": 0.05, "root_stiffness": 2.0, "law": LAW}
    planar = RopeRobot([[0.1, 0.2]], 1.5, root_angle=0.3, **common)
    down = (np.sin(0.3), 0.0, -np.cos(0.3))
    return planar, SpatialRopeRobot([[0.1, 0.0, 0.2]], 1.5, root_direction=down, **common)


def test_planar_rope():
    """Accelerations and energies of one that bends by half a radian per joint: round-off."""
    planar, space = free_ropes()
    rng = np.random.default_rng(0)
    q, v = rng.normal(size=2 * S) * np.tile([0.01, 0.5], S), rng.normal(size=2 * S)
    u = jnp.asarray(rng.normal(size=2))
    nodes = lambda q: in_space(planar.nodes(q)[0, 1:]).reshape(-1)

    @jax.jit
    def compare(q, v):
        rate = lambda q, v: jax.jvp(nodes, (q,), (v,))[1]
        a = planar.structure().acceleration(ZERO, q, v, u)
        x, dx, ddx = nodes(q), rate(q, v), jax.jvp(rate, (q, v), (v, a))[1]
        energies = lambda r, q, v: (
            r.kinetic_energy(q, v),
            r.potential_energy(ZERO, q),
            r.dissipation(q, v),
        )
        found = space.structure().acceleration(ZERO, x, dx, in_space(u)), *energies(space, x, dx)
        return found, (ddx, *energies(planar, q, v))

    for found, wanted in zip(*compare(jnp.asarray(q), jnp.asarray(v)), strict=True):
        assert relative(found, wanted) < 1e-12


def test_planar_robot():
    """A plate on two ropes, thrown: accelerations of nodes and of the plate. Round-off of a
    stiffness of 1e5 N/m at coordinates of 1 m is 1e-11 of the forces."""
    size, b = (0.5, 0.2), np.array([[-0.25, 0.1], [0.25, 0.1]])
    roots = np.array([[0.0, 0.0], [1.0, -0.25]])
    planar = RopeRobot(roots, 1.2, EI=0.05, platform=Platform.plate(2.0, size, b), count=S)
    # the inertia about y is that of the plate
    body = NaturalBody(2.0, box_inertia(2.0, (size[0], 0.1, size[1])))
    pose, speed = jnp.array([0.4, -1.0, 0.2]), jnp.array([0.3, -0.2, 0.7])
    space = SpatialRopeRobot(
        in_space(roots), 1.2, EI=0.05, platform=body, attachments=in_space(b), count=S,
        root_stiffness=1.0, position=in_space(pose[:2]),
    )  # fmt: skip
    v = jnp.asarray(np.random.default_rng(1).normal(size=planar.n_v))
    v = v.at[-3:].set(speed)
    u = jnp.array([1.0, -2.0, 0.3])

    @jax.jit
    def compare(v):
        q = planar.hanging(pose).q
        v = velocity_on_constraints(planar, ZERO, q, v)[0]
        a, _ = planar.structure().constrained_acceleration(ZERO, q, v, u, NONE)
        nodes = lambda q: in_space(planar.nodes(q)[:, 1:-1]).reshape(-1)
        rate = lambda q, v: jax.jvp(nodes, (q,), (v,))[1]
        wanted = jax.jvp(rate, (q, v), (v, a))[1]
        # counter-clockwise, from x to z, is about -y
        c, s, zero = jnp.cos(q[-1]), jnp.sin(q[-1]), jnp.zeros(())
        R = jnp.array([[c, zero, -s], [zero, zero + 1.0, zero], [s, zero, c]])
        spin = jnp.array([0.0, -1.0, 0.0]) * v[-1]
        p, w = body.coordinates(in_space(q[-3:-1]), R, in_space(v[-3:-1]), spin)
        x = jnp.concatenate([nodes(q), p])
        dx = jnp.concatenate([rate(q, v), w])
        push = jnp.concatenate([in_space(u[:2]), jnp.array([0.0, -1.0, 0.0]) * u[2]])
        b, _ = space.structure().constrained_acceleration(ZERO, x, dx, push, NONE)
        turn = jax.jvp(body.angular_velocity, (p, w), (w, b[-12:]))[1]
        centre = jnp.sum(body.weights(body.centre)[:, None] * b[-12:].reshape(4, 3), axis=0)
        found = jnp.concatenate([b[:-12], centre, -turn])
        spun = jnp.array([0.0, 1.0, 0.0]) * a[-1]
        return found, jnp.concatenate([wanted, in_space(a[-3:-1]), spun])

    assert relative(*compare(v)) < 1e-10


def test_against_dense():
    """Solves along the ropes, alone and under constraints, with all derivatives and of the mass
    matrix; the residual, and the constraints."""
    _, robot = four_ropes()
    q, v, u = thrown(robot)
    rng = np.random.default_rng(2)
    a, b = (jnp.asarray(rng.normal(size=robot.n_v)) for _ in range(2))
    pull, c = jnp.asarray(50.0 * rng.normal(size=6)), jnp.asarray(rng.normal(size=6))

    @eqx.filter_jit
    def found(robot):
        motion = robot.structure().linearise(ZERO, q, v, u, acceleration=a, multipliers=pull)
        terms = robot.structure().constraint_terms(ZERO, q, v)
        product = lambda x: motion.product(H, H2, x)
        matrices = [
            jax.vmap(f, out_axes=1)(jnp.eye(robot.n_v))
            for f in (product, lambda x: robot.structure().momentum(q, x))
        ]
        alone = motion.implicit_solver(H, H2)(b)
        under = motion.constrained_solver(terms.jacobian, H, H2, 1.1 * terms.jacobian)(b, c)
        mass = robot.structure().saddle(ZERO, q).solve(b, c)
        residual = motion.residual(q, v, a)
        generic = Structure(robot).constraint_terms(ZERO, q, v)
        return matrices, motion.f, alone, under, mass, residual, terms, generic

    (A, M), f, alone, under, mass, residual, terms, generic = found(robot)
    for own, by_differentiation in zip(terms, generic, strict=True):
        np.testing.assert_allclose(own, by_differentiation, atol=1e-12)
    J, zero = np.asarray(terms.jacobian), np.zeros((6, 6))
    assert relative(residual, M @ a + J.T @ pull - f) < 1e-12
    assert relative(alone, np.linalg.solve(A, b)) < 1e-10
    both = np.concatenate([b, c])
    whole = np.linalg.solve(np.block([[A, J.T], [1.1 * J, zero]]), both)
    assert relative(np.concatenate(under), whole) < 1e-10
    whole = np.linalg.solve(np.block([[M, J.T], [J, zero]]), both)
    assert relative(np.concatenate(mass), whole) < 1e-10


def test_energies():
    """Forces at rest are those of the potential; in motion power is balanced."""
    _, robot = four_ropes()
    q, v, u = thrown(robot)

    @jax.jit
    def balance(q, v, u):
        slope = jax.grad(lambda q: robot.potential_energy(ZERO, q))(q)
        still = robot.force(ZERO, q, 0.0 * v, 0.0 * u)
        a, _ = robot.structure().constrained_acceleration(ZERO, q, v, u, NONE)
        energy = lambda q, v: robot.kinetic_energy(q, v) + robot.potential_energy(ZERO, q)
        gain = jax.jvp(energy, (q, v), (v, a))[1]
        push = robot.force(ZERO, q, v, u) - robot.force(ZERO, q, v, 0.0 * u)
        return still, slope, gain, robot.dissipation(q, v), jnp.sum(push * v)

    still, slope, gain, lost, given = balance(q, v, u)
    assert relative(still, -slope) < 1e-12
    assert abs(gain + lost - given) < 1e-11 * lost


def test_turned_machine():
    """About the vertical: accelerations turn with it."""
    q, v, u = thrown(four_ropes()[1])
    R, turned = four_ropes(0.7)
    turn = lambda x: (x.reshape(-1, 3) @ R.T).reshape(-1)

    @eqx.filter_jit
    def acceleration(robot, q, v, u):
        return robot.structure().constrained_acceleration(ZERO, q, v, u, NONE)[0]

    wanted = turn(acceleration(four_ropes()[1], q, v, u))
    assert relative(acceleration(turned, turn(q), turn(v), turn(u)), wanted) < 1e-10


def test_exactly_straight():
    """Where the direction of a bend is not defined: the stiffness of a clamped chain of springs,
    in both modes of differentiation."""
    _, space = free_ropes()
    straight = eqx.tree_at(lambda r: r.root_direction, space, jnp.array([0.0, 0.0, -1.0]))
    q = straight.hanging().q
    rng = np.random.default_rng(3)
    bend = rng.normal(size=(S, 3)) * [1.0, 1.0, 0.0]

    @jax.jit
    def found(q, side):
        force = lambda q: straight.force(ZERO, q, 0.0 * q, jnp.zeros(3))
        return force(q), jax.jvp(force, (q,), (side,))[1], jax.vjp(force, q)[1](side)[0]

    force, forward, backward = found(q, jnp.asarray(bend).reshape(-1))
    rest = 1.5 / S
    # angles of segments from nodes, bends from angles; the root has twice the stiffness
    slopes = np.eye(S) - np.eye(S, k=-1)
    stiff = 0.05 / rest * np.diag([2.0, *np.ones(S - 1)])
    wanted = -(slopes @ slopes).T @ stiff @ (slopes @ slopes) / rest**2 @ bend
    np.testing.assert_allclose(forward.reshape(S, 3), wanted, atol=1e-9)
    np.testing.assert_allclose(backward.reshape(S, 3), wanted, atol=1e-9)
    weight = -0.029 * rest * 9.81 * np.array([1.0] * (S - 1) + [0.5])
    np.testing.assert_allclose(force.reshape(S, 3)[:, 2], weight, rtol=1e-9)
