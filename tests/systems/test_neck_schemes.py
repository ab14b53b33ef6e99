"""The four schemes of the paper, out of the generic integrators.

Step by step against stored trajectories, their orders, what they give for the controlled motion of
6.3 s, and where they fail. `run` lets all of these share eight compiled functions.
"""

from functools import cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.systems.neck import PUSH
from helpers.neck_reference import (
    EVERY,
    SCHEMES,
    cases,
    field,
    motion_of,
    neck_of,
    run,
    stored_control,
    unpack,
)

MOTION = 6.3


@cache
def controlled(scheme: str, joints: int, dt_ms: float):
    """The paper's motion, and the largest tracking error [rad]."""
    elastic, integrator = SCHEMES[scheme]
    case = f"d{joints}_{scheme}"
    neck = neck_of(case, elastic=elastic)
    control = stored_control(case, neck)
    dt = dt_ms * 1e-3
    result = run(
        neck,
        control,
        control.computed.start(),
        dt=dt,
        steps=round(MOTION / dt),
        integrator=integrator,
    )
    wanted = motion_of(case).position(result.t[:, None])
    return result, float(np.max(np.abs(result.q[:, :joints] - wanted)))


# --- step by step ---------------------------------------------------------------------------------
@pytest.mark.parametrize("case", sorted(cases("d"), key=lambda c: int(field(c, "scheme"))))
def test_stored_steps(case):
    elastic, integrator = list(SCHEMES.values())[int(field(case, "scheme"))]
    neck = neck_of(case, elastic=elastic)
    n, every = neck.n_joints, int(field(case, "every"))
    control, start = stored_control(case, neck), unpack(field(case, "y0"), n)
    mine = control.computed.start()
    np.testing.assert_allclose(mine.q, start.q, atol=1e-12)
    np.testing.assert_allclose(mine.v, start.v, atol=1e-12)
    result = run(
        neck,
        control,
        start,
        dt=float(field(case, "dt")),
        steps=int(field(case, "nsteps")),
        integrator=integrator,
    )
    assert result.failure_time == np.inf
    expected = [unpack(y, n) for y in field(case, "y")]
    q = np.stack([np.asarray(state.q) for state in expected])
    v = np.stack([np.asarray(state.v) for state in expected])
    rows = slice(None, None, every // EVERY)
    assert result.q[rows].shape == q.shape
    assert np.max(np.abs(result.q[rows] - q)[:, :n]) < 1e-9
    for part in (slice(None, n), slice(n, None))[: 1 + elastic]:
        assert np.max(np.abs(result.v[rows] - v)[:, part]) < 1e-7 * np.max(np.abs(v[:, part]))


# --- order and size of the error ------------------------------------------------------------------
# scheme: largest step [ms] (the smallest is a 32nd of it), then errors [rad] at both for the
# controlled motion at 1 s and for constant torques at 0.5 s
ERRORS = {
    "rigid_explicit": (2.0, (1.213e-4, 3.790e-6), (1.246e-3, 3.855e-5)),
    "rigid_implicit": (2.0, (3.540e-4, 1.107e-5), (1.437e-3, 4.415e-5)),
    "elastic_explicit": (0.25, (1.423e-5, 4.600e-7), (2.263e-4, 6.674e-6)),
    "elastic_implicit": (1.0, (1.755e-4, 5.495e-6), (7.899e-4, 2.976e-5)),
}
CONVERGED = {
    ("controlled", False): ("s13_rigid3_control", 1.0),
    ("controlled", True): ("s23_elastic3_control", 1.0),
    ("constant", False): ("s03_rigid3_const_torque", 0.5),
    ("constant", True): ("s04_elastic3_const_torque", 0.5),
}


@pytest.mark.parametrize("torques", ["controlled", "constant"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_first_order(scheme, torques):
    elastic, integrator = SCHEMES[scheme]
    case, end = CONVERGED[torques, elastic]
    neck = neck_of(case, elastic=elastic)
    start = unpack(field(case, "y0"), 3)
    exact = field(case, "alpha")[np.argmin(np.abs(field(case, "t") - end))]

    def error(dt):
        steps = round(end / dt)
        result = run(
            neck, stored_control(case, neck), start, dt=dt, steps=steps, integrator=integrator
        )
        assert result.t[-1] == pytest.approx(end, abs=1e-9)
        return np.max(np.abs(result.q[-1, :3] - exact))

    largest, *columns = ERRORS[scheme]
    coarse, fine = columns[torques == "constant"]
    dt = largest * 1e-3
    errors = [error(dt / division) for division in (1, 16, 32)]
    assert errors[0] == pytest.approx(coarse, rel=0.02)
    assert errors[2] == pytest.approx(fine, rel=0.02)
    assert 0.95 < np.log2(errors[1] / errors[2]) < 1.05


# --- the controlled motion of 6.3 s ---------------------------------------------------------------
@pytest.mark.parametrize(
    ("joints", "first", "second", "expected", "half_digit"),
    [
        (3, ("rigid_explicit", 2.0), ("rigid_implicit", 2.0), 8.7e-4, 0.05e-4),
        (4, ("rigid_explicit", 2.0), ("rigid_implicit", 2.0), 8.7e-4, 0.05e-4),
        (3, ("elastic_implicit", 2.0), ("rigid_implicit", 2.0), 1.06e-3, 0.005e-3),
        (4, ("elastic_implicit", 2.0), ("rigid_implicit", 2.0), 1.02e-3, 0.005e-3),
        (3, ("elastic_explicit", 0.2), ("rigid_explicit", 2.0), 1.2e-3, 0.05e-3),
        (3, ("elastic_explicit", 0.2), ("elastic_implicit", 2.0), 8.2e-4, 0.05e-4),
    ],
)
def test_differences_between_schemes(joints, first, second, expected, half_digit):
    """Largest difference of joint angles [rad]. Rows of a run at 0.2 ms are ten times denser."""
    (a, b), dense = (controlled(scheme, joints, dt)[0] for scheme, dt in (first, second)), first[1]
    rows = a.q[:: round(2.0 / dense), :joints]
    assert np.max(np.abs(rows - b.q[:, :joints])) == pytest.approx(expected, abs=half_digit)


@pytest.mark.parametrize(
    ("joints", "smallest", "largest"),
    [
        (3, [0.322, 0.044, 0.500, 0.077], [0.503, 0.500, 0.979, 0.500]),
        (4, [0.396, 0.112, 0.500, 0.206, 0.217], [0.507, 0.500, 1.037, 0.500, 0.501]),
    ],
)
def test_elongation_ranges(joints, smallest, largest):
    elongation = controlled("elastic_implicit", joints, 2.0)[0].outputs["elongation"] * 1e3
    np.testing.assert_allclose(elongation.min(axis=0), smallest, atol=6e-4)
    np.testing.assert_allclose(elongation.max(axis=0), largest, atol=6e-4)


@pytest.mark.parametrize(
    ("scheme", "joints", "dt_ms", "expected"),
    [
        ("rigid_explicit", 3, 0.4, 5.8e-5),
        ("rigid_explicit", 3, 2.0, 2.9e-4),
        ("rigid_explicit", 4, 2.0, 2.4e-4),
        ("rigid_implicit", 3, 0.4, 1.6e-4),
        ("rigid_implicit", 3, 2.0, 8.1e-4),
        ("rigid_implicit", 4, 2.0, 8.3e-4),
        ("elastic_explicit", 3, 0.3, 1.04e-3),
        ("elastic_implicit", 3, 10.0, 4.6e-3),
        ("elastic_implicit", 3, 2.0, 1.64e-3),
        ("elastic_implicit", 4, 10.0, 4.8e-3),
        ("elastic_implicit", 4, 2.0, 1.60e-3),
    ],
)
def test_tracking_errors(scheme, joints, dt_ms, expected):
    result, error = controlled(scheme, joints, dt_ms)
    assert result.failure_time == np.inf
    assert error == pytest.approx(expected, rel=0.02)


# --- where they fail ------------------------------------------------------------------------------
def test_largest_explicit_step_with_three_elastic_joints():
    fine, error = controlled("elastic_explicit", 3, 0.4)
    assert fine.failure_time == np.inf
    assert error < 0.02


@pytest.mark.parametrize(
    ("scheme", "joints", "dt_ms", "time"),
    [
        ("elastic_explicit", 3, 0.5, 5.78),
        ("elastic_explicit", 3, 1.0, 1.87),
        ("elastic_explicit", 4, 0.2, None),
        ("elastic_explicit", 4, 0.1, 3.96),
        ("elastic_explicit", 4, 0.025, 4.49),
        ("elastic_implicit", 4, 0.1, 5.92),
    ],
)
def test_divergence(scheme, joints, dt_ms, time):
    """The run stops where |alpha| passes pi; later states repeat the last good one."""
    result, _ = controlled(scheme, joints, dt_ms)
    assert result.result == cordax.Result.RUNAWAY_STATE
    assert result.failure_time < MOTION
    if time is not None:
        assert result.failure_time == pytest.approx(time, abs=0.02)
    assert np.max(np.abs(result.q[:, :joints])) < np.pi
    after = result.t >= result.failure_time
    assert after.any()
    assert np.all(result.q[after] == result.q[-1])


def test_implicit_scheme_hides_the_instability_of_four_joints():
    """The continuous closed loop is unstable; large implicit steps damp what small ones show."""
    result, error = controlled("elastic_implicit", 4, 2.0)
    assert result.failure_time == np.inf
    assert error < 0.005


# --- tendons that push ----------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("case", "mean", "lowest", "from_start"),
    [("p3_cumulative", 50.0, -10.0, True), ("p3", 20.0, -1.0, False), ("p3", 50.0, 0.0, None)],
)
def test_tendons_that_push_are_reported(case, mean, lowest, from_start):
    """The controlled motion needs negative tensions with cumulative routing, and with too little
    mean tension: reported with the first step that shows it, stored or not."""
    neck = neck_of(case, elastic=True)
    control = eqx.tree_at(
        lambda c: c.computed.distribution.mean, stored_control(case, neck), jnp.asarray(mean)
    )
    # the shape of a block of `run`, and so its compiled function
    trajectory = cordax.simulate(
        neck, control.computed.start(), dt=2e-3, duration=2.0, control=control, save_every=EVERY
    )
    smallest = np.min(np.asarray(trajectory["tension"]), axis=1)
    first = float(trajectory.warnings["tendon_in_compression"])
    if from_start is None:
        assert np.all(smallest > lowest) and first == np.inf
        assert "warning" not in trajectory.summary()
        return
    assert np.min(smallest) < lowest
    stored = float(trajectory.t[np.argmax(smallest < -PUSH)])
    assert stored - EVERY * 2e-3 < first <= stored
    assert from_start or first > 0.1
    assert f"tendon in compression from t = {first:g} s" in trajectory.summary()
