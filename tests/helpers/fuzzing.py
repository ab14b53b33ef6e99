"""Random bad input: what is tried, and what counts as a good answer.

A case is refused by a `ValueError` that names what is wrong (`mass: got -1.0, expected ...`), or
taken where it does no harm. Everything else is a bad outcome: other exceptions, and junk that is
taken. `benchmarks/fuzz.py` tries thousands, the test suite a few hundred."""

import contextlib
import dataclasses
import datetime
import importlib.util
import io
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import cordax
from cordax.cli import main
from cordax.control import (
    PID,
    BoundedTension,
    ComputedTorque,
    Constant,
    Hermite,
    MeanTension,
    MinimumTension,
    Pulses,
    Quintic,
    RaisedCosine,
    RecordedInput,
    Reference,
    Sinusoid,
    TaskSpaceControl,
)
from cordax.io import example_path, read_csv, read_machine, read_mjcf, write_csv
from cordax.statics import workspace
from cordax.systems import (
    Bars,
    CableRobot,
    CarriageExit,
    Cylinder,
    ElasticCables,
    ElasticTendon,
    End,
    Harness,
    Joint,
    Motors,
    NaturalBody,
    Neck,
    Oscillator,
    Payload,
    Pendulum,
    Plane,
    PlasticFlow,
    Platform,
    PointExit,
    ProgrammedLengths,
    ProgressiveRope,
    PulleyExit,
    RigidCables,
    RopeRobot,
    Routing,
    ServoWinches,
    Sphere,
    SplineRod,
    Springs,
    SwivelPulleyExit,
    Winches,
    box_inertia,
    tensegrity_manipulator,
)
from cordax.systems import mechanism as solids

#: never a number, a part or a setting of anything
JUNK: dict[str, Any] = {
    "text": "abc",
    "empty text": "",
    "bytes": b"\xff",
    "dict": {"a": 1},
    "empty dict": {},
    "set": {1},
    "object": type("Thing", (), {})(),
    "date": datetime.date(2020, 1, 1),
    "complex": 1j,
    "nan": math.nan,
    "inf": math.inf,
    "minus inf": -math.inf,
    "array of nan": np.array([1.0, math.nan, 0.0]),
    "mixed list": [1.0, "a"],
    "ragged list": [[1.0], [1.0, 2.0]],
    "true in a list": [True, 0.0, 0.0],
    "huge integer": 10**400,
    "class": Oscillator,
    "module": math,
    "generator": (x for x in ()),
    "type of array": np.array(["a", "b"]),
    "objects": np.array([None, 1.0], dtype=object),
    "five axes": np.zeros((1, 2, 1, 2, 1)),
    "oscillator": Oscillator(),
}
#: may be allowed, or not
DOUBTFUL: dict[str, Any] = {
    "none": None,
    "true": True,
    "minus one": -1.0,
    "zero": 0.0,
    "tiny": 1e-300,
    "large": 1e300,
    "seven": 7,
    "half": 0.5,
    "list": [1.0, 2.0, 3.0],
    "zeros": np.zeros(3),
    "seven numbers": np.ones(7),
    "matrix": np.ones((3, 3)),
    "three eyes": 3.0 * np.eye(3),
    "nothing": [],
    "no rows": np.zeros((0, 3)),
    "single": np.float32(2.0),
    "jax": jnp.ones(4),
    "integers": np.arange(4),
    "tuple": (0, 1),
    "function": lambda *x: 0.0,
}


