"""Many variants at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Experiment, State, simulate, simulate_batch
from cordax.control import PID, Sinusoid
from cordax.mechanics import Structure
from cordax.systems import Oscillator, Pendulum

OPTIONS = {"dt": 0.02, "duration": 0.4, "save_every": 5, "integrator": "symplectic_euler"}


def build(row):
    return Pendulum(length=row["length"]), State(row["angle"][None], jnp.zeros(1))


ROWS = {"length": np.linspace(0.5, 1.5, 7), "angle": np.linspace(-1.0, 1.0, 7)}


@pytest.fixture(scope="module")
def alone():
    return [
        simulate(*build({"length": jnp.asarray(a), "angle": jnp.asarray(b)}), **OPTIONS)
        for a, b in zip(ROWS["length"], ROWS["angle"], strict=True)
    ]


@pytest.mark.parametrize(("chunk", "workers"), [(64, None), (3, 2), (1, 1)])
def test_batch_equals_individual_runs(chunk, workers, alone):
    """With one chunk, with a last chunk that needs padding, and one by one."""
    batch = simulate_batch(build, ROWS, chunk=chunk, workers=workers, **OPTIONS)
    assert batch.q.shape == (7, 5, 1) and batch.t.shape == (7, 5)
    assert batch.system is None
    for name in ("t", "q", "v", "u"):
        together = getattr(batch, name)
        one_by_one = np.stack([getattr(run, name) for run in alone])
        np.testing.assert_allclose(together, one_by_one, rtol=1e-12, atol=1e-14)
    assert np.all(batch.succeeded)


def test_gradient_of_a_batch():
    def total(lengths):
        rows = {"length": lengths, "angle": jnp.asarray(ROWS["angle"])}
        return jnp.sum(simulate_batch(build, rows, **OPTIONS).q[:, -1])

    lengths = jnp.asarray(ROWS["length"])
    slope = jax.grad(total)(lengths)
    h = 1e-5
    central = [
        (total(lengths.at[i].add(h)) - total(lengths.at[i].add(-h))) / (2 * h) for i in (0, 5)
    ]
    np.testing.assert_allclose(slope[np.array([0, 5])], central, rtol=1e-6)


def test_each_member_fails_for_itself():
    class Fenced(Oscillator):
        def valid(self, t, q, v):
            return jnp.abs(q[0]) < 2.0

    stiffness = jnp.array([1.0, 30.0, 2.0, 40.0, 0.5])
    make = lambda k: Fenced(stiffness=k)
    options = {"dt": 1.0, "duration": 10.0, "integrator": "symplectic_euler"}
    batch = simulate_batch(make, stiffness, chunk=2, **options)
    np.testing.assert_array_equal(batch.succeeded, [True, False, True, False, True])
    for i, k in enumerate(stiffness):
        run = simulate(make(k), throw=False, **options)
        np.testing.assert_allclose(batch.q[i], run.q, rtol=1e-12, atol=1e-13)
        assert float(batch.failure_time[i]) == float(run.failure_time)


def test_controllers_may_differ_between_members():
    def build(gain):
        control = PID(Sinusoid([0.5]), (0,), 0.04, K_p=gain)
        return Oscillator(), State(jnp.ones(1), jnp.zeros(1)), control

    gains = jnp.array([0.0, 5.0])
    batch = simulate_batch(build, gains, **OPTIONS)
    for i, gain in enumerate(gains):
        machine, start, control = build(gain)
        run = simulate(machine, start, control=control, **OPTIONS)
        np.testing.assert_allclose(batch.u[i], run.u, rtol=1e-12, atol=1e-14)


def test_wrong_input():
    with pytest.raises(ValueError, match=r"parameters: got .*expected arrays with a leading batch"):
        simulate_batch(build, {"length": 1.0, "angle": 1.0}, **OPTIONS)
    rows = {"length": np.ones(3), "angle": np.ones(4)}
    with pytest.raises(ValueError, match=r"parameters: got \[.*\], expected equal leading axes"):
        simulate_batch(build, rows, **OPTIONS)
    with pytest.raises(ValueError, match=r"chunk: got 0, expected a whole number >= 1"):
        simulate_batch(build, ROWS, chunk=0, **OPTIONS)
    with pytest.raises(ValueError, match=r"build: got .*expected a function returning a System"):
        simulate_batch(lambda row: 3.0, ROWS, **OPTIONS)


class Factorised(Pendulum):
    """A pendulum that calls LAPACK, whose calls from two chunks at once would wait for ever."""

    def structure(self):
        return _Factorising(self)


class _Factorising(Structure):
    def acceleration(self, t, q, v, u):
        return jnp.linalg.solve(self.system.mass_matrix(q), self.system.total_force(t, q, v, u))


@pytest.mark.parametrize("machine", [Pendulum, Factorised])
def test_several_chunks_with_options_that_are_numpy_arrays(machine):
    build = lambda mass: machine(mass=mass)
    options = {"dt": 0.01, "duration": 0.05, "integrator": "rk4", "control": np.array([0.1])}
    together = simulate_batch(build, np.linspace(1.0, 2.0, 5), chunk=2, workers=2, **options)
    assert bool(jnp.all(together.succeeded))
    alone = simulate(machine(mass=2.0), **options)
    np.testing.assert_allclose(together.q[-1], alone.q, rtol=1e-12)


# --- compiled once ------------------------------------------------------------------------------

SCALE = 1.0


def test_a_lambda_compiles_once(monkeypatch):
    """A new lambda is the same function while everything it refers to is; otherwise another."""
    traced = []
    count_event = lambda event, **_: traced.append(1) if event == "traced" else None
    jax.monitoring.register_event_listener(count_event)

    class Counted(Pendulum):
        def __check_init__(self):
            jax.monitoring.record_event("traced")  # a list would be part of what is compared

    start = State(jnp.ones(1), jnp.zeros(1))
    go = lambda length: simulate_batch(
        lambda mass: (Counted(mass=mass, length=length * SCALE), start), np.ones(3), **OPTIONS
    )
    first = go(1.0)
    count = len(traced)
    assert count > 0
    np.testing.assert_array_equal(go(1.0).q, first.q)
    assert len(traced) == count
    assert np.any(go(1.5).q != first.q) and len(traced) > count
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    assert np.any(go(1.0).q != first.q)


def test_what_a_function_refers_to_may_change():
    lengths = [1.0]
    go = lambda: simulate_batch(lambda m: Pendulum(mass=m, length=lengths[0]), ONES, **OPTIONS)
    first = go()
    lengths[0] = 2.0
    assert np.any(go().q != first.q)


ONES = np.ones(2)


@pytest.mark.parametrize("own", [None, 0.02])
def test_switches_before_the_end_that_the_batch_asks_for(own):
    """The experiment has no duration, or one that ends before its switch."""
    start = State(jnp.ones(1), jnp.zeros(1))
    stiffer = lambda machine, state: Oscillator(stiffness=900.0)
    build = lambda k: Experiment(
        Oscillator(stiffness=k), start, dt=0.01, duration=own, switches=((0.05, stiffer),)
    )
    found = simulate_batch(build, jnp.array([10.0, 40.0]), duration=0.1)
    alone = simulate(build(40.0).replace(duration=0.1))
    np.testing.assert_allclose(found.q[1], alone.q, rtol=1e-12)


def test_a_duration_of_none_is_that_of_the_experiment():
    build = lambda k: Experiment(Oscillator(stiffness=k), dt=0.01, duration=0.03)
    found = simulate_batch(build, jnp.array([10.0, 40.0]), duration=None)
    assert found.t.shape == (2, 4)
