"""The robot of `uacdpr_swing.py`: elastic cables, locked lengths, joints that stick, measured
starts, recordings and numbers in files."""

import json
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
from cordax.mechanics import Controller  # noqa: E402
from cordax.mechanics.parts.drives import Drive  # noqa: E402
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


class StickingJoints(Controller):
    """Dry friction where cables are fixed to the platform, after Dahl (1968): about each of the
    platform's axes it holds like a spring at first, and slips at a `torque` (3,) [N m], which it
    would reach after a turn by `give` [rad] if it did not slip before. Kept from step to step of
    `dt` [s]: how far it holds (3,), half a step ahead, so that the torque is that of mid-step."""

    body: NaturalBody
    dt: float = eqx.field(static=True)
    torque: jax.Array = float_field()
    give: jax.Array = float_field()

    def init(self, state):
        return jnp.zeros(3, state.q.dtype)

    def __call__(self, t, state, memory):
        R = self.body.rotation(state.q[:12])
        turn = self.dt * self.body.angular_velocity(state.q[:12], state.v[:12]) @ R
        # dz = dx - |dx| z/give, exactly, for a steady turn: never held further than it gives
        end = self.give * jnp.sign(turn)
        held = end + (memory - end) * jnp.exp(-jnp.abs(turn) / self.give)
        return jnp.concatenate([jnp.zeros(3), -R @ (self.torque * held / self.give)]), held


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


FIELDS = ("t", "vicon_index", "vicon_pose_mm_rad", "tension", "swivel_rel", "ahrs_rpy")


def read(folder: str, name: str = "free_motion_25s.npz") -> Measured:
    file = Path(folder) / name
    if not file.exists():
        sys.exit(f"{folder}: {name} is not there: see uacdpr.py")
    try:
        data = np.load(file)
        missing = [field for field in FIELDS if field not in data]
    except (ValueError, OSError, TypeError):
        sys.exit(f"{file}: not a file of arrays (.npz)")
    if missing:
        sys.exit(f"{file}: {', '.join(missing)} not in it; see uacdpr.py for the fields")
    at = data["vicon_index"]
    t, pose = data["t"][at], data["vicon_pose_mm_rad"] * [1e-3, 1e-3, 1e-3, 1, 1, 1]
    rate = make_interp_spline(t, pose, k=5).derivative()(t)
    others = (data[name][at].astype(float) for name in FIELDS[3:])
    return Measured(t, pose, rate, *others)


class Machine(NamedTuple):
    """A robot and the dry friction of its joints, if any."""

    robot: CableRobot
    joints: StickingJoints | None


#: numbers that files of them hold: how many, and of which part of a machine
NUMBERS = {
    "position": (3, lambda m: m.robot.position),
    "lengths": (4, lambda m: m.robot.drives.length(0.0, None)),
    "stiffness": (1, lambda m: m.robot.cables.stiffness),
    "centre": (3, lambda m: m.robot.platform.centre),
    "inertia": (3, lambda m: jnp.diag(m.robot.platform.inertia)),
    "angular_damping": (1, lambda m: m.robot.angular_damping),
    "torque": (3, lambda m: m.joints.torque),
    "give": (1, lambda m: m.joints.give),
}


def write(file: Path, machine: Machine) -> None:
    """SI units, to six digits."""
    numbers = {name: np.ravel(part(machine)) for name, (_, part) in NUMBERS.items()}
    rounded = {name: [float(f"{x:.6g}") for x in values] for name, values in numbers.items()}
    lines = ",\n".join(f' "{name}": {json.dumps(values)}' for name, values in rounded.items())
    file.write_text(f"{{\n{lines}\n}}\n")


def known(file: Path, dt: float) -> Machine:
    """The machine of a file of numbers."""
    try:
        given = json.loads(file.read_text())
        n = {name: np.array(given[name], float) for name in NUMBERS}
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{file}: no file of fitted numbers ({error!r})")
    wrong = [name for name, (count, _) in NUMBERS.items() if n[name].shape != (count,)]
    if wrong:
        sys.exit(f"{file}: wrong count of {', '.join(wrong)}")
    body = NaturalBody(MASS, np.diag(n["inertia"]), n["centre"])
    robot = _robot(body, n["lengths"], n["stiffness"][0], n["angular_damping"][0], n["position"])
    return Machine(robot, StickingJoints(body, dt, n["torque"], n["give"][0]))


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
    return _robot(NaturalBody(MASS, INERTIA, centre), base, STIFFNESS, 0.2, pose[:3])


def _robot(body: NaturalBody, base, stiffness, damping, position) -> CableRobot:
    return CableRobot(
        body,
        attachments(0.280),
        PulleyExit(FREE, RADIUS * np.ones(4), OUT),
        LockedLengths(base, np.zeros(4)),
        ElasticCables(stiffness, 200.0),
        position=position,
        angular_damping=damping,
    )
