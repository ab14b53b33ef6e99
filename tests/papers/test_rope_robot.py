"""The study of the rope robot: verdicts that follow the numbers, tables, JSON, figures."""

import json

import equinox as eqx
import jax.numpy as jnp
import matplotlib
import numpy as np
import pytest

import cordax
from cordax.papers.rope_robot import figures
from cordax.papers.rope_robot.claims import judge
from cordax.papers.rope_robot.experiments import Study, motion
from cordax.papers.rope_robot.reduced import AXIAL, FAR, FULL, PAPER, START, Error, Reduced, error
from cordax.papers.rope_robot.setup import lift
from cordax.papers.rope_robot.tables import as_data, as_text
from cordax.papers.timing import Timing
from cordax.systems import two_rope_robot


@pytest.fixture(scope="module")
def short():
    """A real run of two segments, at rest."""
    robot = two_rope_robot(2)
    options = {"integrator": "linearly_implicit_euler", "formulation": cordax.Index3()}
    return cordax.simulate(
        robot, robot.rest(), dt=1e-3, duration=0.02, control=lift(), save_every=5, **options
    )


def acted(run):
    """The same robot over 15 s, with tensions and heights that tell the paper's story."""
    t = np.arange(0.0, 15.0 + 1e-9, 0.05)
    slack = (t > 3.88) & (t < 5.58)
    tension = np.where(slack, 0.1, 25.0)[:, None] * np.array([1.0, 0.9])
    tension[np.argmin(np.abs(t - 5.75))] = 201.9, 92.4
    pose = np.stack(
        [0.46 + 0 * t, -3.27 + 0.18 * np.exp(-((t - 5.35) ** 2)), -0.25 + 0 * t], axis=1
    )
    rows = lambda x: jnp.broadcast_to(x[0], (len(t), *x.shape[1:]))
    outputs = {name: rows(x) for name, x in run.outputs.items()}
    outputs |= {"tension": jnp.asarray(tension), "pose": jnp.asarray(pose)}
    parts = lambda r: (r.t, r.q, r.u, r.outputs)
    return eqx.tree_at(parts, run, (jnp.asarray(t), rows(run.q), rows(run.u), outputs))


def study_of(run, tpwl=2.0, axial=2.0, far=0.05) -> Study:
    off = dict.fromkeys((FULL, START, PAPER, FAR, AXIAL), Error(0.047, 0.3, 0.1))
    off |= {FAR: Error(far, 0.3, 0.1)}
    times = {FULL: Timing((1.0,) * 3), PAPER: Timing((tpwl,) * 3), AXIAL: Timing((axial,) * 3)}
    coordinates = dict.fromkeys(off, 27) | {AXIAL: 19}
    small = Reduced(6, 8.0, off, times, 0.161, coordinates)
    force = {FULL: Timing((2e-6,) * 3), PAPER: Timing((1.5e-6 * tpwl,) * 3)}
    return Study(run, motion(run), Timing((1.5,) * 3), small, force)


def test_what_happens_is_read_from_a_run(short):
    m = motion(acted(short))
    assert m.dimension == 2 * 11 + 4
    assert m.slack == pytest.approx((3.9, 5.6))
    assert m.snap == pytest.approx((5.75, 201.9, 92.4))
    assert m.top == pytest.approx((-3.09, 5.35))
    assert m.after == pytest.approx((22.5, 25.0))
    at_rest = motion(short)
    assert at_rest.slack[0] == at_rest.slack[1] == pytest.approx(0.02)
    assert at_rest.top[0] == pytest.approx(-3.272, abs=2e-3)


def test_errors_are_relative_to_coordinates_and_to_motion():
    t = np.linspace(0.0, 2.0, 3)
    reference = np.array([[3.0, 3.0, 3.0, 3.0], [7.0, 6.0, 3.0, 3.0], [7.0, 6.0, 3.0, 3.0]])
    found = error(t, reference + np.array([0.0, 0.0, 0.0, 0.5]), reference)
    off = np.sqrt(0.5**2 * 2.0)
    # trapezoids: half of the first interval, all of the second
    assert found.platform == pytest.approx(off / np.sqrt(1.5 * 3.0**2))
    assert found.motion == pytest.approx(off / np.sqrt(1.5 * (4.0**2 + 3.0**2)))
    assert found.relative == pytest.approx(off / np.sqrt(0.5 * 36.0 + 1.5 * 103.0))


def test_verdicts_follow_the_numbers(short):
    run = acted(short)
    verdicts = [c.verdict for c in judge(study_of(run))]
    no = "does not reproduce"
    assert verdicts[0] == no  # 26 equations with two segments
    assert verdicts[1] == "only with these choices"
    assert verdicts[3:] == ["in part", no, no, no, "cannot be judged", no]
    other = [c.verdict for c in judge(study_of(run, tpwl=0.5, axial=0.5, far=0.01))]
    assert other[4:7] == ["reproduces"] * 3 and other[8] == "reproduces"
    assert judge(study_of(short))[1].verdict == no


def test_tables_and_data(short):
    study = study_of(acted(short))
    claims = judge(study)
    text = as_text(study, claims)
    for expected in ("16.10", "4.70", "39.1", "20", "201.9 and 92.4 N"):
        assert expected in text
    data = json.loads(json.dumps(as_data(study, claims), allow_nan=False))
    assert data["reduced"]["models"][AXIAL]["coordinates"] == 19
    assert data["reduced"]["models"][START]["rounds_s"] is None
    assert data["motion"]["slack"] == pytest.approx([3.9, 5.6])
    assert [c["verdict"] for c in data["claims"]] == [c.verdict for c in claims]


def test_figures_are_drawn(short):
    matplotlib.use("Agg")
    study = study_of(acted(short))
    for draw in (figures.motion, figures.models):
        figure = draw(study)
        figure.canvas.draw()
        assert figure.axes
        matplotlib.pyplot.close(figure)
    part = figures._until(study.run, 2.0)
    assert len(part.t) == len(part.q) == len(part.outputs["tension"]) == 41
