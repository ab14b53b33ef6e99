"""Actuators of a MuJoCo model."""

from typing import NamedTuple

import numpy as np

from ...systems.mechanism.actuators import Actuators, Transmissions
from ...systems.mechanism.muscles import Muscles
from .bodies import BALL, FREE, Skeleton, sites_of
from .load import flag, mujoco_module, names_of, unique
from .report import Report


class Reflected(NamedTuple):
    """Armature and damping that actuators add to joints, shapes (n_v,) and (n_v, 3), and to
    tendons, shapes (n,) and (n, 3)."""

    joint_armature: np.ndarray
    joint_damping: np.ndarray
    tendon_armature: np.ndarray
    tendon_damping: np.ndarray


class _Kinds(NamedTuple):
    """Names for the integer codes of MuJoCo's enumerations: `trn[code]` is "joint"."""

    trn: dict[int, str]
    dyn: dict[int, str]
    gain: dict[int, str]
    bias: dict[int, str]


def _kinds() -> _Kinds:
    enums = (
        getattr(mujoco_module(), f"mjt{x}").__members__ for x in ("Trn", "Dyn", "Gain", "Bias")
    )
    short = lambda name: name.split("_", 1)[1].lower()
    return _Kinds(*({int(x): short(name) for name, x in members.items()} for members in enums))


def actuators(m, body: Skeleton, report: Report, taken: set[str]) -> Actuators | None:
    """Read all actuators; None if the model has none or disables them."""
    if m.nu == 0:
        return None
    kinds = _kinds()
    n, count = int(m.nu), int(getattr(m, "nactuator", m.nu))
    inputs = np.asarray(getattr(m, "actuator_ctrladr", np.arange(n)))
    joints, balls, lines, points = [], [], [], []
    gears: dict[str, list] = {"joint": [], "ball": [], "tendon": [], "site": []}
    gain, bias = np.zeros((n, 3)), np.zeros((n, 3))
    force_range = np.tile([-np.inf, np.inf], (n, 1))
    active, passive, states, constants, activation_range = [], [], [], [], []
    off = flag(m, "actuation")
    names = _input_names(m, n, count, inputs)
    for a in range(count):
        i = int(inputs[a])
        problem = _unsupported(m, a, kinds)
        if off or problem:
            report.add("actuator", 1, problem or "has no effect: the model disables actuation")
            continue
        kind, target = kinds.trn[int(m.actuator_trntype[a])], int(m.actuator_trnid[a, 0])
        out = int(getattr(m, "actuator_outadr", np.arange(n))[a])
        gear = np.array(m.actuator_gear[out])
        if kind == "tendon":
            lines.append((i, target))
            gears["tendon"].append(gear[0])
        elif kind == "site":
            points.append((i, target, int(m.actuator_trnid[a, 1])))
            gears["site"].append(gear)
        else:
            q, v, joint = m.jnt_qposadr[target], m.jnt_dofadr[target], int(m.jnt_type[target])
            size = {FREE: 6, BALL: 3}.get(joint, 1)
            for k in range(size):
                joints.append((i, int(q) if size == 1 else -1, int(v) + k))
                gears["joint"].append(gear[k])
            if joint == BALL:
                balls.append((i, int(q)))
                gears["ball"].append(gear[:3])
        law = kinds.gain[int(m.actuator_gaintype[a])]
        if law == "muscle":
            active.append((i, a, out, m.actuator_gainprm[a]))
        else:
            gain[i] = m.actuator_gainprm[a, :3] * ([1, 0, 0] if law == "fixed" else [1, 1, 1])
        law = kinds.bias[int(m.actuator_biastype[a])]
        if law == "muscle":
            passive.append((i, a, out, m.actuator_biasprm[a]))
        elif law == "affine":
            bias[i] = m.actuator_biasprm[a, :3]
        if m.actuator_forcelimited[a]:
            force_range[i] = m.actuator_forcerange[a]
        law = kinds.dyn[int(m.actuator_dyntype[a])]
        if law != "none":
            states.append((int(m.actuator_actadr[a]), i, law.replace("exact", "")))
            constants.append(np.maximum(m.actuator_dynprm[a, :3], [1e-15, 1e-15, 0.0]))
            limited = m.actuator_actlimited[a]
            activation_range.append(m.actuator_actrange[a] if limited else [-np.inf, np.inf])
            if m.actuator_actearly[a]:
                report.add("actuator actearly", 1, "forces follow the present activation")
        if np.any(getattr(m, "actuator_delay", np.zeros(count))[a]):
            report.add("actuator delay", 1, "the input acts without delay")
    clamp = ~np.asarray(m.actuator_ctrllimited, bool) | flag(m, "clampctrl")
    order = np.argsort([s[0] for s in states]).astype(int)
    used = sorted({s for _, *pair in points for s in pair if s >= 0})
    places = tuple(
        (i, used.index(site), used.index(other) if other >= 0 else -1) for i, site, other in points
    )
    table = lambda rows, *shape: np.array(rows, float).reshape(-1, *shape)
    return Actuators(
        names=tuple(unique(names, taken)),
        gain=gain,
        bias=bias,
        input_range=np.where(clamp[:, None], [-np.inf, np.inf], m.actuator_ctrlrange),
        force_range=force_range,
        joint_gear=table(gears["joint"]),
        ball_gear=table(gears["ball"], 3),
        tendon_gear=table(gears["tendon"]),
        site_gear=table(gears["site"], 6),
        time_constants=table(constants, 3)[order],
        activation_range=table(activation_range, 2)[order],
        active=_muscles(m, active),
        passive=_muscles(m, passive),
        sites=sites_of(m, body.carriers, "site", used),
        transmissions=Transmissions(tuple(joints), tuple(balls), tuple(lines), places),
        active_muscles=tuple(x[0] for x in active),
        passive_muscles=tuple(x[0] for x in passive),
        states=tuple(states[k][1] for k in order),
        dynamics=tuple(states[k][2] for k in order),
    )


