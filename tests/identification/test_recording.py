"""Recordings and the grid of the simulation."""

import numpy as np
import pytest

import cordax
from cordax import Recording
from cordax.identification.time_grid import grid
from cordax.recordings.recording import observe
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


def test_samples_between_steps_are_placed_within_them():
    found = grid(np.array([0.0, 1e-3, 1.5e-3, 3.2e-3]), dt=1e-3, t0=None, default_dt=1.0)
    assert not found.on_rows and (found.steps, found.save_every) == (4, 1)
    assert np.array_equal(found.rows, [0, 1, 1, 3])
    assert np.allclose(found.beyond, [0.0, 0.0, 0.5, 0.2], atol=1e-9)
    with pytest.raises(ValueError, match="not after the first recorded"):
        grid(np.array([0.0, 1e-3]), dt=1e-3, t0=0.5, default_dt=1.0)


def test_sensors_with_clocks_of_their_own_become_one_table():
    fast = Recording(np.arange(5) * 0.1, {"x": np.arange(5.0)})
    slow = Recording([0.1 + 1e-12, 0.25, 0.3], {"y": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]})
    both = Recording.join(fast, slow)
    assert np.allclose(both.t, [0.0, 0.1, 0.2, 0.25, 0.3, 0.4])
    assert np.array_equal(both.values["x"], [0, 1, 2, np.nan, 3, 4], equal_nan=True)
    assert np.array_equal(both.values["y"][:, 0], [np.nan, 1, np.nan, 3, 5, np.nan], equal_nan=True)
    with pytest.raises(ValueError, match="got x, expected each name in one"):
        Recording.join(fast, fast)


def test_clocks_that_count_from_1970_are_joined():
    begin, k = 1.7e9, np.arange(50)
    slow, fast = begin + 0.01 * k, begin + 0.004 + 0.005 * k
    whole = Recording.join(Recording(slow, {"x": k * 1.0}), Recording(fast, {"y": k * 2.0}))
    assert np.array_equal(whole.t, np.union1d(slow, fast))
    for name, t, values in (("x", slow, k * 1.0), ("y", fast, k * 2.0)):
        x = np.asarray(whole.values[name])
        assert np.array_equal(whole.t[np.isfinite(x)], t)
        assert np.array_equal(x[np.isfinite(x)], values)
    same = Recording.join(
        Recording(slow, {"x": k * 1.0}), Recording(np.nextafter(slow, np.inf), {"y": k * 2.0})
    )
    assert same.t.size == 50 and np.array_equal(same.values["y"], k * 2.0)


@pytest.mark.parametrize("name", [3, "", None])
def test_names_of_recorded_values_are_texts(name):
    with pytest.raises(ValueError, match=r"recording\.values: got .*, expected names"):
        Recording([0.0, 1.0], {name: [1.0, 2.0]})


def test_tables_of_pandas_and_xarray_are_recordings():
    neck = Neck.default(1)
    run = cordax.simulate(neck, dt=2e-3, duration=4e-3)
    for found in (
        Recording.from_pandas(run.to_pandas()),
        Recording.from_pandas(run.to_pandas().reset_index()),
        Recording.from_xarray(run.to_xarray()),
    ):
        assert np.allclose(found.t, run.t)
        assert np.array_equal(found.values["d_theta_1"], run["d_theta_1"])
        assert np.array_equal(found.values["torque_2"], run["torque_2"])
        whole = "tension" in found.values
        second = found.values["tension"][:, 1] if whole else found.values["tension_2"]
        assert np.array_equal(second, run["tension"][:, 1])
    import pandas as pd

    dated = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.to_timedelta([1500, 2500], unit="ms"))
    assert np.allclose(Recording.from_pandas(dated).t, [0.0, 1.0])


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


def decay():
    t = 0.01 * np.arange(2001)
    x = np.exp(-0.1 * t) * np.cos(6.0 * t)
    return Recording(t, {"x": x, "force": np.where(t < 5.0, np.sin(t), 0.0)})


