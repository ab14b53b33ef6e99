"""Contacts of a MuJoCo model."""

from typing import NamedTuple

import equinox as eqx
import numpy as np

from ..._base.precision import as_float_array
from ...mechanics.parts.contact_law import ContactLaw
from ...mechanics.parts.shapes import Box, Capsule, ConvexPoints, Cylinder, Plane, Shape, Sphere
from ...systems.mechanism.body import WORLD
from ...systems.mechanism.contact import Contact
from .bodies import Carrier, Skeleton
from .load import flag, mujoco_module, rotation
from .report import Report

PLANE, SPHERE, CAPSULE, CYLINDER, BOX, MESH = 0, 2, 3, 5, 6, 7
#: sliding speed [m/s] at which smoothed friction reaches 0.7 of its full value
SLIP_SPEED = 1e-4
#: penetration depth [m] over which the contact force sets in
WIDTH = 1e-5
#: Hunt-Crossley dissipation [s/m] for a contact with damping ratio 1 in MuJoCo: bodies that impact
#: at more than 0.3 m/s hardly rebound
DISSIPATION = 5.0
#: largest number of corners of a convex hull
CORNERS = 64


class _Pair(NamedTuple):
    """Two geoms and the parameters of their contact: `friction` (3,) sliding, torsional, rolling,
    `condim`, `solref` (2,) and `solimp` (5,)."""

    geoms: tuple[int, int]
    friction: np.ndarray
    condim: int
    solref: np.ndarray
    solimp: np.ndarray


def declares_contacts(m) -> bool:
    """Whether geoms of the model can touch."""
    return not flag(m, "contact") and bool(_geom_pairs(m) or m.npair)


def contacts(m, body: Skeleton, report: Report) -> Contact | None:
    """Read all contacts of a model as one element; None if there are none."""
    pairs = _pairs(m)
    shapes: dict[int, Shape] = {}
    for g in sorted({g for pair in pairs for g in pair.geoms}):
        shape = _shape(m, g, body.carriers[m.geom_bodyid[g]], report)
        if shape is not None:
            shapes[g] = shape
    kept = []
    for pair in pairs:
        if all(g in shapes for g in pair.geoms):
            if Contact.can_touch(*(shapes[g] for g in pair.geoms)):
                kept.append(pair)
            else:
                report.add("pair of geoms", 1, "of which both are meshes or planes cannot touch")
    if not kept:
        return None
    carried: dict[str, list[int]] = {}
    for g in shapes:
        carried.setdefault(body.carriers[m.geom_bodyid[g]].name, []).append(g)
    place = {g: k for k, g in enumerate(g for some in carried.values() for g in some)}
    torsion = sum(pair.condim in (4, 6) and pair.friction[1] > 0 for pair in kept)
    report.add("contact", len(kept), "is compliant, see docs/contact.md")
    report.add("contact", torsion, "has no torsional friction")
    used = [g for g in shapes if m.geom_margin[g] or m.geom_gap[g]]
    report.add("geom margin, gap", len(used), "is ignored")
    return Contact(
        {name: [shapes[g] for g in some] for name, some in carried.items()},
        law=_law(m, kept),
        shape_pairs=[_moving_first(body, m, place, *pair.geoms) for pair in kept],
    )


def _moving_first(body: Skeleton, m, place: dict[int, int], a: int, b: int) -> tuple[int, int]:
    """Indices of two shapes, with a shape of the world second, because outputs are forces on the
    first."""
    fixed = body.carriers[m.geom_bodyid[a]].name == WORLD
    return (place[b], place[a]) if fixed else (place[a], place[b])


def _law(m, pairs: list[_Pair]) -> ContactLaw:
    """Contact law of all pairs, with fields of shape (pairs,). The penetration at rest is that of
    MuJoCo for the mean of the impedances at first contact and at depth."""
    bodies = np.array([[m.geom_bodyid[g] for g in pair.geoms] for pair in pairs])
    weight = np.maximum(m.body_invweight0[:, 0][bodies].sum(axis=1), 1e-10)
    solref, solimp = np.array([p.solref for p in pairs]), np.array([p.solimp for p in pairs])
    deepest = np.clip(solimp[:, 1], 1e-4, 0.9999)
    d = np.clip(0.5 * (solimp[:, 0] + solimp[:, 1]), 1e-4, 0.9999)
    direct = solref[:, 0] <= 0
    constant = np.maximum(np.where(direct, 1.0, solref[:, 0]), 2.0 * m.opt.timestep)
    ratio = np.where(direct, 1.0, np.maximum(solref[:, 1], 1e-3))
    k = np.where(direct, -solref[:, 0], 1.0 / (constant * ratio) ** 2) * d / deepest**2
    sliding = np.array([p.friction[0] if p.condim >= 3 else 0.0 for p in pairs])
    rolling = np.array([p.friction[2] if p.condim == 6 else 0.0 for p in pairs])
    values = {
        "stiffness": np.maximum(k * d / (1.0 - d) / weight, 1e-3),
        "damping": DISSIPATION * ratio,
        "friction": sliding,
        "slip_speed": np.full(len(pairs), SLIP_SPEED),
        "width": np.full(len(pairs), WIDTH),
    }
    if rolling.any():
        values["rolling"] = rolling
    law = ContactLaw(rolling=0.0 if rolling.any() else None)
    fields = lambda law: [getattr(law, name) for name in values]
    return eqx.tree_at(fields, law, [as_float_array(x, name) for name, x in values.items()])