def _parts() -> dict[type, dict[str, Any]]:
    """Good arguments of every public part and machine."""
    exits = np.array([[x, y, 3.0] for x in (-2.0, 2.0) for y in (-2.0, 2.0)])
    corners = np.array([[x, y, 0.0] for x in (-0.2, 0.2) for y in (-0.2, 0.2)])
    body = NaturalBody(10.0, box_inertia(10.0, (0.4, 0.4, 0.1)))
    winches = Winches(np.full(4, 2.0), 0.1, 0.01)
    elastic = ElasticCables(np.full(4, 1e5), 10.0, 1e-5)
    robot = CableRobot(body, corners, PointExit(exits), winches, elastic, (0.0, 0.0, 1.0))
    neck = Neck.default(3)
    free = SplineRod(left=End.free(), right=End.free())
    law = {"stiffness": 1e4, "damping": 0.1, "friction": 0.1, "slip_speed": 1e-3, "width": 1e-4}
    three = [0.1, 0.2, 0.3]
    times = np.linspace(0.0, 1.0, 5)
    ball = solids.Solid(1.0, inertia=0.1 * np.eye(3))
    arm = solids.Body("arm", solids.Revolute("y"), solids=(ball,))
    tip = solids.Body("tip", solids.Revolute("y"), "arm", (1.0, 0.0, 0.0), solids=(ball,))
    pair = {"predecessor": "arm", "successor": "tip", "point": three, "successor_point": three}
    platform = Platform(1.0, 0.1, [[-0.5, 0.0], [0.5, 0.0]])
    return {
        solids.Solid: _fields(ball),
        solids.Body: {**_fields(tip), "start": 0.1, "start_rate": 0.0},
        solids.Revolute: {"axis": (0.0, 1.0, 0.0)},
        solids.JointSprings: {"joints": "arm", "stiffness": 1.0, "rest": 0.0, "damping": 0.1},
        solids.JointFriction: {"joints": ("arm",), "torque": 1.0, "width": 0.01},
        solids.JointLimits: {"joints": "arm", "low": 0.0, "high": 1.0, "stiffness": 1.0},
        solids.PointSpring: {
            "first": "arm",
            "second": "tip",
            "point": three,
            "second_point": three,
            "stiffness": 1.0,
            "rest_length": 0.1,
            "damping": 0.1,
        },
        solids.SphericalLoop: {**pair, "axes": "xz"},
        solids.DistanceLoop: {**pair, "length": 1.0},
        solids.Mechanism: {
            "bodies": (arm, tip),
            "loops": (),
            "elements": (solids.JointMotors("arm"),),
            "gravity": (0.0, 0.0, -9.81),
            "independent": ("arm", "tip"),
        },
        solids.Eyelet: {"body": "arm", "at": three},
        solids.Pulley: {
            "body": "arm",
            "at": three,
            "radius": 0.1,
            "axis": (0.0, 0.0, 1.0),
            "zero": (1.0, 0.0, 0.0),
            "clockwise": False,
            "turns": 1,
            "winds": True,
        },
        solids.Wrap: {
            "wrap": solids.CylinderSurface(0.1),
            "body": "arm",
            "at": three,
            "axis": (0.0, 1.0, 0.0),
            "across": (1.0, 0.0, 0.0),
            "side": (0.0, 0.0, 1.0),
            "inside": False,
            "width": 0.01,
        },
        solids.CylinderSurface: {"radius": 0.1},
        solids.EllipsoidSurface: {"semi_axes": (0.1, 0.2, 0.3)},
        solids.TorusSurface: {"ring_radius": 0.3, "tube_radius": 0.1},
        solids.CableSet: {
            "ways": ((solids.Eyelet("world"), solids.Eyelet("arm")),),
            "law": ElasticCables(1e4, 1.0, 1e-5),
            "rest": 1.0,
            "windings": (),
            "radius": None,
            "friction": 0.1,
            "slip_width": 1e-3,
            "name": "cable",
        },
        solids.ContactLaw: {
            **law,
            "static_friction": 0.2,
            "rolling": 0.01,
        },
        solids.Contact: {
            "shapes": {"arm": solids.Sphere(0.1)},
            "obstacles": solids.Plane(),
            "law": solids.ContactLaw(),
            "pairs": (),
            "groups": {},
            "name": "contact",
        },
        tensegrity_manipulator: {
            "variant": "strain",
            "modulus": 2e9,
            "viscosity": 1e7,
            "length": 1.0,
            "pulley_radius": 0.05,
            "outer_diameter": 0.035,
            "cable_radius": 1e-3,
            "density": 2700.0,
            "azimuth": 0.0,
            "friction": 0.0,
            "gravity": (0.0, 0.0, -9.81),
        },
        Platform: _fields(platform),
        ProgressiveRope: {"axial": 1.0, "bending": 1.0},
        RopeRobot: {
            "roots": [[-1.0, 0.0], [1.0, 0.0]],
            "length": 1.0,
            "line_density": 0.03,
            "EA": 4e4,
            "EI": 0.01,
            "axial_time": 2e-3,
            "bending_time": 0.05,
            "root_stiffness": 1.0,
            "root_angle": 0.0,
            "platform": platform,
            "law": ProgressiveRope(),
            "count": 4,
            "gravity": 9.81,
        },
        Oscillator: {"mass": 1.0, "stiffness": 1.0, "damping": 0.0},
        Pendulum: {"mass": 1.0, "length": 1.0, "gravity": 9.81},
        Bars: _fields(neck.bars),
        Springs: _fields(neck.springs),
        Motors: _fields(neck.motors),
        ElasticTendon: _fields(neck.tendon),
        Routing: _fields(neck.routing),
        Neck: _fields(neck),
        NaturalBody: _fields(body),
        Payload: {"body": body, "joint": (0.0, 0.0, 0.1), "held_by": "nothing"},
        PointExit: {"points": exits},
        PulleyExit: {"points": exits, "radius": 0.1, "axis": (0.0, 0.0, 1.0)},
        SwivelPulleyExit: {"points": exits, "radius": 0.1, "pulley_inertia": 1.0, "damping": 0.1},
        CarriageExit: {"points": exits, "mass": 1.0, "stiffness": 1.0, "damping": 1.0},
        ProgrammedLengths: {"lengths": np.full(4, 2.0)},
        Winches: _fields(winches),
        ServoWinches: {
            **_fields(winches),
            "reference": np.zeros(4),
            "K_p": 10.0,
            "K_i": 1.0,
            "K_d": 0.1,
            "feedforward": 0.0,
        },
        RigidCables: {"push_threshold": 1e-9},
        ElasticCables: _fields(elastic),
        CableRobot: {
            name: x for name, x in _fields(robot).items() if name not in ("payload", "constants")
        },
        End: {
            "holds": (True, True, True),
            "slope": (False, False, False),
            "twist": True,
            "stiffness": (0.0, 0.0, 0.0),
            "point": (0.0, 0.0, 0.0),
            "tangent": (1.0, 0.0, 0.0),
            "angle": 0.0,
        },
        SplineRod: {**_fields(free), "shear": 2.5e10, "torsion_width": 1.0},
        Plane: {"point": (0.0, 0.0, 0.0), "normal": (0.0, 0.0, 1.0)},
        Sphere: {"centre": (0.0, 0.0, 0.0), "radius": 1.0},
        Cylinder: {
            "centre": (0.0, 0.0, 0.0),
            "length": 1.0,
            "axis": (0.0, 1.0, 0.0),
            "radius": 1.0,
        },
        Harness: {"rods": (free, free), "joints": (Joint(0, "right", 1, "left"),)},
        PlasticFlow: {"rod": SplineRod(plastic=True), "yield_curvature": 1.0, "hardening": 0.1},
        cordax.Baumgarte: {"alpha": 1.0, "beta": 1.0},
        cordax.UdwadiaKalaba: {"alpha": 1.0, "beta": 1.0, "tolerance": 1e-9},
        cordax.Penalty: {"alpha": 1e8, "xi": 1.0, "omega": 1.0},
        cordax.Projected: {"inner": cordax.Baumgarte(), "iterations": 2},
        cordax.Index3: {"alpha": 0.0, "beta": 0.0},
        cordax.ImplicitMidpoint: {"tolerance": 1e-9, "max_iterations": 5},
        cordax.GeneralisedAlpha: {"rho": 0.5, "tolerance": 1e-9, "max_iterations": 5},
        cordax.Unilateral: {"inner": cordax.RK4(), "capacity": 4, "pieces": 4, "iterations": 4},
        cordax.Diffrax: {"max_steps": 100},
        cordax.State: {"q": np.ones(1), "v": np.zeros(1)},
        Constant: {"value": three},
        Quintic: {"start": three, "moves": [three], "times": [[0.0, 1.0]]},
        Hermite: {"times": [0.0, 1.0], "values": [three, three], "slopes": [three, three]},
        RaisedCosine: {"amplitude": three, "frequency": 1.0, "offset": 0.0},
        Sinusoid: {"amplitude": three, "frequency": 1.0, "phase": 0.0, "offset": 0.0},
        ComputedTorque: {
            "machine": neck,
            "reference": RaisedCosine(three),
            "K_p": 1.0,
            "K_d": 1.0,
            "distribution": MeanTension(),
            "friction": "none",
            "period": 0.01,
        },
        TaskSpaceControl: {
            "machine": robot,
            "path": (0.0, 0.0, 1.0),
            "rotation": np.eye(3),
            "K_p": 1.0,
            "K_d": 1.0,
            "distribution": MeanTension(),
            "period": 0.01,
        },
        PID: {
            "reference": [0.0, 0.0],
            "coordinates": (0, 1),
            "period": 0.01,
            "K_p": 1.0,
            "K_i": 1.0,
            "K_d": 1.0,
            "bias": 0.0,
        },
        Pulses: {"times": [[0.0, 1.0]], "inputs": [[1.0, 2.0]], "period": 0.01, "base": 0.0},
        RecordedInput: {"t": times, "values": np.ones((5, 2)), "interpolation": "cubic"},
        MeanTension: {"mean": 50.0},
        MinimumTension: {"minimum": 5.0},
        BoundedTension: {"minimum": 5.0, "maximum": 100.0, "mean": 50.0},
        cordax.Parameter: {"name": "mass", "transform": "log"},
        cordax.Recording: {"t": times, "values": {"x": np.ones(5)}},
        cordax.Experiment: {
            "system": Oscillator(),
            "duration": 0.1,
            "dt": 0.01,
            "integrator": "rk4",
            "formulation": cordax.Minimal(),
            "t0": 0.0,
            "save_every": 1,
            "switches": (),
        },
    }


