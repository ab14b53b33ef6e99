"""The stored reference of the cable robot (`tests/data/cable_robot.npz`) as machines and inputs."""

import json
from functools import cache
from types import SimpleNamespace

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from cordax import simulate
from cordax.control import Pulses
from cordax.mechanics.parts.drives import ProgrammedLengths, ServoWinches, Winches
from cordax.mechanics.parts.exits import PointExit, PulleyExit, SwivelPulleyExit
from cordax.mechanics.reference_motion import Quintic, Reference
from cordax.systems.cable_robot import CableRobot
from cordax.systems.cable_robot.natural import NaturalBody
from cordax.systems.cable_robot.payload import Payload
from helpers.stored import stored


def fields(case: str) -> SimpleNamespace:
    """Everything stored of a case or point."""
    prefix = case + "/"
    data = stored("cable_robot")
    found = {k.removeprefix(prefix): data[k] for k in data if k.startswith(prefix)}
    return SimpleNamespace(**found)


@cache
def parameters(case: str) -> SimpleNamespace:
    """Of a case; lists as arrays."""
    values = json.loads(str(fields(case).par))
    as_array = lambda x: np.array(x) if isinstance(x, list) else x
    return SimpleNamespace(**{name: as_array(x) for name, x in values.items()})


def points() -> list[str]:
    return sorted({k.split("/")[0] for k in stored("cable_robot") if k.startswith("pt_")})


# --- machines ---------------------------------------------------------------------------------


class DrumAngles(Reference):
    """Drum angles (n,) [rad] that would keep the platform upright with its origin on `path`, for
    eyelets as exits."""

    path: Reference
    arms: jnp.ndarray
    exits: jnp.ndarray
    zero_length: jnp.ndarray
    radius: jnp.ndarray

    def position(self, t):
        lengths = jnp.linalg.norm(self.path.position(t) + self.arms - self.exits, axis=1)
        return (lengths - self.zero_length) / self.radius


def platform_of(case: str) -> NaturalBody:
    p = parameters(case)
    return NaturalBody(p.m, p.J, p.cm, p.ri, p.rj, p.vi, p.vj)


def exits_of(case: str):
    p = parameters(case)
    moves = not np.array_equal(p.d, p.dF)
    place = Quintic(p.d, (p.dF - p.d)[None], p.tA[None]) if moves else p.d
    if p.model == 1:
        return PointExit(place)
    if p.model == 2:
        return PulleyExit(place, p.rp)
    return SwivelPulleyExit(place, p.rp, p.Jp, p.damp[2])


def servo_winches_of(case: str) -> ServoWinches:
    p = parameters(case)
    reference = np.zeros_like(p.l0)
    if p.mode == 1:
        path = Quintic(p.pn0, p.dref[:, :3], p.seg)
        reference = DrumAngles(path, p.bl, p.d, p.l0, p.rw)
    return ServoWinches(p.l0, p.rw, p.Jm, reference, *p.pid, feedforward=p.tau0)


def robot_of(case: str, *, servo: bool = True) -> CableRobot:
    """The machine of a case without its payload; with motors, `servo` chooses between the stored
    PID and bare torques."""
    p = parameters(case)
    drives = ProgrammedLengths(p.l0)
    if p.drive == 1:
        drives = servo_winches_of(case) if servo else Winches(p.l0, p.rw, p.Jm)
    return CableRobot(
        platform_of(case),
        p.bl,
        exits_of(case),
        drives,
        position=p.p0,
        rotation=p.R0,
        linear_damping=p.damp[0],
        angular_damping=p.damp[1],
    )


def payload_body_of(case: str) -> NaturalBody:
    """The payload of a case, in the basis of the platform."""
    p = parameters(case)
    return NaturalBody(p.mpl, p.Jpl, r_j=p.rj, v_i=p.vi, v_j=p.vj)


def picker_of(case: str, *, servo: bool = True) -> CableRobot:
    """The robot with its payload on the ground."""
    p = parameters(case)
    return robot_of(case, servo=servo).with_payload(payload_body_of(case), p.ppl0, p.p2)


# --- single states ----------------------------------------------------------------------------


def machine_at(point: str) -> CableRobot:
    """The machine of a stored point: motors take torques."""
    case = point.removeprefix("pt_").rsplit("_", 1)[0]
    if not point.endswith("_joined"):
        return robot_of(case, servo=False)
    robot = picker_of(case, servo=False)
    _, on_platform = fields(point).join_coef
    weights = jnp.concatenate([1.0 - on_platform[:1], on_platform])
    products = jnp.asarray(fields(point).join_dot)
    held = Payload(robot.payload.body, robot.payload.joint, "platform", weights, None, products)
    return eqx.tree_at(lambda r: r.payload, robot, held)


def inputs_at(point: str) -> np.ndarray:
    """Inputs of `machine_at` at a stored point; torques are those of the PID."""
    case = point.removeprefix("pt_").rsplit("_", 1)[0]
    p, s = parameters(case), fields(point)
    if p.drive == 0:
        return np.concatenate([s.F, s.T])
    n = len(p.l0)
    wanted, wanted_rate, _ = (np.asarray(x) for x in servo_winches_of(case).reference(s.t))
    K_p, K_i, K_d = p.pid
    torque = p.tau0 + K_p * (wanted - s.q[-n:]) + K_i * s.I + K_d * (wanted_rate - s.qd[-n:])
    return np.concatenate([torque, s.F, s.T])


# --- runs -------------------------------------------------------------------------------------


def pulses_of(case: str, robot: CableRobot, dt: float) -> Pulses | None:
    rows = parameters(case).pulses
    if len(rows) == 0:
        return None
    inputs = np.zeros((len(rows), robot.n_u))
    inputs[:, -6:] = rows[:, 2:]
    return Pulses(rows[:, :2], inputs, period=dt)


def run(case: str, dt: float, *, until=None, every=None, robot=None, **options):
    """`simulate` a case from its stored start, storing the instants of the reference, or one every
    `every` seconds."""
    p, t = parameters(case), fields(case).t
    robot = robot_of(case) if robot is None else robot
    return simulate(
        robot,
        robot.state_at(p.p0, p.R0, p.v0, p.R0 @ p.w0),
        dt=dt,
        duration=p.tend if until is None else until,
        save_every=round((t[1] - t[0] if every is None else every) / dt),
        control=pulses_of(case, robot, dt),
        **options,
    )


def errors(case: str, trajectory) -> SimpleNamespace:
    """Largest differences to the reference: `p` [m], `quat`, `f` [N]."""
    s = fields(case)
    stride = round((s.t[1] - s.t[0]) / float(trajectory.t[1] - trajectory.t[0]))
    k = min(len(s.t), (len(trajectory.t) - 1) // stride + 1)
    at = lambda x: np.asarray(x)[: k * stride : stride]
    np.testing.assert_allclose(at(trajectory.t), s.t[:k], atol=1e-9)
    worst = lambda a, b: float(np.max(np.abs(a - b[:k])))
    quat = at(trajectory["quaternion"])
    sign = np.sign(np.sum(quat * s.quat[:k], axis=1, keepdims=True))
    return SimpleNamespace(
        p=worst(at(trajectory["position"]), s.p),
        quat=worst(sign * quat, s.quat),
        f=worst(at(trajectory["tension"]), s.f),
    )


def relative(a, b) -> float:
    """Largest difference over the largest entry of b."""
    difference = np.max(np.abs(np.asarray(a) - np.asarray(b)))
    return 0.0 if difference == 0 else float(difference / np.max(np.abs(np.asarray(b))))
