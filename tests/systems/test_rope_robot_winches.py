"""Ropes on winches: against Lagrange's equations of material points, balances, statics and ropes of
fixed length."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import State, simulate
from cordax.control import Quintic
from cordax.mechanics.constraints import Stabilisation
from cordax.systems import (
    ProgrammedLengths,
    ProgressiveRope,
    RopeRobot,
    ServoWinches,
    WinchedRopes,
    Winches,
    two_rope_robot,
)

S = 3
NUMBERS = {"EA": 800.0, "EI": 0.05, "root_stiffness": 2.0, "root_angle": 0.1, "count": S}


def drums(lengths, **changes):
    return Winches(**{"zero_length": lengths, "radius": 0.1, "rotor_inertia": 0.02, **changes})


def two(drive=None, **changes) -> WinchedRopes:
    """The paper's robot, softer and with few segments, on winches."""
    ropes = two_rope_robot(**{**NUMBERS, **changes})
    return WinchedRopes(ropes, drums([3.2, 3.1]) if drive is None else drive, reserve=5.0)


def one(**changes) -> WinchedRopes:
    """One rope with a free end."""
    law = ProgressiveRope(axial=3.0, bending=0.2)
    ropes = RopeRobot([[0.3, 0.5]], 1.2, law=law, **NUMBERS)
    return WinchedRopes(ropes, drums([1.3], friction=0.03), reserve=5.0, **changes)


def somewhere(machine, seed=0):
    """A state in no balance, with its accelerations."""
    rng = np.random.default_rng(seed)
    n = machine.n_q
    q = machine.default_state().q + 0.05 * rng.normal(size=n)
    return jnp.asarray(q), jnp.asarray(rng.normal(size=n)), jnp.asarray(rng.normal(size=n))


def lagrange(machine, q, v, u):
    """Accelerations of one free rope, D and phi of each segment and the payout, from the energies
    of all its material points: rods by quadrature, what is on the drum as well."""
    ropes = machine.ropes
    l0, rho = ropes.length / S, ropes.line_density
    r, drum = machine.drive.radius, machine.drive
    xi, weights = np.polynomial.legendre.leggauss(3)
    xi, weights = 0.5 * (xi + 1.0), 0.5 * weights

    def points(x):
        """Places of quadrature points and their masses; `x`: D, phi per segment, payout."""
        D, phi, w = x[:-1:2], x[1::2], x[-1]
        at, out = ropes.roots[0], []
        for i in range(S):
            u = jnp.stack([jnp.sin(phi[i]), -jnp.cos(phi[i])])
            half = 0.5 * l0
            upper = half + (w if i == 0 else 0.0)
            # material that has left the drum moves along with the payout
            for s, c in zip(xi, weights, strict=True):
                place = at + (s * upper) * u
                out.append((place, rho * upper * c, u, i == 0, s))
            for s, c in zip(xi, weights, strict=True):
                out.append((at + (upper + D[i] + s * half) * u, rho * half * c, u, False, s))
            at = at + (upper + D[i] + half) * u
        return out, at

    def kinetic(x, dx):
        total = 0.5 * drum.rotor_inertia * (dx[-1] / r) ** 2
        total = total + 0.5 * rho * (machine.reserve - x[-1]) * dx[-1] ** 2
        count = len(points(x)[0])
        for k in range(count):
            _, mass, u, first, s = points(x)[0][k]
            speed = jax.jvp(lambda x, k=k: points(x)[0][k][0], (x,), (dx,))[1]
            if first:  # a material point, not a share of the rod
                speed = speed + (1.0 - s) * dx[-1] * u
            total = total + 0.5 * mass * jnp.sum(speed**2)
        return total

    def potential(x):
        D, phi, w = x[:-1:2], x[1::2], x[-1]
        rest = jnp.full(S, l0).at[0].add(w)
        axial = jnp.sum(rest * ropes.law.axial_energy(ropes.EA, D / rest))
        bends = jnp.diff(phi, prepend=ropes.root_angle) * ropes.segments().joint[:, 0]
        bending = ropes.law.bending_energy(ropes.EI, bends) / ropes.segments().joint[:, 0]
        heights = sum(mass * place[1] for place, mass, *_ in points(x)[0])
        heights = heights + rho * (machine.reserve - w) * ropes.roots[0, 1]
        return axial + jnp.sum(bending) + ropes.gravity * heights

    def dissipated(x, dx):
        """Rayleigh's function."""
        rest = jnp.full(S, l0).at[0].add(x[-1])
        axial = ropes.axial_time * ropes.EA / rest * dx[:-1:2] ** 2
        bends = jnp.diff(dx[1::2], prepend=0.0) ** 2 * ropes.segments().joint[:, 0]
        friction = drum.friction * (dx[-1] / r) ** 2
        return 0.5 * (jnp.sum(axial) + ropes.bending_time * ropes.EI * jnp.sum(bends) + friction)

    # coordinates of the machine: D_1 + w first, theta last
    to = np.eye(2 * S + 1)
    to[0, -1], to[-1, -1] = -r, r
    w0 = machine.drive.zero_length[0] - ropes.length
    shift = np.zeros(2 * S + 1)
    shift[0], shift[-1] = -w0, w0
    x, dx = to @ q + shift, to @ v
    M = jax.hessian(kinetic, 1)(x, dx)
    turning = jax.jacfwd(jax.grad(kinetic, 1))(x, dx) @ dx
    tip = jax.jacfwd(lambda x: points(x)[1])(x).T @ u[:2]
    force = jax.grad(kinetic)(x, dx) - jax.grad(potential)(x) - jax.grad(dissipated, 1)(x, dx)
    force = force + tip + jnp.zeros(2 * S + 1).at[-1].set(u[2] / r)
    return np.linalg.solve(to, np.linalg.solve(M, force - turning))


