"""Rest positions, modes and stable steps against formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import State, System, equilibrium, float_field, modes, step_limit
from cordax.integrators import BY_NAME
from cordax.systems import Oscillator, Pendulum
from helpers.machines import Bead, DoublePendulum


def test_equilibrium_of_a_pendulum_under_torque():
    u = 4.0
    found = equilibrium(Pendulum(mass=1.3, length=0.7), np.array([u]))
    assert float(found.q[0]) == pytest.approx(np.arcsin(u / (1.3 * 9.81 * 0.7)), rel=1e-10)
    assert float(found.v[0]) == 0.0


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_derivative_of_an_equilibrium(mode):
    """sin(angle) = u/(m g l), so d angle/dl = -tan(angle)/l and d angle/du = tan(angle)/u."""

    def angle(x):
        return equilibrium(Pendulum(length=x[0]), x[1:]).q[0]

    length, u = 0.9, 3.0
    tangent = np.tan(np.arcsin(u / (9.81 * length)))
    slope = jax.jit(mode(angle))(jnp.array([length, u]))
    np.testing.assert_allclose(slope, [-tangent / length, tangent / u], rtol=1e-9)


def test_no_equilibrium_raises():
    with pytest.raises(RuntimeError, match=r"no state at rest found"):
        equilibrium(Pendulum(), np.array([20.0]))  # more than gravity can balance


def test_modes_of_the_damped_oscillator():
    m, k, c = 2.0, 50.0, 3.0
    found = modes(Oscillator(mass=m, stiffness=k, damping=c))
    omega, ratio = np.sqrt(k / m), c / (2 * np.sqrt(k * m))
    expected = omega * (-ratio + 1j * np.sqrt(1 - ratio**2) * np.array([-1, 1]))
    np.testing.assert_allclose(found.eigenvalues, expected, rtol=1e-12)
    np.testing.assert_allclose(found.damping, ratio, rtol=1e-12)
    np.testing.assert_allclose(found.frequency, omega * np.sqrt(1 - ratio**2) / (2 * np.pi))


def test_modes_of_pendulums():
    hanging = modes(Pendulum(length=0.5), State(np.zeros(1), np.zeros(1)))
    np.testing.assert_allclose(hanging.frequency, np.sqrt(9.81 / 0.5) / (2 * np.pi), rtol=1e-12)
    np.testing.assert_allclose(hanging.damping, 0.0, atol=1e-12)
    upright = modes(Pendulum(length=0.5), State(np.array([np.pi]), np.zeros(1)))
    np.testing.assert_allclose(
        np.sort(upright.eigenvalues.real), np.sqrt(9.81 / 0.5) * np.array([-1, 1]), rtol=1e-12
    )


def test_modes_of_the_double_pendulum():
    """Equal rods: omega^2 = (2 -+ sqrt 2) g/l, and angles in the ratio 1 : +-sqrt 2."""
    machine = DoublePendulum(masses=[1.0, 1.0], lengths=[0.6, 0.6])
    found = modes(machine, State(np.zeros(2), np.zeros(2)))
    expected = np.sqrt((2 + np.sqrt(2) * np.array([-1, -1, 1, 1])) * 9.81 / 0.6)
    np.testing.assert_allclose(np.abs(found.eigenvalues), expected, rtol=1e-10)
    ratios = np.sqrt(2) * np.array([1, 1, -1, -1])
    np.testing.assert_allclose(found.shapes[:, 1] / found.shapes[:, 0], ratios, rtol=1e-9)


def test_feedback_is_part_of_the_modes():
    by_control = modes(Oscillator(), u=lambda t, state: -3.0 * state.q - 0.4 * state.v)
    by_machine = modes(Oscillator(stiffness=4.0, damping=0.4))
    np.testing.assert_allclose(by_control.eigenvalues, by_machine.eigenvalues, rtol=1e-12)


class Massless(System):
    """A mass [kg] at the end of two springs [N/m] in a row with nothing between them, damped
    [N s/m] or not."""

    damper: jax.Array = float_field(default=0.0)
    coordinate_names = ("middle", "end")
    mass_is_regular = False

    def mass_matrix(self, q):
        return jnp.diag(jnp.array([0.0, 2.0]))

    def force(self, t, q, v, u):
        pull = 300.0 * (q[1] - q[0])
        return jnp.stack([pull - 100.0 * q[0] - self.damper * v[0], -pull])

    def default_state(self):
        return State(jnp.zeros(2), jnp.zeros(2))


def test_modes_with_massless_parts():
    """Springs in a row: 75 N/m on 2 kg. With a damper in the middle, the roots of
    (300 + 2 s^2)(400 + c s) = 300^2."""
    found = modes(Massless())
    np.testing.assert_allclose(found.eigenvalues, np.sqrt(37.5) * np.array([-1j, 1j]), atol=1e-12)
    np.testing.assert_allclose(found.shapes[:, 0] / found.shapes[:, 1], 0.75, rtol=1e-12)
    c = 5.0
    roots = np.roots([2.0 * c, 800.0, 300.0 * c, 300.0 * 400.0 - 300.0**2])
    found = modes(Massless(damper=c))
    key = lambda z: (round(abs(z), 9), np.imag(z))
    np.testing.assert_allclose(found.eigenvalues, sorted(roots, key=key), rtol=1e-10)
    middle = (300.0 + 2.0 * found.eigenvalues**2) / 300.0
    np.testing.assert_allclose(found.shapes[:, 0] / found.shapes[:, 1], middle, rtol=1e-9)


# --- step limits ------------------------------------------------------------------------------

UNDAMPED = {
    "explicit_euler": 0.0,
    "symplectic_euler": 2.0,
    "stormer_verlet": 2.0,
    "forest_ruth_4": 1.573401947,
    "suzuki_4": 2.720974539,
    "rk4": 2.0 * np.sqrt(2.0),
    "zhai": 2.0,
}
EXPLICIT = [name for name, method in BY_NAME.items() if method.traits.explicit]


def test_every_explicit_method_is_here():
    assert UNDAMPED.keys() == set(EXPLICIT)


@pytest.mark.parametrize("name", EXPLICIT)
def test_step_limit_on_the_oscillator(name):
    limit = step_limit(Oscillator(stiffness=25.0), integrator=name)
    assert limit.dt == pytest.approx(UNDAMPED[name] / 5.0, rel=1e-8)
    assert BY_NAME[name].traits.oscillator_limit == pytest.approx(UNDAMPED[name], rel=2e-5)


# With damping ratio z the stable region of (omega dt)^2 ends where an eigenvalue reaches -1:
# symplectic Euler w^2 + 4 z w = 4; Verlet the same (its kick sees the old velocity). Explicit
# Euler: dt = 2 z/omega.
RATIO = 0.1
WITH_DAMPING = {
    "explicit_euler": 2 * RATIO,
    "symplectic_euler": -2 * RATIO + 2 * np.sqrt(1 + RATIO**2),
    "stormer_verlet": -2 * RATIO + 2 * np.sqrt(1 + RATIO**2),
}


@pytest.mark.parametrize("name", WITH_DAMPING)
def test_step_limit_with_damping(name):
    damped = Oscillator(stiffness=25.0, damping=2 * RATIO * 5.0)
    limit = step_limit(damped, integrator=name)
    assert limit.dt == pytest.approx(WITH_DAMPING[name] / 5.0, rel=1e-8)


@pytest.mark.parametrize("name", ["rk4", "zhai"])
def test_predicted_limit_with_damping_is_the_observed_one(name):
    damped = Oscillator(stiffness=25.0, damping=2.0)
    dt = step_limit(damped, integrator=name).dt

    def energy(factor):
        step = factor * dt
        run = cordax.simulate(
            damped, dt=step, duration=4000 * step, integrator=name, save_every=4000, throw=False
        )
        return float(run.energy()["total"][-1])

    assert energy(0.995) < 1e-3
    assert not energy(1.005) < 1e3


class Linear(System):
    """M a + D v + K q = 0."""

    M: jax.Array = float_field()
    K: jax.Array = float_field()
    D: jax.Array = float_field()
    coordinate_names = ("a", "b", "c", "d", "e", "f")

    def mass_matrix(self, q):
        return self.M

    def force(self, t, q, v, u):
        return -self.K @ q - self.D @ v


REST = State(np.zeros(6), np.zeros(6))


@pytest.mark.parametrize("name", ["explicit_euler", "symplectic_euler", "zhai"])
def test_predicted_limits_of_random_damped_machines_are_those_at_which_runs_diverge(name):
    """With damping that couples modes, from light to overdamped. Lightly damped modes grow too
    slowly with explicit Euler to be seen in a run."""
    rng = np.random.default_rng(7)
    start = State(jnp.asarray(rng.normal(size=6)), jnp.zeros(6))
    positive = lambda floor: (lambda R: R @ R.T + floor * np.eye(6))(rng.normal(size=(6, 6)))
    for size in (300.0, 1000.0) if name == "explicit_euler" else (3.0, 10.0, 30.0, 1000.0):
        machine = Linear(positive(1.0), 100.0 * positive(0.1), size * positive(0.01))
        dt = step_limit(machine, REST, name).dt

        def largest(factor, machine=machine, dt=dt):
            steps = 8000
            run = cordax.simulate(
                machine, start, dt=factor * dt, duration=steps * factor * dt, save_every=steps,
                integrator=name, throw=False,
            )  # fmt: skip
            return np.max(np.abs(run.q[-1]))

        assert largest(0.99) < 10.0
        assert not largest(1.01) < 10.0


def test_limits_beside_uniform_and_growing_motion():
    """Two masses that only touch each other: their distance has 200 N/m and 2 N s/m on 1 kg, of
    which symplectic Euler's limit is h^2 200 + 4 h = 4. A coordinate that grows by itself changes
    nothing."""
    pair = np.array([[1.0, -1.0], [-1.0, 1.0]])
    M, K, D = np.eye(6), np.diag([0, 0, 1.0, 1, 1, 1]), 1e-2 * np.eye(6)
    K[:2, :2], D[:2, :2] = 100.0 * pair, pair
    expected = (np.sqrt(16 + 3200) - 4) / 400
    free = step_limit(Linear(M, K, D), REST, "symplectic_euler")
    assert free.dt == pytest.approx(expected, rel=1e-7) and not free.growing.size
    K[2, 2] = -1.0
    growing = step_limit(Linear(M, K, D), REST, "symplectic_euler")
    assert growing.dt == pytest.approx(expected, rel=1e-7) and growing.growing.size == 1


@pytest.mark.parametrize("name", [n for n in BY_NAME if n not in EXPLICIT])
def test_implicit_methods_have_no_limit(name):
    assert step_limit(Oscillator(stiffness=25.0), integrator=name).dt == np.inf


def test_step_limit_names_what_limits_and_what_grows():
    machine = DoublePendulum(masses=[1.0, 1.0], lengths=[0.6, 0.6])
    limit = step_limit(machine, State(np.zeros(2), np.zeros(2)), "zhai")
    fastest = np.sqrt((2 + np.sqrt(2)) * 9.81 / 0.6)
    assert limit.dt == pytest.approx(2.0 / fastest, rel=1e-8)
    assert abs(limit.eigenvalue) == pytest.approx(fastest, rel=1e-9)
    assert limit.growing.size == 0
    top = step_limit(Bead(damping=0.0), State(np.array([np.pi / 2]), np.zeros(1)), "rk4")
    np.testing.assert_allclose(top.growing, [np.sqrt(9.81 * 0.8)], rtol=1e-9)


def test_unknown_integrator():
    with pytest.raises(
        ValueError, match=r"integrator: got 'euler', expected one of explicit_euler"
    ):
        step_limit(Oscillator(), integrator="euler")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"u": State(jnp.zeros(1), jnp.zeros(1))}, "u: got State, expected inputs"),
        ({"u": jnp.zeros(3)}, "u: got shape"),
        ({"guess": jnp.zeros(1)}, "guess: got ArrayImpl, expected a State"),
    ],
)
def test_bad_input_of_equilibrium(arguments, message):
    with pytest.raises(ValueError, match=message):
        equilibrium(Pendulum(), **arguments)
