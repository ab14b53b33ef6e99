"""`examples/real/uacdpr*.py` on poses and motions made here."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import least_squares

EXAMPLES = Path(__file__).parents[1] / "examples" / "real"


@pytest.fixture
def uacdpr(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    import uacdpr

    return uacdpr


def test_the_axis_that_made_the_lengths_is_found(uacdpr, tmp_path):
    rng = np.random.default_rng(1)
    pose = 0.1 * rng.normal(size=(50, 6)) + [0.0, 0.0, 0.6, 0.0, 0.0, 0.0]
    b = uacdpr.points(pose, uacdpr.attachments(0.280))
    np.savez(
        tmp_path / "free_motion_25s.npz",
        vicon_pose_mm_rad=pose * [1e3, 1e3, 1e3, 1, 1, 1],
        vicon_index=np.arange(50),
        swivel_rel=uacdpr.angles(uacdpr.FREE, uacdpr.OUT, b) - 0.3,
    )
    still = uacdpr.points(pose[:1], uacdpr.attachments(0.266))
    measured = np.asarray(uacdpr.lengths(uacdpr.STILL, uacdpr.OUT, still))
    np.savez(
        tmp_path / "static_selfcalibration_27.npz",
        zeta_0_real=pose[0],
        cable_length_meas=measured.T,
    )
    found = uacdpr.main(str(tmp_path))
    np.testing.assert_allclose(found["x, outwards"]["off"], 0.0, atol=1e-12)
    np.testing.assert_allclose(found["x, outwards"]["alike"], 1.0, atol=1e-12)
    for name in ("vertical, from below", "vertical, from above", "x, inwards"):
        assert np.abs(found[name]["off"]).max() > 1e-3


def test_without_data_it_says_where_they_are(uacdpr, tmp_path):
    assert str(EXAMPLES) in sys.path
    with pytest.raises(SystemExit, match="UACDPR_SelfCalibration"):
        uacdpr.main(str(tmp_path))


@pytest.fixture(scope="module")
def poses():
    """`uacdpr_poses`, and what its sensors read at 18 balanced poses on cables that give
    40 um/N."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        import jax
        import jax.numpy as jnp
        import uacdpr_poses as script
    finally:
        sys.path.remove(str(EXAMPLES))
    grid = np.stack(np.meshgrid([0.35, 0.0, -0.4], [0.4, -0.35], [1.1, 0.8, 0.4]), axis=-1)
    noise = {"balance": jnp.asarray(script.BALANCED["balance"])}
    left = lambda angles, place: script.model(jnp.concatenate([place, angles]), 4.0, noise, 1.0)[1]
    value, slope = jax.jit(left), jax.jit(jax.jacfwd(left))
    place = grid.reshape(-1, 3)
    held = lambda p: least_squares(value, [0.25 * p[1], -0.25 * p[0], 0.0], slope, args=(p,)).x
    angles = np.array([held(p) for p in place])
    truth = np.concatenate([place, angles], axis=1)
    read, rest = jax.vmap(lambda pose: script.model(pose, 4.0, noise, 1.0))(truth)
    assert np.abs(rest[:, :6]).max() < 0.1  # [N] of 127 N
    random = np.random.default_rng(3)
    disturbed = lambda x, sigma: jnp.asarray(x + sigma * random.normal(size=x.shape))
    since = lambda x: x - x[0]
    seen = script.Seen(
        since(disturbed(read.length, 1e-3)),
        since(disturbed(read.swivel, np.radians(0.4))),
        read.tilt,
        jnp.full((18, 4), np.nan),
    )
    return script, truth, seen


