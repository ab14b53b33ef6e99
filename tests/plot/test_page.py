"""A run as one web page, looked at in a browser where there is one."""

import base64
import json
import re
import subprocess

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.mechanics import Bodies, Scene
from cordax.systems import Pendulum
from helpers.browser import BROWSER


class Swing(Pendulum):
    """A seat on a cable, in space."""

    def geometry(self, t, q):
        s, c = jnp.sin(q[0]), jnp.cos(q[0])
        end = jnp.stack([s, 0.0 * s, -c])
        turn = jnp.array([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])
        seat = 0.1 * jnp.array([[-1.0, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]])
        return Scene(
            {"cable": jnp.stack([jnp.zeros(3), end])[None]},
            {"ground": jnp.zeros((1, 3))},
            {"body": Bodies(end[None], turn[None], seat[None, None])},
        )

    def outputs(self, t, q, v, u, multipliers):
        return {"tension": 9.81 * jnp.cos(q) - 9.0}


@pytest.fixture(scope="module")
def run():
    return cordax.simulate(Swing(), dt=0.02, duration=2.0, integrator="rk4")


@pytest.fixture(scope="module")
def page(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "swing.html"
    assert run.to_html(path, title="A <swing> </script>") == path
    return path


def data_of(page) -> dict:
    return json.loads(re.search(r'application/json">(.*?)</script>', page.read_text(), re.S)[1])


def unpacked(x) -> np.ndarray:
    return np.frombuffer(base64.b64decode(x["base64"]), "<f4").reshape(x["shape"])


def test_the_page_holds_the_motion(page, run):
    data = data_of(page)
    assert data["title"] == "A <swing> </script>"
    np.testing.assert_allclose(unpacked(data["t"]), run.t, atol=1e-6)
    (body,) = data["bodies"]
    end = np.stack([np.sin(run.q[:, 0]), 0 * run.q[:, 0], -np.cos(run.q[:, 0])], axis=1)
    np.testing.assert_allclose(unpacked(body["position"])[:, 0], end, atol=1e-6)
    np.testing.assert_allclose(unpacked(data["trace"])[:, 0], end, atol=1e-6)
    panels = {p["label"]: p["curves"] for p in data["panels"]}
    assert list(panels) == ["angle [rad]", "tension [N]"]
    np.testing.assert_allclose(
        unpacked(panels["tension [N]"][0]["values"]), run["tension"][:, 0], atol=1e-5
    )
    assert "http" not in page.read_text().replace("http-equiv", "")  # nothing from elsewhere


def test_what_has_no_number_is_no_zero(run, tmp_path):
    """A quantity that the machine does not have in its first phase."""
    missing = run["tension"].at[:10].set(jnp.nan)
    part = eqx.tree_at(lambda run: run.outputs["tension"], run, missing)
    data = data_of(part.to_html(tmp_path / "part.html", names=["tension"]))
    values = unpacked(data["panels"][0]["curves"][0]["values"])
    np.testing.assert_array_equal(np.isnan(values), np.arange(101) < 10)


ACTIONS = """
<script>
// without a screen there may be no frames to wait for
window.requestAnimationFrame = (f) => setTimeout(() => f(performance.now()), 16);
const seen = {}, look = (id) => $(id).toDataURL();
seen.start = look("scene") + $("clock").textContent;
$("time").value = 60; $("time").dispatchEvent(new Event("input"));
seen.scrubbed = look("scene"); seen.clock = $("clock").textContent;
eye.azimuth += 1; draw(); seen.turned = look("scene");
$("reset").click(); seen.back = look("scene");
play(true);
const waiting = setInterval(() => {
  if (frame < 63) return;
  clearInterval(waiting);
  play(false);
  seen.played = look("scene");
  const result = { scrub: seen.start !== seen.scrubbed, turn: seen.turned !== seen.scrubbed,
    back: seen.back === seen.scrubbed, play: seen.played !== seen.back, clock: seen.clock, frame };
  const note = document.createElement("pre");
  note.id = "seen"; note.textContent = JSON.stringify(result);
  document.body.append(note);
}, 20);
</script>
"""


@pytest.mark.skipif(BROWSER is None, reason="no chromium on this machine")
def test_a_browser_plays_it(page, tmp_path):
    acted = tmp_path / "acted.html"
    acted.write_text(page.read_text().replace("</body>", ACTIONS + "</body>"))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=30000"]
    folder = f"--user-data-dir={tmp_path / 'profile'}"
    shown = subprocess.run(
        [str(BROWSER), *options, folder, "--dump-dom", acted.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    seen = json.loads(re.search(r'<pre id="seen">(.*?)</pre>', shown)[1])
    assert seen["clock"] == "t = 1.200 s"
    assert seen["scrub"] and seen["turn"] and seen["back"] and seen["play"]
    assert seen["frame"] > 60


def test_tables(run, tmp_path):
    table = run.to_pandas()
    assert list(table.columns) == ["angle", "d_angle", "torque", "tension_1"]
    np.testing.assert_array_equal(table["angle"], run["angle"])
    assert table.index.name == "time"
    path = run.to_csv(tmp_path / "run.csv", ["angle"])
    np.testing.assert_array_equal(cordax.io.read_csv(path).values["angle"], run["angle"])


def test_figures(run, tmp_path):
    assert [a.get_ylabel() for a in run.plot().axes] == ["angle [rad]", "tension [N]"]
    assert run.animate(tmp_path / "run.html").stat().st_size > 10_000
    with pytest.raises(ValueError, match="path suffix"):
        run.to_html(tmp_path / "run.pdf")


def test_a_batch_is_not_one_run(run):
    batch = jax.tree.map(lambda x: jnp.stack([x, x]), run)
    for what in (batch.plot, batch.to_pandas, lambda: batch.to_html("x.html")):
        with pytest.raises(ValueError, match="batch of 2"):
            what()
