"""Formulations of constrained dynamics on a ball on strings: orders, drift, redundancy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import (
    RK4,
    Baumgarte,
    Dynamics,
    GeneralisedAlpha,
    ImplicitEuler,
    ImplicitMidpoint,
    Index3,
    LinearlyImplicitEuler,
    Minimal,
    Penalty,
    Projected,
    Result,
    Rosenbrock2,
    State,
    UdwadiaKalaba,
    simulate,
)
from cordax.systems import Pendulum
from helpers.hung_ball import Ball, swing

SHAKEN = Ball(amplitude=0.05, damping=0.2)
END = 1.0
EXPLICIT = {
    "bare": Baumgarte(0.0, 0.0),
    "baumgarte": Baumgarte(),
    "udwadia": UdwadiaKalaba(),
    "projected": Projected(),
}


@pytest.fixture(scope="module")
def exact():
    """Position, velocity and tension at the end, in the angle alone."""
    rate = 0.3
    angle, speed, tension = swing(SHAKEN, 0.9, rate, END)
    A, w = float(SHAKEN.amplitude), float(SHAKEN.frequency)
    q = np.array([A * np.sin(w * END) + np.sin(angle), -np.cos(angle)])
    v = np.array([A * w * np.cos(w * END) + speed * np.cos(angle), speed * np.sin(angle)])
    start = SHAKEN.at_angle(0.9, rate)
    return State(start.q, start.v + np.array([A * w, 0.0])), q, v, tension


@eqx.filter_jit
def tension_at_end(formulation, state):
    dynamics = Dynamics(SHAKEN, formulation)
    multipliers = dynamics.multipliers(jnp.asarray(END), state.q, state.v, jnp.zeros(2))
    return SHAKEN.multiplier_forces(END, state.q, multipliers)[0]


def errors(formulation, integrator, exact, counts):
    """Of state, tension, and constraints, for each number of steps."""
    start, q, v, tension = exact
    rows = []
    for n in counts:
        how = {"integrator": integrator, "formulation": formulation}
        run = simulate(SHAKEN, start, dt=END / n, duration=END, **how)
        off = np.concatenate([run.q[-1] - q, run.v[-1] - v])
        found = tension_at_end(formulation, State(run.q[-1], run.v[-1]))
        rows.append([np.max(np.abs(off)), abs(found - tension), np.max(run.drift())])
    return np.array(rows).T


def orders(errors):
    return np.log2(errors[:-1] / errors[1:])


@pytest.mark.parametrize("name", EXPLICIT)
def test_order_4_under_rk4(name, exact):
    state, tension, drift = errors(EXPLICIT[name], RK4(), exact, (32, 64, 128))
    np.testing.assert_allclose(orders(state), 4.0, atol=0.35)
    assert state[-1] < 1e-6 and tension[-1] < 1e-5
    assert drift[-1] < (1e-14 if name == "projected" else 1e-7)


@pytest.mark.parametrize("method, order", [(GeneralisedAlpha(), 2), (LinearlyImplicitEuler(), 1)])
def test_orders_of_the_index_3_integrators(method, order, exact):
    state, tension, drift = errors(Index3(), method, exact, (128, 256, 512))
    np.testing.assert_allclose(orders(state), order, atol=0.1)
    np.testing.assert_allclose(orders(tension), order, atol=0.2)
    if order == 2:
        assert np.max(drift) < 1e-13
    else:
        np.testing.assert_allclose(orders(drift), 2.0, atol=0.1)


@pytest.mark.parametrize("method, order", [(ImplicitMidpoint(), 2), (ImplicitEuler(), 1)])
def test_implicit_methods_keep_the_constraints(method, order, exact):
    state, _, drift = errors(Index3(), method, exact, (128, 256, 512))
    np.testing.assert_allclose(orders(state), order, atol=0.1)
    assert np.max(drift) < 1e-13


LINEARLY_IMPLICIT = [
    (Baumgarte(), Rosenbrock2(), 2),
    (Projected(), Rosenbrock2(), 2),
    (Baumgarte(), LinearlyImplicitEuler(), 1),
]


@pytest.mark.parametrize("formulation, method, order", LINEARLY_IMPLICIT)
def test_linearly_implicit_steps_of_the_index_1_form(formulation, method, order, exact):
    # a method of order 1 drifts further in longer steps than a run may
    counts = (256, 512, 1024) if order == 2 else (2048, 4096, 8192)
    state, _, drift = errors(formulation, method, exact, counts)
    np.testing.assert_allclose(orders(state), order, atol=0.1)
    assert state[-1] < (1e-4 if order == 2 else 2e-3)
    assert drift[-1] < (1e-14 if formulation.projects else 1e-3)


def test_the_error_of_the_penalty_form_is_that_of_its_factor(exact):
    weak, strong = (errors(Penalty(a), RK4(), exact, (2048,)) for a in (1e2, 1e3))
    state, _, drift = weak / strong
    np.testing.assert_allclose([state, drift], 10.0, rtol=0.05)
    assert strong[0] < 1e-5


@jax.jit
def accelerations(q, v):
    """Of a ball off its string under Baumgarte, and of a pendulum without constraints under all."""
    off = Baumgarte(10.0, 10.0).acceleration(Ball(), 0.0, q, v, jnp.zeros(2))
    free = [
        f.acceleration(Pendulum(), 0.0, q[:1], v[:1], jnp.ones(1))[0]
        for f in (Minimal(), Baumgarte(), Projected(), Penalty(), UdwadiaKalaba())
    ]
    return off, free


def test_stabilisation_and_machines_without_constraints():
    """At rest off the constraint, d2Phi/dt2 = -beta^2 Phi."""
    q = 1.001 * Ball().at_angle(0.4).q
    (a, multipliers), (minimal, *others) = accelerations(q, jnp.zeros(2))
    np.testing.assert_allclose(2 * q @ a, -100.0 * Ball().constraint(0.0, q)[0], rtol=1e-9)
    weight = jnp.array([0.0, -0.7 * 9.81])
    np.testing.assert_allclose(0.7 * a, weight - multipliers @ (2 * q[None]), atol=1e-12)
    for other in others:
        np.testing.assert_allclose(other, minimal, rtol=1e-12)


# --- redundant rows ---------------------------------------------------------------------------

TWICE = Ball(anchors=np.zeros((2, 2)), lengths=np.ones(2))
OPTIONS = {"dt": 0.01, "duration": 0.5, "save_every": 10, "throw": False}


@pytest.mark.parametrize(
    "formulation, integrator",
    [
        (Baumgarte(), "rk4"),
        (Projected(), "rk4"),
        (Index3(), GeneralisedAlpha()),
        (Index3(), LinearlyImplicitEuler()),
    ],
)
def test_redundant_rows_end_a_run_by_name(formulation, integrator):
    run = simulate(TWICE, formulation=formulation, integrator=integrator, **OPTIONS)
    assert run.result == Result.SINGULAR_CONSTRAINTS
    assert np.all(np.isfinite(run.q)) and np.all(np.isfinite(run.v))
    assert float(run.failure_time) == pytest.approx(0.01)
    assert "lost rank" in run.summary()


@pytest.mark.parametrize("formulation", [UdwadiaKalaba(), Penalty()])
def test_formulations_that_take_redundant_rows(formulation):
    # omega = 100 of the penalty form needs smaller steps than the motion
    options = OPTIONS | {"dt": 0.002, "save_every": 50}
    single = simulate(Ball(), formulation=Baumgarte(), **options)
    run = simulate(TWICE, formulation=formulation, **options)
    assert bool(run.succeeded)
    np.testing.assert_allclose(run.q, single.q, atol=2e-6)
    # two equal strings share the load
    np.testing.assert_allclose(run["tension"].sum(axis=1), single["tension"][:, 0], rtol=1e-4)
    np.testing.assert_allclose(run["tension"][:, 0], run["tension"][:, 1], rtol=1e-4)


@pytest.mark.parametrize(
    "formulation, integrator",
    [
        (UdwadiaKalaba(), RK4()),
        (Projected(), RK4()),
        (Penalty(1e2), RK4()),
        (Index3(), GeneralisedAlpha()),
        (Index3(), LinearlyImplicitEuler()),
    ],
)
def test_reverse_derivatives(formulation, integrator):
    """Of position and multiplier after some steps by length and mass, against differences."""

    @jax.jit
    @jax.value_and_grad
    def end(x):
        ball = Ball(lengths=x[:1], mass=x[1], damping=0.3)
        how = {"formulation": formulation, "integrator": integrator, "throw": False}
        run = simulate(ball, dt=0.02, duration=0.4, save_every=20, **how)
        return run.q[-1, 0] + 0.1 * run.multipliers[-1, 0]

    x, h = jnp.array([1.2, 0.8]), 1e-4
    five = lambda d: 8 * (end(x + d)[0] - end(x - d)[0]) - end(x + 2 * d)[0] + end(x - 2 * d)[0]
    central = [five(d) / (12 * h) for d in h * np.eye(2)]
    np.testing.assert_allclose(end(x)[1], central, rtol=1e-6, atol=1e-8)
