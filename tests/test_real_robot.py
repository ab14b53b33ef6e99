"""`examples/real/uacdpr.py` on poses made here."""

import sys
from pathlib import Path

import numpy as np
import pytest

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


@pytest.fixture
def poses(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    import uacdpr_poses

    return uacdpr_poses


def test_the_first_pose_is_found_from_increments(poses):
    """Poses in balance, exact readings but for their constants, starts 5 cm and 3 degrees off."""
    import jax
    import jax.numpy as jnp

    rng = np.random.default_rng(2)
    grid = np.stack(np.meshgrid([-0.3, 0.3], [-0.3, 0.3], [0.7, 1.0]), -1).reshape(-1, 3)
    wanted = np.hstack([grid, 0.1 * rng.normal(size=(8, 3))])
    balance = lambda x, pose: poses.model(jnp.concatenate([pose[:3], x, pose[5:]]))[1]
    for i, pose in enumerate(wanted):  # roll and pitch at which it hangs still
        x = jnp.asarray(pose[3:5])
        for _ in range(20):
            x = x - jnp.linalg.lstsq(jax.jacfwd(balance)(x, pose), balance(x, pose))[0]
        wanted[i, 3:5] = x
    read, left = jax.vmap(poses.model)(jnp.asarray(wanted))
    assert np.abs(left).max() < 1e-6
    seen = poses.Seen(read.length - 0.7, read.swivel + 0.2, read.tilt - 0.1, read.tension)
    start = wanted + rng.uniform(-0.05, 0.05, wanted.shape)
    found = poses.estimate(seen, poses.BALANCED, start, starts=2, draws=3)
    np.testing.assert_allclose(found["pose"], wanted[0], atol=1e-6)
    np.testing.assert_allclose(found["constants"][:4], 0.7, atol=1e-6)
    np.testing.assert_allclose(found["bootstrap"], np.tile(wanted[0], (3, 1)), atol=1e-5)
    assert poses.errors(wanted[0] + [3e-3, 4e-3, 0, 0, 0, 0], wanted[0])[0] == pytest.approx(5.0)


def test_a_start_keeps_cables_taut(monkeypatch):
    """A start a millimetre off is moved by about that and does not stretch stiff cables; the model
    at rest stays where it was measured."""
    monkeypatch.syspath_prepend(EXAMPLES)
    import jax.numpy as jnp
    import uacdpr_machine as machine
    import uacdpr_swing as swing

    pose = np.array([-0.14, 0.01, 0.56, -0.01, 0.05, 0.01])
    still = np.tile(pose, (21, 1))
    tension, t = np.tile([47.0, 54.0, 47.0, 53.0], (21, 1)), 0.01 * np.arange(21)
    rest = machine.Measured(t, still, 0 * still, tension, 0 * tension, 0 * still[:, 3:])
    robot = machine.unfitted(rest)
    found = swing.predict(robot, rest)
    assert np.abs(found["position"] - pose[:3]).max() < 2e-3
    np.testing.assert_allclose(found["tension"][0], 1.145 * tension[0], rtol=0.05)
    off = rest._replace(pose=still + 1e-3)
    start = swing.experiment(robot, off).start
    moved = np.asarray(start.q[:3]) - off.pose[0, :3]
    length = robot.lengths(start.q[:3], robot.platform.rotation(start.q))
    stretch = np.asarray(length - robot.drives.length(0.0, None))
    across = machine.PATTERNS[:3] @ (stretch - 1.145 * tension[0] / machine.STIFFNESS)
    assert np.abs(across).max() < 5e-5 and np.abs(moved).max() < 3e-3
    errors = swing.residuals(found, rest)
    assert set(errors) >= {"tension [N]", "swivel [deg]"}
    assert jnp.isfinite(found["swivel"]).all()
