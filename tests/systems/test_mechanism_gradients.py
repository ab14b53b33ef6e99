"""Derivatives of mechanisms in both modes against central differences: through the programme of
the torques, and by friction and geometry of cables over guides."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

import cordax
from cordax.control import Hermite, NearRigidQP
from cordax.formulations import Dynamics, Minimal
from cordax.mechanics.parts.cables import ElasticCables
from cordax.systems import mechanism as parts


def check(function, names, h=1e-4):
    """Of a number, by relative changes of its arguments; each must matter."""
    ones = jnp.ones(len(names))
    both = jax.jit(lambda p, e: jax.jvp(function, (p,), (e,)))
    slopes = np.array([both(ones, e)[1] for e in jnp.eye(len(names))])
    ahead, behind = ([both(ones + s * e, e)[0] for e in jnp.eye(len(names))] for s in (h, -h))
    differences = (np.array(ahead) - np.array(behind)) / (2 * h)
    # differences are off by h^2 of the third derivative, and by round-off over h
    least = 1e-7 * np.abs(slopes).max()
    np.testing.assert_allclose(slopes, differences, rtol=1e-5, atol=least)
    reverse = np.array(jax.jit(jax.grad(function))(ones))
    np.testing.assert_allclose(reverse, slopes, rtol=1e-9, atol=1e-9 * np.abs(slopes).max())
    for name, slope in zip(names, slopes, strict=True):
        assert abs(slope) > 100 * least, name


def marched(machine, start, steps: int, dt=2e-3):
    """The last state of steps without inputs."""
    dynamics, none = Dynamics(machine.prepare(), Minimal()), lambda t, q, v: jnp.zeros(0)
    step = lambda s, _: (cordax.RK4().step(dynamics, 0.0, dt, s, none, ()).state, None)
    return jax.lax.scan(step, start, length=steps)[0]


def test_through_the_programme():
    """The torques of the strut by its cables, masses, sizes, the bound and the spline."""
    state = parts.single_strut().state_at((0.1, -0.05), 0.011, (0.2, 0.1), 0.02)
    q, v = np.array(state.q), np.array(state.v)

    def torques(p):
        machine = parts.single_strut(
            modulus=2e9 * p[0], viscosity=1e6 * p[1], density=2700.0 * p[2], diameter=0.04 * p[3],
            friction=0.5 * p[6],
        )  # fmt: skip
        values = jnp.stack([jnp.zeros(2), jnp.stack([0.3 * p[5], 0.1 * p[5]])])
        path = Hermite([0.0, 1.0], values, np.zeros((2, 2)))
        control = NearRigidQP(machine, path, 0.01 * p[4], followed=("cross", "strut"))
        u, _, _ = control.solve(0.3, cordax.State(q, v))
        return jnp.sum(u * jnp.array([1.0, -2.0, 0.5]))

    check(
        torques,
        ("modulus", "viscosity", "density", "diameter", "least strain", "spline", "joint friction"),
    )


def test_by_friction_and_geometry_of_guides():
    """Loads on a cable over a post that slips: 20 steps, by capstan friction, the post's radius and
    height, the cable and a mass."""

    def fallen(p):
        load = lambda name, x, m: parts.Body(
            name, parts.Prismatic("z"), at=(x, 0.0, 0.0), solids=parts.point_mass(m)
        )
        post = parts.Pulley("world", jnp.array([0.0, 0.0, 1.0]) * p[2], 0.1 * p[1], axis=(0, 1, 0))
        way = [parts.Eyelet("a"), post, parts.Eyelet("b")]
        cables = parts.CableSet(
            [way], ElasticCables(2e3 * p[3][None], 6.0 * p[4][None]), [2.0 + np.pi * 0.1 - 0.01],
            friction=0.3 * p[0], slip_width=1e-2 * p[6],
        )  # fmt: skip
        machine = parts.Mechanism(
            [load("a", -0.1, 1.0), load("b", 0.1, 3.0 * p[5])], elements=[cables]
        )
        start = cordax.State(jnp.zeros(2), jnp.array([0.01, -0.02]))
        return 1e2 * marched(machine, start, 20).q[1]

    names = ("friction", "radius", "height", "stiffness", "damping", "mass", "slip width")
    check(fallen, names)


def test_through_swivelling_pulleys_between_guides():
    """A ball that swings on a cable which a carriage leads over a pulley that faces it, aslant from
    below: 5 steps, by friction, the pulley's radius and place, the cable and both masses."""
    bob = np.array([0.8, 0.5, 0.1])

    def moved(p):
        slide = parts.Prismatic("x")
        carriage = parts.Body("carriage", slide, solids=parts.point_mass(2.0 * p[5]))
        axes = [
            parts.Body("x", parts.Prismatic("x")),
            parts.Body("y", parts.Prismatic("y"), "x"),
            parts.Body("z", parts.Prismatic("z"), "y", solids=parts.point_mass(1.0 * p[6])),
        ]
        place = jnp.array([0.1, 0.05, 0.9]) * p[2]
        way = [
            parts.Eyelet("world", (-0.4, 0.1, -0.3)),
            parts.SwivelPulley("carriage", place, 0.1 * p[1]),
            parts.Eyelet("z"),
        ]
        law = ElasticCables(2e3 * p[3][None], 6.0 * p[4][None])
        cables = parts.CableSet([way], law, [2.35], friction=0.3 * p[0], slip_width=1e-2)
        machine = parts.Mechanism([carriage, *axes], elements=[cables])
        start = cordax.State(jnp.array([0.0, *bob]), jnp.array([0.05, 0.1, -0.2, -0.1]))
        return 1e3 * jnp.sum(marched(machine, start, 5).q * jnp.array([1.0, 2.0, -1.0, 0.5]))

    names = ("friction", "radius", "place", "stiffness", "damping", "carriage", "ball")
    check(moved, names)


