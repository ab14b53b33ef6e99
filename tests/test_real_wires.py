"""`examples/real/wires.py` on runs made here, in the format of the data set."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

#: of markers along the arc [rad]
ANGLES = np.array([-1.0, -0.94, *np.linspace(-0.8, 0.8, 8), 0.94, 1.0])
EXAMPLES = Path(__file__).parents[1] / "examples" / "real"


@pytest.fixture(scope="module")
def wires():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import wires

        yield wires
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def runs():
    """Two runs of 30 frames: an arc of radius 0.5 m in a vertical plane, carried and turned about
    the vertical through its left end."""
    a = ANGLES
    arc = 0.5 * np.stack([np.sin(a), 0.0 * a, -np.cos(a)], axis=1)
    t = 0.01 * np.arange(30)
    angle, carried = 0.5 * t, 0.2 * t[:, None] * np.array([1.0, 0.5, 0.0])
    c, s, zero, one = np.cos(angle), np.sin(angle), 0.0 * angle, 1.0 + 0.0 * angle
    R = np.stack([c, -s, zero, s, c, zero, zero, zero, one], axis=1).reshape(-1, 3, 3)
    moved = np.einsum("kij,mj->kmi", R, arc - arc[0]) + arc[0] + carried[:, None]
    return np.stack([moved, moved + np.array([0.0, 0.0, 1.0])])


def test_markers_sit_where_the_arc_has_them(wires, runs):
    places = wires.stations(runs)
    # cubic splines through markers 0.1 m apart on an arc of 0.5 m: less than 1e-3 of a segment
    np.testing.assert_allclose(places, 0.5 * (ANGLES - ANGLES[0]), atol=3e-4)


def test_rigid_motion_is_carried_rigidly(wires, runs):
    np.testing.assert_allclose(wires.rigid(runs[0]), runs[0, :, 2:-2], atol=1e-12)


def test_start_and_inputs(wires, runs):
    import wires_model

    data = wires_model.prepared(runs[0], wires.stations(runs))
    points, along, across = np.moveaxis(data["held"], 1, 0)
    np.testing.assert_allclose(points[0], runs[0, 0, [1, -2]], atol=1e-9)
    np.testing.assert_allclose(np.sum(along * across, axis=-1), 0.0, atol=1e-9)
    # the tangent is that between two markers 0.03 rad apart, half of that off the arc's
    np.testing.assert_allclose(np.linalg.norm(data["nodes"], axis=1), 0.5, atol=1e-3)
    speed = 0.2 * np.array([1.0, 0.5]) + 0.5 * np.stack(
        [-data["nodes"][1:-1, 1], data["nodes"][1:-1, 0] - runs[0, 0, 0, 0]], axis=1
    )
    np.testing.assert_allclose(data["speed"][:, :2], speed, atol=3e-3)


def test_segments_begin_as_long_as_they_are(wires, runs):
    """And keep it: their ends move along with them."""
    import wires_model

    data = wires_model.prepared(runs[0], wires.stations(runs))
    spacing = 0.98 * data["length"] / wires_model.SEGMENTS
    nodes, speed = map(np.asarray, wires_model.started(data, spacing))
    edges = np.diff(nodes, axis=0)
    np.testing.assert_allclose(np.linalg.norm(edges, axis=1), spacing, rtol=1e-9)
    assert np.abs(nodes - data["nodes"]).max() < 0.02
    rates = np.diff(np.concatenate([data["ends"][:1], speed, data["ends"][1:]]), axis=0)
    np.testing.assert_allclose(np.sum(edges * rates, axis=1), 0.0, atol=1e-12)
    np.testing.assert_array_equal(nodes[[0, -1]], data["nodes"][[0, -1]])


def test_figure(wires, runs, tmp_path):
    from wires_figure import draw

    moved = wires.rigid(runs[0]) + np.array([0.0, 3e-3, 4e-3])
    off = wires.distances(moved, runs[0])
    np.testing.assert_allclose(off, 5.0, atol=1e-9)
    one = {"model": off, "quasi": 2.0 * off, "rigid": 3.0 * off, "label": "test:0"}
    draw({"DLO1": [one | {"run": runs[0], "found": moved}]}, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_numbers_are_shipped_for_every_wire(wires):
    import wires_model

    known = json.loads(wires.SHIPPED.read_text())
    assert sorted(known) == [f"DLO{i}" for i in range(1, 6)]
    for wire in known.values():
        assert tuple(wire["numbers"]) == wires_model.NAMES
        assert len(wire["numbers"]) <= 6
        assert np.all(np.diff(wire["places"]) > 0.0)


def test_without_data_it_says_where_they_are(wires, tmp_path):
    with pytest.raises(SystemExit, match="roahmlab/DEFORM"):
        wires.main([str(tmp_path), "--predict"])
    with pytest.raises(SystemExit, match="no file or folder"):
        wires.main([str(tmp_path / "nowhere"), "--predict"])


def test_bad_recordings_are_named(wires, runs, tmp_path):
    said = lambda *words: wires.main([str(tmp_path), *words])
    np.savez(tmp_path / "DLO1.npz", test=runs)
    with pytest.raises(SystemExit, match=r"no DLO7.npz in .*, only DLO1"):
        said("--wire", "DLO7", "--predict")
    with pytest.raises(SystemExit, match="train"):
        said("--fit")
    with pytest.raises(SystemExit, match="test:7"):
        said("--predict", "test:7")
    with pytest.raises(SystemExit, match="12 markers"):
        said("--predict", "test:0")
    lost = runs.copy()
    lost[1, 3, 4] = np.nan
    np.savez(tmp_path / "DLO1.npz", test=lost)
    with pytest.raises(SystemExit, match=r"not finite in runs \[1\]"):
        said("--predict")
    np.savez(tmp_path / "DLO1.npz", test=runs[:, :, :4])
    with pytest.raises(SystemExit, match=r"test has shape \(2, 30, 4, 3\)"):
        said("--predict")
    (tmp_path / "DLO1.npz").write_text("frame,x,y,z")
    with pytest.raises(SystemExit, match=r"numpy\.savez"):
        said("--predict")


def test_numbers_of_no_use(wires, runs, tmp_path, capsys):
    np.savez(tmp_path / "DLO1.npz", test=runs)
    with pytest.raises(SystemExit):
        wires.main([str(tmp_path), "--predict", "--numbers", str(tmp_path / "none.json")])
    assert "no such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        wires.main([str(tmp_path), "--fit", "--iterations", "0"])
    wires.main([str(tmp_path)])
    assert "DLO1: test (2, 30, 12, 3)" in capsys.readouterr().out


TRUTH = {
    "EI": 0.02,
    "bending_time": 0.05,
    "slip": 0.3,
    "length": 0.99,
    "left_tilt": 0.1,
    "right_tilt": -0.05,
}


def test_what_the_model_made_is_fitted(wires, runs, tmp_path, capsys):
    """A recording in the format of the data set, made by the model with numbers of its own, in a
    gripper that shakes: they leave nothing but the first frames, from which starts are read;
    derivatives are those of differences; and a fit from elsewhere, half and two fifths off, stops
    within some per cent of them."""
    import wires_fit
    import wires_model

    places, t = wires.stations(runs), 0.01 * np.arange(60)
    shaken = np.repeat(runs[:1, :1], 60, axis=1)
    way = 0.06 * (1.0 - np.cos(12.0 * t))[:, None] * np.array([0.6, 0.5, 0.6])
    shaken[0, :, :2] += way[:, None]
    made = shaken.copy()
    made[0, 2:, 2:-2] = wires.predicted(TRUTH, shaken[0], places)[0][2:]
    elsewhere = TRUTH | {"EI": 0.03, "bending_time": 0.03, "left_tilt": 0.0}

    left, _ = wires_fit.Misses(made, places, TRUTH).look(np.zeros(6))
    np.testing.assert_allclose(left.reshape(6, -1)[1:], 0.0, atol=1e-5)
    misses = wires_fit.Misses(made, places, elsewhere)
    _, slopes = misses.look(np.zeros(6))
    for i, h in ((0, 1e-4), (2, 1e-4), (4, 1e-4)):
        ahead, behind = (misses.look(e)[0] for e in (h * np.eye(6)[i], -h * np.eye(6)[i]))
        change = (ahead - behind) / (2 * h)
        np.testing.assert_allclose(slopes[:, i], change, atol=1e-4 * np.abs(change).max())
    assert wires_model.NAMES[2] == "slip"

    found = wires_fit.fit(made, places, elsewhere, iterations=10, progress=False)
    errors = {name: found[name] - TRUTH[name] for name in TRUTH}
    for name, most in (("EI", 0.06), ("bending_time", 0.1), ("slip", 0.12)):
        assert abs(errors[name]) < most * TRUTH[name], errors
    assert abs(errors["length"]) < 3e-3, errors
    assert max(abs(errors[name]) for name in ("left_tilt", "right_tilt")) < 0.03, errors

    # from the command line, where markers sit is found from the recording
    np.savez(tmp_path / "one.npz", train=made)
    numbers = tmp_path / "numbers.json"
    numbers.write_text(json.dumps({"one": {"places": places.tolist(), "numbers": elsewhere}}))
    wires.main([str(tmp_path), "--fit", "--numbers", str(numbers), "--iterations", "3"])
    written = json.loads(numbers.read_text())["one"]["numbers"]
    assert abs(written["EI"] - TRUTH["EI"]) < 0.5 * abs(elsewhere["EI"] - TRUTH["EI"])
    assert "train, mean" in capsys.readouterr().out


def test_means_over_wires_and_medians_of_runs(wires):
    run = lambda label, error: {"label": label, "model": np.full((3, 2), error)}
    judged = {
        "DLO1": [run("unseen:0", 10.0), run("unseen:1", 30.0), run("test:0", 5.0)],
        "DLO2": [run("unseen:0", 11.0)],
    }
    first, second = wires.over_wires(judged)
    mean = "unseen: mean of 2 wires 15.5 mm (20.0, 11.0), median of 3 runs 11.0 mm"
    assert first == mean and second.startswith("test: mean of 1 wires 5.0 mm")
