"""`cordax fit`: parameters of a machine from recordings."""

import dataclasses
import json as json_module
import warnings
from pathlib import Path
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from tyro.conf import Positional, UseAppendAction

from .._base.checks import require, require_known
from ..control import RecordedInput
from ..identification import Fit, identify
from ..identification.messages import outliers, sentences, step_matters, towards_zero
from ..integrators import BY_NAME
from ..io import read_csv
from ..mechanics import State
from ..parameters.parameter import varied
from ..recordings.recording import Recording
from ..simulation.experiment import Experiment
from ..systems import Neck
from .fit_neck import neck_experiment
from .machines import experiment_of
from .outputs import claim
from .words import comma_words, number


def fit(
    machine: Positional[str],
    recordings: Positional[tuple[Path, ...]],
    /,
    parameters: str,
    start: str = "",
    observe: str = "",
    noise: str = "",
    inputs: Literal["cubic", "linear", "hold"] = "cubic",
    joints: int = 3,
    routing: Literal["single", "cumulative"] = "single",
    posture: str = "",
    tension: str = "",
    set: UseAppendAction[tuple[str, ...]] = (),
    dt: float | None = None,
    integrator: str | None = None,
    starts: int = 1,
    horizons: int = 1,
    segments: int = 1,
    max_steps: int = 100,
    intervals: Literal["linear", "profile", "bootstrap"] = "linear",
    output: Path = Path("outputs"),
    figure: bool = True,
    save: bool = False,
    progress: bool = False,
    json: bool = False,
    overwrite: bool = False,
    allow_code: bool = False,
) -> int:
    """Identify parameters of a machine from recordings of its motion.

    A recording is a table with a column `time` [s] and columns of what was measured, by the names
    `cordax run MACHINE --csv` writes (cells may be empty, instants uneven), and of the inputs that
    were applied; without these the machine's own controller acts. With several recordings numbers
    of the start (state0...) have a value for each. Prints estimates with 95 % confidence intervals,
    what to know about them, and writes a figure of data against model.

    For example:
        cordax fit neck neck.csv --parameters tendon.stiffness,tendon.damping --noise 1e-4
        cordax fit robot.toml one.csv two.csv --parameters platform.mass --observe x,y,z

    Args:
        machine: a file, robot.toml, or a machine by name, as in `cordax sweep`.
        recordings: CSV files with a row of column names.
        parameters: names separated by commas, such as tendon.stiffness,tendon.damping or
            springs.stiffness[0].
        start: start values of the search as name=value, separated by commas; the machine's
            usual values by default. Names need not be among the fitted ones.
        observe: columns to compare, separated by commas; all recorded coordinates by default.
        noise: standard deviation of the measurements, if known: a number, or name=number separated
            by commas.
        inputs: how inputs go between samples: smooth (cubic), linear, or held by the drive.
        joints: number of X-joints of the neck.
        routing: of the neck's tendons on the right: each over one joint, or over all below it.
        posture: joint angles of the neck at the start in rad, separated by commas; upright by
            default.
        tension: tensions of the neck's tendons at the start in N, one or one per tendon, separated
            by commas; by default what the first torques hold at rest.
        set: another value for a key of the file, as in `cordax run`.
        dt: step in seconds; by default that of the simulation if the recording says that it comes
            from one (`cordax run ... --csv`), else the machine's or half the sampling interval.
        integrator: see `cordax list`; by default that of the simulation, else the machine's if it
            is of second order or higher, else rosenbrock_2.
        starts: so many other starts are tried first, spread around the given one.
        horizons: so many searches, over a short piece first and twice as much each time.
        segments: cut recordings into so many pieces first (multiple shooting).
        max_steps: iterations at most.
        intervals: how the 95 % intervals are found.
        output: folder for the figure.
        figure: write fit.png.
        save: write fit.npz, which `cordax.Fit.load` reads.
        progress: print a line for each iteration.
        json: print the result as JSON instead of a table.
        overwrite: replace files that exist already.
        allow_code: the file may name classes of yours.
    """
    claim([output / "fit.png"] * figure + [output / "fit.npz"] * save, overwrite)
    require(len(recordings) > 0, "recordings", "none", "at least one CSV file")
    level = _noise(noise)
    experiments, chosen, about = [], [], []
    for path in recordings:
        data = read_csv(path)
        if machine == "neck":
            system = _rebuilt(
                varied(Experiment(Neck.default(joints, routing=routing)), _values(start)).system
            )
            names = _observed(path, data, system.coordinate_names, observe)
            _require_inputs(path, data, system)
            one, begin = neck_experiment(system, data, inputs, posture, tension, level)
        else:
            base = varied(experiment_of(machine, changes=set, code=allow_code), _values(start))
            names = _observed(path, data, base.system.coordinate_names, observe)
            one, begin = _with_recorded(path, base, data, inputs)
        one, method = _with_method(one, data, integrator, dt)
        experiments.append(one)
        chosen.append(data.select(names))
        about.append(f"{method}; {begin}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the summary says the same
        result = identify(
            experiments,
            chosen,
            comma_words(parameters),
            noise=level,
            starts=starts,
            horizons=horizons,
            segments=segments,
            max_steps=max_steps,
            progress=progress,
        )
    if json:
        print(json_module.dumps(_facts(result, intervals), indent=2))
    else:
        print("\n".join([*dict.fromkeys(about), result.summary()]))
        if intervals != "linear":
            print(f"95 % intervals by {intervals}:")
            pairs = zip(result.names, np.asarray(result.interval(method=intervals)), strict=True)
            print("\n".join(f"  {name}: {a:.6g} to {b:.6g}" for name, (a, b) in pairs))
    written = [result.save(output / "fit.npz")] if save else []
    if figure:
        import matplotlib

        matplotlib.use("Agg")  # a file only: no window system needed
        from ..plot import plot_fit, save_figure

        written.append(save_figure(plot_fit(result), output / "fit.png"))
    if not json:
        print("".join(f"wrote {path}\n" for path in written), end="")
    return 0 if bool(result.succeeded) else 1


def _values(start: str) -> dict[str, float]:
    """`name=value` separated by commas."""
    found = {}
    for word in comma_words(start):
        name, sign, value = word.partition("=")
        require(sign == "=", "start", repr(word), "name=value")
        found[name.strip()] = number(f"start of {name}", value)
    return found


def _noise(text: str):
    """One number, numbers by name, or None."""
    words = comma_words(text)
    if len(words) == 1 and "=" not in words[0]:
        return number("noise", words[0])
    return _values(text) or None


def _observed(path: Path, data: Recording, coordinates, observe: str) -> list[str]:
    names = comma_words(observe) or [n for n in coordinates if n in data.values]
    wanted = ", ".join(coordinates)
    said = f"columns among {wanted}, or others by --observe"
    require(len(names) > 0, str(path), ", ".join(data.names), said)
    return names


def _require_inputs(path: Path, data: Recording, system) -> None:
    missing = [n for n in system.input_names if n not in data.values]
    require(not missing, str(path), ", ".join(data.names), f"columns {', '.join(missing)}")


def _with_recorded(path: Path, base: Experiment, data: Recording, inputs):
    """The experiment with recorded inputs, from the first sample where a simulation was recorded,
    and in words where it starts."""
    system, words, told = base.system, "from the machine's usual start", ""
    given = [n for n in system.input_names if n in data.values]
    if given:
        _require_inputs(path, data, system)
        u = jnp.stack([data.values[n] for n in system.input_names], axis=1)
        if base.inputs is not None:
            told = (
                "; with the inputs of the recording (without their columns: by the machine's own)"
            )
        base = base.replace(control=RecordedInput(data.t, u, inputs), t0=float(data.t[0]))
    names = (*system.coordinate_names, *(f"d_{n}" for n in system.velocity_names))
    first = [float(data.values[n][0]) if n in data.values else np.nan for n in names]
    if "integrator" in data.about and np.all(np.isfinite(first)):
        n_q = len(system.coordinate_names)
        begin = State(jnp.array(first[:n_q]), jnp.array(first[n_q:]))
        base, words = base.replace(state0=begin, t0=float(data.t[0])), "from the first sample"
    return base.replace(duration=None, save_every=1), words + told


def _with_method(base: Experiment, data: Recording, integrator: str | None, dt: float | None):
    """The experiment with integrator and step [s], and in words where they come from: numerical
    errors of a simulation would be taken for the machine's, so that one is fitted with the method
    that made it."""
    made = data.about.get("integrator")
    if integrator is None and made in BY_NAME:
        step = number("dt of the recording", data.about.get("dt", "")) if dt is None else dt
        words = f"simulated with {made} at {step:g} s, as the recording was"
        return base.replace(integrator=made, dt=step), words
    own = BY_NAME[base.system.default_integrator]() if base.integrator is None else base.integrator
    if integrator is not None:
        require_known("integrator", integrator, BY_NAME)
        method = BY_NAME[integrator]()
    else:
        method = own if own.order > 1 else BY_NAME["rosenbrock_2"]()
    half = float(f"{0.5 * np.median(np.diff(data.t)):.12g}")
    step = dt if dt is not None else half if base.dt is None else base.dt
    names = {kind: name for name, kind in BY_NAME.items()}
    words = names.get(type(method), type(method).__name__)
    return base.replace(integrator=method, dt=step), f"simulated with {words} at {step:g} s"


def _rebuilt(node):
    """The same module made anew, so that its checks see replaced values."""
    if not isinstance(node, eqx.Module):
        return node
    fields = [f.name for f in dataclasses.fields(node) if f.init]
    return type(node)(**{name: _rebuilt(getattr(node, name)) for name in fields})


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