def test_equations_are_those_of_material_points():
    machine = one()
    q, v, _ = somewhere(machine)
    u = jnp.array([0.3, -0.7, 0.2])
    wanted = lagrange(machine, q, v, u)
    found = machine.structure().acceleration(0.0, q, v, u)
    np.testing.assert_allclose(found, wanted, atol=1e-10 * np.abs(wanted).max())


@pytest.mark.parametrize("kind", ["torque", "servo", "programmed"])
def test_solves_in_one_pass_are_solutions(kind):
    """Of implicit steps and accelerations, against the equations differentiated as they stand."""
    servo = {"reference": [0.1, 0.2], "K_p": 3.0, "K_i": 2.0, "K_d": 0.5}
    drives = {
        "torque": drums([3.2, 3.1]),
        "servo": ServoWinches([3.2, 3.1], 0.1, 0.02, **servo),
        "programmed": ProgrammedLengths([3.2, 3.1]),
    }
    machine = two(drives[kind])
    q, v, a = somewhere(machine)
    u = jnp.linspace(0.1, 0.4, machine.n_u)
    m = machine.n_constraints
    pull, h, h2 = jnp.linspace(1.0, 2.0, m), 0.013, 0.0004

    @jax.jit
    def left(b, c):
        """Of the equations that solves solve, by products alone."""
        motion = machine.structure().linearise(
            0.0, q, v, u, acceleration=a, multipliers=pull, hold=False
        )
        J = machine.structure().constraint_terms(0.0, q, v).jacobian
        x, y = motion.constrained_solver(J, h, h2)(b, c)
        free = motion.implicit_solver(h, h2)(b)
        z, w = machine.structure().saddle(0.0, q).solve(b, c)
        found = jax.jacfwd(lambda q: machine.constraint(0.0, q))(q)
        return (
            motion.product(h, h2, free) - b,
            motion.product(h, h2, x) + found.T @ y - b,
            motion.inertia(z) + found.T @ w - b,
            found @ x - c,
            found @ z - c,
            found - J,
        ), (free, x, y, z, w)

    rng = np.random.default_rng(1)
    zeros, values = left(rng.normal(size=machine.n_v), rng.normal(size=m))
    assert all(np.abs(np.asarray(x)).max() > 1e-3 for x in values)
    for x in zeros:
        np.testing.assert_allclose(x, 0.0, atol=1e-9)


