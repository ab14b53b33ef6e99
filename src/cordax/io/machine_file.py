"""Machine files: a machine, its initial state, its inputs and the settings of a run in TOML.

docs/machine-files.md describes the format."""

import tomllib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._base.checks import require, require_known
from ..control import RecordedInput
from ..formulations import Formulation
from ..integrators import Integrator, Unilateral
from ..mechanics import State, System
from ..simulation.defaults import as_integrator
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory
from .builder import Builder
from .control import read_control
from .initial_state import read_start
from .registry import Argument, find_kind, words
from .table import Table, read_toml

#: for each kind, the example that `cordax new KIND` copies
STARTING = {
    "cable_robot": "suspended",
    "spline_rod": "rod",
    "single_strut": "strut",
    "tensegrity": "prism",
    "as_mechanism": "prism",
    "mechanism": "finger",
}


#: file extensions of MuJoCo models
FOREIGN = (".xml", ".mjcf", ".urdf")


class MachineFile(NamedTuple):
    """Content of a machine file: a `name` for titles, the `kind` and the experiment."""

    name: str
    kind: str
    experiment: Experiment


def examples() -> tuple[str, ...]:
    """Names of the shipped machine files."""
    folder = resources.files("cordax") / "examples"
    return tuple(sorted(x.name.removesuffix(".toml") for x in folder.iterdir() if "toml" in x.name))


def example_path(name: str) -> Path:
    """Path of a shipped example, given by its name or by a kind of machine."""
    known = examples()
    word = name.lower().replace("-", "_")
    word = STARTING.get(word, word)
    near = get_close_matches(word, (*known, *STARTING), 1)
    expected = "one of " + ", ".join(known) + (f"; the nearest is {near[0]}" if near else "")
    require(word in known, "example", repr(name), expected)
    return Path(str(resources.files("cordax") / "examples" / f"{word}.toml"))


def experiment_of(what: str | Path, *, changes: Iterable[str] = (), code: bool = False):
    """Return the experiment of the machine that `find_machine` finds."""
    return find_machine(what, changes=changes, code=code).experiment


def find_machine(
    what: str | Path, *, changes: Iterable[str] = (), code: bool = False
) -> MachineFile:
    """Find a machine by name or read it from a file.

    - `what`: the name of an example or of a kind, a machine file (`.toml`), a MuJoCo model (`.xml`,
      `.mjcf`, `.urdf`), or a saved trajectory (`.npz`), whose initial state and inputs are used
      again;
    - `changes`: new values for keys of the file, `"tendon.stiffness=2e5"`;
    - `code`: whether the file may name classes of the user, which are then imported."""
    path = Path(what)
    if path.suffix == ".npz":
        return _saved(path, tuple(changes))
    if path.suffix in FOREIGN:
        return _foreign(path, tuple(changes))
    if path.suffix != ".toml":
        near = get_close_matches(str(what), (*examples(), *STARTING), 1)
        expected = "a .toml, .npz, .xml or .urdf file, or one of " + ", ".join(examples())
        expected += f"; the nearest is {near[0]}" if near else ""
        known = str(what).lower().replace("-", "_") in (*examples(), *STARTING)
        require(known, "machine", repr(str(what)), expected)
        path = example_path(str(what))
    return read_machine(path, changes=changes, code=code)


def read_machine(
    path: str | Path,
    *,
    changes: Iterable[str] = (),
    code: bool = False,
    seen: list | None = None,
) -> MachineFile:
    """Read a machine file. `changes` and `code` are those of `find_machine`, `seen` is that of
    `Builder`. Raises `ValueError` with file, line, key, value and what is expected."""
    top = read_toml(path)
    for change in changes:
        _change(top, change)
    make, kind = _machine(top, code)
    name = top.text("name", top.path.stem)
    if kind == "cable_robot":
        return MachineFile(name, kind, _cable_robot(top, code, seen))
    run = top.table("run", needed=True)
    control, start = top.has("control"), top.has("start")
    machine = Builder(code=code, seen=seen).made(top, make)
    require(isinstance(machine, System), top.where("kind"), type(machine).__name__, "a machine")
    settings = _run(run, machine, code)
    law = read_control(top, machine, settings["dt"], code, seen) if control else None
    state = read_start(top, machine, law) if start else None
    with top.naming():
        experiment = Experiment(machine, state, law, **settings)
        try:
            begin = experiment.start
        except NotImplementedError as error:  # raised by a class of the user
            raise ValueError(f"{top.where('start')}: {error}") from error
    sizes = (begin.q.shape, begin.v.shape)
    right = ((machine.n_q,), (machine.n_v,))
    require(sizes == right, top.where("start"), f"shapes {sizes}", f"shapes {right}")
    return MachineFile(name, kind, experiment)


