"""`cordax twin`: from a machine file and logs to a fitted machine and an honest report."""

import json as json_module
from pathlib import Path
from typing import Annotated, Literal

import jax.numpy as jnp
import numpy as np
import tyro
from tyro.conf import Positional

from .._base.checks import require
from ..control import RecordedInput
from ..identification.twin import make_twin
from ..io import find_machine, read_recording, write_csv
from ..io.machine_file import example_path
from ..io.machine_update import key_is_parameter, number_keys, write_updated
from ..parameters.parameter import collect
from ..recordings.recording import Recording
from ..simulation.experiment import Experiment
from .arguments import Changes, Machine, OutputFolder, option, split_commas
from .fit import with_method
from .outputs import claim
from .progress import announce
from .recorded_names import with_machine_names
from .twin_report import shared_rows, warnings_of, write_report

#: clocks that count from 1970 begin at zero instead
LATE = 1e6


def twin(
    machine: Machine,
    logs: Annotated[
        tuple[Path, ...], Positional, tyro.conf.arg(metavar="LOG [LOG ...]", help_behavior_hint="")
    ],
    /,
    parameters: Annotated[str, option("NAME,...", "numbers of the machine file")] = "",
    observe: Annotated[str, option("NAME,...", "recorded coordinates, or outputs")] = "",
    columns: Annotated[str, option("NAME=COLUMN,...", "columns with the names of quantities")] = "",
    window: Annotated[float | None, option("SECONDS", "six periods")] = None,
    settle: Annotated[float | None, option("SECONDS", "a quarter of a window")] = None,
    loss: Literal["linear", "soft_l1", "huber", "cauchy"] = "linear",
    inputs: Literal["auto", "cubic", "linear", "hold"] = "auto",
    set: Changes = (),
    dt: Annotated[float | None, option("SECONDS", "as in cordax fit")] = None,
    integrator: Annotated[str | None, option("NAME", "as in cordax fit")] = None,
    output: OutputFolder = Path("outputs"),
    json: bool = False,
    overwrite: bool = False,
    allow_code: bool = False,
) -> int:
    """Make a digital twin: fit a machine to logs, and report how well it predicts.

    Logs are text tables with columns for time and measured quantities (commas, semicolons or tabs;
    units in headers), MATLAB files, ROS 2 bags or MCAP files. The logs are cut into windows. Two
    thirds of the windows are fitted, each with its own initial state; the others are predicted.
    Recorded inputs are applied as inputs. Without --parameters, those numbers of the machine file
    are fitted that the log determines.

    Writes twin.html (estimates with intervals, warnings, predictions, verdict), twin.toml (the
    machine file with the estimates), twin_prediction_1.csv, ... (predictions with 95 % bands) and
    twin.npz (the fit). The exit code is 1 if predictions are poor or useless.

    For example:
        cordax twin robot.toml swing_1.csv swing_2.csv
        cordax twin crane.toml log.csv --columns angle=Winkel --parameters damping,stiffness

    Args:
        machine: an example machine (see `cordax list`) or a machine file (.toml).
        logs: log files.
        parameters: parameters to fit, separated by commas; all are fitted.
        observe: quantities to compare, separated by commas.
        columns: columns of the log by names of the machine, separated by commas.
        window: length of the windows.
        settle: part of a window left out to which its initial state is fitted.
        loss: loss function; all but `linear` (least squares) reduce the weight of outliers.
        inputs: interpolation of the recorded inputs between samples; `auto` is `hold` if most
            samples repeat the one before, else `cubic`.
        set: change a key of the machine file; may be repeated.
        dt: time step.
        integrator: integrator; `cordax list` lists them.
        output: folder for the files.
        json: print the result as JSON.
        overwrite: replace existing files.
        allow_code: allow the file to import and run your own classes.
    """
    files = [output / name for name in ("twin.html", "twin.toml", "twin.npz")]
    claim([*files, output / "twin_prediction_1.csv"], overwrite)
    require(len(logs) > 0, "logs", "none", "at least one log file")
    require(
        not machine.endswith(".npz"), "machine", machine, "a machine file (.toml) or an example"
    )
    source = Path(machine) if machine.endswith(".toml") else example_path(machine)
    found = find_machine(machine, changes=set, code=allow_code)
    base, notes = found.experiment, []
    chosen = dict(_pair(word) for word in split_commas(columns))
    recordings = []
    for path in logs:
        log = read_recording(path, report=notes.append)
        log, lines = with_machine_names(path, log, base.system, base.start, chosen)
        recordings.append(log.shift(-float(log.t[0])) if log.t[0] > LATE else log)
        notes += lines
    names = _observed(base, recordings, observe)
    has_inputs, line = _inputs(base, recordings)
    notes.append(line)
    if has_inputs and inputs == "auto":
        inputs = "hold" if _held(base, recordings) else "cubic"
        notes.append(f"inputs between samples: {inputs}")

    def experiment(recording: Recording) -> Experiment:
        one = base
        if has_inputs:
            u = jnp.stack([_filled(recording, n) for n in base.system.input_names], axis=1)
            one = one.replace(control=RecordedInput(recording.t, u, inputs))
        one, _ = with_method(one, recording, integrator, dt)
        return one.replace(t0=float(recording.t[0]), save_every=1)

    candidates = split_commas(parameters) or _candidates(source, base)
    derived = [n for n in candidates if not key_is_parameter(source, n, base, set, allow_code)]
    if not parameters and len(derived) < len(candidates):
        candidates = [n for n in candidates if n not in derived]
        if derived:
            notes.append(
                f"not fitted, because the file derives further numbers from them: "
                f"{', '.join(derived)}; name them in --parameters to fit them alone"
            )
    elif derived:
        notes.append(
            f"the file derives further numbers from {', '.join(derived)}, which the fit kept: "
            f"{files[1]} describes another machine than the fit; give those numbers in the file"
        )
    expected = "numbers that are parameters, or --parameters"
    require(len(candidates) > 0, str(source), "no parameters", expected)
    notes.append(with_method(base, recordings[0], integrator, dt)[1])
    shift = has_inputs or base.inputs is None
    with announce("compiling and fitting; the first fit of a machine takes minutes", not json):
        result = make_twin(
            experiment, recordings, candidates, observe=names, choose=not parameters, window=window,
            settle=settle, shift=shift, loss=loss,
        )  # fmt: skip
    written = [write_report(files[0], found.name, result, notes)]
    values = {row["name"]: row["estimate"] for row in shared_rows(result)}
    word, reasons = result.verdict()
    note = f"Fitted by cordax twin. Predictions are {word}: {reasons[0]}."
    path, left = write_updated(source, files[1], values, note=note, code=allow_code)
    written += [path, result.fit.save(files[2])]
    for i, check in enumerate(result.validations, 1):
        written.append(_write_prediction(output / f"twin_prediction_{i}.csv", check))
    if json:
        facts = {
            "verdict": word,
            "reasons": reasons,
            "parameters": shared_rows(result),
            "undetermined": result.undetermined,
            "unneeded": result.unneeded,
            "warnings": warnings_of(result),
            "noise": result.noise,
            "left_out": [
                {
                    name: e._replace(per_second=e.per_second.tolist())._asdict()
                    for name, e in v.errors.items()
                }
                for v in result.validations
            ],
        }
        print(json_module.dumps(facts, indent=2))
    else:
        print("\n".join(notes))
        count = len(result.fitted_times), len(result.left_out_times)
        length = result.fitted_times[0][1] - result.fitted_times[0][0]
        print(f"{count[0]} windows of {length:.3g} s fitted, {count[1]} left out")
        for row in shared_rows(result):
            low, high = row["interval_95"]
            print(
                f"  {row['name']} [{row['unit']}]: {row['start']:.6g} -> {row['estimate']:.6g}, "
                f"95 % interval {low:.6g} to {high:.6g}"
            )
        if result.undetermined:
            print(f"not fitted, the log does not determine: {', '.join(result.undetermined)}")
        if result.unneeded:
            print(f"not fitted, the log is explained without: {', '.join(result.unneeded)}")
        print("\n".join(f"warning: {line}" for line in warnings_of(result)))
        print("\n".join(check.summary() for check in result.validations))
        print(f"predictions are {word}: {'; '.join(reasons)}")
        if left:
            listed = ", ".join(f"{name} = {values[name]:.9g}" for name in left)
            print(f"{path} has no key for {listed}: set it by hand")
        print("".join(f"wrote {path}\n" for path in written), end="")
    return 0 if word in ("accurate", "usable") else 1


