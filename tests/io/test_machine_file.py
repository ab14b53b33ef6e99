"""Any machine from a file: kinds by name, lines in errors, numbers with units, own classes."""

import ast
import importlib
import inspect
import subprocess
import sys
import tomllib

import equinox as eqx
import jax
import numpy as np
import pytest

import cordax
from cordax import Controller, Integrator, System
from cordax.io import EXAMPLES, example_path, find_machine, read_machine, starting_file
from cordax.io.line_numbers import lines_of
from cordax.io.machine_file import STARTING
from cordax.io.registry import KINDS, arguments, find_kind, kinds, machine_kinds, own_kinds, words
from cordax.systems import Harness, Neck, RopeRobot, SplineRod, mechanism

PENDULUM = """
kind = "mechanism"

[[bodies]]
name = "arm"
joint = { kind = "revolute", axis = "y" }
solids = [
    { kind = "rod", length = 1.0, mass = "500 g", centre = [0.5, 0.0, 0.0] },
    { kind = "sphere", radius = "5 cm", mass = 1.0, centre = [1.0, 0.0, 0.0] },
]
start = "30 deg"

[[elements]]
kind = "joint_motors"
joints = "arm"

[control]
torque_arm = 0.5

[run]
duration = 0.01
dt = 1e-3
"""


def written(folder, text, name="machine.toml"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_new_prints_is_the_example_and_more(name, tmp_path):
    text = starting_file(name)
    assert tomllib.loads(text) == tomllib.loads(example_path(name).read_text())
    file = read_machine(written(tmp_path, text))
    system, start = file.experiment.system, file.experiment.start
    assert start.q.shape == (system.n_q,) and np.all(np.isfinite(start.q))
    if system.n_constraints:
        phi = eqx.filter_jit(lambda system, q: system.constraint(0.0, q))(system, start.q)
        assert float(np.abs(phi).max()) < 1e-9
    steps = file.experiment.duration / file.experiment.dt
    assert steps == pytest.approx(round(steps))


#: machines made of other machines, or of numbers that nobody can guess
NEEDY = (
    "axial_ropes winched_ropes spatial_rope_robot ropes_for_cables discrete_rod n_four_bar".split()
)


@pytest.mark.parametrize("kind", machine_kinds())
def test_every_kind_has_a_starting_file_or_says_what_it_needs(kind, tmp_path):
    if kind in NEEDY:
        with pytest.raises(ValueError, match=f"{kind} has no starting file, since it needs"):
            starting_file(kind)
        return
    text = starting_file(kind)
    tomllib.loads(text)
    if kind not in STARTING and kind not in EXAMPLES:
        assert read_machine(written(tmp_path, text)).kind == kind


def test_files_make_what_constructors_make():
    neck = find_machine("neck").experiment.system
    np.testing.assert_array_equal(*(x.springs.stiffness for x in (neck, Neck.default(3))))
    assert cordax.check_machine is not None and isinstance(neck, Neck)
    np.testing.assert_array_equal(neck.routing.right, Neck.default(3).routing.right)
    ropes = find_machine("rope-robot", changes=["count=4"]).experiment
    assert isinstance(ropes.system, RopeRobot) and ropes.system.count == 4
    np.testing.assert_allclose(ropes.control(4.5, None, None)[0], [0.0, 52.0, 0.0])
    harness = find_machine("harness").experiment.system
    assert isinstance(harness, Harness) and harness.rods[1].right.moves
    assert harness.joints[1].other == 2


def test_parts_units_and_inputs_by_name(tmp_path):
    experiment = read_machine(written(tmp_path, PENDULUM)).experiment
    arm = mechanism.Body(
        "arm",
        mechanism.Revolute("y"),
        solids=[
            mechanism.rod(1.0, mass=0.5, centre=(0.5, 0, 0)),
            mechanism.sphere(0.05, mass=1.0, centre=(1.0, 0, 0)),
        ],
        start=[np.pi / 6],
    )
    ours = mechanism.Mechanism([arm], elements=[mechanism.JointMotors("arm")])
    q = ours.default_state().q
    np.testing.assert_allclose(experiment.start.q, q)
    mass = eqx.filter_jit(lambda machine: machine.mass_matrix(q))
    np.testing.assert_allclose(mass(experiment.system), mass(ours))
    np.testing.assert_array_equal(experiment.inputs, [0.5])


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('"revolute"', '"revolut"', 6, "bodies[0].joint.kind: got 'revolut', expected one of ball"),
        ("axis =", "axes =", 6, "bodies[0].joint.axes: got an unknown key (= y), expected one of"),
        ('"5 cm"', "-1.0", 9, "bodies[0].solids[1].radius: got -1.0, expected finite values > 0"),
        ('"5 cm"', '"5 kg"', 9, "bodies[0].solids[1].radius: got 5 kg, expected a quantity"),
        ('"5 cm"', '"5 furlong"', 9, "bodies[0].solids[1].radius: got 'furlong', expected units"),
        ('name = "arm"', "", 4, "bodies[0].name: got nothing, expected"),
        ("torque_arm", "torque", 18, "control.torque: got an unknown key (= 0.5), expected one"),
        ('joints = "arm"', 'joints = "leg"', 0, "got 'leg', expected"),
        ("dt = 1e-3", 'integrator = "rk5"', 22, "run.integrator: got 'rk5', expected one of rk4"),
        ("duration = 0.01", "", 20, "run.duration: got nothing, expected a number"),
        ('kind = "mechanism"', "", 0, "kind: got nothing, expected one of"),
    ],
)
def test_errors_name_file_line_key_and_the_nearest(old, new, line, said, tmp_path):
    path = written(tmp_path, PENDULUM.replace(old, new))
    with pytest.raises(ValueError) as error:
        read_machine(path)
    text = str(error.value)
    assert text.startswith(f"{path}:{line}, " if line else f"{path}") and said in text


