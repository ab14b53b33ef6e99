"""One table over all fixed-step methods: order, stability, energy, derivatives, batches, traces."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy.integrate import solve_ivp

import cordax
from cordax import Dynamics, Integrator, Minimal, State, simulate
from cordax.integrators import BY_NAME
from cordax.integrators.base import Step, Traits
from cordax.mechanics import Delegate
from cordax.systems import Oscillator, Pendulum
from helpers.machines import Bead


class Row(NamedTuple):
    """What theory says: order, whether the method takes machines with velocity-dependent forces,
    the largest stable omega dt on the undamped oscillator, whether it is symplectic, and whether it
    remembers more than the state: then an unresolved vibration may swing up before it decays."""

    order: int
    general: bool
    limit: float
    symplectic: bool = False
    memory: bool = False


INF = np.inf
TABLE = {
    "explicit_euler": Row(1, True, 0.0),
    "symplectic_euler": Row(1, True, 2.0, True),
    "stormer_verlet": Row(2, False, 2.0, True),
    "forest_ruth_4": Row(4, False, 1.5734, True),
    "suzuki_4": Row(4, False, 2.7210, True),
    "rk4": Row(4, True, 2.8284),
    "zhai": Row(2, True, 2.0),
    "linearly_implicit_euler": Row(1, True, INF),
    "rosenbrock_2": Row(2, True, INF),
    "implicit_euler": Row(1, True, INF),
    "implicit_midpoint": Row(2, True, INF, True),
    "generalised_alpha": Row(2, True, INF, memory=True),
}
every = pytest.mark.parametrize("name", TABLE)


def only(choose):
    return pytest.mark.parametrize("name", [n for n, row in TABLE.items() if choose(row)])


def test_the_table_covers_every_method():
    assert TABLE.keys() == BY_NAME.keys()


@every
def test_declarations(name):
    method, row = BY_NAME[name].traits, TABLE[name]
    assert method.order == row.order
    assert method.needs_separable is not row.general
    assert method.oscillator_limit == pytest.approx(row.limit, rel=2e-5)
    assert method.explicit == np.isfinite(row.limit)


class Weighed(Delegate):
    """Tells its energy at every stored instant."""

    def outputs(self, t, q, v, u, multipliers):
        return {"energy": sum(self.energies(t, q, v))}

    def structure(self):
        return self.inner.structure()


def march(name, system, dt, n, control=None):
    """A run of `n` steps and the largest |E - E0| on the way. One program serves all numbers of
    steps."""
    how = {"integrator": name, "control": control, "throw": False}
    run = simulate(Weighed(system), dt=dt, duration=n * dt, **how)
    return run, float(np.max(np.abs(run["energy"] - run["energy"][0])))


def rest_input(t, q, v):
    return jnp.zeros_like(v)


def shaking(t, state):
    return jnp.sin(3.0 * t) * jnp.ones_like(state.v)


def case(name):
    """A machine and its input: one with everything, where the method takes it."""
    return (Bead(), shaking) if TABLE[name].general else (Pendulum(), None)


def bead_rate(t, y):
    """The default `Bead` written out, driven by sin(3 t)."""
    (x, v), A = y, 0.8
    force = A**2 * np.cos(x) * np.sin(x) * v**2 - 9.81 * A * np.cos(x) - 0.3 * v + np.sin(3 * t)
    return [v, force / (1.0 + (A * np.cos(x)) ** 2)]


def pendulum_rate(t, y):
    return [y[1], -9.81 * np.sin(y[0])]


@pytest.fixture(scope="module")
def exact():
    """Final states (q, v) after 0.5 s, by SciPy."""
    out = {}
    for general, rate, name in ((True, bead_rate, "rk4"), (False, pendulum_rate, "stormer_verlet")):
        start = case(name)[0].default_state()
        y0 = np.concatenate([start.q, start.v])
        options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}
        out[general] = solve_ivp(rate, (0.0, 0.5), y0, **options).y[:, -1]
    return out


@every
def test_order_of_convergence(name, exact):
    system, u = case(name)
    row = TABLE[name]
    errors = []
    steps = (40, 80, 160) if row.order > 2 else (400, 800, 1600)
    for n in steps:
        run, _ = march(name, system, 0.5 / n, n, u)
        errors.append(np.linalg.norm(np.append(run.q[-1], run.v[-1]) - exact[row.general]))
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert errors[0] < 1e-2
    np.testing.assert_allclose(orders, row.order, atol=0.1)


def oscillate(name, omega_dt, n):
    """Energy after `n` steps over the first, the largest |E - E0| over E0 on the way, and whether
    the run went to its end."""
    run, worst = march(name, Oscillator(stiffness=4.0), omega_dt / 2.0, n)
    return float(run["energy"][-1]) / 2.0, worst / 2.0, bool(run.succeeded)


@only(lambda row: 0 < row.limit < INF)
def test_stable_below_and_unstable_above_the_oscillator_limit(name):
    limit = TABLE[name].limit
    # Just below, the invariant of the method is a long ellipse: energies swing, but do not grow.
    for n in (5_000, 50_000):
        _, worst, finished = oscillate(name, 0.9995 * limit, n)
        assert worst < 1e4 and finished
    _, worst, finished = oscillate(name, 1.0005 * limit, 50_000)
    assert worst > 1e5 and not finished


@only(lambda row: row.limit == 0)
def test_explicit_euler_is_unstable_at_every_step(name):
    for omega_dt, n in ((1e-1, 1_000), (1e-3, 100_000)):
        energy, *_ = oscillate(name, omega_dt, n)
        assert energy == pytest.approx((1 + omega_dt**2) ** n, rel=1e-6)


@only(lambda row: row.memory)
def test_methods_with_memory_forget_what_the_step_does_not_resolve(name):
    energy, *_ = oscillate(name, 1000.0, 1_000)
    assert energy < 1e-9


@only(lambda row: row.limit == INF and not row.memory)
def test_implicit_methods_stay_bounded_at_a_huge_step(name):
    _, worst, _ = oscillate(name, 1000.0, 1_000)
    assert worst <= 1.0 + 1e-9


@only(lambda row: row.limit == INF and not row.memory)
def test_damping_of_what_the_step_does_not_resolve(name):
    """L-stable methods remove an unresolved vibration in one step; implicit midpoint keeps it."""
    energy, *_ = oscillate(name, 1e6, 1)
    if TABLE[name].symplectic:
        assert energy == pytest.approx(1.0, abs=1e-8)
    else:
        assert energy < 1e-9
    assert energy == pytest.approx(BY_NAME[name]().growth(1e6j) ** 2, rel=1e-3)


@every
def test_energy_over_a_long_run(name):
    """Symplectic methods, and Zhai, whose positions are those of Verlet here: the energy error of
    20 000 steps is that of 2000. Implicit Euler stops the pendulum; others drift, RK4 included."""
    system = Pendulum()
    deviation = lambda n: march(name, system, 0.1, n)[1]
    short, long = deviation(2_000), deviation(20_000)
    swing = 9.81 * (1 - np.cos(1.0))  # above hanging still
    if TABLE[name].symplectic or name == "zhai":
        assert 1e-4 < long < 1.00001 * short
        assert long < 0.2 * swing
    elif TABLE[name].order == 1 and not BY_NAME[name].traits.explicit:
        assert long == pytest.approx(swing)  # damped to the end
    else:
        assert long > 1.1 * short and long > 0.1 * swing


@every
def test_growth_is_the_spectral_radius_of_one_step(name):
    """`growth(lambda dt)` against the matrix of the step itself, for damped and undamped modes."""
    integrator = BY_NAME[name]()

    @jax.jit
    def matrix(dt, damping):
        dynamics = Dynamics(Oscillator(damping=damping), Minimal())
        state = State(jnp.zeros(1), jnp.zeros(1))
        flat, build = ravel_pytree((state, integrator.init(dynamics, 0.0, dt, state, rest_input)))

        def step(x):
            state, carry = build(x)
            new = integrator.step(dynamics, jnp.zeros(()), dt, state, rest_input, carry)
            return ravel_pytree((new.state, new.carry))[0]

        return jax.jacfwd(step)(flat)

    for dt in (0.3, 1.7, 2.5, 40.0):
        for ratio in (0.0, 0.1, 0.7):
            z = dt * complex(-ratio, np.sqrt(1 - ratio**2))
            radius = np.max(np.abs(np.linalg.eigvals(matrix(dt, 2 * ratio))))
            assert integrator.growth(z) == pytest.approx(radius, rel=1e-9)


_traces = 0


def _count(event: str, **_) -> None:
    global _traces
    _traces += event == "traced"


jax.monitoring.register_event_listener(_count)


class CountedBead(Bead):
    """Counts how often its equations are traced."""

    def potential_energy(self, t, q):
        jax.monitoring.record_event("traced")  # a global count would be part of the machine
        return super().potential_energy(t, q)


class CountedPendulum(Pendulum):
    def potential_energy(self, t, q):
        jax.monitoring.record_event("traced")  # a global count would be part of the machine
        return super().potential_energy(t, q)


def final_state(name, theta, dt=0.02):
    """20 steps from a start and with parameters that depend on `theta`, shape (3,)."""
    if TABLE[name].general:
        system = CountedBead(mass=theta[0], height=theta[1], damping=theta[2])
    else:
        system = CountedPendulum(mass=theta[0], length=theta[1])
    run = cordax.simulate(
        system,
        State(theta[2:], theta[:1]),
        dt=dt,
        duration=20 * dt,
        integrator=name,
        control=jnp.array([0.5]),
        throw=False,
    )
    return jnp.concatenate([run.q[-1], run.v[-1]])


@every
def test_derivatives_batches_and_traces(name):
    theta = jnp.array([0.9, 0.8, 0.3])
    h = 1e-4
    offsets = h * jnp.concatenate([jnp.eye(3), -jnp.eye(3), 2.0 * jnp.eye(3), -2.0 * jnp.eye(3)])
    rows = theta + offsets

    one_by_one = [final_state(name, rows[0])]
    seen = _traces
    one_by_one += [final_state(name, row) for row in rows[1:]]
    final_state(name, theta, dt=0.01)
    assert _traces == seen > 0  # neither parameters nor the start nor dt retrace

    batch = jax.jit(jax.vmap(lambda x: final_state(name, x)))(rows)
    np.testing.assert_allclose(batch, jnp.stack(one_by_one), rtol=1e-12, atol=1e-13)

    up, down, up2, down2 = batch.reshape(4, 3, -1)
    central = ((8.0 * (up - down) - (up2 - down2)) / (12.0 * h)).T
    forward = jax.jit(jax.jacfwd(lambda x: final_state(name, x)))(theta)
    reverse = jax.jit(jax.jacrev(lambda x: final_state(name, x)))(theta)
    scale = np.max(np.abs(central))
    np.testing.assert_allclose(forward, central, rtol=1e-6, atol=1e-9 * scale)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9, atol=1e-12 * scale)


@only(lambda row: not row.general)
def test_a_method_that_does_not_fit_is_refused(name):
    with pytest.raises(ValueError, match=rf"{BY_NAME[name].__name__}.*Bead"):
        cordax.simulate(Bead(), duration=0.1, dt=0.01, integrator=name)


def test_a_method_without_a_required_member_is_not_constructed():
    class NoTraits(Integrator):
        def step(self, dynamics, t, dt, state, u, carry):
            return Step(state, carry)

    class NoStep(Integrator):
        traits = Traits(order=1, explicit=True)

    for kind, missing in ((NoTraits, "traits"), (NoStep, "step")):
        with pytest.raises(TypeError, match=missing):
            kind()