def _fields(module) -> dict[str, Any]:
    return {f.name: getattr(module, f.name) for f in dataclasses.fields(module) if f.init}


#: where junk may be given: missing samples, the state of any machine
_TAKEN = {("Recording", "values"), ("State", "q"), ("State", "v")}
#: where text is a name
_NAMES = {"name", "body", "parent", "joints", "first", "second", "predecessor", "successor"}


@dataclasses.dataclass
class Case:
    """One call: a `label`, the call, whether it `must_fail`, and what an error must name."""

    label: str
    call: Callable[[], Any]
    must_fail: bool = False
    names: str = ""


class Cases:
    """Random cases; `folder` for files."""

    def __init__(self, seed: int, folder: Path):
        self.random = np.random.default_rng(seed)
        self.folder = folder
        self.parts = _parts()
        self.robots = [example_path(n).read_text(encoding="utf-8") for n in ("suspended",)]
        run = cordax.simulate(Oscillator(), dt=0.01, duration=0.1)
        self.csv = write_csv(folder / "good.csv", run).read_text(encoding="utf-8")
        run.save(folder / "good.npz")
        self.npz = (folder / "good.npz").read_bytes()
        self.recording = read_csv(folder / "good.csv").select(["x"])
        self.methods = self._methods()
        self.families = (
            (self.constructor, 10),
            (self.option, 4),
            (self.later, 3),
            (self.static, 2),
            (self.fit, 2),
            (self.robot, 3),
            (self.table, 2),
            (self.stored, 2),
            (self.command, 1),
            (self.method, 4),
            (self.mjcf, 2 if importlib.util.find_spec("mujoco") else 0),
        )

    def draw(self) -> Case:
        weights = np.array([w for _, w in self.families], float)
        family = self.families[self.random.choice(len(weights), p=weights / weights.sum())][0]
        return family()

    def pick(self, things):
        things = list(things)
        return things[self.random.integers(len(things))]

    def value(self) -> tuple[str, Any, bool]:
        """A name, a value and whether it is junk."""
        junk = bool(self.random.random() < 0.6)
        name = self.pick(JUNK if junk else DOUBTFUL)
        return name, (JUNK if junk else DOUBTFUL)[name], junk

    # --- families
    def constructor(self) -> Case:
        kind = self.pick(self.parts)
        good = self.parts[kind]
        field = self.pick(good)
        name, value, junk = self.value()
        must_fail = junk and (kind.__name__, field) not in _TAKEN
        good_here = name == "oscillator" and field in ("system", "machine")
        good_here |= name == "text" and field in _NAMES
        good_here |= name == "five axes" and Reference in getattr(
            kind, "__mro__", ()
        )  # of any shape
        label = f"{kind.__name__}({field}={name})"
        return Case(label, lambda: kind(**{**good, field: value}), must_fail and not good_here)

    def option(self) -> Case:
        """Of a run that is compiled once."""
        good = {"dt": 0.01, "duration": 0.1}
        options = "dt duration integrator formulation control t0 save_every adjoint throw progress"
        field = self.pick([*options.split(), "state0", "system"])
        name, value, junk = self.value()
        if field in ("control", "integrator") and name in ("function", "jax"):
            value = None
        if field == "progress" and value is True:
            value = False
        if field == "t0" and name == "true":
            value = 0.0
        arguments = {"system": Oscillator(), **good, field: value}
        fine = field == "system" and name == "oscillator"
        call = lambda: _finite(cordax.simulate(**arguments))
        return Case(f"simulate({field}={name})", call, junk and not fine)

    def later(self) -> Case:
        """A number set after a machine was made."""
        machine = Oscillator()
        field = self.pick(("mass", "stiffness", "damping"))
        number = self.pick((math.nan, math.inf, -1.0, -1e9, 2.0, 0.0))
        bad = not math.isfinite(number) or (number <= 0 and field != "damping")
        changed = eqx.tree_at(lambda m: getattr(m, field), machine, jnp.asarray(number))
        call = lambda: _finite(cordax.simulate(changed, dt=0.01, duration=0.1))
        return Case(f"simulate({field} set to {number})", call, bad)

    def static(self) -> Case:
        name, value, junk = self.value()
        function = self.pick(("equilibrium", "modes", "step_limit", "consistent"))
        fields = {
            "equilibrium": ("system", "u", "guess", "t", "tolerance", "max_steps", "stable"),
            "modes": ("system", "state", "u", "t", "held"),
            "step_limit": ("system", "state", "integrator", "u", "t"),
            "consistent": ("system", "state", "t"),
        }[function]
        field = self.pick(fields)
        if field == "u" and name == "function":
            value = None
        fine = field == "system" and name == "oscillator"
        arguments = {"system": Oscillator(), field: value}
        call = lambda: getattr(cordax, function)(**arguments)
        return Case(f"{function}({field}={name})", call, junk and not fine)

    def method(self) -> Case:
        """Arguments of methods and of functions of a machine."""
        name, value, junk = self.value()
        label, function, good = self.pick(self.methods)
        field = self.pick(good)
        if callable(value) and field == "t":
            value = None
        call = lambda: _numbers(function(**{**good, field: value}))
        fine = field in ("names",) and name in ("empty dict", "dict")
        return Case(f"{label}({field}={name})", call, junk and not fine)

    def _methods(self) -> list[tuple[str, Callable, dict[str, Any]]]:
        robot, neck = CableRobot(**self.parts[CableRobot]), self.parts[ComputedTorque]["machine"]
        times = np.linspace(0.0, 1.0, 50)
        recording = cordax.Recording(times, {"x": np.sin(times)})
        place = {"position": (0.0, 0.0, 1.0), "rotation": np.eye(3), "t": 0.0}
        still = {"velocity": np.zeros(3), "angular_velocity": np.zeros(3), "tension": np.ones(4)}
        where = {"robot": robot, "positions": np.array([[0.0, 0.0, 1.0]]), "rotation": np.eye(3)}
        limits = {"minimum": 1.0, "maximum": 100.0}
        joints = {"alpha": np.zeros(3), "rate": np.zeros(3)}
        return [
            ("CableRobot.state_at", robot.state_at, {**place, **still}),
            ("CableRobot.lengths", robot.lengths, place),
            (
                "CableRobot.static_tensions",
                robot.static_tensions,
                {"q": robot.default_state().q, "t": 0.0},
            ),
            ("Neck.state_at", neck.state_at, joints),
            ("workspace.static", workspace.static, {**where, **limits}),
            ("workspace.wrench_closure", workspace.wrench_closure, where),
            (
                "workspace.wrench_feasible",
                workspace.wrench_feasible,
                {**where, **limits, "wrenches": np.ones((2, 6))},
            ),
            (
                "workspace.box_grid",
                workspace.box_grid,
                {"low": (0, 0, 0), "high": (1, 1, 1), "count": 3},
            ),
            ("Recording.between", recording.between, {"t0": 0.0, "t1": 1.0}),
            ("Recording.resample", recording.resample, {"interval": 0.1, "gap": 1.0}),
            ("Recording.thin", recording.thin, {"every": 2}),
            ("Recording.filter", recording.filter, {"cutoff": 2.0, "order": 2, "names": ["x"]}),
            ("Recording.windows", recording.windows, {"longest": 0.5, "shortest": 0.1, "gap": 1.0}),
            ("Recording.rename", recording.rename, {"names": {"x": "y"}}),
            ("Recording.shift", recording.shift, {"seconds": 0.1}),
            ("Recording.select", recording.select, {"names": ["x"]}),
        ]

    def mjcf(self) -> Case:
        """A model of MuJoCo with one attribute changed."""
        places = [m for m in re.finditer(r'="([^"]*)"', _MJCF)]
        place = self.pick(places)
        value = str(
            self.pick(("nan", "inf", "1e300", "-1", "0", "", "a", "1 2", "0 0 0", "1e-300"))
        )
        text = _MJCF[: place.start(1)] + value + _MJCF[place.end(1) :]
        what = _MJCF[: place.start()].split()[-1]

        def call():
            with contextlib.chdir(self.folder):  # MuJoCo writes a log of its warnings
                _numbers(read_mjcf(text).system.default_state())

        return Case(f"read_mjcf({what}={value})", call)

    def fit(self) -> Case:
        """Arguments of `identify`, of which only refused ones are tried: a fit takes seconds."""
        fields = "system recording parameters noise dt t0 integrator formulation method"
        field = self.pick([*fields.split(), "max_steps", "tolerance", "check_step"])
        name = self.pick(JUNK)
        if name == "oscillator" and field == "system":
            name = "text"
        good = {
            "system": Oscillator(),
            "recording": self.recording,
            "parameters": ["stiffness"],
            field: JUNK[name],
        }
        return Case(f"identify({field}={name})", lambda: cordax.identify(**good), True)

    def robot(self) -> Case:
        text = self.pick(self.robots)
        damage, what = self._damaged(text)
        path = self.folder / "robot.toml"

        def call():
            path.write_bytes(damage)
            start = read_machine(path).experiment.start
            assert all(np.all(np.isfinite(x)) for x in eqx.filter(start, eqx.is_array).q)

        return Case(f"read_machine({what})", call, names=path.name)

    def table(self) -> Case:
        damage, what = self._damaged(self.csv)
        path = self.folder / "table.csv"

        def call():
            path.write_bytes(damage)
            read_csv(path)

        return Case(f"read_csv({what})", call, names=path.name)

    def _damaged(self, text: str) -> tuple[bytes, str]:
        lines = text.splitlines()
        i = int(self.random.integers(len(lines)))
        what = self.pick(("value", "bytes", "cut", "line", "deep", "digits", "huge", "key", "true"))
        if what == "bytes":
            data = bytearray(text.encode())
            for _ in range(3):
                data[self.random.integers(len(data))] = self.random.integers(256)
            return bytes(data), what
        if what == "cut":
            return text.encode()[: self.random.integers(len(text))], what
        if what == "line":
            del lines[i]
            return "\n".join(lines).encode(), what
        new = {
            "value": str(self.pick((-1, 0, "nan", "inf", '"a"', "[]", "[1, 2]", "{}", 1e300))),
            "deep": "[" * 5000 + "]" * 5000,
            "digits": "1" * int(self.pick((400, 5000))),
            "huge": '"' + "x" * 200_000 + '"',
            "true": "[true, 1.0, 0.0]",
        }.get(what)
        line = lines[i]
        if what == "key":
            lines[i] = "x" + line
        elif "=" in line:
            lines[i] = line.split("=")[0] + "= " + str(new)
        else:
            cells = line.split(",")
            cells[self.random.integers(len(cells))] = str(new)
            lines[i] = ",".join(cells)
        return "\n".join(lines).encode(), f"{what} in {line.split('=')[0].strip()[:20]}"

    def stored(self) -> Case:
        what = self.pick(("bytes", "cut", "empty", "foreign", "without", "array", "text"))
        path = self.folder / "stored.npz"
        data = self.npz
        if what == "bytes":
            changed = bytearray(data)
            for _ in range(5):
                changed[self.random.integers(len(data))] = self.random.integers(256)
            data = bytes(changed)
        elif what == "cut":
            data = data[: self.random.integers(len(data))]
        elif what in ("empty", "text"):
            data = b"" if what == "empty" else b"time,x\n0,1\n"
        else:
            data = self._other_arrays(what)

        def call():
            path.write_bytes(data)
            cordax.Trajectory.load(path)

        return Case(f"Trajectory.load({what})", call, names=path.name)

    def _other_arrays(self, what: str) -> bytes:
        if what == "foreign":
            out = io.BytesIO()
            np.savez(out, a=np.ones(3))
            return out.getvalue()
        with np.load(io.BytesIO(self.npz)) as file:
            arrays = {name: file[name] for name in file.files}
        name = self.pick(arrays)
        old = arrays.pop(name)
        if what == "array":
            others = (old[..., None], old.ravel()[:1], np.ones(3), np.array("a"), 1j * np.ones(2))
            arrays[name] = self.pick(others)
        out = io.BytesIO()
        np.savez(out, **arrays)
        return out.getvalue()

    def command(self) -> Case:
        """Words that are refused before anything is simulated."""
        junk = ("abc", "-1", "nan", "", "1e999", "/no/such/file", "\udcff")
        options = ("--dt", "--duration", "--joints", "--integrator", "--film", "--nonsense")
        first = self.pick((["run", "neck"], ["run", "cable-robot"], ["run", "rod"], ["fit"], []))
        option, word = self.pick(options), self.pick(junk)
        words = (
            [*first, option, word]
            if first != ["fit"]
            else ["fit", "neck", word, "--parameters", "mass"]
        )

        def call():
            said = io.StringIO()
            try:
                with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                    code = main([*words, "--output", str(self.folder)])
            except SystemExit as stop:
                code = stop.code
            if code == 2 and said.getvalue().strip() and "Traceback" not in said.getvalue():
                raise ValueError("words: got " + " ".join(said.getvalue().split()))
            raise AssertionError(f"exit code {code}: {said.getvalue()[:200]}")

        return Case(f"cordax {' '.join(map(repr, words))}", call, True)


