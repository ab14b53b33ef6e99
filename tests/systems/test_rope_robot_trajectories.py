"""Ropes in motion against stored trajectories: energy, drift, and other methods."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Baumgarte, GeneralisedAlpha, Minimal
from helpers.rope_robot_reference import errors, fields, run


def compare(case, trajectory):
    """With all that is stored of a rope alone, as far as it was followed: to round-off."""
    s = fields(case)
    every = round(float(s.t_full[1] - s.t_full[0]) / float(s.t[1] - s.t[0]))
    q, v = trajectory.q[::every], trajectory.v[::every]
    np.testing.assert_allclose(q, s.q_full[: len(q)], atol=1e-9)
    np.testing.assert_allclose(v, s.v_full[: len(v)], atol=1e-6)
    lam = s.lam[: len(trajectory.t)]
    np.testing.assert_allclose(trajectory.multipliers, lam, atol=1e-6)


@pytest.mark.parametrize(("case", "steps"), [("hang1", 3000), ("moved1", 7500)])
def test_one_rope(case, steps):
    """Explicit steps at the limit of stability: as exact as the reference."""
    gains = Minimal() if case == "hang1" else Baumgarte(20.0, 20.0)
    options = {"formulation": gains, "integrator": "rk4"}
    compare(case, run(case, 2.5e-2 / steps, until=0.5, **options))


@pytest.fixture(scope="module")
def taut_slack_taut():
    """The robot of six segments for 8 s, through slack and snap."""
    gains = Baumgarte(20.0, 20.0)
    return run("paper2_s6", 5e-5, integrator="rk4", formulation=gains)


def test_robot_through_slack_and_snap(taut_slack_taut):
    found = errors("paper2_s6", taut_slack_taut)
    assert found.space_time < 2e-4
    assert found.platform < 1e-4
    assert found.platform_early < 1e-5
    assert float(taut_slack_taut.violation.max()) < 1e-6
    s = fields("paper2_s6")
    np.testing.assert_allclose(taut_slack_taut.multipliers, s.lam, atol=0.1)


def test_energy_balance(taut_slack_taut):
    """What the force puts in and damping takes, by the stored powers, is what the machine holds."""
    s, trajectory = fields("paper2_s6"), taut_slack_taut
    energy = trajectory.energy()
    held = np.asarray(energy["total"])[::4]
    T, U, work, lost = s.energy_T_U_Wext_Ediss.T
    np.testing.assert_allclose(held, T + U, atol=1e-5 * lost[-1])
    np.testing.assert_allclose(held - held[0], work - lost, atol=1e-5 * lost[-1])


def test_power_balance(taut_slack_taut):
    """At every stored instant: the rate of energy is the power of the force less what damping
    takes."""
    trajectory = taut_slack_taut
    robot, gains = trajectory.system, Baumgarte(20.0, 20.0)

    @jax.jit
    def powers(t, q, v, u):
        a, _ = gains.acceleration(robot, t, q, v, u)
        energy = lambda q, v: robot.kinetic_energy(q, v) + robot.potential_energy(t, q)
        _, rate = jax.jvp(energy, (q, v), (v, a))
        return rate, jnp.sum(u * v[-3:]), robot.dissipation(q, v)

    at = (trajectory.t, trajectory.q, trajectory.v, trajectory.u)
    rate, work, lost = (np.asarray(x) for x in jax.vmap(powers)(*at))
    np.testing.assert_allclose(rate, work - lost, atol=1e-7 * np.abs(rate).max())
    assert lost.min() >= 0.0


def test_same_motion_at_half_the_step_is_near(taut_slack_taut):
    """Linearly implicit Euler, order 1, on the taut part: the error halves with the step."""
    found = {}
    for dt in (2.5e-3, 1.25e-3):
        trajectory = run("paper2_s6", dt, until=3.5, integrator="linearly_implicit_euler")
        k = len(trajectory.t)
        found[dt] = np.abs(np.asarray(trajectory.q - taut_slack_taut.q[:k])[:, -3:]).max()
        assert float(trajectory.violation.max()) < 1e-6
    assert found[1.25e-3] < 1e-3
    assert found[2.5e-3] / found[1.25e-3] == pytest.approx(2.0, abs=0.2)


def test_ropes_of_the_robot_go_slack(taut_slack_taut):
    tension = np.asarray(taut_slack_taut["tension"])
    t = np.asarray(taut_slack_taut.t)
    assert np.all(tension[t < 3.5] > 1.0)
    assert np.all(np.abs(tension[(t > 4.5) & (t < 5.3)]) < 1.0)
    assert jnp.max(tension) > 50.0


def test_the_paper_s_case():
    """Two ropes of 20 segments for 15 s by one structured correction per step."""
    trajectory = run("paper2", 6.25e-4, integrator=GeneralisedAlpha(corrections=1))
    found = errors("paper2", trajectory)
    assert found.space_time < 0.02
    assert found.motion < 0.05
    assert float(trajectory.violation.max()) < 1e-8
