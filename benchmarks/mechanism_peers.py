"""Mechanisms beside other programs: `python benchmarks/mechanism_peers.py [part ...]`.

Prints one JSON object. Parts: pinocchio (one constrained evaluation of the single strut and of the
manipulator beside `constraintDynamics` of Pinocchio, called from Python), suspended (a robot on
four elastic cables over swivelling pulleys for 10 s: as a Mechanism, in natural coordinates, and in
MuJoCo without pulleys, which it does not have). Times are processor seconds, the least of several
runs; other programs are left out where they are not installed."""

import argparse
import json

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

from cordax.mechanics.constraints import Stabilisation  # noqa: E402
from cordax.mechanics.parts.cables import ElasticCables  # noqa: E402
from cordax.mechanics.parts.drives import ProgrammedLengths  # noqa: E402
from cordax.mechanics.parts.exits import PulleyExit  # noqa: E402
from cordax.systems import mechanism as parts  # noqa: E402
from cordax.systems import single_strut, tensegrity_manipulator  # noqa: E402
from cordax.systems.cable_robot import CableRobot, NaturalBody  # noqa: E402


class InPinocchio:
    """A mechanism of hinges, free bodies and cables by their length, with pins as loops."""

    def __init__(self, pin, machine, least_mass: float = 1e-3):
        self.pin, model = pin, pin.Model()
        model.gravity = pin.Motion(np.array(machine.gravity), np.zeros(3))
        ids, q_order, v_order = {"world": 0}, [], []
        for body in machine.bodies:
            place = pin.SE3(np.array(body.turned), np.array(body.at))
            name, parent = body.name, ids[body.parent]
            if isinstance(body.joint, parts.LengthInvolute):
                turned = model.addJoint(parent, pin.JointModelRZ(), place, f"{name}_turn")
                offset = pin.SE3(np.eye(3), np.array([0.0, float(body.joint.radius), 0.0]))
                ids[name] = model.addJoint(turned, pin.JointModelPX(), offset, name)
                joints = [(turned, [0], [0]), (ids[name], [0], [0])]
            elif isinstance(body.joint, parts.Floating):
                ids[name] = model.addJoint(parent, pin.JointModelFreeFlyer(), place, name)
                joints = [(ids[name], [6, 3, 4, 5, 0, 1, 2], [3, 4, 5, 0, 1, 2])]
            else:
                hinge = pin.JointModelRevoluteUnaligned(np.array(body.joint.axis))
                ids[name] = model.addJoint(parent, hinge, place, name)
                joints = [(ids[name], [0], [0])]
            solid = body.inertia()
            # it divides by the mass matrix, which must be regular
            mass = max(float(solid.mass), least_mass)
            inertia = np.array(solid.inertia)
            if float(solid.mass) == 0.0:
                inertia = inertia + 1e-6 * np.eye(3)
            model.appendBodyToJoint(
                ids[name], pin.Inertia(mass, np.array(solid.centre), inertia), pin.SE3.Identity()
            )
            for joint, q, v in joints:
                q_order.append(model.idx_qs[joint] + np.array(q))
                v_order.append(model.idx_vs[joint] + np.array(v))
        self.model, self.data = model, model.createData()
        self.q, self.v = np.concatenate(q_order), np.concatenate(v_order)
        self.loops = pin.StdVec_RigidConstraintModel()
        at = lambda x: pin.SE3(np.eye(3), np.array(x))
        for loop in machine.loops:
            a, b = (ids[name] for name in loop.bodies)
            ends = a, at(loop.point), b, at(loop.successor_point)
            self.loops.append(
                pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, *ends, pin.LOCAL)
            )
        self.loop_data = pin.StdVec_RigidConstraintData()
        for loop in self.loops:
            self.loop_data.append(loop.createData())
        pin.initConstraintDynamics(model, self.data, self.loops, self.loop_data)

    def evaluation(self, q, v):
        """A function that computes accelerations (n_v,) in the order of the mechanism."""
        there_q, there_v = np.zeros(self.model.nq), np.zeros(self.model.nv)
        there_q[self.q], there_v[self.v] = q, v
        tau = np.zeros(self.model.nv)
        settings = self.pin.ProximalSettings(1e-12, 0.0, 1)
        given = self.model, self.data, there_q, there_v, tau, self.loops, self.loop_data, settings
        return lambda: self.pin.constraintDynamics(*given)[self.v]


def pinocchio() -> dict | None:
    try:
        import pinocchio as pin
    except ImportError:
        return None
    strut = single_strut("length", cable_end_mass=0.05)
    manipulator = tensegrity_manipulator("length")
    states = {
        "strut": (strut, strut.state_at((0.1, -0.05), 0.0, (0.3, 0.2))),
        "manipulator": (manipulator, manipulator.default_state()),
    }
    return {"version": pin.__version__} | {
        name: _beside(pin, machine, state) for name, (machine, state) in states.items()
    }


def _beside(pin, machine, state, steps: int = 1000) -> dict:
    none, u = Stabilisation(jnp.zeros(()), jnp.zeros(())), jnp.zeros(machine.n_u)

    def loop(machine, state):
        machine = machine.prepare()

        def body(q, _):
            a = machine.structure().constrained_acceleration(jnp.zeros(()), q, state.v, u, none)[0]
            return q + 1e-15 * a[0], a

        return jax.lax.scan(body, state.q, length=steps)[1][0]

    run, cost = measure.compiled(loop, machine, state)
    mine = measure.processor(run, repeats=20) / steps
    evaluate = InPinocchio(pin, machine).evaluation(np.array(state.q), np.array(state.v))
    theirs = measure.processor(lambda: [evaluate() for _ in range(steps)], repeats=20) / steps
    out = {"cordax_us": mine * 1e6, "pinocchio_us": theirs * 1e6, "ratio": mine / theirs}
    if all(float(b.inertia().mass) > 0 for b in machine.bodies if "cross" not in b.name):
        a, b = np.array(run()), evaluate()
        out["difference"] = float(np.abs(a - b).max() / np.abs(b).max())
    return out | cost


