"""Runs in a real browser, without a network: played, scrubbed and changed by the mouse."""

import itertools
import re
import signal
import subprocess
import sys
import time
import urllib.request

import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.mechanics import Bodies, Scene
from cordax.systems import Pendulum
from cordax.systems import mechanism as mech
from helpers.browser import BROWSER, opened

viser = pytest.importorskip("viser", reason="needs the `view` extra")
from cordax.viewer import view  # noqa: E402
from cordax.viewer.sliders import sliders  # noqa: E402
from cordax.viewer.stage import camera_distance  # noqa: E402

needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")


@pytest.mark.parametrize("size", [(0.02, 0.02, 1.0), (3.0, 0.1, 0.1), (2.0, 2.0, 2.0)])
def test_first_camera_fits_the_machine(size):
    """All corners of the box are inside a view of 40 degrees, and one is near its edge."""
    towards = np.array([0.47, -0.88, 0.45]) / np.linalg.norm([0.47, -0.88, 0.45])
    position = camera_distance(np.array(size), towards) * towards
    corners = 0.5 * np.array(size) * np.array(list(itertools.product([-1, 1], repeat=3)))
    right = np.array([0.88, 0.47, 0.0]) / np.hypot(0.88, 0.47)
    depth = (position - corners) @ towards
    offset = np.abs(np.stack([corners @ right, corners @ np.cross(towards, right)]))
    share = (offset / depth / np.tan(np.radians(20.0))).max()
    assert 0.85 < share < 1.0


class Swing(Pendulum):
    """A seat on a cable, in space."""

    def geometry(self, t, q):
        s, c = jnp.sin(q[0]), jnp.cos(q[0])
        end = self.length * jnp.stack([s, 0.0 * s, -c])
        turn = jnp.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])
        seat = 0.2 * jnp.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
        cable = jnp.stack([jnp.zeros(3), end])[None]
        body = Bodies(end[None], turn[None], seat[None, None])
        return Scene({"cable": cable}, {"ground": jnp.zeros((1, 3))}, {"body": body})

    def outputs(self, t, q, v, u, multipliers):
        return {"tension": 9.81 * jnp.cos(q) - 9.0}


@pytest.fixture(scope="module")
def swing():
    start = lambda machine: cordax.State([1.0], [0.0])
    return cordax.Experiment(Swing(), start, duration=2.0, dt=0.02, integrator="rk4")


@pytest.fixture
def viewer(swing):
    made = view(swing, sliders={"length": (0.5, 2.0)}, port=0)
    yield made
    made.stop()


def test_what_is_shown_is_the_motion(viewer):
    viewer._seek(1.2)
    run = viewer.run
    i = int(np.argmin(np.abs(np.asarray(run.t) - 1.2)))
    (seat,) = viewer.stage._bodies["body"]
    angle = float(run["angle"][i])
    place = np.array([np.sin(angle), 0.0, -np.cos(angle)])
    np.testing.assert_allclose(seat.position, place, atol=1e-6)
    # about -y by the angle
    np.testing.assert_allclose(
        np.abs(seat.wxyz), [np.cos(angle / 2), 0, abs(np.sin(angle / 2)), 0], atol=1e-6
    )
    np.testing.assert_allclose(viewer.stage._lines["cable"].points[-1, 1], place, atol=1e-6)
    dots = viewer.curves._charts[0].data[-1]
    np.testing.assert_allclose(dots[np.isfinite(dots)], [angle])


def test_slack_cables_are_grey_and_dashed(viewer):
    run = viewer.stage.run
    slack = int(np.argmin(np.abs(run.tension["cable"][:, 0])))
    run.tension["cable"][slack] = 0.0
    points, colours = viewer.stage._segments("cable", slack)
    length = np.linalg.norm(points[:, 1] - points[:, 0], axis=1)
    assert np.all(length[::2] > 0) and np.all(length[1::2] == 0)
    assert np.ptp(colours, axis=-1).max() == 0
    taut = int(np.argmax(run.tension["cable"][:, 0]))
    points, colours = viewer.stage._segments("cable", taut)
    assert np.all(np.linalg.norm(points[:, 1] - points[:, 0], axis=1) > 0)
    assert np.ptp(colours, axis=-1).max() > 0


def test_a_number_that_cannot_be_is_told(viewer):
    viewer._experiment = viewer._experiment.replace(duration=0.03)  # one and a half steps
    viewer._changed.set()
    end = time.monotonic() + 200
    while "not possible" not in viewer._said.content and time.monotonic() < end:
        time.sleep(0.02)
    assert "not possible:** duration: got 0.03" in viewer._said.content