_MJCF = """<mujoco><option timestep="0.002" gravity="0 0 -9.81"/><worldbody>
<site name="top" pos="0 0 2"/>
<body name="arm" pos="0 0 1"><joint name="hinge" type="hinge" axis="0 1 0" damping="0.1"
stiffness="1" range="-90 90" limited="true"/>
<geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.05" mass="1"/><site name="tip" pos="0.5 0 0"/>
</body></worldbody><tendon><spatial name="cable" stiffness="100" springlength="0.5">
<site site="top"/><site site="tip"/></spatial></tendon>
<actuator><motor name="drive" joint="hinge" gear="2" ctrlrange="-1 1"/></actuator></mujoco>"""


def _numbers(tree) -> None:
    """Raise unless all numbers are finite."""
    if isinstance(tree, cordax.Recording):
        return  # NaN marks missing samples
    for x in jax.tree.leaves(tree):
        if eqx.is_inexact_array_like(x) and not np.all(np.isfinite(x)):
            raise FloatingPointError("numbers that are not finite in a result")


def _finite(run) -> None:
    ok = all(bool(jnp.all(jnp.isfinite(x))) for x in (run.t, run.q, run.v, run.u))
    if not ok:
        raise FloatingPointError("numbers that are not finite in a run that succeeded")


#: names a field, says what was given and what is expected
_CLEAR = re.compile(
    r"^[^\n]{1,300}: (got|no state|MuJoCo cannot compile the model: ) ?.*", re.DOTALL
)


def outcome(case: Case) -> tuple[str, str]:
    """What became of a case, `refused`, `taken` or a bad outcome, and what was said."""
    try:
        case.call()
    except cordax.SimulationError as error:
        return "refused", str(error)
    except ValueError as error:
        text = str(error)
        clear = _CLEAR.match(text) and "\n" not in text[:200] and case.names in text
        return ("refused" if clear else "unclear"), text
    except Exception as error:
        return type(error).__name__, str(error)
    return ("junk taken" if case.must_fail else "taken"), ""


GOOD_OUTCOMES = ("refused", "taken")