def test_classes_of_the_user_only_when_allowed(tmp_path):
    code = "from cordax.systems import Oscillator\n\n\nclass Cart(Oscillator):\n    pass\n"
    written(tmp_path, code, "carts_of_mine.py")
    text = 'kind = "carts_of_mine:Cart"\nmass = 3.0\n\n[run]\nduration = 0.1\ndt = 0.01\n'
    path = written(tmp_path, text)
    with pytest.raises(ValueError, match="--allow-code"):
        read_machine(path)
    machine = read_machine(path, code=True).experiment.system
    assert type(machine).__name__ == "Cart" and float(machine.mass) == 3.0
    path.write_text(text.replace("carts_of_mine:Cart", "carts_of_mine:Lorry"))
    with pytest.raises(ValueError, match="has no attribute 'Lorry'"):
        read_machine(path, code=True)


def test_lines_of_every_key():
    text = (
        "a = 1\n# b = 2\nc = '''\nd = 3\n'''\n[t] # x\n'k.y' = [\n 1, {u = 2},\n {u = 3}]\n"
        "[[r]]\nx = 1\n[[r]]\nx = { y = { z = 2 } }\n[r.s]\nw = 1979-05-27 07:32:00\n"
    )
    tomllib.loads(text)
    found = lines_of(text)
    assert "b" not in found and "d" not in found
    wanted = {"a": 1, "c": 3, "t": 6, "t.k.y": 7, "t.k.y[1].u": 8, "t.k.y[2].u": 9, "r[0].x": 11}
    wanted |= {"r[1].x.y.z": 13, "r[1].s": 14, "r[1].s.w": 15}
    assert {key: found.get(key) for key in wanted} == wanted


def test_units_are_declared():
    unit = lambda make: {name: x.unit for name, x in arguments(make).items()}
    rod = unit(SplineRod)
    assert (rod["length"], rod["young"], rod["density"], rod["gravity"]) == (
        "m",
        "Pa",
        "kg/m^3",
        "m/s^2",
    )
    bars = unit(type(Neck.default(3).bars))
    assert bars["top_mass"] == bars["diagonal_mass"] == "kg" and bars["width"] == "m"
    assert unit(mechanism.PointSpring)["stiffness"] == "N/m"


def test_kinds_are_those_of_the_library():
    joints = kinds((mechanism.Joint,))
    assert {"fixed", "revolute", "prismatic", "universal", "spherical", "floating"} <= set(joints)
    assert words("NearRigidQP") == "near_rigid_qp" and words("RK4") == "rk4"
    ends = arguments(SplineRod)["left"]
    assert set(kinds(ends.bases, "left")) == {"end", "free", "pinned", "clamped", "sliding"}


#: public modules that machine files do not name: results, wrappers of other machines, base classes
UNNAMED = "Dynamics Formulation Reduced Integrator Events Mobility Effort Element Instant".split()
UNNAMED += "JointMotion Route SelfStress Controller Reference TensionDistribution".split()
UNNAMED += "Guide Loop Shape Surface GeodesicSurface SingleStrut TensegrityManipulator".split()


