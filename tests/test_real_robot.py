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
        jnp.zeros(18),
    )
    return script, truth, seen


def test_the_first_pose_is_found_from_increments_and_balance(poses):
    script, truth, seen = poses
    plan = truth + np.array([0.05, -0.05, 0.08, 0.05, -0.04, 0.03])
    found = script.estimate(seen, script.BALANCED, script.ELASTIC, plan, starts=4, draws=4)
    off = found["first"][:6] - truth[0]
    assert found["reached"] == 4
    assert np.all(np.abs(off) < 3.0 * found["deviation"][:6])
    assert np.all(found["deviation"][:6] < [1e-2, 1e-2, 5e-3, 0.02, 0.02, 0.02])
    assert 0.5 < found["size"] < 1.0  # noise is as assumed, balance better
    assert abs(found["gives"][0] - 4.0) < 3.0 * found["gives"][1]
    assert script.errors(found["first"][:6], truth[0])[0] < 15.0


def test_a_pose_as_counted_is_where_cables_that_do_not_stretch_would_be(poses):
    script, truth, _ = poses
    noise = {"balance": script.BALANCED["balance"]}
    length = lambda pose, gives: np.asarray(script.model(pose, gives, noise, 1.0)[0].length)
    np.testing.assert_allclose(
        script.as_counted(truth[3], length(truth[3], 0.0)), truth[3], atol=1e-12
    )
    counted = script.as_counted(truth[3], length(truth[3], 4.0))
    assert 3e-3 < counted[2] - truth[3, 2] < 3e-2  # shorter cables hold it higher
    aim = lambda place: length(np.r_[place, truth[3, 3:]], 0.0) - length(truth[3], 4.0)
    np.testing.assert_allclose(counted[:3], least_squares(aim, truth[3, :3]).x, atol=1e-6)


def test_a_yaw_that_drifts_is_told_from_turning(poses):
    script, truth, seen = poses
    when = np.linspace(0.0, 1.0, len(truth))
    tilt = np.asarray(seen.tilt) + np.outer(when, [0.0, 0.0, 0.1])
    drifting = seen._replace(tilt=tilt, when=when)
    found = script.estimate(drifting, script.HOMED, script.ELASTIC, truth, starts=4, draws=4)
    assert found["drift"] == pytest.approx(-0.1, abs=0.01)
    assert np.all(np.abs(found["first"][:6] - truth[0]) < 3.0 * found["deviation"][:6])


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


