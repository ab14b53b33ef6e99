"""Reader of the XML model files of CASPR, the cable robot software by Lau et al."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import numpy as np

from .._base.checks import require
from ..simulation.experiment import Experiment
from ..systems import CableRobot, NaturalBody, PointExit, ProgrammedLengths, PulleyExit
from ..systems.mechanism import (
    WORLD,
    Body,
    Eyelet,
    Fixed,
    Joint,
    Mechanism,
    PointSpring,
    Prismatic,
    Revolute,
    Solid,
    Spherical,
    SwivelPulley,
    TensionCables,
    rotation_about,
)
from .mjcf.report import ImportReport, Report

#: for each type of joint, its sequence of prismatic (p) and revolute (r) joints with their axes
_SPATIAL = "px py pz"
_SEQUENCES = {
    "S_EULER_XYZ": "rx ry rz",
    "SPATIAL_EULER_XYZ": f"{_SPATIAL} rx ry rz",
    "S_QUATERNION": "ball",
    "SPATIAL_QUATERNION": f"{_SPATIAL} ball",
    "T_XYZ": _SPATIAL,
    "PLANAR_XY": "px py rz",
    "PLANAR_XZ": "px pz ry",
    "PLANAR_YZ": "py pz rx",
}
_MACHINES = ("mechanism", "cable_robot")
#: position [m] of the cable along the winch in the initial pose, a constant of CASPR
_ALONG_WINCH = 0.03


class _Link(NamedTuple):
    """A link: its `body`, the massless bodies `before` it that make up its joint, its centre of
    mass (3,) [m], the type of its joint and the initial values of the joint variables."""

    body: Body
    before: tuple[Body, ...]
    centre: np.ndarray
    joint: str
    start: np.ndarray


class _Cable(NamedTuple):
    """A cable: its name, its `kind`, its via points (`guides`) and the values of its properties."""

    name: str
    kind: str
    guides: tuple[Eyelet | SwivelPulley, ...]
    numbers: dict[str, np.ndarray]


def read_caspr(
    folder: str | Path,
    model: str,
    *,
    cable_set: str | None = None,
    machine: str = "mechanism",
) -> Experiment:
    """Read a model of CASPR as an `Experiment`.

    - `folder`, `model`: the files are `MODEL_bodies.xml` and `MODEL_cables.xml` in the folder, or
      in `folder/MODEL`;
    - `cable_set`: the name of a set of cables; by default the one that the file selects;
    - `machine`: "mechanism", or "cable_robot" for one platform whose cables have no via points
      between their two ends.

    A `Mechanism` has the joint variables of CASPR as coordinates, in the same order, at their
    initial values. Its inputs are the tensions of the active cables [N], initially the lower
    bounds; `machine.cable_lengths(q)["cable"]` are the lengths [m], in the order of the file. A
    `CableRobot` has rigid cables, with the lengths of the initial pose. Gravity is 9.81 m/s^2 along
    -z. `experiment.import_report` lists everything that is ignored or changed."""
    require(machine in _MACHINES, "machine", repr(machine), " or ".join(map(repr, _MACHINES)))
    place = Path(folder)
    if not (place / f"{model}_bodies.xml").exists() and (place / model).is_dir():
        place = place / model
    report = Report()
    links = _links(_parsed(place / f"{model}_bodies.xml"), report)
    cables = _cables(_parsed(place / f"{model}_cables.xml"), cable_set, links, report)
    _report_files(place, model, report)
    if machine == "cable_robot":
        system, control = _cable_robot(links, cables), None
    else:
        system, control = _mechanism(links, cables, report)
    found = ImportReport(str(place / model), report.entries())
    return Experiment(system, control=control, duration=1.0, dt=1e-3, import_report=found)


def _parsed(path: Path) -> ET.Element:
    require(path.exists(), "model", str(path), "an existing file of a CASPR model")
    try:
        return ET.parse(path).getroot()
    except ET.ParseError as error:
        raise ValueError(f"{path}: not an XML file: {error}") from error


def _report_files(place: Path, model: str, report: Report) -> None:
    for name in ("trajectories", "operational_spaces"):
        count = len(list(place.glob(f"{model}_{name}*.xml")))
        report.add(f"{name}.xml", count, "not read")


def _numbers(text: str | None, where: str, count: int | None = None) -> np.ndarray:
    """Parse numbers separated by blanks, shape (count,)."""
    try:
        values = np.array([float(word) for word in (text or "").split()])
    except ValueError:
        values = np.zeros(0)
    fits = len(values) == count if count is not None else len(values) > 0
    require(fits, where, repr(text), "numbers" if count is None else f"{count} number(s)")
    return values


def _child(parent: ET.Element, name: str, where: str) -> ET.Element:
    child = parent.find(name)
    if child is None:
        raise ValueError(f"{where}: the element <{name}> is missing")
    return child


# --- bodies
def _links(root: ET.Element, report: Report) -> dict[int, _Link]:
    """Read all links, by their number."""
    items = list(root.iter("link_rigid"))
    require(len(items) > 0, "bodies", "no link_rigid", "at least one")
    links: dict[int, _Link] = {}
    for item in sorted(items, key=lambda item: int(item.get("num", "0"))):
        number = int(item.get("num", "0"))
        links[number] = _link(item, number, links, report)
    limited = sum("q_min" in joint.attrib for joint in root.iter("joint"))
    report.add("joint q_min, q_max", limited, "limits of the joints are not imposed")
    others = [x for parent in root.iter("links") for x in parent if x.tag != "link_rigid"]
    for tag in {x.tag for x in others}:
        report.add(tag, sum(x.tag == tag for x in others), "not supported; the links are left out")
    return links


def _link(item: ET.Element, number: int, links: dict[int, _Link], report: Report) -> _Link:
    where = f"link {number}"
    name = (item.get("name") or f"link_{number}").strip().replace(" ", "_")
    if name == WORLD or any(link.body.name == name for link in links.values()):
        name = f"{name}_{number}"
    joint = _child(item, "joint", where)
    kind = joint.get("type", "")
    sequence = _sequence(joint, kind, where)
    count = sum(4 if isinstance(j, Spherical) else 1 for _, j in sequence)
    start = _numbers(joint.get("q_initial"), f"{where}: q_initial", count)
    physical = _child(item, "physical", where)
    solid, centre = _solid(physical, where, report)
    parent = _child(item, "parent", where)
    above = int(_numbers(parent.findtext("num"), f"{where}: parent", 1)[0])
    require(above == 0 or above in links, f"{where}: parent", above, "0 or a lower link")
    place = _numbers(parent.findtext("location"), f"{where}: location", 3)
    on = WORLD if above == 0 else links[above].body.name
    if len(sequence) == 1:
        body = Body(name, sequence[0][1], on, at=place, solids=solid, start=start)
        return _Link(body, (), centre, kind, start)
    before, at = [], 0
    for suffix, part in sequence:
        size = len(part.coordinates)
        values = start[at : at + size]
        before.append(Body(f"{name}_{suffix}", part, on, at=place, start=values))
        on, place, at = before[-1].name, np.zeros(3), at + size
    return _Link(Body(name, Fixed(), on, solids=solid), tuple(before), centre, kind, start)


def _sequence(joint: ET.Element, kind: str, where: str) -> list[tuple[str, Joint]]:
    """Names and joints (prismatic, revolute, spherical) of the sequence that makes up a joint."""
    if kind == "R_AXIS":
        return [("r", Revolute(_numbers(joint.get("axis"), f"{where}: axis", 3)))]
    words = _SEQUENCES.get(kind, "")
    if match := re.fullmatch(r"(R|U|P)_([XYZ]{1,3})", kind):
        letter = "p" if match[1] == "P" else "r"
        words = " ".join(f"{letter}{axis}" for axis in match[2].lower())
    if not words:
        known = "R_X, R_AXIS, U_XY, P_XY, " + ", ".join(_SEQUENCES)
        raise ValueError(f"{where}: the joint type {kind!r} is not supported; known are {known}")
    found: list[tuple[str, Joint]] = []
    for word in words.split():
        if word == "ball":
            found.append((word, Spherical()))
        elif word[0] == "p":
            found.append((word[1:], Prismatic(word[1:])))
        else:
            found.append((word, Revolute(word[1:])))
    return found


def _solid(physical: ET.Element, where: str, report: Report) -> tuple[Solid, np.ndarray]:
    mass = float(_numbers(physical.findtext("mass"), f"{where}: mass", 1)[0])
    centre = _numbers(physical.findtext("com_location"), f"{where}: com_location", 3)
    given = _child(physical, "inertia", where)
    value = lambda key: float(_numbers(given.findtext(key), f"{where}: {key}", 1)[0])
    xx, yy, zz, xy, xz, yz = map(value, ("Ixx", "Iyy", "Izz", "Ixy", "Ixz", "Iyz"))
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    reference = given.get("ref", "com")
    require(reference in ("com", "joint"), f"{where}: inertia ref", reference, "com or joint")
    if reference == "joint":
        inertia = inertia - mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
    moments, axes = np.linalg.eigh(inertia)
    missing = moments[2] - moments[0] - moments[1]
    if missing > 1e-9 * moments[2]:
        # planar models often give only the moment of inertia about the axis normal to the plane
        moments[:2] += 0.5 * missing
        inertia = axes @ np.diag(moments) @ axes.T
        effect = "no rigid body has these moments: the two smaller ones were raised to what the "
        report.add(f"inertia of {where}", 1, effect + "largest one needs")
    try:
        return Solid(mass, centre, inertia), centre
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


# --- cables
def _cables(
    root: ET.Element, wanted: str | None, links: dict[int, _Link], report: Report
) -> list[_Cable]:
    sets = {item.get("id", ""): item for item in root.iter("cable_set")}
    wanted = root.get("default_cable_set", "") if wanted is None else wanted
    require(wanted in sets, "cable_set", repr(wanted), "one of " + ", ".join(map(repr, sets)))
    cables: list[_Cable] = []
    for item in sets[wanted]:
        name = (item.get("name") or f"{len(cables) + 1}").strip().replace(" ", "_")
        if any(cable.name == name for cable in cables):
            name = f"{name}_{len(cables) + 1}"
        properties = item.find("properties")
        numbers = {
            x.tag: _numbers(x.text, f"cable {name!r}: {x.tag}")
            for x in (() if properties is None else properties)
        }
        guides = _guides(item, name, links, report)
        cables.append(_Cable(name, item.tag, guides, numbers))
    require(len(cables) > 0, "cable_set", repr(wanted), "a set with cables")
    report.add("diameter", sum("diameter" in c.numbers for c in cables), "ignored")
    return cables


def _guides(
    item: ET.Element, name: str, links: dict[int, _Link], report: Report
) -> tuple[Eyelet | SwivelPulley, ...]:
    where = f"cable {name!r}"
    reference = item.get("attachment_reference", "joint")
    expected = "joint or com"
    require(reference in ("joint", "com"), f"{where}: attachment_reference", reference, expected)
    guides: list[Eyelet | SwivelPulley] = []
    for entry in _child(item, "attachments", where):
        if entry.tag == "screw_base_rotating_pulley":
            guides.append(_winch_pulley(entry, where))
            effect = "read as a swivelling pulley that stays where it is at the first pose; "
            report.add(entry.tag, 1, effect + "in CASPR it moves along its winch as the drum turns")
            continue
        if entry.tag != "attachment":
            raise ValueError(f"{where}: the element <{entry.tag}> is not supported")
        number = int(_numbers(entry.findtext("link"), f"{where}: link", 1)[0])
        place = _numbers(entry.findtext("location"), f"{where}: location", 3)
        require(number == 0 or number in links, f"{where}: link", number, "0 or a link")
        if number == 0:
            guides.append(Eyelet(WORLD, place))
            continue
        link = links[number]
        guides.append(Eyelet(link.body.name, place + (link.centre if reference == "com" else 0.0)))
    require(len(guides) >= 2, f"{where}: attachments", len(guides), "two or more")
    return tuple(guides)


def _winch_pulley(entry: ET.Element, where: str) -> SwivelPulley:
    vector = lambda key: _numbers(entry.findtext(key), f"{where}: {key}", 3)
    unit = lambda x: x / np.linalg.norm(x)
    radius = _numbers(entry.findtext("pulley_radius"), f"{where}: pulley_radius", 1)[0]
    along = _ALONG_WINCH * unit(vector("winch_vector"))
    axis = unit(vector("cable_pulley_entry_vector"))
    return SwivelPulley(WORLD, vector("constant_winch_point") + along, radius, axis)


# --- machines
def _mechanism(links: dict[int, _Link], cables: list[_Cable], report: Report):
    """Construct the mechanism; return it and its constant inputs."""
    bodies = [body for link in links.values() for body in (*link.before, link.body)]
    active = [c for c in cables if c.kind != "cable_passive_linear_spring"]
    springs = [_spring(c) for c in cables if c.kind == "cable_passive_linear_spring"]
    kinds: dict[bool, list[_Cable]] = {}
    for cable in active:
        kinds.setdefault(isinstance(cable.guides[0], SwivelPulley), []).append(cable)
    sets = [
        _tension_cables(some, "cable" if i == 0 else f"cable_{i + 1}", report)
        for i, some in enumerate(kinds.values())
    ]
    control = np.concatenate([np.asarray(s.least) for s in sets]) if sets else None
    return Mechanism(bodies, elements=[*sets, *springs]), control


def _spring(cable: _Cable) -> PointSpring:
    where = f"cable {cable.name!r}"
    require(len(cable.guides) == 2, f"{where}: attachments", len(cable.guides), "two of a spring")
    first, second = cable.guides
    stiffness, rest = (_property(cable, key) for key in ("K", "l0"))
    return PointSpring(first.body, second.body, first.at, second.at, stiffness, rest)


def _property(cable: _Cable, key: str, default: float | None = None) -> float:
    if key not in cable.numbers and default is not None:
        return default
    where = f"cable {cable.name!r}: {key}"
    found = cable.numbers.get(key, np.zeros(0))
    require(len(found) == 1, where, f"{len(found)} numbers", "one number")
    return float(found[0])


def _tension_cables(cables: list[_Cable], name: str, report: Report) -> TensionCables:
    """Combine cables of one kind. All paths get equally many points: shorter paths repeat their
    last point."""
    most = max(len(c.guides) for c in cables)
    ways = [c.guides + (c.guides[-1],) * (most - len(c.guides)) for c in cables]
    devices = [_device(c, report) for c in cables]
    upper = [_property(c, "force_max", np.inf) for c in cables]
    terms = max(len(d) for d in devices)
    return TensionCables(
        ways,
        [c.name for c in cables],
        least=[_property(c, "force_min", 0.0) for c in cables],
        most=upper if np.isfinite(upper).all() else None,
        axial_flexibility=[1.0 / _axial_stiffness(c) for c in cables],
        device_stiffness=[np.pad(d, (0, terms - len(d))) for d in devices],
        name=name,
    )


def _axial_stiffness(cable: _Cable) -> float:
    if cable.kind == "cable_ideal":
        return np.inf
    key = "K" if cable.kind == "cable_linear_spring" else "K_cable"
    stiffness = _property(cable, key, np.inf)
    require(stiffness > 0, f"cable {cable.name!r}: {key}", stiffness, "a stiffness > 0")
    return stiffness


def _device(cable: _Cable, report: Report) -> np.ndarray:
    """Coefficients of the stiffness of a variable-stiffness device as a polynomial of the tension,
    constant term first."""
    if cable.kind == "cable_vsd_polynomial":
        given = cable.numbers.get("stiffness_poly_coeff", np.zeros(0))
        count = int(_property(cable, "num_stiffness_polynomial_coeff", len(given)))
        where = f"cable {cable.name!r}: stiffness_poly_coeff"
        require(0 < count <= len(given), where, f"{len(given)} coefficients", f"{count} or more")
        return given[:count]
    if cable.kind not in ("cable_ideal", "cable_linear_spring"):
        effect = "driven by their tension; the law of their stiffness is not supported and left out"
        report.add(cable.kind, 1, effect)
    return np.zeros(1)


def _cable_robot(links: dict[int, _Link], cables: list[_Cable]) -> CableRobot:
    link = next(iter(links.values()))
    spatial = len(links) == 1 and link.joint == "SPATIAL_EULER_XYZ"
    ends = [tuple(g.body for g in c.guides) == (WORLD, link.body.name) for c in cables]
    plain = all(ends) and all(c.kind != "cable_passive_linear_spring" for c in cables)
    if not spatial or not plain:
        raise ValueError(
            "machine: a cable_robot is one link on a SPATIAL_EULER_XYZ joint, with cables from the "
            'ground to the link and no springs; use machine="mechanism" for this model'
        )
    points = np.stack([c.guides[0].at for c in cables])
    pulleys = [c.guides[0] for c in cables if isinstance(c.guides[0], SwivelPulley)]
    require(len(pulleys) in (0, len(cables)), "cables", "some with pulleys", "all of one kind")
    exits = PointExit(points)
    if pulleys:
        exits = PulleyExit(points, [p.radius for p in pulleys], [p.axis for p in pulleys])
    solid, x = link.body.solids[0], link.start
    axes = [np.asarray(rotation_about(axis, a)) for axis, a in zip("xyz", x[3:], strict=True)]
    robot = CableRobot(
        NaturalBody(solid.mass, solid.inertia, solid.centre),
        np.stack([c.guides[1].at for c in cables]),
        exits,
        ProgrammedLengths(np.ones(len(cables))),
        position=np.asarray(link.before[0].at) + x[:3],
        rotation=axes[0] @ axes[1] @ axes[2],
    )
    return eqx.tree_at(lambda r: r.drives, robot, ProgrammedLengths(robot.lengths()))
