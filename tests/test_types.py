"""Annotated types and shapes are true."""

import subprocess
import sys
from pathlib import Path


def test_types_and_shapes_hold_in_representative_runs():
    """In a process of its own, a few steps each: checking every call of the whole suite would cost
    more than it tells."""
    script = Path(__file__).parent / "typed_runs.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == "oscillator neck rod rope_robot cable_robot strut".split()