def _pairs(m) -> list[_Pair]:
    """Read the pairs of geoms: those of the section `contact` first, then those that pass the
    collision filters of geoms."""
    pairs = []
    for i in range(m.npair):
        geoms = int(m.pair_geom1[i]), int(m.pair_geom2[i])
        f = m.pair_friction[i]
        friction = np.array([f[0], f[2], f[3]])
        given = int(m.pair_dim[i]), np.array(m.pair_solref[i]), np.array(m.pair_solimp[i])
        pairs.append(_Pair(geoms, friction, *given))
    known = {frozenset(pair.geoms) for pair in pairs}
    mixed = [_mixed(m, *geoms) for geoms in _geom_pairs(m) if frozenset(geoms) not in known]
    return pairs + mixed


def _mixed(m, a: int, b: int) -> _Pair:
    """Combine the contact parameters of two geoms by the rules of MuJoCo."""
    order = int(m.geom_priority[a]) - int(m.geom_priority[b])
    if order:
        g = a if order > 0 else b
        own = np.array(m.geom_solref[g]), np.array(m.geom_solimp[g])
        return _Pair((a, b), np.array(m.geom_friction[g]), int(m.geom_condim[g]), *own)
    weights = np.array([m.geom_solmix[a], m.geom_solmix[b]])
    weights = weights / weights.sum() if weights.sum() > 0 else np.array([0.5, 0.5])
    blend = lambda x: weights[0] * x[a] + weights[1] * x[b]
    direct = min(m.geom_solref[a][0], m.geom_solref[b][0]) <= 0
    solref = np.minimum(m.geom_solref[a], m.geom_solref[b]) if direct else blend(m.geom_solref)
    friction = np.maximum(m.geom_friction[a], m.geom_friction[b])
    condim = int(max(m.geom_condim[a], m.geom_condim[b]))
    return _Pair((a, b), friction, condim, solref, blend(m.geom_solimp))


def _geom_pairs(m) -> list[tuple[int, int]]:
    """Pairs of geoms that may collide according to contype, conaffinity, excludes and the tree of
    bodies."""
    active = np.flatnonzero((m.geom_contype != 0) | (m.geom_conaffinity != 0))
    excluded = {frozenset((int(x) >> 16, int(x) & 0xFFFF)) for x in m.exclude_signature}
    filtered = not flag(m, "filterparent")
    found = []
    for i, a in enumerate(active):
        for b in active[i + 1 :]:
            first, second = int(m.geom_bodyid[a]), int(m.geom_bodyid[b])
            x, y = int(m.body_weldid[first]), int(m.body_weldid[second])
            related = filtered and x and y and (_above(m, x) == y or _above(m, y) == x)
            fits = (m.geom_contype[a] & m.geom_conaffinity[b]) | (
                m.geom_contype[b] & m.geom_conaffinity[a]
            )
            if fits and x != y and not related and frozenset((first, second)) not in excluded:
                found.append((int(a), int(b)))
    return found


def _above(m, body: int) -> int:
    """The parent of a body, with bodies that are welded together counted as one."""
    return int(m.body_weldid[m.body_parentid[body]])


def _shape(m, g: int, carrier: Carrier, report: Report) -> Shape | None:
    """Shape of a geom in the frame of the body that carries it; None if its type is not
    supported."""
    at = carrier.frame(m.geom_pos[g], rotation(m.geom_quat[g]))
    kind, size, axis = int(m.geom_type[g]), m.geom_size[g], at.R[:, 2]
    if kind == PLANE:
        return Plane(at.p, axis)
    if kind == SPHERE:
        return Sphere(size[0], at.p)
    if kind == CAPSULE:
        return Capsule(size[0], at.p - size[1] * axis, at.p + size[1] * axis)
    if kind == CYLINDER:
        return Cylinder(size[0], 2.0 * size[1], at.p, axis)
    if kind == BOX:
        return Box(2.0 * size, at.p, at.R)
    if kind == MESH:
        corners = _hull(m, int(m.geom_dataid[g]))
        report.add("geom mesh", 1, f"touches with at most {CORNERS} corners of its convex hull")
        return ConvexPoints(at.p + corners @ at.R.T)
    names = mujoco_module().mjtGeom.__members__.items()
    name = next((n.split("_")[1].lower() for n, x in names if int(x) == kind), str(kind))
    report.add(f"geom {name}", 1, "can collide: its contacts are ignored")
    return None


def _hull(m, mesh: int) -> np.ndarray:
    """Corners (k, 3) of the convex hull of a mesh. If there are more than `CORNERS`, those that are
    farthest from each other are selected."""
    first = int(m.mesh_vertadr[mesh])
    points = np.array(m.mesh_vert[first : first + m.mesh_vertnum[mesh]], float)
    graph = int(m.mesh_graphadr[mesh])
    if graph >= 0:
        count = int(m.mesh_graph[graph])
        points = points[m.mesh_graph[graph + 2 + count : graph + 2 + 2 * count]]
    if len(points) <= CORNERS:
        return points
    chosen = [int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    away = np.full(len(points), np.inf)
    while len(chosen) < CORNERS:
        away = np.minimum(away, np.linalg.norm(points - points[chosen[-1]], axis=1))
        chosen.append(int(np.argmax(away)))
    return points[chosen]