def test_the_first_pose_is_found_from_increments_and_balance(poses):
    script, truth, seen = poses
    plan = truth + np.array([0.05, -0.05, 0.08, 0.05, -0.04, 0.03])
    found = script.estimate(seen, script.BALANCED, script.ELASTIC, plan, starts=4, draws=4)
    off = found["pose"] - truth[0]
    assert found["reached"] == 4
    assert np.all(np.abs(off) < 3.0 * found["deviation"])
    assert np.all(found["deviation"] < [1e-2, 1e-2, 5e-3, 0.02, 0.02, 0.02])
    assert 0.5 < found["size"] < 1.0  # noise is as assumed, balance better
    assert abs(found["gives"][0] - 4.0) < 3.0 * found["gives"][1]
    assert script.errors(found["pose"], truth[0])[0] < 15.0


def test_poses_without_data_say_where_they_are(poses, tmp_path):
    with pytest.raises(SystemExit, match=r"static_selfcalibration_27\.npz is not there"):
        poses[0].read(str(tmp_path))


@pytest.mark.parametrize("script", ["uacdpr", "uacdpr_poses", "uacdpr_swing"])
def test_a_wrong_folder_is_named(script, capsys, monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setattr(sys, "argv", [f"{script}.py", "no_such_folder"])
    with pytest.raises(SystemExit):
        runpy.run_path(str(EXAMPLES / f"{script}.py"), run_name="__main__")
    assert "no_such_folder is not a folder" in capsys.readouterr().err


def test_a_swing_made_here_is_fitted(monkeypatch):
    """Numbers are found within their errors; what was not fitted is predicted."""
    monkeypatch.syspath_prepend(EXAMPLES)
    import equinox as eqx
    import jax.numpy as jnp
    import uacdpr_swing as script

    def measured(t, pose, rate, tension, swivel, tilt):
        wide = lambda x: np.broadcast_to(x, (len(t), np.shape(x)[-1]))
        return script.Measured(t, *(wide(x) for x in (pose, rate, tension, swivel, tilt)))

    t = 0.01 * np.arange(101)
    pose = np.array([-0.143, 0.011, 0.564, -0.011, 0.046, 0.010])
    still = np.zeros(6), np.array([50.0, 57.0, 47.0, 54.0]), np.zeros(4), np.zeros(3)
    robot = script.unfitted(measured(t, pose, *still))
    where = lambda r: (r.cables.stiffness, r.platform.inertia, r.angular_damping)
    inertia = robot.platform.inertia * jnp.diag(jnp.array([0.9, 0.85, 0.95]))
    truth = eqx.tree_at(where, robot, (jnp.asarray(3.2e4), inertia, jnp.asarray(0.15)))
    pushed = np.array([0.15, 0.1, 0.0, 0.3, 0.6, 0.8])
    run = script.predict(truth, measured(t, pose, pushed, *still[1:]))
    random = np.random.default_rng(4)
    clean = np.hstack([run["position"], run["euler"]])
    sigma = 0.25 * np.array([2e-3] * 3 + [8e-3] * 3)
    noisy = clean + sigma * random.normal(size=clean.shape)
    rate = np.gradient(clean, t, axis=0, edge_order=2)
    part = script.Measured(t, noisy, rate, run["tension"] / 1.145, run["swivel"], run["euler"])
    fit = script.fit_windows(robot, [part.rows(0.0, 0.7)], max_steps=40)
    assert bool(fit.succeeded), fit.reason
    numbers = {"cables.stiffness": 3.2e4, "angular_damping": 0.15}
    numbers |= {f"platform.inertia[{i},{i}]": float(inertia[i, i]) for i in range(3)}
    for name, value in numbers.items():
        i = fit.names.index(name)
        assert abs(float(fit.values[i]) - value) < 4.0 * float(fit.standard_errors[i]), name
    left = part.rows(0.7, 1.0)
    off = {
        n: np.abs(x).max()
        for n, x in script.residuals(script.predict(fit.system, left), left).items()
    }
    assert off["position [mm]"] < 6.0 and off["swivel [deg]"] < 0.3, off
    half = script.swings(t, 0.1 * np.cos(2 * np.pi * 3.0 * t))
    np.testing.assert_allclose(half[:, 1], 3.0, rtol=1e-2)
    np.testing.assert_allclose(half[:, 0], np.degrees(0.1), rtol=1e-2)
