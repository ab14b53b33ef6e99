"""A duration is data: it does not compile anew."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import State, engine, simulate
from cordax.control import PID, Sinusoid
from cordax.systems import Oscillator
from hung_ball import Ball


@pytest.fixture
def compilations(monkeypatch):
    """How often XLA has been asked to compile."""
    from jax._src import compiler

    asked = []
    inner = compiler.compile_or_get_cached
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
    monkeypatch.setattr(engine, "CAPACITY", 16)
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


@pytest.mark.parametrize("integrator", ["rk4", "generalised_alpha"])
def test_pieces_equal_one_loop(integrator, monkeypatch):
    """The compiled scan of a traced run against pieces that end within and with the run, for a
    machine with constraints, multipliers and outputs."""
    monkeypatch.setattr(engine, "CAPACITY", 8)
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
    monkeypatch.setattr(engine, "CAPACITY", 8)

    class Fenced(Oscillator):
        def valid(self, t, q, v):
            return jnp.abs(q[0]) < 2.0

        def outputs(self, t, q, v, u, multipliers):
            return {"x": q[0]}

        def warnings(self, outputs):
            return {"far": jnp.abs(outputs["x"]) > 1.5}

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
