"""Sliders for parameters of an experiment."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.checks import require
from ..parameters.parameter import collect
from ..simulation.experiment import Experiment

#: sliders where nobody says which, and last words of the names that get one
MOST = 6
TELLING = (
    "mass stiffness damping gravity inertia friction radius length diameter density modulus "
    "viscosity width pulley_inertia rotor_inertia drum_radius dry_friction young"
).split()


class Slider(NamedTuple):
    """A slider for the parameter `name` of an experiment, from `low` to `high` in steps, with the
    initial `value`."""

    name: str
    value: float
    low: float
    high: float
    step: float


def sliders(
    experiment: Experiment,
    wanted: Mapping[str, tuple[float, float] | None] | Sequence[str] | None = None,
) -> list[Slider]:
    """Sliders for the `wanted` parameters: names as in `cordax.Parameter`, with (low, high), or
    without, which means half to twice the present value. Default: the first few nonzero parameters
    of the machine, such as masses and stiffnesses. A slider for an array sets all its entries."""
    ranges: dict[str, tuple[float, float] | None] = (
        dict.fromkeys(_found(experiment)[:MOST])
        if wanted is None
        else dict(wanted)
        if isinstance(wanted, Mapping)
        else dict.fromkeys(wanted)
    )
    return [_slider(experiment, name, limits) for name, limits in ranges.items()]


def _slider(experiment: Experiment, name: str, limits: tuple[float, float] | None) -> Slider:
    now = float(np.mean(np.asarray(collect([name], experiment).places[0].read(experiment))))
    if limits is None:
        require(
            now != 0.0, f"slider {name!r}", "zero", "limits, (low, high), of a number that is 0"
        )
        near, far = (float(f"{x:.2g}") for x in (0.5 * now, 2.0 * now))
        limits = (min(near, far), max(near, far))
    low, high = (float(x) for x in limits)
    ordered = np.isfinite(low) and np.isfinite(high) and low < high
    require(ordered, f"slider {name!r}", limits, "(low, high), finite, with low < high")
    step = 10.0 ** np.floor(np.log10((high - low) / 100.0))
    return Slider(name, min(max(now, low), high), low, high, step)


def _found(experiment: Experiment) -> list[str]:
    """Names of numbers of the machine and of its parts, or of arrays of one number, that are not
    zero: the first of every word, then the second."""
    names: list[tuple[int, str]] = []
    seen: Counter[str] = Counter()
    for path, leaf in jax.tree_util.tree_leaves_with_path(experiment.system):
        if not eqx.is_inexact_array(leaf) or leaf.size == 0 or leaf.ndim > 1:
            continue
        name = _name(path)
        if name is None or (word := name.split(".")[-1]) not in TELLING:
            continue
        same = bool(jnp.all(leaf == leaf.reshape(-1)[0])) and float(leaf.reshape(-1)[0]) != 0.0
        if same and _can_be_named(experiment, name):
            names.append((seen[word], name))
            seen[word] += 1
    return [name for _, name in sorted(names, key=lambda found: found[0])]


def _name(path) -> str | None:
    """`elements[0].stiffness`; None for a parameter that is nested too deeply for a short label."""
    steps = ""
    for step in path:
        if isinstance(step, jax.tree_util.GetAttrKey):
            steps += f".{step.name}"
        elif isinstance(step, jax.tree_util.SequenceKey):
            steps += f"[{step.idx}]"
        else:
            return None
    return steps[1:] if steps.count(".") <= 3 else None


def _can_be_named(experiment: Experiment, name: str) -> bool:
    try:
        collect([name], experiment)
    except ValueError:
        return False
    return True
