"""One-sided constraints on a ball on strings: releases and catches known by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from cordax import (
    RK4,
    Baumgarte,
    ExplicitEuler,
    GeneralisedAlpha,
    Projected,
    State,
    UdwadiaKalaba,
    Unilateral,
    Zhai,
    simulate,
)
from helpers.hung_ball import Ball

G, M = 9.81, 0.7
ROPE = Ball(one_way=True)
DT, STEPS = 2e-3, 600


def fly(rate):
    """A ball on a unit string starts at the bottom with `rate` [rad/s], too slow for a full turn:
    angle and time of release, time of the catch, its impulse, velocity after it."""
    # T = m (g cos a + a'^2) = 0 with a'^2 = rate^2 - 2 g (1 - cos a)
    cosine = (2 * G - rate**2) / (3 * G)
    angle = np.arccos(cosine)
    speed = np.sqrt(rate**2 - 2 * G * (1 - cosine))
    nodes, weights = np.polynomial.legendre.leggauss(60)
    a = 0.5 * angle * (nodes + 1)
    swing = 0.5 * angle * np.sum(weights / np.sqrt(rate**2 - 2 * G * (1 - np.cos(a))))
    q = np.array([np.sin(angle), -np.cos(angle)])
    v = speed * np.array([np.cos(angle), np.sin(angle)])
    at = lambda s: q + s * v + 0.5 * s**2 * np.array([0.0, -G])
    flight = brentq(lambda s: at(s) @ at(s) - 1.0, 1e-2, 3.0, xtol=1e-14)
    hit, speed = at(flight), v + flight * np.array([0.0, -G])
    return swing, swing + flight, M * float(speed @ hit), speed - (speed @ hit) * hit


def throw(rate, ball=ROPE, **options):
    start = State(jnp.array([0.0, -1.0]), jnp.stack([jnp.asarray(rate), jnp.zeros(())]))
    options = {"integrator": Unilateral(capacity=8)} | options
    return simulate(ball, start, dt=DT, duration=STEPS * DT, save_every=STEPS, **options)


@pytest.fixture(scope="module")
def thrown():
    return throw(5.5)


def test_release_and_catch(thrown):
    release, catch, impulse, _ = fly(5.5)
    events = thrown.events
    assert list(events.kind[:2]) == [-1, 1] and list(events.row[:2]) == [0, 0]
    np.testing.assert_allclose(events.time[:2], [release, catch], atol=1e-8)
    np.testing.assert_allclose(events.impulse[:2], [0.0, impulse], atol=1e-7)


def test_energy_is_lost_at_the_catch_alone(thrown):
    _, _, impulse, _ = fly(5.5)
    energy = np.asarray(thrown.energy()["total"])
    lost = impulse**2 / (2 * M)  # of the radial velocity
    assert np.sum(np.isfinite(thrown.events.time)) == 2
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=1e-6)
    assert float(jnp.max(thrown.drift())) < 1e-9


def test_without_releases_it_is_the_inner_method():
    plain = throw(2.0, Ball(), integrator=RK4())
    run = throw(2.0)
    np.testing.assert_allclose(run.q, plain.q, atol=1e-13)
    assert not np.any(np.isfinite(run.events.time))


def test_derivatives_through_release_and_catch():
    """Of the last position, instants and impulse by the first velocity, against central
    differences."""

    @jax.jit
    @jax.value_and_grad
    def end(rate):
        run = throw(rate, throw=False)
        return run.q[-1, 0] + run.events.time[0] + run.events.time[1] + run.events.impulse[1]

    rate, h = jnp.asarray(5.5), 1e-4
    central = (end(rate + h)[0] - end(rate - h)[0]) / (2 * h)
    assert float(end(rate)[1]) == pytest.approx(float(central), rel=2e-6)


def test_both_modes_by_a_number_that_a_controller_closes_over():
    """Derivative of the last position by a force; the loops of the search for events see it."""

    def end(force):
        control = lambda t, s: jnp.stack([force, jnp.zeros(())])
        return throw(5.5, control=control, throw=False).q[-1, 0]

    forward = jax.jit(lambda f: jax.jvp(end, (f,), (jnp.ones(()),)))
    force, h = jnp.asarray(0.2), 1e-4
    central = (forward(force + h)[0] - forward(force - h)[0]) / (2 * h)
    value, slope = forward(force)
    assert float(slope) == pytest.approx(float(central), rel=2e-6)
    reverse = jax.jit(jax.value_and_grad(end))(force)
    np.testing.assert_allclose(reverse, (value, slope), rtol=1e-10)


# --- several strings ----------------------------------------------------------------------------

NET = Ball(anchors=[[-1.0, 0.0], [1.1, 0.2], [0.1, -1.8]], lengths=[1.25, 1.35, 1.3], one_way=True)


@eqx.filter_jit
def rattle(ball, start):
    return simulate(
        ball,
        start,
        dt=DT,
        duration=4.0,
        save_every=5,
        integrator=Unilateral(capacity=256),
        throw=False,
    )


@pytest.mark.parametrize("velocity", [(1.0, 2.0), (-2.0, 0.3), (3.0, -1.0)])
def test_an_asymmetric_net_rattles_and_comes_to_rest(velocity):
    """Three strings of unequal lengths: catches and releases, none without end; energy never
    grows, strings never stretch, tensions never push."""
    start = State(jnp.array([0.05, -0.6]), jnp.asarray(velocity))
    assert np.all(NET.constraint(0.0, start.q) < 0)  # all slack
    run = rattle(NET, start)
    assert bool(run.succeeded)
    energy = np.asarray(run.energy()["total"])
    assert np.max(np.diff(energy)) < 1e-7
    count = int(np.sum(np.isfinite(run.events.time)))
    assert 2 <= count < 100
    assert np.all(np.diff(run.events.time[:count]) >= 0)
    assert np.all(np.asarray(run.events.impulse[:count]) >= 0)
    assert np.max(np.asarray(run["tension"])) > 0
    assert np.min(np.asarray(run["tension"])) > -1e-6
    stretch = jax.vmap(lambda q: NET.constraint(0.0, q))(run.q)
    assert float(jnp.max(stretch)) < 1e-6


def test_two_strings_caught_at_once_share_the_impulse():
    pair = Ball(anchors=[[-0.6, 0.0], [0.6, 0.0]], lengths=[1.0, 1.0], one_way=True)
    start = State(jnp.array([0.0, -0.7]), jnp.array([0.0, -1.0]))
    run = simulate(pair, start, dt=DT, duration=0.2, save_every=100, integrator=Unilateral())
    events = run.events
    fall = (-1.0 + np.sqrt(1.0 + 2 * G * 0.1)) / G
    np.testing.assert_allclose(events.time[:2], fall, atol=1e-8)
    assert sorted(events.row[:2].tolist()) == [0, 1]
    # both together take the whole of the momentum; each pulls along its string
    each = M * (1.0 + G * fall) / (2 * 0.8)
    np.testing.assert_allclose(events.impulse[:2], each, rtol=1e-7)
    np.testing.assert_allclose(run.q[-1], [0.0, -0.8], atol=1e-8)
    np.testing.assert_allclose(run.v[-1], 0.0, atol=1e-8)


# --- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ball, integrator, formulation, message",
    [
        (ROPE, Unilateral(), Projected(), "formulation: got Projected, expected Baumgarte"),
        (ROPE, Unilateral(), UdwadiaKalaba(), "formulation: got UdwadiaKalaba"),
        (Ball(), Unilateral(), None, "a machine with one-sided constraints"),
        (ROPE, Unilateral(Unilateral()), None, "an explicit one-step method"),
        (ROPE, Unilateral(GeneralisedAlpha()), Baumgarte(), "GeneralisedAlpha"),
        (ROPE, Unilateral(Zhai()), None, "an explicit one-step method"),
    ],
)
def test_combinations_that_are_refused(ball, integrator, formulation, message):
    with pytest.raises(ValueError, match=message):
        simulate(ball, dt=DT, duration=DT, integrator=integrator, formulation=formulation)


def test_another_inner_method():
    run = throw(5.5, integrator=Unilateral(ExplicitEuler()), formulation=Baumgarte(20.0, 20.0))
    assert float(run.events.time[0]) == pytest.approx(fly(5.5)[0], rel=2e-2)


def test_events_beyond_the_capacity_are_counted(thrown):
    assert int(np.sum(thrown.events.lost)) == 0 and "not listed" not in thrown.summary()
    run = throw(5.5, integrator=Unilateral(capacity=1))
    total = int(np.sum(np.isfinite(thrown.events.time)))
    assert total > 1 and int(np.sum(run.events.lost)) == total - 1
    assert f"{total - 1} more events are not listed" in run.summary()