@pytest.mark.parametrize(
    "package", "control formulations integrators systems systems.mechanism systems.rod".split()
)
def test_public_parts_are_registered(package):
    module = importlib.import_module(f"cordax.{package}")
    registered = {path for paths in KINDS.values() for path in paths.split()}
    public = {name: getattr(module, name) for name in module.__all__}
    parts = {n: x for n, x in public.items() if inspect.isclass(x) and issubclass(x, eqx.Module)}
    concrete = {n for n, x in parts.items() if not inspect.isabstract(x)}
    assert concrete and concrete - registered <= set(UNNAMED)


def test_a_kind_is_found_without_importing_the_others():
    """By name it is the one that the list of all kinds has."""
    makers = {make for base in (System, Controller) for make in kinds((base,)).values()}
    places = {("", (System,)), ("", (Controller,)), ("integrator", (Integrator,))}
    done: set = set()
    while makers - done:
        new, done = makers - done, set(makers)
        asked = [a for make in new for a in arguments(make).values() if a.bases]
        places |= {(a.name, a.bases) for a in asked}
        makers |= {make for a in asked for make in kinds(a.bases, a.name).values()}
    assert len(places) > 40
    for place, bases in places:
        everywhere = kinds(bases, place)
        for name, make in everywhere.items():
            assert find_kind(name, bases, place) == (name, make), (name, bases)
        assert set(own_kinds(bases)) == {x for x in everywhere.values() if x in bases}


def test_a_file_imports_its_own_machine_only():
    program = (
        "import sys; from cordax.io import find_machine; find_machine('neck')\n"
        "print([x for x in sys.modules if x.startswith('cordax.systems.')])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    packages = {x.split(".")[2] for x in ast.literal_eval(said.stdout)}
    assert packages == {"neck"}, said.stderr


def test_files_of_windows_are_read(tmp_path):
    """With the mark that its editors put in front, and their ends of lines."""
    path = tmp_path / "machine.toml"
    path.write_bytes(b"\xef\xbb\xbf" + PENDULUM.replace("\n", "\r\n").encode())
    assert read_machine(path).kind == "mechanism"


def test_wrapping_surfaces_in_a_file(tmp_path):
    """`wrap = { kind = ... }` makes a guide a surface, and pictures show it."""
    text = """
    kind = "mechanism"
    [[bodies]]
    name = "arm"
    joint = { kind = "revolute", axis = "y" }
    solids = { kind = "rod", length = 1.0, mass = 1.0, centre = [0.5, 0.0, 0.0] }
    start = "60 deg"
    [[elements]]
    kind = "cable_set"
    law = { kind = "elastic_cables", stiffness = 1e4 }
    ways = [[
        { kind = "eyelet", at = [-0.3, 0.0, 0.4] },
        { wrap = { kind = "cylinder", radius = "12 cm" }, axis = [0, 1, 0], width = "1 deg" },
        { kind = "eyelet", body = "arm", at = [0.3, 0.0, 0.1] },
        { wrap = { kind = "sphere", radius = 0.06 }, body = "arm", at = [0.5, 0, 0.1] },
        { kind = "eyelet", body = "arm", at = [0.8, 0.0, 0.0] },
    ]]
    rest = 1.35
    [run]
    duration = 0.2
    dt = 1e-3
    """
    path = tmp_path / "machine.toml"
    path.write_text(text)
    machine = read_machine(path).experiment.system
    guides = machine.elements[0].routes.guides
    assert [type(g).__name__ for g in guides] == ["Eyelet", "Wrap", "Eyelet", "Wrap", "Eyelet"]
    np.testing.assert_allclose(guides[1].wrap.radius, [0.12])
    np.testing.assert_allclose(guides[1].width, [np.deg2rad(1.0)])
    scene = jax.jit(lambda q: machine.geometry(0.0, q))(machine.default_state().q)
    assert scene.bodies["surface"].faces.shape[0] == 2
    line = np.asarray(scene.lines["cable"])[0]
    assert np.linalg.norm(line[:, [0, 2]], axis=1).min() > 0.12 - 1e-12  # outside of the cylinder
    path.write_text(text.replace("radius = 0.06", "radius = 0.25"))
    with pytest.raises(ValueError, match="attached to 'arm' inside of the surface"):
        read_machine(path)
