"""Presentation of a machine: units, plots, drawing, summary, warnings and error texts."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .scene import Scene


def tension_range(run) -> dict[str, str]:
    """Summary of a run (a `Trajectory`): its smallest and largest tension, if tensions are
    outputs."""
    if "tension" not in run.outputs:
        return {}
    tension = np.asarray(run.outputs["tension"])
    return {"tension": f"{tension.min():.4g} to {tension.max():.4g} N"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Presentation:
    """Presentation of a machine, returned by `System.presentation`; every field has a default.

    - `units`: SI units of coordinates, inputs and outputs, by name or by the stem of numbered
      names (`alpha` for `alpha_1`), where the name does not imply the unit (`mechanics.units`);
    - `components`: names of the components of outputs, by default numbers;
    - `plots`: coordinates, inputs or outputs plotted by default; if empty, all coordinates;
    - `summary`: function of a run (a `Trajectory`) that returns a text by name;
    - `geometry`: function of t and q that returns the `Scene` to draw;
    - `warnings`: function of the outputs that returns named conditions, true where bad, which the
      model cannot rule out, such as a tendon that pushes;
    - `alarms`: the warnings as a function of t, q, v, u and multipliers, evaluated in every step;
      given if that needs less than all outputs;
    - `invalid_reason`: function of t, q and v with the expectation that a state violates if it is
      not `System.valid`, for the error of a run that would start there;
    - `required_control`: the controller without which a run has no meaning, for the error of a run
      without `control`; None if inputs may be zero.
    """

    units: Mapping[str, str] = dataclasses.field(default_factory=dict)
    components: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    plots: tuple[str, ...] = ()
    summary: Callable[[Any], dict[str, str]] = tension_range
    geometry: Callable[[Any, Any], Scene] = lambda t, q: Scene()
    warnings: Callable[[dict], dict] = lambda outputs: {}
    alarms: Callable[..., dict] | None = None
    invalid_reason: Callable[[Any, Any, Any], str] = lambda t, q, v: (
        "a state in which the model holds (System.valid)"
    )
    required_control: str | None = None


def instant_warnings(system, t, q, v, u, multipliers) -> dict:
    """Warnings of a machine at one instant, without all outputs if its presentation allows that."""
    shown = system.presentation()
    if shown.alarms is not None:
        return shown.alarms(t, q, v, u, multipliers)
    return shown.warnings(system.outputs(t, q, v, u, multipliers))