def _pair(word: str) -> tuple[str, str]:
    name, sign, column = word.partition("=")
    require(sign == "=", "columns", repr(word), "NAME=COLUMN")
    return name.strip(), column.strip()


def _observed(base: Experiment, logs: list[Recording], observe: str) -> list[str]:
    given = split_commas(observe)
    recorded = [n for n in logs[0].names if all(n in log.values for log in logs)]
    if given:
        missing = [n for n in given if n not in recorded]
        require(not missing, "observe", ", ".join(missing), f"some of {', '.join(recorded)}")
        return given
    system = base.system
    found = [n for n in recorded if n in system.coordinate_names]
    found = found or [n for n in recorded if n not in system.input_names]
    require(len(found) > 0, "logs", ", ".join(recorded), "columns of coordinates or outputs")
    return found


def _inputs(base: Experiment, logs: list[Recording]) -> tuple[bool, str]:
    """Whether the logs contain the inputs, and a line about it."""
    names = base.system.input_names
    if not names:
        return False, "the machine has no inputs"
    present = [n for n in names if all(n in log.values for log in logs)]
    if not present:
        control = "no inputs act" if base.inputs is None else "the machine's own control acts"
        return False, f"no inputs were recorded: {control}"
    missing = [n for n in names if n not in present]
    require(not missing, "logs", ", ".join(present), f"also the inputs {', '.join(missing)}")
    return True, f"recorded inputs act: {', '.join(names)}"


