"""What an optimisation found."""

from typing import Any, NamedTuple

import numpy as np

from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory


class Optimum(NamedTuple):
    """The best numbers that were found, and how good they are.

    `values` by name with the `start`s they came from; `experiment` and its `trajectory` with these
    numbers (its segments end to end, if it was cut; the machine, and None, where nothing moves);
    `cost`, and `costs` of each scenario; `violations`, the largest of each constraint in
    its unit; `multipliers` of each constraint, by how much the cost falls for a unit that its bound
    gives way, arrays (n_scenarios, ...) ; `history`, after each iteration: "cost", the largest
    "violation", in scales of the constraints, and "values" (k, p); `succeeded` and the `reason` it
    stopped for; `failed_runs`, simulations on the way that had no end; `units` of the values by
    name, where they are known; `allowances`, the violation of each constraint that counts as none;
    `optimality`, the largest component of the gradient of the Lagrangian (cost per unit of a
    parameter: width of its bounds, or its initial value), 0 at an exact optimum."""

    values: dict[str, float]
    start: dict[str, float]
    experiment: Experiment | Any
    trajectory: Trajectory | Any
    cost: float
    start_cost: float
    costs: np.ndarray
    violations: dict[str, float]
    multipliers: dict[str, np.ndarray]
    history: dict[str, np.ndarray]
    succeeded: bool
    reason: str
    evaluations: int
    failed_runs: int
    units: dict[str, str]
    allowances: dict[str, float]
    optimality: float

    def summary(self) -> str:
        """In a few lines."""
        state = "found" if self.succeeded else "NOT found"
        lines = [
            f"optimum {state} after {len(self.history['cost'])} iterations: {self.reason}",
            f"cost {self.start_cost:.6g} at the start, {self.cost:.6g} at the end",
            f"largest slope that is left: {self.optimality:.2g} per unit of a parameter",
        ]
        label = lambda name: f"{name} [{self.units[name]}]" if name in self.units else name
        width = max(len(label(name)) for name in self.values)
        for name, value in self.values.items():
            lines.append(f"  {label(name):{width}}  {self.start[name]:12.6g} to {value:12.6g}")
        for name, x in self.violations.items():
            active = int(np.sum(np.abs(self.multipliers[name]) > 1e-9))
            state = "kept" if x <= self.allowances[name] else "violated"
            state += f" (violation {x:.2g})" if x > 0 else ""
            lines.append(f"  {name}: {state}, bound active at {active} of its numbers")
        if self.failed_runs:
            lines.append(f"  {self.failed_runs} simulations on the way failed")
        return "\n".join(lines)


def by_name(names, values) -> dict[str, Any]:
    return {name: float(x) for name, x in zip(names, np.asarray(values), strict=True)}
