"""`cordax fit`: parameters of a machine from a recording."""

import dataclasses
import json as json_module
import math
from pathlib import Path
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from tyro.conf import Positional

from .._checks import require
from .._precision import as_float_array
from ..control import RecordedInput
from ..experiment import Experiment
from ..identification import Fit, identify
from ..io import read_csv
from ..parameters import collect
from ..recording import Recording
from ..systems import Neck


def fit(
    machine: Positional[Literal["neck"]],
    recording: Positional[Path],
    /,
    parameters: str,
    start: str = "",
    observe: str = "",
    noise: float | None = None,
    inputs: Literal["cubic", "linear", "hold"] = "cubic",
    joints: int = 3,
    routing: Literal["single", "cumulative"] = "single",
    posture: str = "",
    tension: str = "",
    dt: float | None = None,
    integrator: str = "rosenbrock_2",
    max_steps: int = 100,
    output: Path = Path("outputs"),
    figure: bool = True,
    json: bool = False,
) -> int:
    """Identify parameters of a machine from a recording of its motion.

    The recording is a table with a column `time` [s], columns of measured angles (alpha_1 ...,
    theta_1 ...; any of them may be missing, and cells may be empty) and the motor torques
    (torque_1 ...) that were applied. The machine starts at rest. Prints estimates with
    95 % confidence intervals and writes a figure of data against model.

    Args:
        machine: which machine.
        recording: CSV file with a row of column names.
        parameters: names separated by commas, such as tendon.stiffness,tendon.damping or
            springs.stiffness[0].
        start: start values of the search as name=value, separated by commas; the machine's
            usual values by default. Names need not be among the fitted ones.
        observe: columns to compare, separated by commas; all recorded coordinates by default.
        noise: standard deviation of the measurements, if known; for the summary only.
        inputs: how torques go between samples: smooth (cubic), linear, or held by the drive.
        joints: number of X-joints of the neck.
        routing: of the tendons on the right, see `cordax run neck --help`.
        posture: joint angles at the start in rad, separated by commas; upright by default.
        tension: tendon tensions at the start in N, one or one per tendon, separated by commas; by
            default what the first torques hold at rest.
        dt: step in seconds, a divisor of the sampling interval; half that interval by default.
        integrator: see `cordax list`.
        max_steps: iterations at most.
        output: folder for the figure.
        figure: write fit.png.
        json: print the result as JSON instead of a table.
    """
    data = read_csv(recording)
    system = _with_values(Neck.default(joints, routing=routing), start)
    names = _words(observe) or [n for n in system.coordinate_names if n in data.values]
    wanted = ", ".join(system.coordinate_names)
    require(len(names) > 0, str(recording), ", ".join(data.names), f"columns among {wanted}")
    missing = [n for n in system.input_names if n not in data.values]
    require(not missing, str(recording), ", ".join(data.names), f"columns {', '.join(missing)}")
    torque = jnp.stack([data.values[n] for n in system.input_names], axis=1)
    alpha = _numbers("posture", posture, system.n_joints) or [0.0] * system.n_joints
    held = _numbers("tension", tension, system.n_tendons)
    pulls = -torque[0] / system.motors.travel if held is None else jnp.asarray(held)
    result = identify(
        system,
        data.select(names),
        _words(parameters),
        noise=noise,
        state0=lambda machine: machine.state_at(alpha, tension=pulls),
        control=RecordedInput(data.t, torque, inputs),
        dt=0.5 * _interval(data) if dt is None else dt,
        integrator=integrator,
        max_steps=max_steps,
    )
    print(json_module.dumps(_facts(result), indent=2) if json else result.summary())
    if figure:
        import matplotlib

        matplotlib.use("Agg")  # a file only: no window system needed
        from ..plot import plot_fit, save_figure

        path = save_figure(plot_fit(result), output / "fit.png")
        if not json:
            print(f"wrote {path}")
    return 0 if bool(result.succeeded) else 1


def _interval(data: Recording) -> float:
    return float(f"{data.t[1] - data.t[0]:.12g}")


def _words(text: str) -> list[str]:
    """Separated by commas, except those of an index such as `name[0,1]`."""
    words, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            words.append("")
        else:
            words[-1] += letter
    return [word.strip() for word in words if word.strip()]


def _number(field: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    require(math.isfinite(value), field, repr(text), "a finite number")
    return value


def _numbers(field: str, text: str, count: int) -> list[float] | None:
    values = [_number(field, word) for word in _words(text)]
    require(len(values) in (0, 1, count), field, text, f"one number, or {count}")
    return None if not values else values * count if len(values) == 1 else values


def _with_values(system: Neck, start: str) -> Neck:
    """The machine with `name=value` replaced."""
    for word in _words(start):
        name, sign, value = word.partition("=")
        require(sign == "=", "start", repr(word), "name=value")
        experiment = Experiment(system)
        place = collect([name.strip()], experiment).places[0]
        old = place.read(experiment)
        new = jnp.broadcast_to(as_float_array(_number(f"start of {name}", value)), old.shape)
        system = place.write(experiment, new).system  # pyright: ignore[reportAssignmentType]
    return _rebuilt(system)


def _rebuilt(node):
    """The same module made anew, so that its checks see replaced values."""
    if not isinstance(node, eqx.Module):
        return node
    fields = [f.name for f in dataclasses.fields(node) if f.init]
    return type(node)(**{name: _rebuilt(getattr(node, name)) for name in fields})


def _facts(fit: Fit) -> dict:
    interval, errors = np.asarray(fit.interval()), np.asarray(fit.standard_errors)
    return {
        "parameters": {
            name: {
                "start": float(fit.start[i]),
                "estimate": float(fit.values[i]),
                "standard_error": float(errors[i]),
                "interval_95": interval[i].tolist(),
                "half_step_shift": float(fit.step_shift[i]),
            }
            for i, name in enumerate(fit.names)
        },
        "covariance": np.asarray(fit.covariance).tolist(),
        "residual_deviation_over_noise": float(fit.noise_scale),
        "iterations": int(fit.iterations),
        "converged": bool(fit.succeeded),
        "reason": fit.reason,
        "not_identifiable": fit.unidentifiable(),
    }
