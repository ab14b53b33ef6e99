"""A duration is data: it does not compile anew."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Presentation, State, simulate, simulate_batch
from cordax.control import PID, Sinusoid
from cordax.simulation import executor, postprocess
from cordax.simulation.experiment import stored_count
from cordax.systems import Oscillator
from helpers.hung_ball import Ball


@pytest.fixture
def compilations(monkeypatch):
    """How often XLA has been asked to compile."""
    from jax._src import compiler

    asked = []
    inner = compiler.compile_or_get_cached
    # as in a new process: a length that many runs have had is compiled for
    monkeypatch.setattr(postprocess, "_runs_of_length", Counter())
    monkeypatch.setattr(
        compiler,
        "compile_or_get_cached",
        lambda *a, **k: (asked.append(str(a[1].operation.attributes["sym_name"])), inner(*a, **k))[
            1
        ],
    )
    return asked


def test_a_new_duration_compiles_nothing(compilations, monkeypatch):
    """Not within a piece, nor over several, nor in phases of other lengths."""
    monkeypatch.setattr(executor, "CAPACITY", 16)
    control = PID(Sinusoid([0.5]), (0,), 0.02, K_p=1.0, K_i=2.0)
    go = lambda n: simulate(Oscillator(), dt=0.01, duration=0.01 * n, save_every=2, control=control)
    phased = lambda *ends: simulate(
        [(Oscillator(), end) for end in ends], dt=0.01, save_every=2, control=control
    )
    go(20)
    phased(0.04, 0.06, 0.2)
    compiled = list(compilations)
    assert any("blocks" in name for name in compiled)
    runs = [go(n) for n in (2, 32, 34, 100)]
    together = phased(0.1, 0.36, 1.0)
    assert compilations == compiled
    for run in (*runs, together):
        n = run.t.shape[0]
        for name in ("t", "q", "v", "u"):
            np.testing.assert_allclose(
                getattr(run, name), getattr(runs[-1], name)[:n], rtol=1e-12, atol=1e-13
            )


def test_a_new_distance_of_stored_instants_compiles_nothing(compilations):
    """Alarms and sampled controllers included; only storing every step is a program of its own."""
    control = PID(Sinusoid([0.5]), (0,), 0.03, K_p=1.0, K_i=2.0)
    go = lambda every: simulate(
        Oscillator(), dt=0.01, duration=0.6, save_every=every, control=control
    )
    every_step, other = go(1), go(2)
    compiled = list(compilations)
    runs = {every: go(every) for every in (3, 4, 60)}
    assert compilations == compiled
    for every, run in ({2: other} | runs).items():
        assert run.t.shape == (60 // every + 1,)
        for name in ("t", "q", "v", "u"):
            wanted = getattr(every_step, name)[::every]
            np.testing.assert_allclose(getattr(run, name), wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("integrator", ["rk4", "generalised_alpha"])
def test_pieces_equal_one_loop(integrator, monkeypatch):
    """The compiled scan of a traced run against pieces that end within and with the run, for a
    machine with constraints, multipliers and outputs."""
    monkeypatch.setattr(executor, "CAPACITY", 8)
    options = {"dt": 0.01, "save_every": 3, "integrator": integrator, "throw": False}
    look = lambda r: (r.t, r.q, r.v, r.multipliers, r.outputs)
    run = lambda s, duration: look(simulate(Ball(), s, duration=duration, **options))
    start = Ball().default_state()
    for duration in (0.48, 0.3):
        whole = jax.jit(run, static_argnums=1)(start, duration)
        pieces = run(start, duration)
        for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(pieces), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_failures_in_a_later_piece(monkeypatch):
    monkeypatch.setattr(executor, "CAPACITY", 8)

    class Fenced(Oscillator):
        def valid(self, t, q, v):
            return jnp.abs(q[0]) < 2.0

        def outputs(self, t, q, v, u, multipliers):
            return {"x": q[0]}

        def presentation(self):
            return Presentation(warnings=lambda outputs: {"far": jnp.abs(outputs["x"]) > 1.5})

    start = State(jnp.ones(1), jnp.zeros(1))
    options = {"dt": 0.1, "duration": 20.0, "integrator": "explicit_euler", "throw": False}
    run = simulate(Fenced(), start, **options)
    whole = jax.jit(lambda s: simulate(Fenced(), s, **options).q)(start)
    np.testing.assert_allclose(run.q, whole, rtol=1e-12)
    good = int(np.sum(run.t < float(run.failure_time)))
    assert not bool(run.succeeded) and 8 < good < 200
    assert np.all(run.q[good:] == run.q[good - 1])
    far = int(np.argmax(np.abs(run.q[:, 0]) > 1.5))
    assert float(run.warnings["far"]) == pytest.approx(0.1 * far)


@pytest.mark.parametrize("n", [7, 20])  # one piece, and several
def test_many_runs_of_one_length(n, monkeypatch, compilations):
    """Their rows are taken by a compiled function, the same rows; the last result stays."""
    monkeypatch.setattr(executor, "CAPACITY", 8)
    monkeypatch.setattr(postprocess, "_OFTEN", 2)
    go = lambda q: simulate(Oscillator(), State([q], [0.0]), dt=0.01, duration=0.01 * n)
    runs = [go(float(i)) for i in range(5)]
    assert any("rows_together" in name for name in compilations)
    for i, run in enumerate(runs):
        assert run.q.shape == (n + 1, 1) and float(run.q[0, 0]) == i
        np.testing.assert_allclose(run.q - i, (runs[0].q + i * (runs[1].q - runs[0].q)) - i)


def test_what_is_remembered_follows_the_call():
    """Machines, settings and states of other calls do not leak into one."""
    machine, start = Oscillator(), State([0.3], [0.0])
    go = lambda m=machine, s=start, **o: simulate(m, s, **{"dt": 0.01, "duration": 0.1} | o)
    first = go()
    assert go().q.tolist() == first.q.tolist()
    assert go(integrator="explicit_euler").q.tolist() != first.q.tolist()
    assert go(dt=0.02).t.shape == (6,)
    assert go(save_every=5).t.shape == (3,)
    push = np.array([5.0])
    pushed = go(control=push).q
    push[:] = 0.0  # a mutable array is told by its numbers
    assert go(control=push).q.tolist() == first.q.tolist() != pushed.tolist()
    assert go(control=np.array([5.0])).q.tolist() == pushed.tolist()
    with pytest.raises(ValueError, match=r"state0.q: got shape \(2,\)"):
        go(s=State([0.3, 0.0], [0.0]))
    with pytest.raises(ValueError, match=r"state0.v"):
        go(s=State([0.3], [jnp.nan]))
    inside = jax.jit(lambda: go(s=None).q)()  # made first where its numbers are hidden
    np.testing.assert_allclose(inside, go(s=None).q, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(lambda: go().q)(), first.q, rtol=1e-14)
    slope = jax.grad(lambda x: go(s=State(x, jnp.zeros(1))).q[-1, 0])(jnp.array([0.3]))
    assert np.isfinite(slope[0]) and slope[0] != 0.0


@pytest.mark.parametrize("accuracy", [None, 1e-6])
def test_functions_that_refer_to_traced_numbers(accuracy):
    """A controller or a machine of functions hides them from a look at its leaves."""

    def end(p):
        push = lambda t, state: p * jnp.ones(1)
        options = {"dt": 0.01, "duration": 0.05, "control": push, "accuracy": accuracy}
        return simulate(Oscillator(), **options).q[-1, 0]

    slope = float(jax.grad(end)(2.0))
    assert slope == pytest.approx(float(end(3.0) - end(2.0)), rel=1e-6)
    assert jax.jit(jax.grad(end))(2.0) == pytest.approx(slope, rel=1e-9)
    np.testing.assert_allclose(jax.vmap(end)(jnp.arange(2.0)), [end(0.0), end(1.0)], rtol=1e-12)


def _end(x, n, **options):
    """Of a pendulum with a sampled controller, from the angle `x`, after `n` stored instants."""
    control = PID(Sinusoid([0.5]), (0,), 0.02, K_p=1.0, K_i=2.0)
    options = {"dt": 0.01, "duration": 0.02 * n, "save_every": 2, "control": control} | options
    run = simulate(Oscillator(stiffness=40.0 + x), State(x[None], jnp.ones(1)), **options)
    return jnp.sum(run.q[-1] ** 2) + jnp.sum(run.u**2)


@pytest.mark.parametrize("kind", ["scan", "checkpointed", "jacfwd", "vmap", "vmapped gradient"])
def test_a_new_duration_compiles_no_time_loop_under_transformations(
    kind, compilations, monkeypatch
):
    """Within a piece and over several; the numbers are those of one compiled loop."""
    monkeypatch.setattr(executor, "CAPACITY", 8)
    monkeypatch.setattr(executor, "REVERSE_STEPS", 16)
    adjoint = kind if kind in ("scan", "checkpointed") else "scan"
    end = lambda n: lambda x: _end(x, n, adjoint=adjoint, throw=False)
    change = {
        "jacfwd": jax.jacfwd,
        "vmap": jax.vmap,
        "vmapped gradient": lambda f: jax.vmap(jax.grad(f)),
    }.get(kind, jax.grad)
    x = jnp.array([0.3, 0.4]) if kind.startswith("vmap") else jnp.array(0.3)
    loops = lambda: [name for name in compilations if "blocks" in name or "start" in name]
    change(end(3))(x)
    before = loops()
    assert any("blocks" in name for name in before)
    found = [change(end(n))(x) for n in (2, 7, 8, 19)]
    assert loops() == before
    for n, y in zip((7, 19), (found[1], found[3]), strict=True):
        np.testing.assert_allclose(y, jax.jit(change(end(n)))(x), rtol=1e-9)


def test_checkpointed_pieces_keep_what_they_began_with(monkeypatch):
    monkeypatch.setattr(executor, "REVERSE_STEPS", 32)
    start = State(jnp.ones(1), jnp.zeros(1))

    def pulled(adjoint):
        options = {"dt": 0.01, "duration": 3.2, "save_every": 32, "adjoint": adjoint}
        end = lambda k: simulate(Oscillator(stiffness=k), start, **options).q[-1, 0]
        back = jax.vjp(end, 40.0)[1]
        return sum(x.nbytes for x in jax.tree.leaves(back)), float(back(1.0)[0])

    (all_steps, slope), (few, again) = pulled("scan"), pulled("checkpointed")
    assert again == pytest.approx(slope, rel=1e-12)
    assert few < all_steps / 10


def test_nested_derivatives_without_jit():
    """Reverse over forward and over reverse mode, which pieces do not allow, and forward over
    reverse."""
    options = {"dt": 0.01, "duration": 0.03, "throw": False, "integrator": "symplectic_euler"}
    start = State(jnp.ones(1), jnp.zeros(1))
    end = lambda x: simulate(Oscillator(stiffness=40.0 * x**2), start, **options).q[-1, 0]
    x, h = jnp.array(0.3), 1e-4
    curvature = (jax.grad(end)(x + h) - jax.grad(end)(x - h)) / (2 * h)
    for outer, inner in (
        (jax.jacfwd, jax.grad),
        (jax.grad, jax.jacfwd),
        (jax.grad, jax.grad),
    ):
        assert float(outer(inner(end))(x)) == pytest.approx(float(curvature), rel=1e-6)


def test_a_new_duration_compiles_nothing_in_batches(compilations):
    start = State(jnp.ones(1), jnp.zeros(1))
    build = lambda k: (Oscillator(stiffness=k), start)
    go = lambda n: simulate_batch(build, jnp.arange(1.0, 6.0), chunk=2, dt=0.01, duration=0.01 * n)
    go(3)
    compiled = list(compilations)
    assert any("advance_rows" in name for name in compiled)
    runs = [go(n) for n in (1, 5, 30)]
    assert compilations == compiled
    alone = simulate(Oscillator(stiffness=3.0), start, dt=0.01, duration=0.3)
    for run in runs:
        rows = run.q.shape[1]
        np.testing.assert_allclose(run.q[2], alone.q[:rows], rtol=1e-12)


def test_a_batch_that_refers_to_traced_numbers():
    def end(k):
        build = lambda x: (Oscillator(stiffness=k), State(x[None], jnp.zeros(1)))
        return simulate_batch(build, jnp.ones(2), dt=0.01, duration=0.05).q[0, -1, 0]

    slope = float(jax.grad(end)(30.0))
    assert slope == pytest.approx(float(end(30.01) - end(29.99)) / 0.02, rel=1e-5)


@pytest.mark.parametrize("dt, duration", [(1e-4, 100.00003), (1e-6, 2.0000004), (1e-3, 10.0005)])
def test_the_end_is_a_whole_number_of_steps_however_many_there_are(dt, duration):
    with pytest.raises(ValueError, match=r"^duration: got .* expected a whole number of steps"):
        simulate(Oscillator(), dt=dt, duration=duration)


def test_rounded_times_are_whole_numbers_of_steps():
    """Sums, quotients and times far from zero deviate by round-off alone."""
    for dt, end, t0 in [
        (1e-4, 1e5, 0.0),
        (1 / 3e3, 3e4 / 7, 3e4 / 7 - 10.0),
        (1e-6, 2e6 + 0.1, 2e6),
    ]:
        stored_count(t0, end, dt, 1)