def _filled(recording: Recording, name: str):
    """An input without gaps, by linear interpolation."""
    x = np.asarray(recording.values[name])
    seen = np.isfinite(x)
    require(bool(np.any(seen)), f"input {name}", "no values", "values in every window")
    return jnp.asarray(np.interp(recording.t, recording.t[seen], x[seen]))


def _candidates(source: Path, base: Experiment) -> list[str]:
    """Positive numbers of the machine file that are parameters of the machine."""
    found = []
    for key in number_keys(source):
        try:
            start = np.asarray(collect([key], base).starts[0])
        except ValueError:  # a key that is no parameter by its name
            continue
        if start.ndim == 0 and start > 0 and "gravity" not in key:
            found.append(key)
    return found


def _held(base: Experiment, logs: list[Recording]) -> bool:
    """Whether recorded inputs are steps: most samples repeat the one before."""
    u = [np.stack([np.asarray(log.values[n]) for n in base.system.input_names]) for log in logs]
    changes = np.concatenate([np.any(np.diff(x, axis=1) != 0.0, axis=0) for x in u])
    return bool(np.any(changes) and np.mean(changes) < 0.5)


def _write_prediction(path: Path, check) -> Path:
    columns = {}
    for name, recorded in check.recording.values.items():
        columns[name] = np.asarray(recorded)
        columns[f"predicted_{name}"] = check.predicted[name]
        columns[f"low_{name}"], columns[f"high_{name}"] = check.low[name], check.high[name]
    return write_csv(path, Recording(check.recording.t, columns))
