"""The neck integrated accurately, against the converged trajectories of the reference."""

import diffrax
import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from helpers.neck_reference import cases, field, neck_of, stored_control, unpack

ACCURATE = cordax.Diffrax(diffrax.Dopri8(), diffrax.PIDController(rtol=1e-12, atol=1e-12))
SAVES = 126  # of the longest cases; shorter ones run on, to share a compiled function


def accurate(case):
    """The trajectory of a case, at the instants of the reference."""
    neck = neck_of(case, elastic=bool(field(case, "elastic")))
    t = field(case, "t")
    run = cordax.simulate(
        neck,
        unpack(field(case, "y0"), neck.n_joints),
        dt=t[1],
        duration=SAVES * t[1],
        integrator=ACCURATE,
        control=stored_control(case, neck),
        throw=False,
    )
    rows = slice(len(t))
    assert run.failure_time > t[-1]
    np.testing.assert_allclose(run.t[rows], t, atol=1e-12)
    return neck, run, rows


@pytest.mark.parametrize("case", sorted(cases("s"), key=lambda c: (field(c, "y0").size, c)))
def test_converged_trajectory(case):
    neck, run, rows = accurate(case)
    n = neck.n_joints
    assert np.max(np.abs(run.q[rows, :n] - field(case, "alpha"))) < 1e-8
    assert np.max(np.abs(run.v[rows, :n] - field(case, "alphad"))) < 1e-6
    if neck.elastic:
        theta = field(case, "theta")
        # B = 0.8 mm per rad: 1e-7 rad of a motor is 1e-10 m of tendon
        assert np.max(np.abs(run.q[rows, n:] - theta)) < 1e-7
        assert np.max(np.abs(run["motor_position"][rows] - theta)) < 1e-7
        assert np.max(np.abs(run["elongation"][rows] - field(case, "elongation"))) < 1e-10
        assert np.max(np.abs(run["tension"][rows] - field(case, "tension"))) < 1e-4


def test_energy_is_conserved():
    case = "s02_rigid3_conservative"
    _, run, rows = accurate(case)
    energy = run.energy()
    total = np.asarray(energy["total"][rows])
    assert np.ptp(energy["kinetic"][rows]) > 0.05
    assert np.max(np.abs(total - total[0])) < 1e-9
    # the stored energy counts from another zero
    stored = field(case, "energy")
    assert np.max(np.abs((total - total[0]) - (stored - stored[0]))) < 1e-9


def test_elastic_energy_is_conserved():
    """No friction, no damping, elastic tendons: energy moves between bars, springs, tendons and
    rotors."""
    case = "s05_elastic3_slack_start"
    neck = neck_of(case, elastic=True)
    conservative = eqx.tree_at(
        lambda m: (m.pivot_friction, m.tendon.damping, m.motors.dry_friction),
        neck,
        (jnp.zeros(()), jnp.zeros(()), jnp.zeros(())),
    )
    run = cordax.simulate(
        conservative,
        unpack(field(case, "y0"), 3),
        dt=1e-3,
        duration=SAVES * 1e-3,
        integrator=ACCURATE,
        control=stored_control(case, neck),
    )
    energy = run.energy()
    total = np.asarray(energy["total"])
    assert np.max(np.abs(total - total[0])) < 1e-9
    tendons = 0.5 * neck.tendon.stiffness * np.sum(np.asarray(run["elongation"]) ** 2, axis=1)
    assert np.max(tendons) > 1e-3
