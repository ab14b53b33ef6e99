"""Fit files: estimates, recordings and, if they consist of cordax data, the experiments."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from .._base.atomic_files import replacing
from .._base.results import LABELS
from .._base.serialise import NotDescribable, describe, rebuild
from ..simulation.trajectory import Trajectory
from .problem import Problem, Trial

FORMAT = 2


def write(path: str | Path, fit, numbers: tuple[str, ...]) -> Path:
    """Write a fit; `numbers` are the names of its array fields."""
    path = Path(path)
    path = path if path.suffix == ".npz" else path.with_name(path.name + ".npz")
    arrays: dict[str, np.ndarray] = {}
    put = lambda thing: describe(thing, arrays, "x")
    try:
        about: dict[str, Any] = {
            "format": FORMAT,
            "numbers": {name: put(getattr(fit, name)) for name in numbers},
            "names": list(fit.names),
            "differences": put(fit.differences),
            "numerics": put(dict(fit.numerics)),
            "about": put(fit.about),
            "parameters": put(fit.parameters),
            "recordings": [put(trial.recording) for trial in fit.trials],
            "noise": [put(trial.noise) for trial in fit.trials],
            "grids": [put(trial.grid) for trial in fit.trials],
            "noise_given": fit.problem.noise_given,
            "adjoint": fit.problem.adjoint,
            "loss": None if fit.problem.loss is None else put(fit.problem.loss),
            "trajectories": [_run_data(run, put) for run in fit.trajectories],
        }
    except NotDescribable as error:
        raise ValueError(
            f"save: got a fit that holds {error}, expected parameters by path and a machine of "
            "cordax"
        ) from error
    try:
        about["given"] = [put(trial.experiment) for trial in fit.trials]
        about["experiments"] = [put(experiment) for experiment in fit.experiments]
    except NotDescribable:  # functions: the user passes them again when loading
        about["given"] = about["experiments"] = None
    with replacing(path) as part:
        np.savez_compressed(part, allow_pickle=False, about=np.asarray(json.dumps(about)), **arrays)
    return path


def _run_data(run: Trajectory, put) -> dict:
    parts = {f.name for f in dataclasses.fields(run)} - {"result", "events", "phases"}
    code = int(run.result)
    return {"result": LABELS[code], "fields": {n: put(getattr(run, n)) for n in sorted(parts)}}


def read(path: str | Path, experiments) -> dict[str, Any]:
    """Read the fields of a fit; `experiments` as given to `identify`, if the file has none."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        with open(path, "rb") as file:
            data = np.load(file, allow_pickle=False)
            arrays = {name: data[name] for name in data.files}
        about = json.loads(str(arrays.pop("about")))
        if about["format"] != FORMAT:
            raise ValueError(f"format {about['format']}")
        get = lambda x: rebuild(x, arrays)
        found = {name: get(x) for name, x in about["numbers"].items()}
        parameters = get(about["parameters"])
        runs = [_run(x, get) for x in about["trajectories"]]
        parts = zip(*(map(get, about[n]) for n in ("recordings", "grids", "noise")), strict=True)
        parts = list(parts)
        given = None if about["given"] is None else [get(x) for x in about["given"]]
        loss = None if about.get("loss") is None else get(about["loss"])
        fitted = None if about["experiments"] is None else [get(x) for x in about["experiments"]]
    # all errors that a file of another format can cause
    except Exception as error:
        raise ValueError(f"{path}: got {error}, expected a fit written by Fit.save") from error
    if experiments is not None:
        given = list(experiments)
        fitted = [parameters.insert(e, found["y"], i) for i, e in enumerate(given)]
    if given is None or fitted is None:
        raise ValueError(
            f"{path}: got experiments with functions of yours, expected them again: "
            "Fit.load(path, experiment)"
        )
    trials = tuple(Trial(e, *part) for e, part in zip(given, parts, strict=True))
    return found | {
        "names": tuple(about["names"]),
        "differences": get(about["differences"]),
        "numerics": get(about["numerics"]),
        "about": get(about["about"]),
        "trajectories": tuple(runs),
        "experiments": tuple(fitted),
        "problem": Problem(trials, parameters, about["noise_given"], about["adjoint"], loss=loss),
    }


def _run(data: dict, get) -> Trajectory:
    fields = {name: get(x) for name, x in data["fields"].items()}
    return Trajectory(**fields, result=np.asarray(LABELS.index(data["result"]), np.int32))