MASS, CENTRE = 3.0, np.array([0.03, -0.02, 0.05])
INERTIA = np.array([[0.05, 0.004, -0.003], [0.004, 0.07, 0.006], [-0.003, 0.006, 0.09]])
ATTACHMENTS = np.array([[-0.2, -0.3, 0.1], [-0.2, 0.3, 0.0], [0.2, 0.3, 0.1], [0.2, -0.3, 0.0]])
EXITS = np.array([[-2.0, -2.0, 2.0], [-2.0, 2.1, 2.2], [2.0, 2.0, 2.0], [2.2, -2.0, 1.9]])
RADIUS, STIFFNESS, DAMPING = 0.05, 4e3, 12.0
POSITION, TURN = np.array([0.1, -0.05, 0.3]), Rotation.from_rotvec([0.2, -0.1, 0.3])
VELOCITY, SPIN = np.array([0.02, -0.01, 0.0]), np.array([0.1, -0.2, 0.15])


def _both():
    """The robot in natural coordinates and as a Mechanism, and the lengths of its cables."""
    law = ElasticCables(STIFFNESS * np.ones(4), DAMPING * np.ones(4), width=1e-3)
    exits, body = PulleyExit(EXITS, RADIUS * np.ones(4)), NaturalBody(MASS, INERTIA, CENTRE)
    robot = lambda lengths: CableRobot(
        body, ATTACHMENTS, exits, ProgrammedLengths(lengths), cables=law, position=POSITION,
        rotation=TURN.as_matrix(),
    )  # fmt: skip
    lengths = np.array(robot(np.ones(4)).lengths()) - 5e-3
    ways = [
        [parts.SwivelPulley("world", a, RADIUS), parts.Eyelet("platform", b)]
        for a, b in zip(EXITS, ATTACHMENTS, strict=True)
    ]
    platform = parts.Body(
        "platform", parts.Floating(), solids=parts.Solid(MASS, CENTRE, INERTIA),
        start=np.concatenate([TURN.as_quat(scalar_first=True), POSITION]),
        start_rate=np.concatenate([TURN.inv().apply(SPIN), TURN.inv().apply(VELOCITY)]),
    )  # fmt: skip
    machine = parts.Mechanism([platform], elements=[parts.CableSet(ways, law, lengths)])
    return robot(lengths), machine, lengths


def suspended() -> dict:
    robot, machine, lengths = _both()
    options = {"duration": 10.0, "dt": 1e-3, "save_every": 100}
    start = robot.state_at(velocity=VELOCITY, angular_velocity=SPIN)
    natural = lambda: cordax.simulate(robot, start, **options)
    quaternion = lambda: cordax.simulate(machine, **options)
    a, b = natural(), quaternion()
    turn = Rotation.from_quat(np.array(b.q)[:, :4], scalar_first=True)
    centre = np.array(b.q)[:, 4:] + turn.apply(CENTRE)
    apart = float(np.abs(centre - np.array(a.outputs["position"])).max())
    times = {
        "natural_s": measure.processor(lambda: natural().q, repeats=5),
        "mechanism_s": measure.processor(lambda: quaternion().q, repeats=5),
        "mujoco_s": _mujoco(lengths),
    }
    ratio = times["mechanism_s"] / times["natural_s"]
    verdicts = {"apart_below_1e-8_m": apart < 1e-8, "ratio_at_most_4": ratio <= 4.0}
    if times["mujoco_s"] is not None:
        verdicts["faster_than_mujoco"] = times["mechanism_s"] < times["mujoco_s"]
    return times | {"apart_m": apart, "ratio": ratio} | verdicts


def _mujoco(lengths) -> float | None:
    """Processor seconds of 10 s with RK4 at 1 ms, cables to points."""
    try:
        import mujoco as mj
    except ImportError:
        return None
    text = lambda x: " ".join(str(float(y)) for y in np.ravel(x))
    full = text([*np.diag(INERTIA), INERTIA[0, 1], INERTIA[0, 2], INERTIA[1, 2]])
    fixed = "".join(f'<site name="b{i}" pos="{text(x)}"/>' for i, x in enumerate(EXITS))
    moving = "".join(f'<site name="p{i}" pos="{text(x)}"/>' for i, x in enumerate(ATTACHMENTS))
    cables = "".join(
        f'<spatial stiffness="{STIFFNESS}" damping="{DAMPING}" springlength="0 {lengths[i]}">'
        f'<site site="b{i}"/><site site="p{i}"/></spatial>'
        for i in range(4)
    )
    model = mj.MjModel.from_xml_string(
        '<mujoco><option timestep="0.001" integrator="RK4"/><worldbody>'
        f'{fixed}<body pos="{text(POSITION)}" quat="{text(TURN.as_quat(scalar_first=True))}">'
        f'<freejoint/><inertial pos="{text(CENTRE)}" mass="{MASS}" fullinertia="{full}"/>'
        f"{moving}</body></worldbody><tendon>{cables}</tendon></mujoco>"
    )
    data = mj.MjData(model)

    def go():
        mj.mj_resetData(model, data)
        mj.mj_step(model, data, 10_000)

    return measure.processor(go, repeats=5)


PARTS = {"pinocchio": pinocchio, "suspended": suspended}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=", ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    print(json.dumps({"about": measure.about()} | {name: PARTS[name]() for name in chosen}))
