"""Any diffrax solver and step-size controller on a machine."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Diffrax, Result, State, simulate
from cordax.systems import Oscillator
from helpers.hung_ball import Ball
from helpers.machines import FreeBody

START = State(np.array([1.0]), np.array([0.5]))
K = 4.0


def exact(t, k=K):
    w = np.sqrt(k)
    return np.cos(w * t) + 0.5 / w * np.sin(w * t)


@pytest.mark.parametrize(
    ("solver", "order"),
    [(diffrax.Heun(), 2), (diffrax.Tsit5(), 5)],
    ids=["Heun", "Tsit5"],
)
def test_order_with_a_constant_step(solver, order):
    method = Diffrax(solver, diffrax.ConstantStepSize())

    @eqx.filter_jit
    def last(dt):
        dynamics = cordax.Dynamics(Oscillator(stiffness=K), cordax.Minimal())
        times = jnp.array([0.0, 1.6])
        adjoint = diffrax.RecursiveCheckpointAdjoint()
        u = lambda t, q, v: jnp.zeros(1)
        (q, v), _, _ = method.solve(dynamics, times, dt, START, u, adjoint)
        return jnp.stack([q[-1, 0], v[-1, 0] / 2.0])

    steps = np.array([64, 128, 256])
    true = np.array([exact(1.6), 0.25 * np.cos(3.2) - np.sin(3.2)])
    errors = np.array([np.linalg.norm(last(1.6 / n) - true) for n in steps])
    np.testing.assert_allclose(np.log2(errors[:-1] / errors[1:]), order, atol=0.1)


@pytest.fixture(scope="module")
def adaptive():
    return Diffrax(diffrax.Tsit5(), diffrax.PIDController(rtol=1e-10, atol=1e-10))


OPTIONS = {"dt": 0.05, "duration": 2.0, "save_every": 4, "throw": False}


def test_saves_lie_where_a_fixed_step_puts_them(adaptive):
    run = simulate(Oscillator(stiffness=K), START, integrator=adaptive, **OPTIONS)
    assert bool(run.succeeded)
    np.testing.assert_allclose(run.t, 0.2 * np.arange(11), rtol=1e-14)
    np.testing.assert_allclose(run.q[:, 0], exact(run.t), atol=1e-8)


def test_derivatives_and_batch(adaptive):
    def last(k, adjoint="scan"):
        run = simulate(
            Oscillator(stiffness=k), START, integrator=adaptive, adjoint=adjoint, **OPTIONS
        )
        return run.q[-1, 0]

    h = 1e-6
    slope = (exact(2.0, K + h) - exact(2.0, K - h)) / (2 * h)
    assert float(jax.jit(jax.grad(last))(K)) == pytest.approx(slope, rel=1e-6)
    forward = jax.jit(jax.jacfwd(lambda k: last(k, "forward")))
    assert float(forward(K)) == pytest.approx(slope, rel=1e-6)
    ks = jnp.array([1.0, 4.0, 9.0])
    np.testing.assert_allclose(jax.jit(jax.vmap(last))(ks), exact(2.0, np.asarray(ks)), atol=1e-8)


def test_failures_are_told_apart(adaptive):
    class Fenced(Oscillator):
        def valid(self, t, q, v):
            return q[0] > -0.5

    out = simulate(Fenced(stiffness=K), START, integrator=adaptive, **OPTIONS)
    first = np.argmax(exact(np.asarray(out.t)) <= -0.5)
    assert out.result == Result.RUNAWAY_STATE
    assert float(out.failure_time) == float(out.t[first])
    assert np.all(out.q[first:] == out.q[first - 1])

    few = Diffrax(adaptive.solver, adaptive.controller, max_steps=16)
    out = simulate(Oscillator(stiffness=K), START, integrator=few, **OPTIONS)
    assert out.result == Result.MAX_STEPS_REACHED
    assert 0.0 < float(out.failure_time) < 2.0
    assert np.all(np.isfinite(out.q))


def test_symplectic_solvers_refuse_adaptive_steps():
    method = Diffrax(diffrax.LeapfrogMidpoint(), diffrax.PIDController(rtol=1e-6, atol=1e-6))
    with pytest.raises(ValueError, match=r"LeapfrogMidpoint.*constant step.*PIDController"):
        simulate(Oscillator(), integrator=method, **OPTIONS)


def test_projections_are_refused(adaptive):
    ball = Ball()
    with pytest.raises(ValueError, match=r"formulation: got Projected, expected .*Diffrax"):
        simulate(ball, integrator=adaptive, formulation=cordax.Projected(), **OPTIONS)


def test_quaternions_are_unit(adaptive):
    """A free body at a coarse tolerance, which lets their length drift."""
    loose = Diffrax(diffrax.Tsit5(), diffrax.PIDController(rtol=1e-3, atol=1e-3))
    run = simulate(FreeBody(), integrator=loose, dt=0.5, duration=5.0)
    np.testing.assert_allclose(np.sum(np.asarray(run.q) ** 2, axis=1), 1.0, atol=1e-14)
