"""Robots from files: what a file says is what is built, and errors that say where."""

import re

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import Pulses
from cordax.io import example_path, read_machine
from cordax.systems import (
    CableRobot,
    CarriageExit,
    ElasticCables,
    NaturalBody,
    ProgrammedLengths,
    PulleyExit,
    ServoWinches,
    SwivelPulleyExit,
    Winches,
    box_inertia,
)

EXAMPLES = ("suspended", "pick_and_place", "overturning", "eight_cables")
BASE = """
[platform]
mass = 6.24
box = [0.2, 0.4, 0.01]
position = [0.0, 0.25, 0.37]
attachments = [[-0.1, -0.2, 0.0], [-0.1, 0.2, 0.0], [0.1, 0.2, 0.0], [0.1, -0.2, 0.0]]

[exits]
model = "pulley"
points = [[-3.0, -2.0, 2.0], [-3.0, 2.5, 2.0], [3.0, 2.5, 2.0], [3.0, -2.0, 2.0]]
radius = 0.05

[drives]
kind = "programmed"

[run]
duration = 0.05
"""


def written(folder, text=BASE, **changes):
    """The base file with lines replaced: key of a line to its new text."""
    for key, line in changes.items():
        text, count = re.subn(rf"(?m)^{key} = .*$", line, text)
        assert count == 1, key
    path = folder / "robot.toml"
    path.write_text(text.replace("model = ", "kind = "))  # `kind` is a key of [drives] as well
    return path


