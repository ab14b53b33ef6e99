"""Bodies and joints of a MuJoCo model."""

from typing import NamedTuple

import numpy as np

from ...systems.mechanism.body import WORLD, Body
from ...systems.mechanism.joint_laws import JointLaws
from ...systems.mechanism.joints import Joint
from ...systems.mechanism.located_joints import Ball, FreeJoint, Hinge, Slider
from ...systems.mechanism.points import Sites
from ...systems.mechanism.solids import Solid
from .load import flag, given_name, quadratic, rotation, unique
from .report import Report

FREE, BALL, SLIDE, HINGE = range(4)


class Carrier(NamedTuple):
    """A frame of the model: the name of the body to which it is fixed, its position (3,) [m] and
    rotation (3, 3) relative to that body."""

    name: str
    p: np.ndarray
    R: np.ndarray

    def point(self, x) -> np.ndarray:
        return self.p + self.R @ x

    def frame(self, p, R) -> "Carrier":
        return Carrier(self.name, self.point(p), self.R @ R)


class Skeleton(NamedTuple):
    """Bodies and joints of a model: `bodies` in the order of the joints, the frame (`Carrier`) of
    each body of the model, and the name of the body of each joint."""

    bodies: list[Body]
    carriers: list[Carrier]
    joint_names: list[str]


def skeleton(m, report: Report) -> Skeleton:
    """Read bodies and joints, with one body for each joint. Bodies without joints become part of
    the body that carries them."""
    names = _names(m)
    carriers = [Carrier(WORLD, np.zeros(3), np.eye(3))]
    parts: list[dict] = []
    solids: dict[str, list[Solid]] = {}
    for b in range(1, m.nbody):
        up = carriers[m.body_parentid[b]]
        here = up.frame(m.body_pos[b], rotation(m.body_quat[b]))
        first, count = int(m.body_jntadr[b]), int(m.body_jntnum[b])
        if m.body_mocapid[b] >= 0:
            report.add("mocap body", 1, "is fixed at its initial pose")
        for j in range(first, first + count):
            kind = int(m.jnt_type[j])
            at, turned = (np.zeros(3), np.eye(3)) if kind == FREE else (here.p, here.R)
            joint = _joint(m, j, kind)
            parts.append(
                {"name": names[j], "joint": joint, "parent": here.name, "at": at, "turned": turned}
            )
            here = Carrier(names[j], np.zeros(3), np.eye(3))
            solids[names[j]] = []
        carriers.append(here)
        if here.name != WORLD and m.body_mass[b] > 0:
            R = here.R @ rotation(m.body_iquat[b])
            inertia = R @ np.diag(m.body_inertia[b]) @ R.T
            centre = here.point(m.body_ipos[b])
            solids[here.name].append(Solid(m.body_mass[b], centre, 0.5 * (inertia + inertia.T)))
    starts = _starts(m)
    bodies = [
        Body(**part, solids=tuple(solids[part["name"]]), start=start)
        for part, start in zip(parts, starts, strict=True)
    ]
    return Skeleton(bodies, carriers, names)


def _names(m) -> list[str]:
    """Names of the joints; joints without a name get that of their body."""
    names = []
    for j in range(m.njnt):
        body = int(m.jnt_bodyid[j])
        own = given_name(m, "body", body) or f"body{body}"
        if m.body_jntnum[body] > 1:
            own = f"{own}_joint{j - m.body_jntadr[body]}"
        names.append(given_name(m, "joint", j) or own)
    return unique(names, {WORLD})


def _joint(m, j: int, kind: int) -> Joint:
    axis, point, q = m.jnt_axis[j], m.jnt_pos[j], m.qpos0[m.jnt_qposadr[j]]
    if kind == HINGE:
        return Hinge(axis, point, q)
    if kind == SLIDE:
        return Slider(axis, q)
    return Ball(point) if kind == BALL else FreeJoint()


def _starts(m) -> list[np.ndarray]:
    sizes = (7, 4, 1, 1)
    places = zip(m.jnt_qposadr, m.jnt_type, strict=True)
    return [np.array(m.qpos0[a : a + sizes[kind]]) for a, kind in places]


def sites_of(m, carriers: list[Carrier], kind: str, indices) -> Sites:
    """Read sites or geoms of the model, given by their indices."""
    body, pos, quat = (getattr(m, f"{kind}_{x}") for x in ("bodyid", "pos", "quat"))
    frames = [carriers[body[i]].frame(pos[i], rotation(quat[i])) for i in indices]
    names = [given_name(m, kind, i) or f"{kind}{i}" for i in indices]
    n = len(frames)
    return Sites(
        tuple(names),
        tuple(f.name for f in frames),
        np.array([f.p for f in frames]).reshape(n, 3),
        np.array([f.R for f in frames]).reshape(n, 3, 3),
    )


def joint_laws(m, armature, damping, rubs: bool) -> JointLaws:
    """Read springs, dampers, friction and armature of the joints; add `armature` (n_v,) and
    `damping` (n_v, 3) of actuators."""
    springs = not flag(m, "spring")
    stiffness = quadratic(m.jnt_stiffness, getattr(m, "jnt_stiffnesspoly", None)) * springs
    coordinates, velocities, rows, balls, ball_rows = [], [], [], [], []
    for j, kind in enumerate(m.jnt_type):
        if not stiffness[j].any():
            continue
        q, v = int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])
        count = {FREE: 3, BALL: 0}.get(int(kind), 1)
        coordinates += range(q, q + count)
        velocities += range(v, v + count)
        rows += [j] * count
        if kind in (FREE, BALL):
            balls.append((q + count, v + count))
            ball_rows.append(j)
    ball_rest = np.array([m.qpos_spring[q : q + 4] for q, _ in balls]).reshape(-1, 4)
    drag = quadratic(m.dof_damping, getattr(m, "dof_dampingpoly", None)) + damping
    friction = np.array(m.dof_frictionloss) * rubs
    return JointLaws(
        stiffness=stiffness[np.array(rows, int)].reshape(-1, 3),
        rest=m.qpos_spring[np.array(coordinates, int)],
        ball_stiffness=stiffness[np.array(ball_rows, int)].reshape(-1, 3),
        ball_rest=ball_rest,
        damping=drag * (not flag(m, "damper")),
        armature=m.dof_armature + armature,
        friction=friction,
        friction_width=friction_width(m, friction, m.dof_invweight0),
        coordinates=tuple(coordinates),
        velocities=tuple(velocities),
        balls=tuple(balls),
        rubs=bool(friction.any()),
    )


def friction_width(m, friction, weight) -> np.ndarray:
    """Velocity below which smoothed friction is proportional to velocity: such velocities decay
    with a time constant of two time steps of the model; `weight`: inverse masses."""
    return np.where(friction > 0, np.maximum(friction * weight, 1e-9) * m.opt.timestep * 2.0, 1.0)
