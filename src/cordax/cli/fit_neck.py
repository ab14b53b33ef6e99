"""The neck as `cordax fit` starts it: at rest under what the first torques hold."""

import jax.numpy as jnp
import numpy as np

from .._base.checks import require
from ..control import RecordedInput
from ..mechanics import State
from ..recordings.recording import Recording
from ..simulation.experiment import Experiment
from ..systems import Neck
from .words import comma_words, number


def neck_experiment(
    system: Neck, data: Recording, inputs, posture: str, tension: str, noise
) -> tuple[Experiment, str]:
    """The neck with recorded torques, and in words where it starts."""
    torque = jnp.stack([data.values[n] for n in system.input_names], axis=1)
    alpha = _numbers("posture", posture, system.n_joints)
    held = _numbers("tension", tension, system.n_tendons)
    level = noise if isinstance(noise, float) else None
    begin, words = _start(system, data, torque, alpha, held, level)
    recorded = RecordedInput(data.t, torque, inputs)
    return Experiment(system, begin, recorded, t0=float(data.t[0])), words


def _start(system: Neck, data: Recording, torque, alpha, held, noise):
    """The start as a function of the machine, and what it is in words: at rest with the given or
    upright posture and the tensions that the first torques hold. As first recorded where nobody
    said otherwise and the recording is a simulation, or shows another posture or a motion."""
    pulls = -torque[0] / system.motors.travel if held is None else jnp.asarray(held)
    posture = [0.0] * system.n_joints if alpha is None else alpha
    rest = lambda machine: machine.state_at(posture, tension=pulls)
    names = system.coordinate_names
    columns = [np.asarray(data.values[n]) for n in names if n in data.values]
    whole = len(columns) == len(names) and all(np.isfinite(x[0]) for x in columns)
    if alpha is not None or held is not None or not whole:
        return rest, "from rest"
    rates = [data.values.get(f"d_{n}") for n in names]
    v = [0.0 if x is None or not np.isfinite(x[0]) else float(x[0]) for x in rates]
    begin = State(jnp.array([x[0] for x in columns]), jnp.array(v))
    if "integrator" in data.about:
        return begin, "from the first sample"
    # angles of motors depend on the stretch of tendons, which is to be found: they tell nothing
    joints = columns[: system.n_joints]
    far = [abs(x[0]) > 5.0 * (_scatter(x) if noise is None else noise) + 1e-9 for x in joints]
    if any(far) or np.any(np.abs(v[: system.n_joints]) > 1e-6):
        return begin, "from the first sample, which is not the upright rest"
    return rest, "from rest"


def _scatter(x: np.ndarray) -> float:
    """Of neighbouring samples: third differences of independent errors have 20 times their
    variance."""
    x = np.diff(x[np.isfinite(x)][:500], n=3)
    return float(np.sqrt(np.mean(x**2) / 20.0)) if x.size else 0.0


def _numbers(field: str, text: str, count: int) -> list[float] | None:
    values = [number(field, word) for word in comma_words(text)]
    require(len(values) in (0, 1, count), field, text, f"one number, or {count}")
    return None if not values else values * count if len(values) == 1 else values
