"""The robot of `uacdpr_swing.py`: elastic cables, locked lengths, starts that were measured."""

import sys
from pathlib import Path
from typing import NamedTuple

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from scipy.interpolate import make_interp_spline  # noqa: E402
from uacdpr import FREE, OUT, RADIUS, attachments, turned  # noqa: E402

from cordax import float_field  # noqa: E402
from cordax.mechanics.drives import Drive  # noqa: E402
from cordax.systems import CableRobot, ElasticCables, NaturalBody, PulleyExit  # noqa: E402

MASS, HEIGHT = 12.966, 0.173  # [kg]; of the centre of mass in the platform [m]
INERTIA = np.diag([0.18396111, 0.11544751, 0.1864344])  # [kg m^2]
STIFFNESS = 2.6e4  # [N/m], where the search begins: as poses at rest say (`uacdpr_poses.py`)
#: precision of measured starts: [m], [rad]; [m/s], [rad/s]; of what keeps cables taut: [m], [m/s]
POSE, RATE = np.array([1e-3] * 3 + [4e-3] * 3), np.array([0.02] * 3 + [0.08] * 3)
TAUT, TAUT_RATE = 1e-4, 2e-3
#: all cables, front and back, left and right, and what the pose hardly shows: (-, +, -, +)
PATTERNS = 0.5 * np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, -1, 1], [-1, 1, -1, 1]])


class Measured(NamedTuple):
    """At 100 Hz: t [s]; pose (k, 6) [m, rad] and its rate; tension (k, 4) [N]; swivel (k, 4) and
    tilt (k, 3) [rad], up to constants."""

    t: np.ndarray
    pose: np.ndarray
    rate: np.ndarray
    tension: np.ndarray
    swivel: np.ndarray
    tilt: np.ndarray

    def rows(self, begin: float, end: float) -> "Measured":
        inside = (self.t > begin - 1e-6) & (self.t < end + 1e-6)
        return Measured(*(x[inside] for x in self))


class LockedLengths(Drive):
    """`base` (4,) [m] and `patterns` (4,) [mm] of all of them."""

    base: jax.Array = float_field()
    patterns: jax.Array = float_field()

    @property
    def n_cables(self):
        return 4

    def length(self, t, y):
        return self.base + 1e-3 * self.patterns @ jnp.asarray(PATTERNS)


class MeasuredStart(eqx.Module):
    """A pose and its rate (6,) as measured, moved by `shift` and `push` (6,) in units of their
    precision, then as little as keeps cables at their length, stretched by a `pull` (4,) [N]: what
    is stiff is not excited by errors of a millimetre."""

    pose: jax.Array
    rate: jax.Array
    pull: jax.Array
    shift: jax.Array = float_field()
    push: jax.Array = float_field()

    def __call__(self, robot):
        length = lambda p: robot.lengths(p[:3], turned(p[3:]))
        begin, rate = self.pose + POSE * self.shift, self.rate + RATE * self.push
        aim = robot.drives.length(0.0, None) + self.pull / robot.cables.stiffness
        pose = begin
        for _ in range(3):
            J = jax.jacfwd(length)(pose)
            pose = begin + _least(J, aim - length(pose) + J @ (pose - begin), POSE, TAUT)
        J = jax.jacfwd(length)(pose)
        rate = rate - _least(J, J @ rate, RATE, TAUT_RATE)
        R, R_rate = jax.jvp(turned, (pose[3:],), (rate[3:],))
        spin = R_rate @ R.T
        spin = jnp.stack([spin[2, 1], spin[0, 2], spin[1, 0]])
        return robot.state_at(pose[:3], R, rate[:3], spin)


def _least(J, wanted, size, level):
    """The most likely x with J x about `wanted`, of entries as large as `size`."""
    A = J * size / level
    return size * jnp.linalg.solve(jnp.eye(6) + A.T @ A, A.T @ (wanted / level))


def read(folder: str) -> Measured:
    file = Path(folder) / "free_motion_25s.npz"
    if not file.exists():
        sys.exit(f"{folder}: {file.name} is not there: see uacdpr.py")
    data = np.load(file)
    at = data["vicon_index"]
    t, pose = data["t"][at], data["vicon_pose_mm_rad"] * [1e-3, 1e-3, 1e-3, 1, 1, 1]
    rate = make_interp_spline(t, pose, k=5).derivative()(t)
    others = (data[name][at].astype(float) for name in ("tension", "swivel_rel", "ahrs_rpy"))
    return Measured(t, pose, rate, *others)


def unfitted(rest: Measured) -> CableRobot:
    """Given numbers, lengths and centre of mass as at rest under tensions measured there, scaled to
    carry the weight."""
    pose, weight = rest.pose.mean(0), MASS * 9.81
    exits = PulleyExit(FREE, RADIUS * np.ones(4), OUT)
    R = np.asarray(turned(jnp.asarray(pose[3:])))
    b = pose[:3] + attachments(0.280) @ R.T
    length, slope = jax.vjp(lambda b: exits.length(0.0, b, jnp.zeros((4, 0))), jnp.asarray(b))
    pull = -np.asarray(slope(jnp.ones(4))[0]) * rest.tension.mean(0)[:, None]
    scale = weight / pull[:, 2].sum()
    moment = scale * np.cross(b - pose[:3], pull).sum(0)
    arm = np.array([-moment[1], moment[0]]) / weight
    centre = [*np.linalg.solve(R[:2, :2], arm - HEIGHT * R[:2, 2]), HEIGHT]
    base = np.asarray(length) - scale * rest.tension.mean(0) / STIFFNESS
    return CableRobot(
        NaturalBody(MASS, INERTIA, centre),
        attachments(0.280),
        exits,
        LockedLengths(base, np.zeros(4)),
        ElasticCables(STIFFNESS, 200.0),
        position=pose[:3],
        angular_damping=0.2,
    )
