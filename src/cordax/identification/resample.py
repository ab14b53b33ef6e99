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
from ..recordings.recording import Recording, observe
from ..recordings.signals import low_pass
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory
from .time_grid import Grid


def values_at(
    trajectory: Trajectory, experiment: Experiment, grid: Grid, names
) -> dict[str, Float[Array, "k ..."]]:
    """Quantities of the simulation at the recorded instants, by name, as the sensors of the
    experiment show them."""
    sensors = experiment.sensors
    plain = [name for name in names if name not in sensors]
    found = _plain_values(trajectory, experiment, grid, plain) if plain else {}
    sampled = None
    for name in (n for n in names if n in sensors):
        sensor = sensors[name]
        t = trajectory.t[grid.rows] + grid.beyond * grid.dt * grid.save_every
        if sensor.dynamic:
            if trajectory.phases:
                raise ValueError(
                    f"a delay or time constant of sensor {name!r} is not supported for experiments "
                    "with switches"
                )
            x = sensor.of(trajectory, observe, name)
            x = sensor.late(trajectory.t, x, grid.rows + grid.beyond)
        elif isinstance(sensor.quantity, str) or sensor.quantity is None:
            wanted = sensor.quantity or name
            x = _plain_values(trajectory, experiment, grid, [wanted])[wanted]
        elif grid.on_rows:
            x = sensor.of(trajectory, observe, name)[grid.rows]
        else:
            if sampled is None:
                sampled = _sampled(trajectory, experiment, grid.rows, grid.beyond)
            x = sensor.of(sampled, observe, name)
        found[name] = sensor.shown(t, x, trajectory.t[0])
    return {name: found[name] for name in names}


def filters_of(experiment: Experiment, recording: Recording) -> dict[str, Float[Array, "k k"]]:
    """Matrices of the filters through which recorded channels went, by name."""
    found = {}
    for name, sensor in experiment.sensors.items():
        if sensor.cutoff is not None and name in recording.values:
            unit = np.eye(len(recording.t))
            found[name] = jnp.asarray(
                low_pass(name, recording.t, unit, sensor.cutoff, sensor.order)
            )
    return found


def _plain_values(
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