def _cable_robot(top: Table, code: bool, seen: list | None) -> Experiment:
    """Read the experiment of a cable robot. Its cable lengths, torques and payload depend on the
    pose, so it has a separate reader."""
    from .cable_robot import read_cable_robot

    parts = read_cable_robot(top)
    settings = _run(top.table("run", needed=True), parts.robot, code)
    if top.has("control"):
        law = read_control(top, parts.robot, settings["dt"], code, seen)
    else:
        law = parts.control(settings["dt"])
    top.finish()
    if parts.slack == "unilateral":
        method = settings.get("integrator") or parts.robot.default_integrator
        settings["integrator"] = Unilateral(as_integrator(method))
    with top.naming():
        return Experiment(parts.robot, parts.start, law, switches=parts.switches, **settings)


def _machine(top: Table, code: bool) -> tuple[Callable, str]:
    """Constructor and kind of the machine. The file may omit the kind of cable robots."""
    if not top.has("kind") and top.has("platform") and top.has("exits"):
        from ..systems import CableRobot

        return CableRobot, "cable_robot"
    make = Builder(code=code).maker(top, (System,))
    kind = top.text("kind")
    if ":" not in kind:
        kind, _ = find_kind(kind, (System,)) or (kind, None)
    return make, kind


def _run(table: Table, machine: System, code: bool) -> dict[str, Any]:
    """Read the settings of the run, by the names of fields of `Experiment`."""
    dt = table.numbers("dt", (), default=machine.default_dt, unit="s")
    duration = table.numbers("duration", (), unit="s")
    for key, value in (("dt", dt), ("duration", duration)):
        require(value > 0, table.where(key), value, "a time > 0 s")
    stored = table.numbers("save_every", (), default=1.0)
    whole = stored >= 1 and stored == int(stored)
    require(whole, table.where("save_every"), stored, "a whole number >= 1")
    build = Builder(code=code)
    parts = {
        key: build.value(table, key, Argument(key, (base,), 0, False, False, None))
        for key, base in (("integrator", Integrator), ("formulation", Formulation))
        if table.has(key)
    }
    more = {"t0": table.numbers("t0", (), unit="s")} if table.has("t0") else {}
    table.finish()
    return {"dt": dt, "duration": duration, "save_every": int(stored), **parts, **more}


def _change(top: Table, text: str) -> None:
    """Set a key to a new value, given as text: `bodies[1].at=[0, 0, 1]`."""
    top.put(*_key_and_value(text))


def _key_and_value(text: str) -> tuple[str, Any]:
    """Split `key=value`. The value is written as in TOML, or is a text without quotation marks."""
    key, sign, value = text.partition("=")
    require(sign == "=" and key.strip() != "", "set", repr(text), "key=value")
    try:
        return key.strip(), tomllib.loads(f"x = {value}")["x"]
    except ValueError:
        return key.strip(), value.strip()


def _foreign(path: Path, changes: tuple[str, ...]) -> MachineFile:
    """Read a MuJoCo model; `changes` are options of `read_mjcf`."""
    from .mjcf import read_mjcf

    words = dict(_key_and_value(change) for change in changes)
    for key in words:
        require_known("set", key, ("constraints", "contact", "side_rule", "keyframe"))
    try:
        return MachineFile(path.stem, "mechanism", read_mjcf(path, **words))
    except ImportError as error:
        raise ValueError(f"{path}: {error}") from error


def _saved(path: Path, changes: tuple[str, ...]) -> MachineFile:
    run = Trajectory.load(path)
    known = "a trajectory saved with its machine"
    require(run.system is not None, str(path), "a trajectory without machine", known)
    require(run.t.ndim == 1, str(path), f"a batch of {run.t.shape[0]} runs", "one run")
    require(not changes, "set", changes[0] if changes else "", f"nothing: {path} is no TOML file")
    t, system = np.asarray(run.t), run.system
    require(len(t) > 1, str(path), "a trajectory of one instant", "two or more")
    assert system is not None
    control = RecordedInput(t, run.u, "cubic") if system.n_u else None
    step = float(f"{t[1] - t[0]:.12g}")
    experiment = Experiment(
        system,
        State(run.q[0], run.v[0]),
        control,
        duration=float(f"{t[-1] - t[0]:.12g}"),
        dt=step / max(1, round(step / system.default_dt)),
        t0=float(t[0]),
        save_every=max(1, round(step / system.default_dt)),
    )
    return MachineFile(path.stem, words(type(system).__name__), experiment)