def test_parts_of_a_recording_are_cut_out_and_thinned():
    log = decay()
    part = log.between(1.0, 2.0)
    assert (part.t[0], part.t[-1], part.t.size) == (1.0, 2.0, 101)
    assert np.array_equal(part.values["x"], log.values["x"][100:201])
    assert part.shift(-1.0).t[0] == 0.0
    with pytest.raises(ValueError, match="between: got 30 to 40 s with 0 samples"):
        log.between(30.0, 40.0)
    other = Recording(log.t[:-1] + 0.005, {"y": log.t[:-1]})
    thin = Recording.join(log, other).thin(10)  # each sensor, not each row
    assert np.sum(~np.isnan(thin.values["x"])) == 201 and np.sum(~np.isnan(thin.values["y"])) == 200
    assert log.rename({"x": "angle"}).names == ("angle", "force")
    with pytest.raises(ValueError, match="names: got force, expected each name once"):
        log.rename({"x": "force"})


def test_resampling_keeps_gaps():
    t = np.array([0.0, 0.1, 0.2, 0.3, 2.0, 2.1])
    found = Recording(t, {"x": 2.0 * t}).resample(0.05)
    assert np.allclose(np.diff(found.t), 0.05)
    x = np.asarray(found.values["x"])
    inside = (found.t > 0.31) & (found.t < 1.99)
    assert np.all(np.isnan(x[inside])) and np.allclose(x[~inside], 2.0 * found.t[~inside])
    whole = Recording(t, {"x": 2.0 * t}).resample(0.05, gap=2.0)
    assert np.allclose(whole.values["x"], 2.0 * whole.t)


def test_the_filter_leaves_half_the_power_at_its_cutoff_and_shifts_no_phase():
    t = 0.01 * np.arange(4001)
    slow, edge, fast = (np.sin(2 * np.pi * f * t) for f in (0.2, 2.0, 15.0))
    middle = slice(500, 3500)
    for x, gain in ((slow, 1.0), (edge, np.sqrt(0.5)), (fast, 0.0)):
        for order in (2, 4):
            y = Recording(t, {"x": x}).filter(2.0, order=order).values["x"]
            assert np.max(np.abs(y[middle] - gain * x[middle])) < 0.01
    gap = slow.copy()
    gap[2000:2100] = np.nan
    y = np.asarray(Recording(t, {"x": gap}).filter(2.0).values["x"])
    assert np.array_equal(np.isnan(y), np.isnan(gap))
    with pytest.raises(ValueError, match="uneven sampling, expected resample"):
        Recording(t**1.1, {"x": slow}).filter(2.0)
    with pytest.raises(ValueError, match="cutoff: got 60 Hz, expected less than 50 Hz"):
        Recording(t, {"x": slow}).filter(60.0)


def test_windows_by_gaps_inputs_and_energy():
    log = decay()
    free = log.windows(4.0, constant=["force"])
    assert np.allclose((free[0].t[0], free[0].t[-1]), (5.0, 8.74))
    assert len(free) == 4 and free[-1].t[-1] == 20.0
    shaken = log.values["x"].at[1000:1100].multiply(3.0)
    energy = lambda r: np.asarray(r.values["x"]) ** 2 + np.roll(np.asarray(r.values["x"]), 26) ** 2
    found = Recording(log.t, {"x": shaken}).windows(
        20.0, shortest=2.0, energy=energy, rise=0.3, least=0.2
    )
    assert found[0].t[-1] < 10.05 and all(not (w.t[0] < 10.0 < w.t[-1] - 0.2) for w in found)
    rows = np.r_[0:300, 600:1000]
    holes = Recording(log.t[rows], {"x": log.values["x"][rows]}).windows(10.0, shortest=1.0)
    assert [(w.t[0], w.t[-1]) for w in holes] == [(0.0, 2.99), (6.0, 9.99)]
    whole = log.windows(4.0, shortest=3.9, constant={"force": 1e-9})
    assert [round(w.t[0], 9) for w in whole] == [5.0, 9.0, 13.0]  # the remainder is too short
    assert log.windows(20.0, shortest=16.0, constant={"force": 1e-9}) == []


def test_units_in_the_columns_of_a_data_frame(capsys):
    import pandas as pd

    frame = pd.DataFrame({"t [ms]": [0.0, 10.0], "angle [deg]": [180.0, 90.0]})
    found = Recording.from_pandas(frame)
    assert np.allclose(found.t, [0.0, 0.01]) and np.allclose(
        found.values["angle"], [np.pi, np.pi / 2]
    )
    assert "'angle [deg]' is angle [rad]" in capsys.readouterr().out
