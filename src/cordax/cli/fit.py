"""`cordax fit`: parameters of a machine from a recording."""

import dataclasses
import json as json_module
import math
import warnings
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
from ..identification.sentences import sentences
from ..integrators import BY_NAME
from ..io import read_csv
from ..mechanics import State
from ..parameters import collect
from ..recording import Recording
from ..systems import Neck
from .outputs import claim


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
    integrator: str | None = None,
    max_steps: int = 100,
    output: Path = Path("outputs"),
    figure: bool = True,
    json: bool = False,
    overwrite: bool = False,
) -> int:
    """Identify parameters of a machine from a recording of its motion.

    The recording is a table with a column `time` [s], columns of measured angles (alpha_1 ...,
    theta_1 ...; any of them may be missing, and cells may be empty) and the motor torques
    (torque_1 ...) that were applied. The machine starts at rest, unless the recording shows
    otherwise. Prints estimates with 95 % confidence intervals, what to know about them, and writes
    a figure of data against model.

    Args:
        machine: which machine.
        recording: CSV file with a row of column names.
        parameters: names separated by commas, such as tendon.stiffness,tendon.damping or
            springs.stiffness[0].
        start: start values of the search as name=value, separated by commas; the machine's
            usual values by default. Names need not be among the fitted ones.
        observe: columns to compare, separated by commas; all recorded coordinates by default.
        noise: standard deviation of the measurements, if known.
        inputs: how torques go between samples: smooth (cubic), linear, or held by the drive.
        joints: number of X-joints of the neck.
        routing: of the tendons on the right, see `cordax run neck --help`.
        posture: joint angles at the start in rad, separated by commas; upright by default.
        tension: tendon tensions at the start in N, one or one per tendon, separated by commas; by
            default what the first torques hold at rest.
        dt: step in seconds, a divisor of the sampling interval; by default that of the simulation
            if the recording says that it comes from one (`cordax run neck --csv`), else half the
            sampling interval.
        integrator: see `cordax list`; by default that of the simulation, else rosenbrock_2.
        max_steps: iterations at most.
        output: folder for the figure.
        figure: write fit.png.
        json: print the result as JSON instead of a table.
        overwrite: replace fit.png if it exists already.
    """
    claim([output / "fit.png"] * figure, overwrite)
    data = read_csv(recording)
    system = _with_values(Neck.default(joints, routing=routing), start)
    names = _words(observe) or [n for n in system.coordinate_names if n in data.values]
    wanted = ", ".join(system.coordinate_names)
    require(len(names) > 0, str(recording), ", ".join(data.names), f"columns among {wanted}")
    missing = [n for n in system.input_names if n not in data.values]
    require(not missing, str(recording), ", ".join(data.names), f"columns {', '.join(missing)}")
    torque = jnp.stack([data.values[n] for n in system.input_names], axis=1)
    alpha = _numbers("posture", posture, system.n_joints)
    held = _numbers("tension", tension, system.n_tendons)
    begin, about_start = _start(system, data, torque, alpha, held, noise)
    method, step, about_method = _method(data, integrator, dt)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the summary says the same
        result = identify(
            system,
            data.select(names),
            _words(parameters),
            noise=noise,
            state0=begin,
            control=RecordedInput(data.t, torque, inputs),
            dt=step,
            integrator=method,
            max_steps=max_steps,
        )
    if json:
        print(json_module.dumps(_facts(result), indent=2))
    else:
        print(f"{about_method}; {about_start}\n{result.summary()}")
    if figure:
        import matplotlib

        matplotlib.use("Agg")  # a file only: no window system needed
        from ..plot import plot_fit, save_figure

        path = save_figure(plot_fit(result), output / "fit.png")
        if not json:
            print(f"wrote {path}")
    return 0 if bool(result.succeeded) else 1


def _method(data: Recording, integrator: str | None, dt: float | None) -> tuple[str, float, str]:
    """Integrator and step [s], and where they come from: numerical errors of a simulation would be
    taken for the machine's, so that one is fitted with the method that made it."""
    made = data.about.get("integrator")
    if integrator is None and made in BY_NAME:
        step = _number("dt of the recording", data.about.get("dt", "")) if dt is None else dt
        return made, step, f"simulated with {made} at {step:g} s, as the recording was"
    method = "rosenbrock_2" if integrator is None else integrator
    step = 0.5 * _interval(data) if dt is None else dt
    return method, step, f"simulated with {method} at {step:g} s"


def _start(system: Neck, data: Recording, torque, alpha, held, noise: float | None):
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
        "residuals_are_noise": not fit.coloured(),
        "warnings": sentences(fit),
    }
