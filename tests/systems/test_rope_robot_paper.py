"""Whole motions of one rope, and the paper's 15 s with two ropes of 20 segments, followed tightly
and by its own reduction: runs of seconds to half a minute, in processes whose programs are
optimised."""

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]

BEGIN = """
import json
import cordax
cordax.enable_x64()
import numpy as np
from helpers.rope_robot_reference import control_of, errors, fields, robot_of, run
index_1 = cordax.Baumgarte(20.0, 20.0)
s = fields("paper2")
"""

TIGHT = """
trajectory = run("paper2", 0.025 / 4500, integrator="rk4", formulation=index_1)
held = np.asarray(trajectory.energy()["total"])[::4]
T, U, work, lost = s.energy_T_U_Wext_Ediss.T
found = vars(errors("paper2", trajectory)) | {
    "drift": float(trajectory.violation.max()),
    "multipliers": float(np.abs(trajectory.multipliers - s.lam).max()),
    "held": float(np.abs(held - T - U).max() / lost[-1]),
    "balance": float(np.abs(held - held[0] - work + lost).max() / lost[-1]),
}
"""

ALONE = """
from test_rope_robot_trajectories import compare
found = {}
for case, steps, gains in (("hang1", 3000, cordax.Minimal()), ("moved1", 7500, index_1)):
    trajectory = run(case, 2.5e-2 / steps, formulation=gains, integrator="rk4")
    compare(case, trajectory)
    found[case] = float(trajectory.violation.max(initial=0.0))
"""

PIECEWISE = """
from cordax.reduction import piecewise_linear
robot, found = robot_of("paper2"), {}
stored = [cordax.State(s.q_full[k], s.v_full[k]) for k in (0, 8, 10, 11)]  # 0, 4, 5, 5.5 s
for name, points in {"paper": stored, "start": stored[:1] * 4}.items():
    trajectory = cordax.simulate(
        piecewise_linear(robot, points, structured=True), stored[0], dt=1e-3, duration=15.0,
        save_every=25, integrator="rosenbrock_2", formulation=index_1,
        control=control_of("paper2"),
    )
    found[name] = vars(errors("paper2", trajectory))
"""

END = """
print(json.dumps(found))
"""


def optimised(code: str) -> dict:
    """What it finds, in a new process without the flags of the others."""
    environment = {k: x for k, x in os.environ.items() if k != "XLA_FLAGS"}
    paths = [str(TESTS), str(TESTS / "systems"), os.environ.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    shown = subprocess.run(
        [sys.executable, "-c", BEGIN + code + END],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert shown.returncode == 0, shown.stderr
    return json.loads(shown.stdout.strip().splitlines()[-1])


def test_one_rope_to_the_end():
    """Like `test_one_rope`, for all of the stored 4 s."""
    assert max(optimised(ALONE).values()) < 1e-6


def test_tightly():
    """Explicit steps at the limit of stability."""
    found = optimised(TIGHT)
    assert found["space_time"] < 2e-4
    assert found["platform"] < 1e-4
    assert found["platform_early"] < 1e-5
    assert found["drift"] < 1e-6
    assert found["multipliers"] < 0.1
    assert found["held"] < 1e-5 and found["balance"] < 1e-5


def test_the_paper_s_reduction():
    """Piecewise linear about the stored states nearest to the paper's instants, and about the first
    alone: errors of one size, because velocities are what is nonlinear."""
    found = optimised(PIECEWISE)
    for errors in found.values():
        assert 0.035 < errors["space_time"] < 0.065
        assert errors["motion"] < 0.15