def test_bad_input(swing):
    run = cordax.simulate(swing)
    with pytest.raises(ValueError, match=r"sliders: .* none with a trajectory"):
        view(run, sliders=["length"], port=0)
    with pytest.raises(ValueError, match=r"what: got int, expected a Trajectory, an Experiment"):
        view(3, port=0)
    with pytest.raises(ValueError, match="low < high"):
        view(swing, sliders={"length": (2.0, 1.0)}, port=0)
    with pytest.raises(ValueError, match="lenght"):
        view(swing, sliders=["lenght"], port=0)


MIDDLE = """(() => {
  const box = %s.getBoundingClientRect();
  return [box.x, box.y, box.width, box.height];
})()"""


@needs_browser
def test_a_browser_plays_it_and_moves_a_slider(viewer, tmp_path):
    """The stage is left of the controls: its picture is what changes."""
    with opened(viewer.url, tmp_path) as page:
        stage = {"x": 320, "y": 0, "width": 300, "height": 480}
        page.wait_for("document.body?.innerText.includes('tension [N]')")
        page.wait_for("document.querySelector('canvas') !== null")
        settled = _settled(page, stage)
        # the first that can be seen: "play"
        boxes = "[...document.querySelectorAll('input[type=checkbox]')]"
        box = page.evaluate(MIDDLE % f"{boxes}.find((x) => x.getBoundingClientRect().width > 0)")
        page.press(box[0] + box[2] / 2, box[1] + box[3] / 2)
        end = time.monotonic() + 200
        while viewer._frame == 0 and time.monotonic() < end:
            time.sleep(0.02)
        page.press(box[0] + box[2] / 2, box[1] + box[3] / 2)
        while viewer._playing.value and time.monotonic() < end:
            time.sleep(0.02)
        assert viewer._frame > 0 and not viewer._playing.value
        played = _settled(page, stage)
        assert played != settled
        # the last slider is the length of the pendulum
        handles = "[...document.querySelectorAll('[role=slider]')]"
        x, y, w, h = page.evaluate(MIDDLE % f"{handles}.at(-1)")
        before = float(viewer.run.system.length)
        page.press(x + w / 2, y + h / 2, to=(x + w / 2 + 60, y + h / 2))
        while float(viewer.run.system.length) <= before + 0.2 and time.monotonic() < end:
            time.sleep(0.02)
        assert float(viewer.run.system.length) > before + 0.2
        assert _settled(page, stage) != played
        assert page.errors == []
        strangers = [x for x in page.asked if not re.match(r"data:|blob:|http://localhost:", x)]
        assert strangers == []


def _settled(page, part) -> bytes:
    """The picture once it no longer changes."""
    before, end = page.picture(**part), time.monotonic() + 200
    while time.monotonic() < end:
        time.sleep(0.4)
        now = page.picture(**part)
        if now == before:
            return now
        before = now
    raise AssertionError("the picture never stops changing")


#: a shell that starts the tests in the background may have told its children to ignore Ctrl-C
CORDAX = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from cordax.cli import main; sys.exit(main())"
)


def test_command(tmp_path, swing):
    """A saved run of a machine of cordax, as a process; it ends well at Ctrl-C."""
    path = cordax.simulate(Pendulum(), dt=0.02, duration=0.2, integrator="rk4").save(
        tmp_path / "run.npz"
    )
    command = [sys.executable, "-c", CORDAX, "view", str(path), "--port", "0"]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen([*command, "--no-browser"], **options) as process:
        line = process.stdout.readline()
        address = re.search(r"http://localhost:\d+", line)
        assert address, line + process.stdout.read()
        with urllib.request.urlopen(address[0], timeout=30) as page:
            assert b"<html" in page.read()
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(30) == 0
        finally:
            process.kill()


def test_parts_of_a_mechanism_have_sliders():
    arm = mech.Body("arm", mech.Revolute("y"), solids=mech.rod(1.0, mass=2.0, centre=(0.5, 0, 0)))
    spring = mech.JointSprings(["arm"], stiffness=3.0, damping=0.1)
    machine = mech.Mechanism(bodies=[arm], elements=[spring])
    found = {s.name: s.value for s in sliders(cordax.Experiment(machine, duration=0.1))}
    assert found["elements[0].stiffness"] == 3.0 and found["elements[0].damping"] == 0.1
    assert [value for name, value in found.items() if name.endswith("mass")] == [2.0]
