"""Limits and equality constraints of a MuJoCo model."""

import numpy as np

from ...systems.mechanism.points import Sites
from ...systems.mechanism.soft_constraints import (
    Curves,
    Fasteners,
    Limits,
    Rows,
    SoftConstraints,
    Springs,
)
from .bodies import BALL, HINGE, SLIDE, Carrier, Skeleton
from .load import flag, mujoco_module, rotation
from .report import Report


def soft_constraints(m, body: Skeleton, report: Report) -> SoftConstraints | None:
    """Read all limits and couplings of a model; None if there are none."""
    parts: dict = {}
    rows: dict = {}
    if not flag(m, "limit"):
        _limits(m, parts, rows)
    if not flag(m, "equality"):
        _couplings(m, body, report, parts, rows)
    if not parts:
        return None
    limits = sum(len(rows.get(k, ())) for k in ("joints", "balls", "tendons"))
    report.add("limit", limits, "is a stiff spring, see docs/coming-from.md")
    return SoftConstraints(Rows(**rows), **parts)


def _springs(m, inverse_mass, reference, impedance, scale=1.0) -> Springs:
    """Springs that yield under a constant load as much as MuJoCo's constraints are violated. Their
    frequency is limited to what the time step of the model resolves. `reference` (k, 2) is solref,
    `impedance` (k, 5) is solimp."""
    inverse_mass = np.maximum(np.asarray(inverse_mass, float), 1e-10)
    reference, impedance = np.asarray(reference, float), np.asarray(impedance, float)
    d = np.clip(impedance[:, 1], 1e-4, 0.9999)
    direct = reference[:, 0] <= 0
    constant = np.maximum(np.abs(reference[:, 0]), 2.0 * m.opt.timestep)
    ratio = np.where(direct, 1.0, np.maximum(reference[:, 1], 1e-3))
    k = np.where(direct, -reference[:, 0] / d, 1.0 / (d * constant**2 * ratio**2))
    frequency = np.minimum(np.sqrt(np.maximum(k, 1e-9) * d / (1.0 - d)), 0.5 / m.opt.timestep)
    stiffness = frequency**2 / inverse_mass * scale**2
    damping = 2.0 * np.minimum(ratio, 1.0) * frequency / inverse_mass * scale**2
    return Springs(stiffness, damping, np.maximum(impedance[:, 2], 1e-6))


def _limits(m, parts: dict, rows: dict) -> None:
    joints = [j for j in range(m.njnt) if m.jnt_limited[j] and m.jnt_type[j] in (SLIDE, HINGE)]
    balls = [j for j in range(m.njnt) if m.jnt_limited[j] and m.jnt_type[j] == BALL]
    tendons = [i for i in range(m.ntendon) if m.tendon_limited[i]]
    for name, index in (("joints", joints), ("balls", balls)):
        if not index:
            continue
        v = m.jnt_dofadr[index]
        bounds = m.jnt_range[index] + np.outer(m.jnt_margin[index], [1.0, -1.0])
        if name == "balls":
            bounds[:, 0] = -np.inf
        springs = _springs(m, m.dof_invweight0[v], m.jnt_solref[index], m.jnt_solimp[index])
        parts[name] = Limits(bounds, springs)
        rows[name] = tuple((int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])) for j in index)
    if tendons:
        bounds = m.tendon_range[tendons] + np.outer(m.tendon_margin[tendons], [1.0, -1.0])
        solref, solimp = m.tendon_solref_lim[tendons], m.tendon_solimp_lim[tendons]
        springs = _springs(m, m.tendon_invweight0[tendons], solref, solimp)
        parts["tendons"], rows["tendons"] = Limits(bounds, springs), tuple(tendons)