@pytest.fixture(scope="module")
def swing():
    """`uacdpr_swing`, a machine with dry friction, and 1.5 s of its swinging with noise."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        import equinox as eqx
        import jax.numpy as jnp
        import uacdpr_swing as script
        from uacdpr_machine import StickingJoints
    finally:
        sys.path.remove(str(EXAMPLES))

    def measured(t, pose, rate, tension, swivel, tilt):
        wide = lambda x: np.broadcast_to(x, (len(t), np.shape(x)[-1]))
        return script.Measured(t, *(wide(x) for x in (pose, rate, tension, swivel, tilt)))

    t = 0.01 * np.arange(151)
    pose = np.array([-0.143, 0.011, 0.564, -0.011, 0.046, 0.010])
    still = np.zeros(6), np.array([50.0, 57.0, 47.0, 54.0]), np.zeros(4), np.zeros(3)
    robot = script.unfitted(measured(t, pose, *still))
    where = lambda r: (r.cables.stiffness, r.platform.inertia, r.angular_damping)
    inertia = robot.platform.inertia * jnp.diag(jnp.array([0.9, 0.85, 0.95]))
    truth = eqx.tree_at(where, robot, (jnp.asarray(3.2e4), inertia, jnp.asarray(0.15)))
    joints = StickingJoints(robot.platform, script.DT, [0.1, 0.05, 0.3], 0.02)
    truth = script.Machine(truth, joints)
    pushed = np.array([0.15, 0.1, 0.0, 0.3, 0.6, 0.8])
    run = script.predict(truth, measured(t, pose, pushed, *still[1:]))
    random = np.random.default_rng(4)
    clean = np.hstack([run["position"], run["euler"]])
    sigma = 0.25 * np.array([2e-3] * 3 + [8e-3] * 3)
    noisy = clean + sigma * random.normal(size=clean.shape)
    rate = np.gradient(clean, t, axis=0, edge_order=2)
    part = script.Measured(t, noisy, rate, run["tension"] / 1.145, run["swivel"], run["euler"])
    return script, robot, truth, part, clean


def test_a_swing_made_here_is_fitted(swing):
    """Numbers are found within their errors; what was not fitted is predicted."""
    script, robot, truth, part, _ = swing
    first = script.StickingJoints(robot.platform, script.DT, [0.05, 0.05, 0.15], 0.03)
    fit = script.fit_windows(script.Machine(robot, first), [part.rows(0.0, 1.0)], max_steps=40)
    assert bool(fit.succeeded), fit.reason
    numbers = {"cables.stiffness": 3.2e4, "angular_damping": 0.15, "control.torque[2]": 0.3}
    inertia = truth.robot.platform.inertia
    numbers |= {f"platform.inertia[{i},{i}]": float(inertia[i, i]) for i in range(3)}
    for name, value in numbers.items():
        i = fit.names.index(name)
        assert abs(float(fit.values[i]) - value) < 4.0 * float(fit.standard_errors[i]), name
    left = part.rows(1.0, 1.5)
    found = script.predict(script.machine_of(fit), left)
    off = {n: np.abs(x).max() for n, x in judge().residuals(found, left).items()}
    assert off["position [mm]"] < 6.0 and off["swivel [deg]"] < 0.3, off


def judge():
    import uacdpr_judge

    return uacdpr_judge


def test_half_swings_and_phases_are_counted(swing):
    t = 0.01 * np.arange(301)
    wave = lambda late: 0.1 * np.cos(2 * np.pi * 3.0 * t - late)
    half = judge().swings(t, wave(0.0))
    np.testing.assert_allclose(half[:, 1], 3.0, rtol=1e-2)
    np.testing.assert_allclose(half[:, 0], np.degrees(0.1), rtol=1e-2)
    found = judge().phases(t, wave(0.0), 0.5 * wave(0.2), 3.0)
    assert found.shape == (3, 3)
    np.testing.assert_allclose(found, [[-np.degrees(0.2), 0.5, 0.1]] * 3, rtol=2e-2)


def test_joints_hold_slip_and_take_energy(swing):
    """A spring at first, the slip torque at last, whatever the step; work is never given back."""
    import jax.numpy as jnp

    script, robot, *_ = swing
    joints = script.StickingJoints(robot.platform, script.DT, [0.1, 0.05, 0.3], 0.02)

    def turned(speeds):
        """Torques (k, 3) and work taken [J] at angular velocities (k, 3) [rad/s]."""
        memory, torques, work = jnp.zeros(3), [], 0.0
        for speed in np.array(speeds):
            state = robot.state_at(angular_velocity=jnp.asarray(speed))
            u, memory = joints(0.0, state, memory)
            torques.append(np.asarray(u[3:]))
            work = work - float(torques[-1] @ speed) * script.DT
            assert np.all(np.asarray(u[:3]) == 0.0)
            assert work > -1e-12
        return np.array(torques), work

    little = turned([[0.0, 0.0, 1e-3]])[0][0]
    np.testing.assert_allclose(little, [0.0, 0.0, -0.3 / 0.02 * 1e-3 * script.DT], rtol=1e-3)
    far = turned([[1.0, 1.0, -1.0]] * 60)[0][-1]
    np.testing.assert_allclose(far, [-0.1, -0.05, 0.3], rtol=1e-3)
    swung = np.outer(np.cos(0.1 * np.arange(126)), [0.5, -1.0, 2.0])
    assert turned(swung)[1] > 0.1


def test_friction_has_derivatives(swing):
    """Forward, reverse and central differences, by torque, give and speeds that turn about."""
    import jax
    import jax.numpy as jnp

    script, robot, *_ = swing
    along = jnp.cos(0.3 * jnp.arange(40))[:, None] * jnp.array([0.5, -1.0, 2.0])

    def mean(x):
        joints = script.StickingJoints(robot.platform, script.DT, x[:3], x[3])
        states = jax.vmap(lambda w: robot.state_at(angular_velocity=w))(x[4] * along)
        torque = lambda memory, state: joints(0.0, state, memory)[::-1]
        u = jax.lax.scan(torque, jnp.zeros(3), states)[1]
        return jnp.mean(u[:, 3:] * along)

    x = jnp.array([0.1, 0.05, 0.3, 0.02, 1.0])
    forward, reverse = jax.jit(jax.jacfwd(mean))(x), jax.jit(jax.grad(mean))(x)
    np.testing.assert_allclose(forward, reverse, rtol=1e-10)
    mean = jax.jit(mean)
    moved = [(mean(x + h) - mean(x - h)) / (2.0 * h[i]) for i, h in enumerate(1e-5 * jnp.diag(x))]
    np.testing.assert_allclose(forward, moved, rtol=1e-6)


def test_a_window_is_predicted_with_numbers_of_a_file(swing, tmp_path, capsys):
    script, _, truth, part, clean = swing
    numbers = tmp_path / "numbers.json"
    script.write(numbers, truth)
    np.savez(
        tmp_path / "longer.npz",
        t=part.t,
        vicon_index=np.arange(len(part.t)),
        vicon_pose_mm_rad=clean * [1e3, 1e3, 1e3, 1, 1, 1],
        tension=part.tension,
        swivel_rel=part.swivel,
        ahrs_rpy=part.tilt,
    )
    ask = {"file": "longer.npz", "numbers": str(numbers)}
    script.main(str(tmp_path), predict=["0.0", "1.5"], **ask)
    said = capsys.readouterr().out
    first, second = (float(line.split()[-1]) for line in said.splitlines() if "over noise" in line)
    assert first < 1.0 and second < 0.5, said
    assert "yaw, ahead by" in said and "tension [N], RMS in each second" in said


def test_what_cannot_be_predicted_is_said(swing, tmp_path):
    script, _, truth, part, _ = swing
    with pytest.raises(SystemExit, match=r"other\.npz is not there"):
        script.main(str(tmp_path), file="other.npz")
    (tmp_path / "other.npz").write_text("no arrays")
    with pytest.raises(SystemExit, match="not a file of arrays"):
        script.main(str(tmp_path), file="other.npz")
    np.savez(tmp_path / "other.npz", t=part.t)
    with pytest.raises(SystemExit, match="vicon_index, vicon_pose_mm_rad"):
        script.main(str(tmp_path), file="other.npz")
    for begin, end, word in (
        ("a", "1", "two times"),
        ("0", "9", "there are 0 to 1.5 s"),
        ("1", "0", "there are"),
        ("0.2", "0.6", "or more"),
    ):
        with pytest.raises(SystemExit, match=word):
            script.window(part, begin, end)
    gaps = script.Measured(*(np.delete(x, 70, axis=0) for x in part))
    with pytest.raises(SystemExit, match="not at 100 Hz"):
        script.window(gaps, "0", "1.5")
    with pytest.raises(SystemExit, match="numbers are missing"):
        script.window(part._replace(pose=np.full_like(part.pose, np.nan)), "0", "1.5")
    file = tmp_path / "numbers.json"
    with pytest.raises(SystemExit, match="no file of fitted numbers"):
        script.known(file, script.DT)
    script.write(file, truth)
    again = script.known(file, script.DT)
    np.testing.assert_allclose(again.joints.torque, truth.joints.torque)
    np.testing.assert_allclose(again.robot.platform.centre, truth.robot.platform.centre, rtol=1e-5)
    file.write_text(file.read_text().replace('"torque": [', '"torque": [0.1, '))
    with pytest.raises(SystemExit, match="wrong count of torque"):
        script.known(file, script.DT)


def test_the_shipped_numbers_are_a_machine(swing):
    script = swing[0]
    machine = script.known(script.SHIPPED, script.DT)
    rest = script.cordax.equilibrium(machine.robot)
    assert np.all(np.isfinite(np.asarray(rest.q)))
    assert 0.1 < float(machine.joints.torque[2]) < 1.0
