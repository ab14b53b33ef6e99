"""Recordings and the grid of the simulation."""

import numpy as np
import pytest

import cordax
from cordax import Recording
from cordax.identification.grid import grid
from cordax.recording import observe
from cordax.systems import Neck


def test_every_sample_falls_on_a_stored_row():
    t = np.array([0.5, 0.504, 0.51, 0.53])
    found = grid(t, dt=1e-3, t0=None, default_dt=1.0)
    assert (found.t0, found.dt, found.steps, found.save_every) == (0.5, 1e-3, 30, 2)
    assert np.array_equal(found.rows, [0, 2, 5, 15])
    earlier = grid(t, dt=1e-3, t0=0.0, default_dt=1.0)
    assert earlier.steps == 530 and np.array_equal(earlier.rows, [250, 252, 255, 265])


def test_the_default_step_divides_the_sampling_interval():
    assert grid(np.array([0.0, 1e-3, 2e-3]), None, None, default_dt=2e-3).dt == 1e-3
    assert np.isclose(grid(np.array([0.0, 0.01]), None, None, default_dt=3e-3).dt, 2.5e-3)


def test_samples_between_steps_are_refused():
    with pytest.raises(ValueError, match=r"0\.0015 s, 1\.5 steps.*divisor of the sampling"):
        grid(np.array([0.0, 1e-3, 1.5e-3]), dt=1e-3, t0=None, default_dt=1.0)
    with pytest.raises(ValueError, match="not after the first recorded"):
        grid(np.array([0.0, 1e-3]), dt=1e-3, t0=0.5, default_dt=1.0)


@pytest.mark.parametrize(
    ("t", "values", "message"),
    [
        ([0.0, 0.0], {"x": [1.0, 2.0]}, "increasing"),
        ([0.0, np.nan], {"x": [1.0, 2.0]}, "increasing"),
        ([0.0], {"x": [1.0]}, "k > 1"),
        ([0.0, 1.0], {"x": [1.0, 2.0, 3.0]}, r"values\['x'\].*shape \(2,\)"),
        ([0.0, 1.0], {}, "at least one name"),
    ],
)
def test_bad_recordings_are_named(t, values, message):
    with pytest.raises(ValueError, match=message):
        Recording(t, values)


def test_outputs_are_observed_whole_or_by_component():
    neck = Neck.default(1)
    run = cordax.simulate(neck, dt=2e-3, duration=4e-3)
    assert observe(run, "tension").shape == (3, 2)
    assert np.array_equal(observe(run, "tension_2"), run["tension"][:, 1])
    assert np.array_equal(observe(run, "d_theta_1"), run.v[:, 1])
    for unknown in ("tension_3", "tension_0", "strain_1"):
        with pytest.raises(ValueError, match=f"{unknown}.*alpha_1"):
            observe(run, unknown)
