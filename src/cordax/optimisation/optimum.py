"""Result of an optimisation."""

from typing import Any, NamedTuple

import numpy as np

from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory


class Optimum(NamedTuple):
    """Best parameter values of an optimisation, with their cost and constraint violations.

    - `values`: parameter values by name; `start`: their initial values.
    - `experiment`, `trajectory`: the experiment with these values and its motion, joined from its
      segments if it was split. If nothing is simulated: the machine, and None.
    - `cost`: total cost; `start_cost`: its initial value; `costs`: cost of each scenario.
    - `violations`: largest violation of each constraint, in the unit of its quantity.
    - `multipliers`: Lagrange multipliers of each constraint, the decrease of the cost per unit by
      which its bound is relaxed; arrays (n_scenarios, ...).
    - `history`: values after each iteration: "cost", the largest "violation", in scales of the
      constraints, and "values" (k, p).
    - `succeeded`: whether the search converged; `reason`: why it stopped.
    - `evaluations`: number of evaluations; `failed_runs`: number of those that failed.
    - `units`: units of the values by name, where they are known.
    - `allowances`: largest violation of each constraint at which it counts as satisfied.
    - `optimality`: largest component of the gradient of the Lagrangian (cost per unit of a
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
        """Text summary of the result, in a few lines."""
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
