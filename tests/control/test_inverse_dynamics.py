"""More inputs than degrees of freedom: direct and null-space programmes, and what they move."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import (
    BoundedTension,
    Constant,
    InverseDynamics,
    MeanTension,
    NullSpaceTension,
)
from cordax.control.inverse_dynamics import needed
from cordax.control.tension import null_space
from cordax.systems import mechanism as parts


@pytest.fixture(scope="module")
def wide():
    """A platform on eight cables, sort of: 30 matrices (6, 8) and wrenches."""
    rng = np.random.default_rng(1)
    W = rng.normal(size=(30, 6, 8))
    return W, np.einsum("ijk,ik->ij", W, rng.uniform(2.0, 8.0, (30, 8)))


def solved(rule, W, tau):
    return np.array(jax.jit(jax.vmap(rule))(W, tau))


def test_null_space(wide):
    N = jax.jit(jax.vmap(null_space))(wide[0])
    assert N.shape == (30, 8, 2)
    assert np.abs(np.einsum("ijk,ikl->ijl", wide[0], N)).max() < 1e-10
    assert np.linalg.svd(N)[1].min() > 0.9  # it holds the identity


def test_formulations_are_equal(wide):
    """Bounds that act, and bounds that do not: then both are the least squares."""
    W, tau = wide
    tight = [rule(2.0, 8.0, mean=0.0) for rule in (BoundedTension, NullSpaceTension)]
    direct, null = (solved(rule, W, tau) for rule in tight)
    assert np.sum(np.isclose(direct, 2.0, atol=1e-9)) > 10
    np.testing.assert_allclose(null, direct, atol=1e-8)
    np.testing.assert_allclose(np.einsum("ijk,ik->ij", W, null), tau, atol=1e-8)
    loose = solved(NullSpaceTension(-99, 99, mean=0.0, pulls=False), W, tau)
    least = np.einsum("ikj,ij->ik", np.linalg.pinv(W), tau)
    np.testing.assert_allclose(loose, least, atol=1e-8)


def test_gradients_and_infeasible_bounds(wide):
    W, tau = wide[0][0], wide[1][0]
    rule = NullSpaceTension(2.0, 8.0)
    f = lambda W, tau: jnp.sum(jnp.sin(rule(W, tau)))
    g = jax.jit(lambda W, tau: (f(W, tau), jax.jacfwd(f)(W, tau), jax.grad(f)(W, tau)))
    _, forward, reverse = g(W, tau)
    np.testing.assert_allclose(forward, reverse, atol=1e-10)
    e, h = np.random.default_rng(2).normal(size=W.shape), 1e-6
    difference = (g(W + h * e, tau)[0] - g(W - h * e, tau)[0]) / (2 * h)
    np.testing.assert_allclose(np.sum(forward * e), difference, rtol=1e-6)
    assert np.isnan(g(W, 1e3 * tau)[0])
    with pytest.raises(ValueError, match="W: got 6 rows and 6 columns"):
        rule(W[:, :6], tau)


@pytest.fixture(scope="module")
def four_bar():
    """One degree of freedom, motors in all three hinges."""
    bar = lambda x: parts.rod(x, mass=x, centre=(0.5 * x, 0, 0))
    bodies = [
        parts.Body("crank", parts.Revolute("y"), solids=bar(0.5), start=[-1.2]),
        parts.Body(
            "coupler", parts.Revolute("y"), "crank", at=(0.5, 0, 0), solids=bar(1.2), start=[0.9]
        ),
        parts.Body("rocker", parts.Revolute("y"), at=(1.0, 0, 0), solids=bar(0.8), start=[-1.4]),
    ]
    loop = parts.FrameLoop("coupler", "rocker", (1.2, 0, 0), (0.8, 0, 0), rows=("x", "z"))
    motors = parts.JointMotors(("crank", "coupler", "rocker"))
    return parts.Mechanism(bodies, [loop], [motors], independent=("crank",))


def test_any_mechanism_accelerates_as_wanted(four_bar):
    state = four_bar.assembled(kept=("crank",))
    # what the controller asks for: 400/s^2 times 7.5e-3 rad
    wanted, ahead = np.array([3.0]), Constant(state.q[:1] + 7.5e-3)
    rules = [MeanTension(0.0)]
    rules += [rule(-50.0, 50.0, 0.0, pulls=False) for rule in (BoundedTension, NullSpaceTension)]

    @eqx.filter_jit
    def of_all(machine, state):
        B, tau = needed(machine, jnp.zeros(()), state, jnp.asarray(wanted))
        control = InverseDynamics(machine, ahead, rules[-1], K_p=400.0, K_d=40.0)
        controlled, _, code = control(jnp.zeros(()), state, ())
        u = jnp.stack([*(rule(B, tau) for rule in rules), controlled])
        a = lambda u: cordax.Baumgarte().acceleration(machine, jnp.zeros(()), state.q, state.v, u)[
            0
        ]
        return u, jax.vmap(a)(u), code

    u, a, code = of_all(four_bar, state)
    assert code == 0
    np.testing.assert_allclose(a[:, 0], 3.0, rtol=1e-9)
    np.testing.assert_allclose(u[1:], np.tile(u[0], (3, 1)), atol=1e-9)
    assert np.abs(u).min() > 1e-3  # all three share the work


def test_too_few_inputs_are_named(four_bar):
    loose = parts.Mechanism(four_bar.bodies, elements=[parts.JointMotors(("crank",))])
    with pytest.raises(ValueError, match="machine: got 1 inputs"):
        InverseDynamics(loose, Constant(np.zeros(3)), MeanTension(0.0))


def test_loops_need_independent_coordinates(four_bar):
    bare = dataclasses.replace(four_bar, independent=())
    with pytest.raises(ValueError, match="machine: got loops alone"):
        InverseDynamics(bare, Constant(np.zeros(1)), MeanTension(0.0))


def test_the_period_has_the_name_of_other_controllers(four_bar):
    control = InverseDynamics(four_bar, Constant(np.zeros(1)), MeanTension(0.0), period=0.02)
    assert control.period == 0.02