def test_a_winch_that_stands_still_is_a_rope_of_fixed_length():
    machine = two(ProgrammedLengths([3.0, 3.0]))
    fixed, gains = machine.ropes, Stabilisation(jnp.asarray(5.0), jnp.asarray(5.0))
    q, v, _ = (x[: fixed.n_q] for x in somewhere(machine))
    still = lambda x: jnp.concatenate([x, jnp.zeros(2)])
    u = jnp.array([2.0, 5.0, 0.3])

    @jax.jit
    def both(q, v):
        reeled = machine.structure().constrained_acceleration(0.0, still(q), still(v), u, gains)
        return reeled, fixed.structure().constrained_acceleration(0.0, q, v, u, gains)

    (a, pull), (wanted, force) = both(q, v)
    scale = float(jnp.abs(wanted).max())
    np.testing.assert_allclose(a, still(wanted), rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(pull[:-2], force, rtol=0, atol=1e-12 * float(jnp.abs(force).max()))
    # drawing a rope off the drum also stretches it, and lifts or lowers its first rod
    rest = machine.rest()
    x = fixed.motion(rest.q[:-2], 0.0 * rest.q[:-2])[1]
    e, rod = x.stretch[0] / 1.0, 0.5
    drawn = 800.0 * e * (1.0 + e) - 400.0 * e**2
    weight = 0.029 * rod * 9.81 * jnp.cos(x.angle[0])
    found = machine.winch_rows(0.0, rest.q, 0.0 * rest.q, u, jnp.zeros((2, 1)))[:, 0]
    np.testing.assert_allclose(-found, drawn + weight, rtol=1e-12)


@pytest.fixture(scope="module")
def lift():
    """Both ropes reeled in by 0.4 m within 1 s, and left alone for another."""
    lengths = Quintic([3.45, 3.45], [[-0.4, -0.4]], [[0.0, 1.0]])
    machine = two(ProgrammedLengths(lengths), axial_time=0.05)
    return simulate(machine, dt=2e-3, duration=2.0, save_every=5)


def test_mass_is_kept(lift):
    outside, wound = jax.vmap(lift.system.masses)(lift.t, lift.q)
    np.testing.assert_allclose(outside + wound, 0.029 * 8.0, rtol=1e-14)
    np.testing.assert_allclose(outside[0] - outside[-1], 0.029 * 0.4, rtol=1e-9)


def test_work_of_winches_is_energy_and_heat(lift):
    """The multipliers' power against the energy of the whole."""
    machine = lift.system
    energy = np.asarray(lift.energy()["total"])
    lost = np.asarray(jax.vmap(machine.dissipation)(lift.q, lift.v))
    power = -np.sum(np.asarray(lift["winch_force"]) * np.asarray(lift.v)[:, -2:], axis=1)
    work = np.trapezoid(power - lost, lift.t)
    assert energy[-1] - energy[0] > 15.0  # 5 kg by 0.4 m
    assert energy[-1] - energy[0] == pytest.approx(work, rel=2e-3)


def test_what_is_lifted_slowly_ends_in_balance(lift):
    machine = lift.system
    rest = machine.rest([3.05, 3.05])
    np.testing.assert_allclose(lift.q[-1][-5:-2], rest.q[-5:-2], atol=2e-2)
    slow = machine.rest(t=2.0, guess=State(lift.q[-1], lift.v[-1]))
    np.testing.assert_allclose(slow.q, rest.q, atol=1e-8)


def test_momentum_of_a_rope_that_runs_out():
    """Straight down from the drum: what is outside gains the momentum that weight, the pull of the
    drum and what comes through the exit bring."""
    machine = one()
    ropes, r = machine.ropes, float(machine.drive.radius)
    w, rate = 0.25, 0.8
    theta = (ropes.length + w - machine.drive.zero_length[0]) / r
    stretch, stretch_rate = np.array([0.3, 0.01, -0.02]), np.array([rate + 0.3, 0.1, -0.2])
    q = jnp.asarray(np.concatenate([np.stack([stretch, 0.0 * stretch], 1).ravel(), [theta]]))
    v = jnp.asarray(np.concatenate([np.stack([stretch_rate, np.zeros(3)], 1).ravel(), [rate / r]]))
    straight = RopeRobot([[0.3, 0.5]], 1.2, **{**NUMBERS, "root_angle": 0.0})
    machine = WinchedRopes(straight, machine.drive, reserve=5.0)
    torque = -0.4
    a = np.asarray(machine.structure().acceleration(0.0, q, v, jnp.array([0.0, 0.0, torque])))
    rho, half = float(ropes.line_density), 0.2
    ends = np.cumsum(a[:-1:2])
    acceleration = float(a[-1] * r)
    # downwards; lower rod of segment i and upper rod of i + 1 move with node i
    outside = rho * (half + w) * acceleration + rho * half * (2 * ends.sum() - ends[-1])
    gained = outside + rho * rate * rate  # the upper rod grows by what moves with the payout
    spin = float(machine.drive.rotor_inertia) / r**2 + rho * (5.0 - w)
    # of the drum with its rope: angular momentum over r, less what runs off
    push = torque / r - float(machine.drive.friction) / r**2 * rate
    # the winch also stretches what leaves the drum: T e - W, the energy of its strain
    e = (0.3 - w) / (2 * half + w)
    pull = spin * acceleration - push - 0.5 * 800.0 * e**2
    weight = rho * (1.2 + w) * 9.81
    assert gained == pytest.approx(float(weight - pull + rho * rate * rate), rel=1e-10)


def test_torques_that_hold_a_state_hold_it():
    machine = two()
    rest = machine.rest([3.3, 3.2])
    u = jnp.concatenate([jnp.zeros(3), machine.holding(0.0, rest.q)])
    assert np.all(np.asarray(u[3:]) < -2.0)  # a tenth of half the platform's weight
    gains = Stabilisation(jnp.asarray(0.0), jnp.asarray(0.0))
    a, _ = machine.structure().constrained_acceleration(0.0, rest.q, 0.0 * rest.q, u, gains)
    np.testing.assert_allclose(a, 0.0, atol=1e-6)


def test_gradients_of_a_step_by_torques_and_drums():
    q, v, _ = somewhere(two())

    def step(x):
        """Velocity change of a linearly implicit step."""
        drive = drums([3.2, 3.1], rotor_inertia=0.02 * x[1])
        machine = WinchedRopes(two().ropes, drive, reserve=5.0)
        u = jnp.concatenate([jnp.zeros(3), x[0] * jnp.array([1.0, 0.5])])
        motion, h = machine.structure().linearise(0.0, q, 0.3 * v, u), jnp.asarray(5e-3)
        J = machine.structure().constraint_terms(0.0, q, v).jacobian
        impulse = h * (motion.f + h * motion.stiffness(0.3 * v))
        return motion.constrained_solver(J, h)(impulse, jnp.zeros(4))[0]

    x, h, f = jnp.array([0.3, 1.0]), 1e-4, jax.jit(step)
    central = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(2)]
    forward, reverse = (jax.jit(mode(step))(x) for mode in (jax.jacfwd, jax.jacrev))
    scale = np.abs(forward).max()
    np.testing.assert_allclose(forward, np.stack(central, axis=1), atol=1e-6 * scale)
    np.testing.assert_allclose(reverse, forward, atol=1e-10 * scale)


def test_limits_and_bad_input():
    with pytest.raises(ValueError, match="first gap"):
        simulate(two(drums([2.52, 3.0])), dt=1e-3, duration=1e-3)  # 0.5 m is half of a segment
    with pytest.raises(ValueError, match="longest"):
        simulate(two(drums([4.2, 3.0])), dt=1e-3, duration=1e-3)
    with pytest.raises(ValueError, match="drive"):
        two(drums([3.0]))
    with pytest.raises(ValueError, match="reserve"):
        WinchedRopes(two_rope_robot(**NUMBERS), drums([3.0, 3.0]), reserve=-1.0)