def _couplings(m, body: Skeleton, report: Report, parts: dict, rows: dict) -> None:
    kinds = {
        int(x): n.split("_", 1)[1].lower() for n, x in mujoco_module().mjtEq.__members__.items()
    }
    found: dict[str, list[int]] = {"connect": [], "weld": [], "joint": [], "tendon": []}
    for i in range(m.neq):
        kind = kinds[int(m.eq_type[i])]
        if not m.eq_active0[i]:
            report.add(f"equality {kind}", 1, "is inactive and ignored")
        elif kind not in found:
            report.add(f"equality {kind}", 1, "is not supported and ignored")
        else:
            found[kind].append(i)
            report.add(f"equality {kind}", 1, "is a stiff spring, see docs/coming-from.md")
    settings = lambda index: (m.eq_solref[index], m.eq_solimp[index])
    if index := found["joint"]:
        y, x = m.eq_obj1id[index], m.eq_obj2id[index]
        weight = m.dof_invweight0[m.jnt_dofadr[y]]
        weight = weight + np.where(x >= 0, m.dof_invweight0[m.jnt_dofadr[np.maximum(x, 0)]], 0.0)
        place = lambda j: (int(m.jnt_qposadr[j]), int(m.jnt_dofadr[j])) if j >= 0 else (-1, -1)
        rows["joint_curves"] = tuple((*place(a), *place(b)) for a, b in zip(y, x, strict=True))
        at = lambda j: m.qpos0[m.jnt_qposadr[j]] if j >= 0 else 0.0
        reference = np.array([[at(a), at(b)] for a, b in zip(y, x, strict=True)])
        springs = _springs(m, weight, *settings(index))
        parts["joint_curves"] = Curves(m.eq_data[index, :5], reference, springs)
    if index := found["tendon"]:
        y, x = m.eq_obj1id[index], m.eq_obj2id[index]
        pick = lambda table: np.where(x >= 0, table[np.maximum(x, 0)], 0.0)
        weight = m.tendon_invweight0[y] + pick(m.tendon_invweight0)
        rows["tendon_curves"] = tuple((int(a), int(b)) for a, b in zip(y, x, strict=True))
        reference = np.stack([m.tendon_length0[y], pick(m.tendon_length0)], axis=1)
        springs = _springs(m, weight, *settings(index))
        parts["tendon_curves"] = Curves(m.eq_data[index, :5], reference, springs)
    if index := found["connect"] + found["weld"]:
        parts["fasteners"] = _fasteners(m, body, index, kinds)


def _fasteners(m, body: Skeleton, index: list[int], kinds: dict) -> Fasteners:
    by_site = int(mujoco_module().mjtObj.mjOBJ_SITE)
    first, second, weights, twists, scales = [], [], [], [], []
    initial = _Initial(m)
    for i in index:
        data, weld = m.eq_data[i], kinds[int(m.eq_type[i])] == "weld"
        one, two = int(m.eq_obj1id[i]), int(m.eq_obj2id[i])
        if m.eq_objtype[i] == by_site:
            a, b = (_site(m, body, s) for s in (one, two))
            one, two = int(m.site_bodyid[one]), int(m.site_bodyid[two])
        else:
            ends = (data[3:6], data[:3]) if weld else (data[:3], data[3:6])
            turned = rotation(data[6:10]) if weld else np.eye(3)
            a = body.carriers[one].frame(ends[0], turned)
            b = body.carriers[two].frame(ends[1], np.eye(3))
        if weld:
            # move the weld to the centre of mass of the lighter body, where the forces of its
            # springs exert no torque on that body
            light = one if m.body_invweight0[one, 0] >= m.body_invweight0[two, 0] else two
            frame = a if light == one else b
            shift = frame.R.T @ (body.carriers[light].point(m.body_ipos[light]) - frame.p)
            a, b = a.frame(shift, np.eye(3)), b.frame(shift, np.eye(3))
        first.append(a)
        second.append(b)
        linear, angular = initial.inverse_masses(one, two, a, body.carriers[one])
        weights.append(linear)
        twists.append(angular)
        scales.append(data[10] if weld else 0.0)
    settings = m.eq_solref[index], m.eq_solimp[index]
    return Fasteners(
        _frames(first),
        _frames(second),
        _springs(m, weights, *settings),
        _springs(m, twists, *settings, scale=np.array(scales)),
    )


class _Initial:
    """The model in its initial configuration."""

    def __init__(self, m):
        self.mujoco, self.m = mujoco_module(), m
        self.data = self.mujoco.MjData(m)
        self.mujoco.mj_forward(m, self.data)

    def inverse_masses(self, one: int, two: int, frame: Carrier, carrier: Carrier):
        """Largest inverse mass and largest inverse inertia of the relative motion of two bodies, at
        the origin of a frame of the first body."""
        local = carrier.R.T @ (frame.p - carrier.p)
        R = self.data.xmat[one].reshape(3, 3)
        point = self.data.xpos[one] + R @ local
        rows = np.zeros((2, 6, self.m.nv))
        for k, body in enumerate((one, two)):
            self.mujoco.mj_jac(self.m, self.data, rows[k, :3], rows[k, 3:], point, body)
        J = rows[0] - rows[1]
        solved = np.zeros_like(J)
        self.mujoco.mj_solveM(self.m, self.data, solved, J)
        A = J @ solved.T
        return (float(np.linalg.eigvalsh(x).max()) for x in (A[:3, :3], A[3:, 3:]))


def _site(m, body: Skeleton, s: int) -> Carrier:
    return body.carriers[m.site_bodyid[s]].frame(m.site_pos[s], rotation(m.site_quat[s]))


def _frames(found: list[Carrier]) -> Sites:
    names = tuple(f"frame{i}" for i in range(len(found)))
    bodies = tuple(f.name for f in found)
    return Sites(names, bodies, np.array([f.p for f in found]), np.array([f.R for f in found]))
