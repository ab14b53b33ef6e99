"""Reader of a MuJoCo model as an experiment."""

from pathlib import Path

import numpy as np

from ..._base.checks import require
from ...integrators import ConvexContact
from ...mechanics.parts.wrapping import SIDE_RULES
from ...simulation.experiment import Experiment
from ...systems.mechanism.mechanism import Mechanism
from ...systems.mechanism.tendon_drive import GravityCompensation, TendonDrive
from .actuators import actuators, reflected
from .bodies import Skeleton, joint_laws, skeleton
from .constraints import soft_constraints
from .contacts import contacts, declares_contacts
from .load import compiled, flag, names_of
from .report import ImportReport, Keyframe, Report, add_ignored
from .tendons import tendon_laws, tendons


def read_mjcf(
    source: str | Path,
    *,
    constraints: bool = True,
    contact: bool | None = None,
    side_rule: str = "4.0",
    keyframe: str | None = None,
) -> Experiment:
    """Read a MuJoCo model (MJCF or URDF) as an `Experiment` with a `Mechanism`.

    - `source`: path of the file, or its text;
    - `constraints`: whether limits, couplings (equality) and friction loss act;
    - `contact`: whether geoms collide; by default, if the model declares contacts and
      `constraints` act. The experiment then has the integrator `ConvexContact`;
    - `side_rule`: "4.0", or "3" for the meaning of side sites before MuJoCo 4.0;
    - `keyframe`: name of a keyframe that gives the initial state and the constant inputs.

    Coordinates q are MuJoCo's qpos, followed by the time integrals of the activations; velocities v
    are qvel, followed by the activations act. `experiment.import_report` lists everything that is
    ignored or changed. Raises `ValueError` with MuJoCo's message if the model does not compile.

    ```python
    import cordax
    from cordax.io import read_mjcf

    cordax.enable_x64()
    pendulum = (
        "<mujoco><worldbody><body><joint name='hinge' axis='0 1 0'/>"
        "<geom type='capsule' fromto='0 0 0 0.5 0 0' size='0.02'/></body></worldbody></mujoco>"
    )
    experiment = read_mjcf(pendulum)
    print(experiment.import_report)
    run = cordax.simulate(experiment)
    ```
    """
    require(side_rule in SIDE_RULES, "side_rule", repr(side_rule), "'4.0' or '3'")
    m, name = compiled(source)
    report = Report()
    body = skeleton(m, report)
    require(m.opt.timestep > 0, f"{name}: timestep", m.opt.timestep, "a number > 0")
    require(m.njnt > 0, name, "a model without joints", "a model that can move")
    constraints = constraints and not flag(m, "constraint")
    rubs = constraints and not flag(m, "frictionloss")
    added = reflected(m)
    paths = tendons(m, body, side_rule)
    laws = None
    if paths is not None:
        laws = tendon_laws(m, added.tendon_armature, added.tendon_damping, rubs)
    limited = np.asarray(m.jnt_actfrclimited, bool)
    drive = TendonDrive(
        joints=joint_laws(m, added.joint_armature, added.joint_damping, rubs),
        tendons=paths,
        laws=laws,
        actuators=actuators(m, body, report, _coordinate_names(body)),
        compensation=_compensation(m, body),
        constraints=soft_constraints(m, body, report) if constraints else None,
        joint_force_range=_joint_force_range(m) if limited.any() else None,
        compensated=tuple(bool(m.jnt_actgravcomp[j]) for j in m.dof_jntid),
    )
    gravity = np.zeros(3) if flag(m, "gravity") else m.opt.gravity
    declared = declares_contacts(m)
    contact = constraints and declared if contact is None else contact and declared
    touching = contacts(m, body, report) if contact else None
    elements = [drive] if touching is None else [drive, touching]
    machine = Mechanism(body.bodies, elements=elements, gravity=gravity)
    if rubs:
        count = np.count_nonzero(m.dof_frictionloss) + np.count_nonzero(m.tendon_frictionloss)
        report.add("frictionloss", int(count), "is smoothed about zero velocity")
    add_ignored(m, report, declared and not contact)
    found = ImportReport(name, report.entries(), _keyframes(m, machine))
    start = None if keyframe is None else found.state(keyframe)
    inputs = None if keyframe is None or not machine.n_u else np.array(found.keyframe(keyframe).u)
    dt = float(m.opt.timestep)
    method = None if touching is None else ConvexContact()
    return Experiment(
        machine, start, inputs, duration=1.0, dt=dt, integrator=method, import_report=found
    )


def _keyframes(m, machine: Mechanism) -> tuple[Keyframe, ...]:
    """Read all keyframes, with activations in the coordinates and velocities, as in the machine."""
    k = len(machine.state_names)
    names = names_of(m, "key", m.nkey)
    return tuple(
        Keyframe(
            name,
            (*m.key_qpos[i].tolist(), *[0.0] * k),
            (*m.key_qvel[i].tolist(), *m.key_act[i][:k].tolist()),
            tuple(m.key_ctrl[i].tolist()),
        )
        for i, name in enumerate(names)
    )


def _coordinate_names(body: Skeleton) -> set[str]:
    names: set[str] = set()
    for part in body.bodies:
        for own in (part.joint.coordinates, part.joint.velocities):
            single = len(own) == 1
            names |= {part.name} if single else {f"{part.name}_{x}" for x in own}
    return names | {f"d_{name}" for name in names}


def _joint_force_range(m) -> np.ndarray:
    """Bounds of the total actuator force on each velocity, shape (n_v, 2), infinite if it is not
    limited."""
    bounds = np.tile([-np.inf, np.inf], (m.nv, 1))
    for j in np.flatnonzero(m.jnt_actfrclimited):
        bounds[m.jnt_dofadr[j]] = m.jnt_actfrcrange[j]
    return bounds


def _compensation(m, body: Skeleton) -> GravityCompensation | None:
    moving = [b for b in range(1, m.nbody) if body.carriers[b].name != "world"]
    carried = [b for b in moving if m.body_gravcomp[b]]
    if not carried:
        return None
    return GravityCompensation(
        tuple(body.carriers[b].name for b in carried),
        m.body_mass[carried] * m.body_gravcomp[carried],
        np.array([body.carriers[b].point(m.body_ipos[b]) for b in carried]),
    )
