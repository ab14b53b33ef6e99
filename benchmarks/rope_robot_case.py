"""The robot of section 4 of Tempel, Schmidt, Haasdonk and Pott (2017), what moves it, and how far a
motion is from the stored one (`tests/data/rope_robot.npz`)."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

import cordax
from cordax.control import Quintic
from cordax.systems import Platform, RopeRobot

cordax.enable_x64()

DATA = Path(__file__).parents[1] / "tests" / "data" / "rope_robot.npz"
FORCE = Quintic(np.zeros(3), [[0.0, 52.0, 0.0], [0.0, -52.0, 0.0]], [[2.0, 4.5], [4.5, 7.0]])
#: between stored instants [s]
STORED = 0.025
#: one of Newton's corrections in each step
ONCE = cordax.GeneralisedAlpha(corrections=1)
EULER = {"integrator": "linearly_implicit_euler", "formulation": cordax.Index3()}


def robot(count: int = 20, EA=4.0e4) -> RopeRobot:
    plate = Platform.plate(5.0, (1.0, 0.3), [[-0.5, 0.15], [0.5, 0.15]])
    return RopeRobot([[0.0, 0.0], [1.0, -0.25]], 3.0, EA=EA, platform=plate, count=count)


def lift(t, state):
    return FORCE.position(t)


def reference() -> dict[str, np.ndarray]:
    with np.load(DATA) as file:
        return {k.split("/")[1]: file[k] for k in file.files if k.startswith("paper2/")}


def start() -> cordax.State:
    ref = reference()
    return cordax.State(ref["q0"], ref["v0"])


def _norm(t, x):
    return np.sqrt(np.trapezoid(np.sum(x**2, axis=1), t))


def platform_error(pose) -> float:
    """Of poses (601, 3) every `STORED`, relative to the motion."""
    ref = reference()
    return _norm(ref["t"], pose - ref["qp"]) / _norm(ref["t"], ref["qp"] - ref["qp"][0])


def errors(q, violation) -> dict:
    """Of coordinates (601, n_q) every `STORED`."""
    ref, q = reference(), np.asarray(q)
    there = ref["q32"].astype(float)
    return {
        "space_time": _norm(ref["t_q32"], q[::4] - there) / _norm(ref["t_q32"], there),
        "platform_motion": platform_error(q[:, -3:]),
        "drift_m": float(jnp.max(violation)),
    }
