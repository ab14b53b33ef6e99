"""Interpolation of a simulation at instants between its steps.

Coordinates are interpolated by the cubic through states and velocities at both ends of a step,
velocities and multipliers by the cubic through four neighbouring steps. Errors are of order four in
the step, not above those of the integrators. A run with phases is interpolated within each phase.
Inputs and outputs are computed by controller and machine from the interpolated states.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..math.interpolation import lagrange_weights
from ..mechanics import State
from ..mechanics.controller import as_controller
from ..recordings.recording import observe
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory
from .time_grid import Grid


def values_at(
    trajectory: Trajectory, experiment: Experiment, grid: Grid, names
) -> dict[str, Float[Array, "k ..."]]:
    """Quantities of the simulation at the recorded instants, by name."""
    if grid.on_rows:
        return {name: observe(trajectory, name)[grid.rows] for name in names}
    phases = trajectory.phases or (trajectory,)
    parts, first = [], 0
    for phase in phases:
        last = phase.t.shape[0] - 1
        parts.append((first, _sampled(phase, experiment, grid.rows - first, grid.beyond)))
        first += last
    found = {}
    for name in names:
        observe(trajectory, name)  # raises if the machine has no such quantity
        value = None
        for first, part in parts:
            one = _observed(part, name)
            if one is None:
                continue
            later = (grid.rows >= first).reshape(-1, *(1,) * (one.ndim - 1))
            value = one if value is None else jnp.where(later, one, value)
        found[name] = value
    return found


def _observed(part: Trajectory, name: str):
    try:
        return observe(part, name)
    except ValueError:  # a quantity of another phase
        return None


def _sampled(run: Trajectory, experiment: Experiment, rows, beyond) -> Trajectory:
    """Interpolate one phase at `rows` plus fractions `beyond`; instants outside of the phase take
    its ends."""
    system, n = run.system, run.t.shape[0]
    assert system is not None
    row = jnp.clip(rows, 0, n - 2)
    share = jnp.clip(beyond + (rows - row), 0.0, 1.0)
    t = run.t[row] + share * (run.t[row + 1] - run.t[row])
    v, multipliers = (_cubic(x, row, share) for x in (run.v, run.multipliers))

    def coordinates(i, x):
        h = run.t[i + 1] - run.t[i]
        before, after = run.q[i], run.q[i + 1]
        slopes = [h * system.rate(run.q[j], run.v[j]) for j in (i, i + 1)]
        a = (1 + 2 * x) * (1 - x) ** 2
        q = a * before + (1 - a) * after
        q = q + x * (1 - x) * ((1 - x) * slopes[0] - x * slopes[1])
        return system.normalise(q)

    q = jax.vmap(coordinates)(row, share)
    controller = as_controller(experiment.inputs, system, q.dtype)
    held = controller.period is not None or bool(
        jax.tree.leaves(controller.init(State(run.q[0], run.v[0])))
    )
    if held:
        u = run.u[row]
    else:
        u = jax.vmap(lambda t, q, v: controller(t, State(q, v), ())[0])(t, q, v)
    outputs = jax.vmap(system.outputs)(t, q, v, u, multipliers)
    return dataclasses.replace(
        run, t=t, q=q, v=v, u=u, multipliers=multipliers, outputs=outputs, phases=()
    )


def _cubic(x: Float[Array, "n m"], row, share) -> Float[Array, "k m"]:
    """Cubic interpolation through the four rows around each interval, or as many as there are."""
    count = min(4, x.shape[0])
    first = jnp.clip(row - 1, 0, x.shape[0] - count)
    nodes = x[first[:, None] + np.arange(count)]
    weights = jax.vmap(lambda s: lagrange_weights(s, range(count)))(row + share - first)
    return jnp.einsum("kn,knm->km", weights, nodes)
