"""Rope robots without axial waves: the same equations as the dense reduction, in O(s)."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Baumgarte, State, simulate
from cordax.mechanics.constraints import Stabilisation
from cordax.reduction import Subspace, axial_basis
from cordax.systems import AxialRopes, RopeRobot
from helpers.rope_robot_reference import control_of, errors, fields, robot_of


@pytest.mark.parametrize("case", ["paper2_s6", "hang1", "moved1"])
def test_accelerations_are_those_of_the_dense_reduction(case):
    """With a platform, free and moved ends; coordinates are the same."""
    robot, s = robot_of(case), fields(case)
    model = AxialRopes(robot)
    dense = Subspace(robot, axial_basis(robot), np.zeros(robot.n_q))
    rng = np.random.default_rng(2)
    start = model.project(State(s.q0, s.v0))
    q = start.q + 0.1 * rng.normal(size=model.n_q)
    v, u = jnp.asarray(rng.normal(size=model.n_q)), jnp.linspace(1.0, 2.0, model.n_u)
    gains = Stabilisation(jnp.asarray(7.0), jnp.asarray(9.0))
    t = jnp.asarray(0.3)

    @jax.jit
    def both(q, v):
        out = []
        for machine in (model, dense):
            if machine.n_constraints:
                a, pull = machine.structure().constrained_acceleration(t, q, v, u, gains)
            else:
                a, pull = machine.structure().acceleration(t, q, v, u), jnp.zeros(0)
            out.append((a, pull, machine.structure().momentum(q, v), machine.force(t, q, v, u)))
        return out

    for found, wanted in zip(*both(q, v), strict=True):
        scale = float(jnp.max(jnp.abs(wanted), initial=0.0))
        np.testing.assert_allclose(found, wanted, atol=1e-10 * scale)


@pytest.fixture(scope="module")
def slack():
    """Six segments until they are slack, and derivatives of where the platform is then."""
    robot, s, control = robot_of("paper2_s6"), fields("paper2_s6"), control_of("paper2_s6")
    start = AxialRopes(robot).project(State(s.q0, s.v0))

    def run(scale, duration=5.0):
        model = AxialRopes(eqx.tree_at(lambda r: r.EA, robot, scale * robot.EA))
        return simulate(
            model,
            start,
            dt=5e-4,
            duration=duration,
            save_every=50,
            formulation=Baumgarte(20.0, 20.0),
            control=control,
            throw=False,
        )

    return run


def test_moves_like_the_whole(slack):
    run = slack(1.0)
    model = run.system
    lifted = jax.vmap(model._whole)(run.q)
    found = errors("paper2_s6", type("Run", (), {"q": lifted}))
    assert found.motion < 0.01
    assert float(run.violation.max()) < 1e-5


def test_the_paper_s_case():
    """Two ropes of 20 segments for 15 s, through slack and snap, by explicit steps."""
    robot, s = robot_of("paper2"), fields("paper2")
    model = AxialRopes(robot)
    run = simulate(
        model,
        model.project(State(s.q0, s.v0)),
        dt=0.025 / 60,
        duration=15.0,
        save_every=60,
        formulation=Baumgarte(20.0, 20.0),
        control=control_of("paper2"),
    )
    found = errors("paper2", type("Run", (), {"q": jax.vmap(model._whole)(run.q)}))
    assert found.space_time < 0.006
    assert found.motion < 0.006


def test_differentiates_and_batches(slack):
    place = lambda scale: slack(scale, 0.1).q[-1, -7:-4]
    h = 1e-4
    low, here, high = jax.jit(jax.vmap(place))(jnp.array([1.0 - h, 1.0, 1.0 + h]))
    np.testing.assert_allclose(here, place(1.0), rtol=1e-12)
    central = (high - low) / (2 * h)
    forward, reverse = (jax.jit(mode(place))(1.0) for mode in (jax.jacfwd, jax.jacrev))
    scale = float(jnp.abs(forward).max())
    np.testing.assert_allclose(forward, central, atol=1e-5 * scale)
    np.testing.assert_allclose(reverse, forward, atol=1e-9 * scale)


def test_one_segment_is_refused():
    """Its mean elongation and the slope of it would be one number."""
    with pytest.raises(ValueError, match=r"ropes.count: got 1, expected 2 or more"):
        AxialRopes(RopeRobot([[0.0, 0.0]], 1.0, count=1))
