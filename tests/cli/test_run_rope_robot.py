"""`cordax run rope-robot`."""

import numpy as np
import pytest

from cordax.cli import main


def test_a_robot_at_rest_and_lifted(tmp_path, capsys):
    """Four segments, lifted off while the force is still growing: at rest ropes carry the weight,
    lifted they are slack."""
    words = ["run", "rope-robot", "--segments", "4", "--force", "90", "--duration", "4.0"]
    words += ["--dt", "2e-3", "--save-every", "50", "--film", "none", "--csv"]
    code = main([*words, "--output", str(tmp_path)])
    printed = capsys.readouterr().out
    assert code == 0
    assert "2 ropes of 4 segments, 19 coordinates" in printed
    names = {path.name for path in tmp_path.iterdir()}
    ends = (".png", "_motion.png", ".npz", ".csv")
    assert names == {f"rope_robot{end}" for end in ends}
    at_rest = [float(x) for x in printed.split("at rest  ")[1].split(" N")[0].split(" and ")]
    # at their ends the ropes, which are almost upright, carry the platform and nothing else
    assert sum(at_rest) == pytest.approx(5.0 * 9.81, abs=0.02)
    with np.load(tmp_path / "rope_robot.npz") as file:
        pose = next(file[name] for name in file.files if name.endswith("pose"))
    assert pose[-1, 1] > pose[0, 1] + 0.02
    slack = printed.split("both ropes slack")[1].split("\n")[0]
    assert "never" not in slack
    assert main([*words, "--output", str(tmp_path)]) == 2  # files are there already


def test_bad_segments_are_named(tmp_path, capsys):
    assert main(["run", "rope-robot", "--segments", "0", "--output", str(tmp_path)]) == 2
    assert "count" in capsys.readouterr().err