@pytest.fixture(scope="module")
def files():
    return {name: read_machine(example_path(name)).experiment for name in EXAMPLES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_start_on_their_constraints(files, name):
    file = files[name]
    phi = eqx.filter_jit(lambda robot, q: robot.constraint(0.0, q))(file.system, file.start.q)
    assert np.max(np.abs(phi)) < 1e-12
    assert np.max(np.abs(file.start.v)) == 0.0
    assert file.duration / file.dt == pytest.approx(round(file.duration / file.dt))


def test_suspended_plate_hangs_at_rest(files):
    robot = files["suspended"].system
    np.testing.assert_allclose(robot.drives.lengths.value, 3.962870065436258, rtol=1e-14)
    np.testing.assert_allclose(robot.static_tensions(), 35.283, atol=5e-4)
    control = files["suspended"].control
    assert isinstance(control, Pulses) and control.period == 0.01
    np.testing.assert_array_equal(control.inputs, [[50, 100, 0, 0, 0, 0]])


def test_triangle_starts_in_equilibrium_not_at_the_printed_pose(files):
    file = files["overturning"]
    robot, weights = file.system, file.system.platform.weights(jnp.zeros(3))
    origin = weights @ file.start.q[:12].reshape(4, 3)
    np.testing.assert_allclose(origin, [0.404631, 1.0, 0.601530], atol=5e-7)
    np.testing.assert_allclose(robot.static_tensions(), [8.172, 8.172, 7.544], atol=5e-4)
    last = robot.exits.points.position(10.0)[2]
    np.testing.assert_allclose(last, [-0.68, 1.0, 1.3], atol=1e-12)
    assert type(file.integrator).__name__ == "Unilateral"


def test_eight_cables_are_held_with_the_mean_tension(files):
    drives = files["eight_cables"].system.drives
    assert isinstance(drives, ServoWinches)
    tension = -drives.feedforward / drives.radius
    W, wrench = files["eight_cables"].system.structure_matrix(), [0, 0, 20 * 9.81, 0, 0, 0]
    np.testing.assert_allclose(W @ tension, wrench, atol=1e-9)
    # closest to 150 N: what is added to it lies in the range of W^T
    along = np.linalg.lstsq(np.asarray(W).T, np.asarray(tension) - 150.0, rcond=None)[0]
    np.testing.assert_allclose(W.T @ along, tension - 150.0, atol=1e-9)


def test_cables_that_would_push_to_hold_are_refused(tmp_path):
    text = example_path("eight_cables").read_text()
    assert "mean_tension = 150.0" in text
    path = written(tmp_path, text.replace("mean_tension = 150.0", "mean_tension = 5.0"))
    words = r"mean_tension: got 5 N, .* tensions down to -.*expected cables that hold it by pulling"
    with pytest.raises(ValueError, match=words):
        read_machine(path)


def test_pick_follows_its_path_and_switches(files):
    file = files["pick_and_place"]
    assert file.switches == ((11.0, "pick"),)
    (first, at), (second, end) = file.phases
    assert first is file.system and (at, end) == (11.0, 20.0) and callable(second)
    drives = file.system.drives
    low = file.system.lengths([0.0, 0.0, 0.105])
    angle = drives.reference.position(9.5)
    np.testing.assert_allclose(drives.zero_length + drives.radius * angle, low, rtol=1e-12)
    assert file.replace(duration=10.0).phases == [(file.system, 10.0)]


def test_a_file_runs_as_the_same_robot_made_by_hand(tmp_path):
    pulse = "\n[[pulses]]\ntimes = [0.0, 0.02]\nforce = [50.0, 100.0, 0.0]\n"
    run = cordax.simulate(read_machine(written(tmp_path, BASE + pulse)).experiment)
    body = NaturalBody(6.24, box_inertia(6.24, [0.2, 0.4, 0.01]))
    corners = np.array([[-0.1, -0.2, 0], [-0.1, 0.2, 0], [0.1, 0.2, 0], [0.1, -0.2, 0]])
    exits = PulleyExit([[-3, -2, 2], [-3, 2.5, 2], [3, 2.5, 2], [3, -2, 2.0]], 0.05)
    robot = CableRobot(
        body, corners, exits, ProgrammedLengths(np.ones(4)), position=[0, 0.25, 0.37]
    )
    robot = CableRobot(
        body, corners, exits, ProgrammedLengths(robot.lengths()), position=[0, 0.25, 0.37]
    )
    control = Pulses([[0.0, 0.02]], [[50, 100, 0, 0, 0, 0]], period=0.01, base=np.zeros(6))
    ours = cordax.simulate(robot, dt=0.01, duration=0.05, control=control)
    np.testing.assert_array_equal(run.q, ours.q)
    assert float(jnp.abs(run.v[-1]).max()) > 0.1


def test_other_parts(tmp_path):
    """Swivel pulleys, winches, elastic cables, turned platforms, payloads let go."""
    text = BASE.replace("[drives]", "pulley_inertia = 5e-3\ndamping = 0.01\n\n[drives]")
    text = text.replace(
        'kind = "programmed"', 'kind = "winches"\nradius = 0.05\nrotor_inertia = 0.01'
    )
    text += """
formulation = { kind = "penalty", alpha = 1e7 }

[cables]
kind = "elastic"
stiffness = 1e5
width = 1e-4

[payload]
mass = 1.0
inertia = [[0.1, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 0.1]]
position = [0.0, 0.0, 0.0]
pick = 0.01
drop = 0.03
"""
    path = written(tmp_path, text, model='model = "swivel"')
    path.write_text(path.read_text().replace("[exits]", "euler = [0.0, 0.0, 0.5]\n\n[exits]"))
    file = read_machine(path).experiment
    robot = file.system
    assert isinstance(robot.exits, SwivelPulleyExit) and isinstance(robot.drives, Winches)
    assert isinstance(robot.cables, ElasticCables) and float(robot.cables.width) == 1e-4
    c, s = np.cos(0.5), np.sin(0.5)
    np.testing.assert_allclose(robot.rotation, [[c, -s, 0], [s, c, 0], [0, 0, 1]], atol=1e-15)
    assert type(file.formulation).__name__ == "Penalty" and float(file.formulation.alpha) == 1e7
    assert file.switches == ((0.01, "pick"), (0.03, "drop"))
    assert file.start.q.shape == (robot.n_q,) and robot.n_q == 24 + 4 + 4
    # torques hold the weight as well as four cables can
    np.testing.assert_allclose(file.inputs[:4], -0.05 * robot.static_tensions(), rtol=1e-12)


def test_carriages(tmp_path):
    path = written(tmp_path, model='model = "carriage"', radius="mass = 2.0\nstiffness = 1e4")
    robot = read_machine(path).experiment.system
    assert isinstance(robot.exits, CarriageExit) and robot.n_q == 12 + 12
    assert robot.n_u == 12 + 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mass": ""}, "platform.mass: got nothing, expected a number"),
        ({"mass": "mass = -1.0"}, "platform.mass: got -1.0, expected finite values > 0"),
        ({"mass": "mass = true"}, "platform.mass: got True, expected a number"),
        (
            {"mass": "mass = 6.24\nmasss = 1"},
            "platform.masss: got an unknown key (= 1), expected one",
        ),
        ({"box": "box = [0.2, 0.4]"}, "platform.box: got [0.2, 0.4], expected a list of 3 numbers"),
        ({"box": "box = [0.2, 0.4, 0.0]"}, "platform.box: got"),
        ({"box": ""}, "platform.box: got neither box nor inertia, expected either"),
        ({"position": "position = [0.0, nan, 0.0]"}, "platform.position: got"),
        ({"position": "position = 'here'"}, "platform.position: got here, expected a list of 3"),
        ({"attachments": "attachments = [[0.1, 0.2]]"}, "platform.attachments: got [[0.1, 0.2]]"),
        (
            {"attachments": "attachments = [[0.1, 0.2, 0.0]]"},
            "platform.attachments and exits.points: got 1 and 4 rows, expected one of each",
        ),
        (
            {"mass": "masss = 12"},
            "platform.masss: got an unknown key (= 12), expected mass: a number",
        ),
        (
            {"mass": "mass = 6.24\nmasss = 12"},
            "platform.masss: got an unknown key (= 12), expected",
        ),
        (
            {"position": "position = [[true, 1.0, 2.0]]"},
            "platform.position: got [[True, 1.0, 2.0]], expected a list of 3 numbers",
        ),
        ({"mass": "mass = 1" + 400 * "0"}, "platform.mass: got 1000"),
        (
            {"model": 'model = "eyelet"'},
            "exits.kind: got 'eyelet', expected one of carriage, point, pulley, swivel_pul",
        ),
        (
            {"model": 'model = "point"'},
            "exits.radius: got an unknown key (= 0.05), expected one of",
        ),
        ({"radius": ""}, "exits.radius: got nothing, expected a number or a list of numbers"),
        ({"radius": "radius = 0.0"}, "exits.radius: got 0.0, expected finite values > 0"),
        ({"kind": 'kind = "magic"'}, "drives.kind: got 'magic', expected one of 'programmed'"),
        ({"kind": 'kind = "servo"'}, "drives.radius: got nothing"),
        ({"kind": 'kind = "programmed"\nlengths = [1.0]'}, "drives.lengths: got [1.0], expected"),
        ({"duration": "duration = -1.0"}, "run.duration: got -1.0, expected a time > 0 s"),
        ({"duration": ""}, "run.duration: got nothing, expected a number"),
        ({"duration": 'duration = 1.0\nintegrator = "rk5"'}, "run.integrator: got 'rk5'"),
        ({"duration": "duration = 1.0\nsave_every = 1.5"}, "run.save_every: got 1.5"),
        (
            {"duration": 'duration = 1.0\nformulation = { kind = "penalty", beta = 1.0 }'},
            "run.formulation.beta: got an unknown key (= 1.0), expected one of kind, alpha",
        ),
        (
            {"duration": "duration = 1.0\n\n[[pulses]]\ntimes = [2.0, 1.0]"},
            "pulses[0].times: got [2.0, 1.0], expected begin and end",
        ),
        (
            {"duration": 'duration = 1.0\n\n[cables]\nkind = "elastic"\nslack = "unilateral"'},
            "cables.slack: got unilateral, expected 'report'",
        ),
        ({"duration": "duration = 1.0\n\n[motor]\npower = 1"}, "motor: got an unknown key"),
    ],
)
def test_errors_name_file_key_value_and_expectation(tmp_path, changes, message):
    path = written(tmp_path, **changes)
    with pytest.raises(ValueError) as error:
        read_machine(path)
    at, _, rest = str(error.value).partition(", ")
    assert rest.startswith(message)
    file, _, line = at.rpartition(":")
    assert file == str(path) or at == str(path)
    key = re.match(r"[\w.\[\]]+", message.split(" and ")[0])[0].split(".")[-1]  # pyright: ignore
    if "got nothing" not in message and line.isdigit():  # else that of the table
        assert key in path.read_text().splitlines()[int(line) - 1] or "neither" in message


