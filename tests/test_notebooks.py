"""Every notebook runs from top to bottom, its last cell asserting what it claims."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} >= {"neck", "neck_identification"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    """As a script: in percent format the cells are the statements of the file in their order, and
    a kernel would only add its start. A process of its own: a notebook sets its own precision."""
    last_cell = path.read_text().split("# %%")[-1]
    assert "assert " in last_cell
    result = subprocess.run(
        [sys.executable, "-W", "error::UserWarning:cordax", str(path)],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
