"""Tendons of a MuJoCo model."""

import numpy as np

from ...systems.mechanism.tendon_drive import TendonLaws
from ...systems.mechanism.tendons import Coupling, Straight, Tendons, Wrapped
from .bodies import Skeleton, friction_width, sites_of
from .load import flag, mujoco_module, names_of, quadratic, unique

_JOINT, _PULLEY, _SITE, _SPHERE, _CYLINDER = range(1, 6)


def tendons(m, body: Skeleton, side_rule: str) -> Tendons | None:
    """Read the paths of all tendons; None if there are none."""
    if m.ntendon == 0:
        return None
    straight, wrapped, coupling = [], {}, []
    shares: dict = {}
    coefficients, straight_shares = [], []
    data = _initial(m)
    for i in range(m.ntendon):
        k, end, share = int(m.tendon_adr[i]), int(m.tendon_adr[i] + m.tendon_num[i]), 1.0
        while k < end:
            kind, here = int(m.wrap_type[k]), int(m.wrap_objid[k])
            if kind == _JOINT:
                place = int(m.jnt_qposadr[here]), int(m.jnt_dofadr[here])
                coupling.append((i, *place))
                coefficients.append(m.wrap_prm[k])
            elif kind == _PULLEY:
                share = 1.0 / m.wrap_prm[k]
            elif k + 1 < end:
                following = int(m.wrap_type[k + 1])
                if following == _SITE:
                    straight.append((i, here, int(m.wrap_objid[k + 1])))
                    straight_shares.append(share)
                elif following in (_SPHERE, _CYLINDER):
                    geom, side = int(m.wrap_objid[k + 1]), round(m.wrap_prm[k + 1])
                    inside = side >= 0 and _inside(m, data, geom, side)
                    ends = here, int(m.wrap_objid[k + 2])
                    segment = i, *ends, geom, side, following == _CYLINDER
                    wrapped.setdefault(inside, []).append(segment)
                    shares.setdefault(inside, []).append(share)
                    k += 1
            k += 1
    points = [s for _, a, b in straight for s in (a, b)]
    every = [row for group in wrapped.values() for row in group]
    points += [s for _, a, b, _, side, _ in every for s in (a, b, side)]
    sites, geoms = sorted({s for s in points if s >= 0}), sorted({row[3] for row in every})
    at = lambda rows, j, table: tuple(table.index(x) if x >= 0 else -1 for x in column(rows, j))
    column = lambda rows, j: tuple(row[j] for row in rows)
    groups = [
        Wrapped(
            column(rows, 0),
            at(rows, 1, sites),
            at(rows, 2, sites),
            at(rows, 3, geoms),
            at(rows, 4, sites),
            column(rows, 5),
            inside,
        )
        for inside, rows in wrapped.items()
    ]
    return Tendons(
        names=tuple(unique(names_of(m, "tendon", m.ntendon), set())),
        sites=sites_of(m, body.carriers, "site", sites),
        surfaces=sites_of(m, body.carriers, "geom", geoms),
        radius=m.geom_size[np.array(geoms, int), 0],
        straight_share=np.array(straight_shares, float),
        wrapped_share=tuple(np.array(x, float) for x in shares.values()),
        coefficient=np.array(coefficients, float),
        straight=Straight(column(straight, 0), at(straight, 1, sites), at(straight, 2, sites)),
        wrapped=tuple(groups),
        coupling=Coupling(*(tuple(x) for x in zip(*coupling, strict=True))),
        side_rule=side_rule,
    )


def _initial(m):
    """MuJoCo's data with the positions of all sites and geoms in the initial configuration."""
    mujoco = mujoco_module()
    data = mujoco.MjData(m)
    mujoco.mj_kinematics(m, data)
    return data


def _inside(m, data, geom: int, side: int) -> bool:
    """Whether a side site lies inside its surface, so that the tendon passes through the
    surface."""
    gap = data.site_xpos[side] - data.geom_xpos[geom]
    return bool(np.linalg.norm(gap) < m.geom_size[geom, 0])


def tendon_laws(m, armature, damping, rubs: bool) -> TendonLaws:
    """Read springs, dampers, friction and armature of the tendons; add `armature` (n,) and
    `damping` (n, 3) of actuators."""
    stiffness = quadratic(m.tendon_stiffness, getattr(m, "tendon_stiffnesspoly", None))
    drag = quadratic(m.tendon_damping, getattr(m, "tendon_dampingpoly", None)) + damping
    friction = np.array(m.tendon_frictionloss) * rubs
    mass = getattr(m, "tendon_armature", np.zeros(m.ntendon)) + armature
    limited = np.asarray(getattr(m, "tendon_actfrclimited", np.zeros(m.ntendon)), bool)
    bounds = np.where(limited[:, None], m.tendon_actfrcrange, [-np.inf, np.inf])
    return TendonLaws(
        stiffness=stiffness * (not flag(m, "spring")),
        rest=m.tendon_lengthspring,
        damping=drag * (not flag(m, "damper")),
        friction=friction,
        friction_width=friction_width(m, friction, m.tendon_invweight0),
        armature=mass,
        force_range=bounds,
        rubs=bool(friction.any()),
        heavy=tuple(int(i) for i in np.flatnonzero(mass)),
        clamped=bool(limited.any()),
    )