def _input_names(m, n: int, count: int, inputs) -> list[str]:
    """Names of the inputs: those of the actuators, with a number if an actuator has several
    inputs."""
    names = names_of(m, "actuator", count)
    if n == count:
        return names
    owner = np.searchsorted(inputs, np.arange(n), side="right") - 1
    return [f"{names[a]}_{k - inputs[a]}" for k, a in enumerate(owner)]


def _unsupported(m, a: int, kinds: _Kinds) -> str:
    """Reason why an actuator has no effect; empty if it is supported."""
    kind = kinds.trn[int(m.actuator_trntype[a])]
    target = int(m.actuator_trnid[a, 0])
    turned = kind == "jointinparent" and m.jnt_type[target] in (FREE, BALL)
    if kind not in ("joint", "jointinparent", "tendon", "site") or turned:
        return f"has no effect: transmission {kind!r} is not supported"
    if m.actuator_plugin[a] >= 0:
        return "has no effect: plugins are not supported"
    allowed = {
        "gain": ("fixed", "affine", "muscle"),
        "bias": ("none", "affine", "muscle"),
        "dyn": ("none", "integrator", "filter", "filterexact", "muscle"),
    }
    for part, known in allowed.items():
        law = getattr(kinds, part)[int(getattr(m, f"actuator_{part}type")[a])]
        if law not in known:
            return f"has no effect: {part}type {law!r} is not supported"
    return ""


def _muscles(m, rows) -> Muscles | None:
    """Force curves of muscles from their parameters (mjNGAIN,)."""
    if not rows:
        return None
    p = np.array([prm for *_, prm in rows])
    out = np.array([out for _, _, out, _ in rows])
    scaled = p[:, 3] / np.maximum(m.actuator_acc0[out], 1e-15)
    return Muscles(
        range=p[:, :2],
        length_range=m.actuator_lengthrange[out],
        force=np.where(p[:, 2] < 0, scaled, p[:, 2]),
        shortest=p[:, 4],
        longest=p[:, 5],
        speed=p[:, 6],
        passive_force=p[:, 7],
        lengthening_force=p[:, 8],
    )


def reflected(m) -> Reflected:
    """Read the armature and damping that actuators add to their joints and tendons."""
    kinds = _kinds()
    found = Reflected(
        np.zeros(m.nv), np.zeros((m.nv, 3)), np.zeros(m.ntendon), np.zeros((m.ntendon, 3))
    )
    if not hasattr(m, "actuator_armature"):
        return found
    for a in range(int(getattr(m, "nactuator", m.nu))):
        kind, target = kinds.trn[int(m.actuator_trntype[a])], int(m.actuator_trnid[a, 0])
        square = m.actuator_gear[m.actuator_outadr[a], 0] ** 2
        drag = np.array([m.actuator_damping[a], *m.actuator_dampingpoly[a]]) * square
        if kind == "tendon":
            found.tendon_armature[target] += m.actuator_armature[a] * square
            found.tendon_damping[target] += drag
        elif kind in ("joint", "jointinparent") and m.jnt_type[target] not in (FREE, BALL):
            v = m.jnt_dofadr[target]
            found.joint_armature[v] += m.actuator_armature[a] * square
            found.joint_damping[v] += drag
    return found