def test_payload_times_in_order(tmp_path):
    load = "\n[payload]\nmass = 1.0\nbox = [0.1, 0.1, 0.1]\nposition = [0.0, 0.0, 0.0]\n"
    for times, given in (("", "no times"), ("pick = 2.0\nplace = 1.0", "place = 1, pick = 2")):
        path = written(tmp_path, BASE + load + times)
        with pytest.raises(
            ValueError, match=re.escape(f"payload.pick: got {given}, expected times")
        ):
            read_machine(path)


def test_what_is_no_robot(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("[platform\n")
    with pytest.raises(ValueError, match=r"broken.toml: got text that is not TOML"):
        read_machine(path)
    path.write_bytes(b"mass = '\xff'")
    with pytest.raises(ValueError, match=r"broken.toml: got bytes that are no text"):
        read_machine(path)
    path.write_text("x = " + 2000 * "[" + 2000 * "]")
    with pytest.raises(ValueError, match=r"broken.toml: got lists nested too deep"):
        read_machine(path)
    path.write_text("")
    with pytest.raises(ValueError, match=r"broken.toml, kind: got nothing, expected one of cable"):
        read_machine(path)
    path.write_text("kind = 'cable_robot'")
    with pytest.raises(ValueError, match=r"broken.toml, platform: got nothing, expected a table"):
        read_machine(path)
    with pytest.raises(FileNotFoundError):
        read_machine(tmp_path / "missing.toml")
    with pytest.raises(
        ValueError, match=r"example: got 'crane', expected one of .*; the nearest is tower"
    ):
        example_path("crane")


def test_texts_with_units_are_numbers(tmp_path):
    said = {
        "mass": 'mass = "6240 g"',
        "box": 'box = ["20 cm", 0.4, "10 mm"]',
        "radius": 'radius = "5 cm"',
        "duration": 'duration = "50 ms"',
    }
    plain = read_machine(written(tmp_path)).experiment
    told = read_machine(written(tmp_path, **said)).experiment
    np.testing.assert_allclose(told.system.platform.mass, plain.system.platform.mass)
    np.testing.assert_allclose(told.system.platform.inertia, plain.system.platform.inertia)
    np.testing.assert_allclose(told.system.exits.radius, plain.system.exits.radius)
    assert told.duration == pytest.approx(0.05)
    for key, line, unit in (
        ("radius", 'radius = "5 kg"', "m"),
        ("duration", 'duration = "3 m"', "s"),
        ("mass", 'mass = "6 kN"', "kg"),
    ):
        with pytest.raises(
            ValueError, match=rf"robot.toml:\d+, \w+\.{key}: .* a quantity in {unit}"
        ):
            read_machine(written(tmp_path, **{key: line}))
    with pytest.raises(
        ValueError, match=r"exits.radius: got 'thick', expected a number or an array of numbers"
    ):
        read_machine(written(tmp_path, radius='radius = "thick"'))
