"""An accuracy instead of a step, on whole machines: errors fall with it."""

from itertools import pairwise

import jax.numpy as jnp
import numpy as np

import helpers.cable_robot_reference as cable_robots
import helpers.rope_robot_reference as ropes
from cordax import simulate
from cordax.systems import Neck


def check(machine, exact, dt, accuracies, **options) -> None:
    """A hundredth of the accuracy: at most a tenth of the error, by more parts. Methods of order 2
    may be expected to reach 1/22, those of order 4 1/40."""
    runs = [simulate(machine, dt=dt, accuracy=accuracy, **options) for accuracy in accuracies]
    errors = [float(np.max(np.abs(run.q - exact))) for run in runs]
    parts = [int(run.statistics["steps"]) for run in runs]
    assert all(10.0 * b < a for a, b in pairwise(errors)), errors
    assert parts == sorted(set(parts)), parts


def test_neck():
    """Released, with tendons that are stiff beside the rest, against fixed steps of 25 us."""
    options = {"integrator": "rosenbrock_2", "duration": 0.1}
    machine = Neck.default(2)
    exact = simulate(machine, dt=2.5e-5, save_every=800, **options).q
    check(machine, exact, 0.02, (1e-4, 1e-6, 1e-8), **options)


def test_cable_robot():
    """Pushed for 20 ms: by RK4 under constraints, against fixed steps of 1 ms."""
    robot = cable_robots.robot_of("imp_m1")
    force = jnp.array([50.0, 100.0, 0.0, 0.0, 0.0, 0.0])
    push = lambda t, state: jnp.exp(-(((t - 0.25) / 0.01) ** 2)) * force
    options = {"control": push, "duration": 0.5, "integrator": "rk4"}
    exact = simulate(robot, dt=1e-3, save_every=100, **options).q
    check(robot, exact, 0.1, (1e-3, 1e-5, 1e-7), **options)


def test_rope_robot():
    """Through slack and snap, against the stored motion of an independent implementation. After the
    snap errors are amplified, so that they fall less evenly."""
    errors, parts = [], []
    for accuracy in (1e-2, 1e-3, 1e-4):
        run = ropes.run("paper2_s6", 0.025, integrator="generalised_alpha", accuracy=accuracy)
        found = ropes.errors("paper2_s6", run)
        errors.append((float(found.space_time), float(found.motion)))
        parts.append(int(run.statistics["steps"]))
    for first, middle, last in zip(*errors, strict=True):
        assert first > 1.3 * middle > 1.3**2 * last and last < 0.3 * first, errors
    assert parts == sorted(set(parts)) and parts[0] < 3 * 320
