"""From energies to equations of motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.math import rotations
from helpers.machines import DoublePendulum, DoublePendulumByEnergy, FreeBody

RNG = np.random.default_rng(0)
STATES = [tuple(RNG.uniform(-2, 2, size=(3, 2))) for _ in range(4)]  # q, v, u


def textbook(q, v, u, damping=0.4):
    """Mass matrix and force of the double pendulum in absolute angles."""
    (m1, m2), (l1, l2), g = (1.0, 0.7), (0.8, 0.5), 9.81
    c, s = np.cos(q[0] - q[1]), np.sin(q[0] - q[1])
    M = np.array([[(m1 + m2) * l1**2, m2 * l1 * l2 * c], [m2 * l1 * l2 * c, m2 * l2**2]])
    coriolis = m2 * l1 * l2 * s * np.array([-(v[1] ** 2), v[0] ** 2])
    gravity = -g * np.array([(m1 + m2) * l1 * np.sin(q[0]), m2 * l2 * np.sin(q[1])])
    return M, coriolis + gravity - damping * v + u


@pytest.mark.parametrize("kind", [DoublePendulum, DoublePendulumByEnergy])
def test_equations_of_the_double_pendulum(kind):
    machine = kind(damping=0.4)
    evaluate = jax.jit(
        lambda q, v, u: (
            machine.mass_matrix(q),
            machine.force(0.0, q, v, u),
            machine.structure().acceleration(0.0, q, v, u),
        )
    )
    for q, v, u in STATES:
        M, f = textbook(q, v, u)
        for got, want in zip(evaluate(q, v, u), (M, f, np.linalg.solve(M, f)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", [DoublePendulum, DoublePendulumByEnergy])
def test_linearisation(kind):
    """K = df/dq and D = df/dv against central differences of the textbook force."""
    machine = kind(damping=0.4)
    q, v, u = STATES[0]
    motion = jax.jit(lambda q, v, u: machine.structure().linearise(0.0, q, v, u))(q, v, u)
    M, K, D = motion.matrices()
    h = 1e-5
    slope = lambda f: np.stack([(f(h * e) - f(-h * e)) / (2 * h) for e in np.eye(2)], axis=1)
    np.testing.assert_allclose(M, textbook(q, v, u)[0], rtol=1e-11)
    np.testing.assert_allclose(motion.f, textbook(q, v, u)[1], rtol=1e-11)
    np.testing.assert_allclose(K, slope(lambda e: textbook(q + e, v, u)[1]), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(D, slope(lambda e: textbook(q, v + e, u)[1]), rtol=1e-7, atol=1e-8)
    x = np.array([0.3, -1.1])
    np.testing.assert_allclose(motion.stiffness(x), K @ x, rtol=1e-12)
    np.testing.assert_allclose(motion.inertia(x), M @ x, rtol=1e-12)
    W = M - 0.1 * D - 0.01 * K
    np.testing.assert_allclose(motion.implicit_solver(0.1)(x), np.linalg.solve(W, x), rtol=1e-11)


def test_both_descriptions_move_alike():
    options = {"dt": 0.01, "duration": 1.0, "save_every": 20}
    a = cordax.simulate(DoublePendulum(damping=0.1), **options)
    b = cordax.simulate(DoublePendulumByEnergy(damping=0.1), **options)
    np.testing.assert_allclose(a.q, b.q, rtol=1e-9)
    np.testing.assert_allclose(a.energy()["kinetic"], b.energy()["kinetic"], rtol=1e-9)
    assert np.all(np.diff(a.energy()["total"]) < 0)


def test_twists_give_eulers_equations():
    """By principal moments, in other axes with products of inertia, and by a general energy."""
    by_hand = FreeBody()
    R = rotations.exponential_matrix(jnp.array([0.3, -0.5, 0.8]))

    class Twists(cordax.LagrangianSystem):
        coordinate_names, velocity_names = by_hand.coordinate_names, by_hand.velocity_names
        retract = lambda self, q, dq: rotations.retract(q, dq)
        difference = lambda self, start, end: rotations.difference(start, end)
        kinetic_form = "velocities"
        inertial_velocities = lambda self, q, v: R @ v
        inertial_weights = lambda self: by_hand.inertia

    class Energy(Twists):
        kinetic_form = "energy"
        kinetic_energy = lambda self, q, v: 0.5 * jnp.sum(by_hand.inertia * (R @ v) ** 2)

    @jax.jit
    def both(q, v):
        I = R.T @ jnp.diag(by_hand.inertia) @ R
        expected = I, -jnp.cross(v, I @ v)
        given = [(m.mass_matrix(q), m.force(0.0, q, v, jnp.zeros(0))) for m in (Twists(), Energy())]
        return expected, given

    q = np.array([0.1, 0.5, -0.7, 0.5])
    expected, given = both(q, np.array([0.4, -1.0, 2.0]))
    for M, f in given:
        np.testing.assert_allclose(M, expected[0], atol=1e-14)
        np.testing.assert_allclose(f, expected[1], atol=1e-14)


def test_a_machine_without_kinetic_energy_says_what_is_missing():
    class Empty(cordax.LagrangianSystem):
        coordinate_names = ("x",)

    with pytest.raises(NotImplementedError, match=r"Empty must define inertial_coordinates"):
        Empty().mass_matrix(jnp.zeros(1))


def test_rate_of_a_quaternion():
    """dq/dt = q * (0, omega)/2."""
    q = np.array([0.1, 0.5, -0.7, 0.5])
    v = np.array([0.4, -1.0, 2.0])
    expected = 0.5 * rotations.multiply(q, np.array([0.0, *v]))
    np.testing.assert_allclose(
        FreeBody().rate(jnp.asarray(q), jnp.asarray(v)), expected, atol=1e-15
    )


@pytest.mark.parametrize(
    ("integrator", "order"), [("zhai", 2), ("rosenbrock_2", 2), ("implicit_midpoint", 2)]
)
def test_free_body_to_the_order_of_the_method(integrator, order):
    """Unit quaternion to round-off, and world angular momentum to the order of the method."""
    coarse, fine = (momentum_error(integrator, dt, 64 * 0.01)[0] for dt in (0.02, 0.01))
    assert fine < 1e-2
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.35)


def test_free_body_tumbles():
    """RK4 over 5 s: momentum to 2e-7, while the body turns over about its middle axis."""
    error, run = momentum_error("rk4", 5e-3, 5.0)
    assert error < 2e-7
    np.testing.assert_allclose(run.energy()["kinetic"], run.energy()["kinetic"][0], rtol=1e-7)
    assert np.max(run.v[:, 1]) - np.min(run.v[:, 1]) > 3.0


def momentum_error(integrator, dt, duration):
    body = FreeBody()
    run = cordax.simulate(body, dt=dt, duration=duration, integrator=integrator, save_every=8)
    np.testing.assert_allclose(jnp.linalg.norm(run.q, axis=1), 1.0, rtol=1e-14)
    momentum = jax.vmap(body.angular_momentum)(run.q, run.v)
    return float(jnp.max(jnp.abs(momentum - momentum[0]))), run