def test_through_the_programme_of_a_floating_body():
    """The torques of drums that hold a ball by cables beside its centre, turned and moving, by
    stiffness, mass, attachments, the radius of the drums, the bound and the wanted motion."""
    anchors = np.array([[-1, -1, 1], [-1, 1.2, 1.1], [1.1, 1, 1], [1, -1, 0.9]])
    beside = 0.1 * np.array([[-1, -1, 1], [-1, 1, 0.5], [1, 1, 0.8], [1, -1, 0.3]])
    turn, wound = Rotation.from_rotvec([0.2, -0.24, 0.16]), np.array([0.3, -0.1, 0.2, 0.05])
    x, y, z, w = turn.as_quat()
    q = np.array([w, x, y, z, 0.1, 0.0, -0.2, *wound])
    lengths = np.linalg.norm(anchors - q[4:7] - turn.apply(beside), axis=1)
    rest = lengths / 1.002 - 0.05 * wound
    v = np.array([0.1, -0.2, 0.15, 0.05, 0.1, -0.1, 0.4, -0.3, 0.2, 0.1])
    names = [f"drum{i}" for i in range(4)]

    def torques(p):
        drum = lambda name: parts.Body(
            name, parts.Revolute("z"), solids=parts.cylinder(0.05 * p[3], 0.1, mass=1.0)
        )
        ball = parts.Body("ball", parts.Floating(), solids=parts.sphere(0.1, mass=2.0 * p[1]))
        cables = parts.CableSet(
            [[parts.Eyelet("world", a), parts.Eyelet("ball", b * p[2])]
             for a, b in zip(anchors, beside, strict=True)],
            parts.StrainLaw(1e5 * p[0], 50.0), rest, [(name,) for name in names],
            0.05 * p[3] * jnp.ones(4),
        )  # fmt: skip
        machine = parts.Mechanism([ball, *map(drum, names)], elements=[cables, motors])
        path = Hermite([0.0, 1.0], jnp.stack([q[4:7], q[4:7] + goal * p[5]]), np.zeros((2, 3)))
        control = NearRigidQP(machine, path, 5e-5 * p[4], point=("ball", (0.0, 0.0, 0.0)))
        u, _, solved = control.solve(0.3, cordax.State(jnp.asarray(q), jnp.asarray(v)))
        return jnp.where(solved, jnp.sum(u * jnp.array([1.0, -2.0, 0.5, 1.5])), jnp.nan)

    motors, goal = parts.JointMotors(names), np.array([0.3, -0.2, 0.5])
    check(torques, ("stiffness", "mass", "attachments", "radius", "least strain", "path"))
