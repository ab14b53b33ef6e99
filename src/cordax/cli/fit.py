"""`cordax fit`: parameters of a machine from recordings."""

import json as json_module
import warnings
from pathlib import Path
from typing import Annotated, Literal

import jax.numpy as jnp
import numpy as np
import tyro
from tyro.conf import Positional

from .._base.checks import require, require_known
from .._base.revalidate import recheck
from ..control import RecordedInput
from ..identification import Fit, identify
from ..identification.initial_guess import with_recorded_start
from ..identification.messages import outliers, sentences, step_matters, towards_zero
from ..integrators import BY_NAME
from ..io import experiment_of, read_recording
from ..mechanics import State
from ..parameters.parameter import varied
from ..recordings.recording import Recording
from ..simulation.experiment import Experiment
from .arguments import (
    Changes,
    Machine,
    OutputFolder,
    option,
    parse_number,
    parse_values,
    split_commas,
)
from .outputs import claim

Recordings = Annotated[
    tuple[Path, ...],
    Positional,
    tyro.conf.arg(metavar="CSV [CSV ...]", help_behavior_hint=""),
]


def fit(
    machine: Machine,
    recordings: Annotated[
        tuple[Path, ...], Positional, tyro.conf.arg(metavar="CSV [CSV ...]", help_behavior_hint="")
    ],
    /,
    parameters: Annotated[str, tyro.conf.arg(metavar="NAME,...")],
    start: Annotated[str, option("NAME=VALUE,...", "from the machine file")] = "",
    observe: Annotated[str, option("NAME,...", "all recorded coordinates")] = "",
    noise: Annotated[str, option("NUMBER", "unknown, equal for all columns")] = "",
    loss: Literal["linear", "soft_l1", "huber", "cauchy"] = "linear",
    inputs: Literal["cubic", "linear", "hold"] = "cubic",
    set: Changes = (),
    dt: Annotated[float | None, option("SECONDS", "see above")] = None,
    integrator: Annotated[str | None, option("NAME", "see above")] = None,
    starts: int = 1,
    horizons: int = 1,
    segments: int = 1,
    max_steps: int = 100,
    intervals: Literal["linear", "profile", "bootstrap"] = "linear",
    output: OutputFolder = Path("outputs"),
    figure: bool = True,
    save: bool = False,
    progress: bool = False,
    json: bool = False,
    overwrite: bool = False,
    allow_code: bool = False,
) -> int:
    """Identify parameters of a machine from recordings of its motion.

    A recording is a CSV file with a column `time` [s], one column for each measured quantity and
    one for each applied input. Columns have the names that `cordax run MACHINE --csv` writes;
    headers may contain units (`angle [deg]`). Cells may be empty and sampling may be uneven.
    MATLAB files, ROS 2 bags and MCAP files are read as well. Without input columns the controller
    of the machine file acts. Prints estimates with 95 % confidence intervals and warnings, and
    writes a figure of measured and predicted motion.

    The initial state is the one of the machine file. It is the first sample instead if the
    recording was simulated by cordax, or if it contains all coordinates of a machine without
    constraints and differs there from the machine file. --set start=... overrides both.

    A recording that cordax simulated is fitted with the same integrator and time step. Otherwise
    they come from the machine file, but rosenbrock_2 replaces integrators of order 1 and the time
    step is at most half the sampling interval.

    For example:
        cordax fit neck neck.csv --parameters tendon.stiffness,tendon.damping --noise 1e-4
        cordax fit robot.toml one.csv two.csv --parameters platform.mass --observe x,y,z

    Args:
        machine: an example machine (see `cordax list`), a machine file (.toml), or a saved
            trajectory (.npz).
        recordings: CSV files with a row of column names. With several files, parameters of the
            initial state (state0...) have one value for each file.
        parameters: parameters to fit, separated by commas: tendon.stiffness,springs.stiffness[0].
        start: initial guesses, separated by commas: NAME=VALUE,NAME=VALUE. Parameters that are not
            fitted may be set here as well.
        observe: columns to compare, separated by commas.
        noise: standard deviation of the measurements: one number, or NAME=NUMBER separated by
            commas.
        loss: loss function; all but `linear` (least squares) reduce the weight of outliers and
            need --noise.
        inputs: interpolation of the recorded inputs between samples.
        set: change a key of the machine file; may be repeated. Example: tendon.kind=rigid.
        dt: time step.
        integrator: integrator; `cordax list` lists them.
        starts: number of initial guesses to try, spread around the given one.
        horizons: number of successive searches; each uses twice as much of the recording as the
            one before, the last uses all of it.
        segments: number of segments for multiple shooting; 1 is single shooting.
        max_steps: maximum number of iterations.
        intervals: method for the 95 % confidence intervals.
        output: folder for the files.
        figure: write fit.png.
        save: write fit.npz, which `cordax.Fit.load` reads.
        progress: print a line for each iteration.
        json: print the result as JSON.
        overwrite: replace existing files.
        allow_code: allow the file to import and run your own classes.
    """
    claim([output / "fit.png"] * figure + [output / "fit.npz"] * save, overwrite)
    require(len(recordings) > 0, "recordings", "none", "at least one CSV file")
    deviation = _noise(noise)
    start_is_set = any(change.strip().startswith("start") for change in set)
    experiments, compared, descriptions = [], [], []
    for path in recordings:
        base = experiment_of(machine, changes=set, code=allow_code)
        data = read_recording(path, report=descriptions.append)
        base = varied(base, parse_values("start", start))
        recheck(base.system)
        columns = _observed(path, data, base.system.coordinate_names, observe)
        base, input_text = _with_recorded_inputs(path, base, data, inputs)
        base, state_text = _with_initial_state(base, data, start_is_set)
        if not start_is_set:
            guesses = parse_values("start", start)
            base = with_recorded_start(base, split_commas(parameters), data, guesses)
        base, method_text = with_method(base, data, integrator, dt)
        experiments.append(base.replace(duration=None, save_every=1))
        compared.append(data.select(columns))
        descriptions.append(f"{method_text}; {state_text}{input_text}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the summary contains the warnings
        result = identify(
            experiments,
            compared,
            split_commas(parameters),
            noise=deviation,
            loss=loss,
            starts=starts,
            horizons=horizons,
            segments=segments,
            max_steps=max_steps,
            progress=progress,
        )
    if json:
        print(json_module.dumps(_facts(result, intervals), indent=2))
    else:
        print("\n".join([*dict.fromkeys(descriptions), result.summary()]))
        if intervals != "linear":
            print(f"95 % confidence intervals ({intervals}):")
            pairs = zip(result.names, np.asarray(result.interval(method=intervals)), strict=True)
            print("\n".join(f"  {name}: {a:.6g} to {b:.6g}" for name, (a, b) in pairs))
    written = [result.save(output / "fit.npz")] if save else []
    if figure:
        import matplotlib

        matplotlib.use("Agg")  # writes files without a window system
        from ..plot import plot_fit, save_figure

        written.append(save_figure(plot_fit(result), output / "fit.png"))
    if not json:
        print("".join(f"wrote {path}\n" for path in written), end="")
    return 0 if bool(result.succeeded) else 1


def _noise(text: str) -> float | dict[str, float] | None:
    """One number, numbers by column name, or None for an empty text."""
    words = split_commas(text)
    if len(words) == 1 and "=" not in words[0]:
        return parse_number("noise", words[0])
    return parse_values("noise", text) or None


def _observed(path: Path, data: Recording, coordinates, observe: str) -> list[str]:
    """Names of the columns to compare."""
    names = split_commas(observe) or [n for n in coordinates if n in data.values]
    choices = f"columns among {', '.join(coordinates)}, or --observe"
    require(len(names) > 0, str(path), ", ".join(data.names), choices)
    return names


def _with_recorded_inputs(path: Path, base: Experiment, data: Recording, inputs):
    """The experiment with the recorded inputs, if there are any, and a text about them."""
    names = base.system.input_names
    missing = [n for n in names if n not in data.values]
    if len(missing) == len(names):
        return base, ""
    require(not missing, str(path), ", ".join(data.names), f"columns {', '.join(missing)}")
    text = "; with the recorded inputs, not the machine's controller"
    text = "" if base.inputs is None else text
    u = jnp.stack([data.values[n] for n in names], axis=1)
    return base.replace(control=RecordedInput(data.t, u, inputs), t0=float(data.t[0])), text


def _with_initial_state(base: Experiment, data: Recording, start_is_set: bool):
    """The experiment with its initial state, and a text about it. The first sample replaces the
    machine's initial state if cordax simulated the recording, and where they differ by more than
    the scatter of the samples."""
    system = base.system
    column = lambda name: np.asarray(data.values.get(name, np.full(len(data.t), np.nan)))
    q = np.array([column(name)[0] for name in system.coordinate_names])
    v = np.array([column(f"d_{name}")[0] for name in system.velocity_names])
    first = State(jnp.asarray(q), jnp.asarray(np.nan_to_num(v)))
    use_first = base.replace(state0=first, t0=float(data.t[0]))
    default = "from the machine's initial state"
    if start_is_set or not np.all(np.isfinite(q)):
        return base, default
    if "integrator" in data.about:
        return (use_first, "from the first sample") if np.all(np.isfinite(v)) else (base, default)
    if system.n_constraints:
        return base, default
    scatter = np.array([_scatter(column(name)) for name in system.coordinate_names])
    if np.all(np.abs(q - np.asarray(base.start.q)) <= 5.0 * scatter + 1e-9):
        return base, default
    return use_first, "from the first sample, which differs from the machine's initial state"


def _scatter(x: np.ndarray) -> float:
    """Standard deviation of the measurement errors in `x`. Third differences of independent errors
    have 20 times their variance."""
    x = np.diff(x[np.isfinite(x)][:500], n=3)
    return float(np.sqrt(np.mean(x**2) / 20.0)) if x.size else 0.0


def with_method(base: Experiment, data: Recording, integrator: str | None, dt: float | None):
    """The experiment with integrator and time step [s], and a text about them. A simulated
    recording is fitted with the method that wrote it: otherwise the fit takes the numerical errors
    of the simulation for properties of the machine."""
    recorded = data.about.get("integrator")
    if integrator is None and recorded in BY_NAME:
        step = parse_number("dt of the recording", data.about.get("dt", "")) if dt is None else dt
        text = f"simulated with {recorded} at {step:g} s, as the recording was"
        return base.replace(integrator=recorded, dt=step), text
    if integrator is not None:
        require_known("integrator", integrator, BY_NAME)
        method = BY_NAME[integrator]()
    else:
        default = BY_NAME[base.system.default_integrator]
        method = default() if base.integrator is None else base.integrator
        method = method if method.traits.order != 1 else BY_NAME["rosenbrock_2"]()
    half_interval = float(f"{0.5 * np.median(np.diff(data.t)):.12g}")
    step = dt if dt is not None else min(half_interval, base.dt or half_interval)
    names = {kind: name for name, kind in BY_NAME.items()}
    name = names.get(type(method), type(method).__name__)
    return base.replace(integrator=method, dt=step), f"simulated with {name} at {step:g} s"


def _facts(fit: Fit, intervals) -> dict:
    interval = np.asarray(fit.interval(method=intervals))
    errors = np.asarray(fit.standard_errors)
    return {
        "parameters": {
            name: {
                "start": float(fit.start[i]),
                "unit": fit.parameters.units[i],
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
        "warnings": outliers(fit) + towards_zero(fit) + sentences(fit) + step_matters(fit),
    }
