"""A motion cut into segments, each from a start of its own: multiple shooting.

What is small at the end of a segment has grown less than at the end of the whole motion, so that
cost and constraints of long or unstable motions are far less bent; that segments meet is asked of
the solution only. Segments are simulated side by side."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.results import Result
from ..mechanics import State
from ..simulation._simulate import simulate_steps
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory


class Segments(eqx.Module):
    """`count` segments of `steps` steps. Those after the first begin at nodes: `states` (s, count -
    1, ...) of each scenario, and `z` (2 n_v,) by which the search moves one, each number in
    `units`."""

    count: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    states: State
    units: jax.Array

    @staticmethod
    def of(runs: Trajectory, count: int, steps: int, difference) -> "Segments":
        """With nodes on `runs`, a batch that stores the ends of the segments among others."""
        k = runs.t.shape[1] - 1
        at = np.arange(1, count) * (k // count)
        take = lambda x: jnp.asarray(x)[:, at]
        first = runs.q[:, :1]
        far = jax.vmap(jax.vmap(difference, (None, 0)))(first[:, 0], jnp.asarray(runs.q))
        widest = lambda x: np.max(np.abs(np.asarray(x)), axis=(0, 1))
        units = np.concatenate([_widths(widest(far)), _widths(widest(runs.v))])
        return Segments(count, steps, State(take(runs.q), take(runs.v)), jnp.asarray(units))

    @property
    def node_size(self) -> int:
        return self.units.shape[0]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of all `z`: scenarios, nodes, numbers."""
        return self.states.v.shape[0], self.count - 1, self.node_size

    def node(self, retract, scenario, k, z) -> State:
        """Where segment `k` > 0 of a scenario begins."""
        at = lambda x: x[scenario, jnp.maximum(k - 1, 0)]
        dq, dv = jnp.split(self.units * z, 2)
        return State(retract(at(self.states.q), dq), at(self.states.v) + dv)

    def run(self, experiment: Experiment, scenario, k, z, dt) -> Trajectory:
        """Segment `k`, from its node moved by `z`; without its machine."""
        first, node = experiment.start, self.node(experiment.system.retract, scenario, k, z)
        state = jax.tree.map(lambda a, b: jnp.where(k == 0, a, b), first, node)
        t0 = experiment.t0 + k * (self.steps * dt)
        run = simulate_steps(experiment, self.steps, state=state, t0=t0, dt=dt)
        return dataclasses.replace(run, system=None, events=None, statistics={})

    def gaps(self, system, scenario, runs: Trajectory, z):
        """By how much each segment misses the start of the next, in units, (count - 1, 2 n_v);
        `runs` (count, ...) of one scenario, `z` (count - 1, 2 n_v)."""

        def one(k, q, v, z):
            node = self.node(system.retract, scenario, k, z)
            off = jnp.concatenate([system.difference(node.q, q), v - node.v])
            return off / self.units

        ends = runs.q[:-1, -1], runs.v[:-1, -1]
        return jax.vmap(one)(jnp.arange(1, self.count), *ends, z)


def together(runs: Trajectory, system) -> Trajectory:
    """Segments (count, ...) end to end; the instant two of them share is taken from the later."""
    rows = runs.t.shape[0] * (runs.t.shape[1] - 1)
    long = lambda x: jnp.concatenate([x[:, :-1].reshape(rows, *x.shape[2:]), x[-1, -1:]])
    names = ("t", "q", "v", "u", "multipliers", "violation", "outputs")
    joined = {name: jax.tree.map(long, getattr(runs, name)) for name in names}
    first = jnp.argmax(runs.result != Result.SUCCESSFUL)  # the one that failed, if any has
    ends = jax.tree.map(lambda x: x[first], (runs.result, runs.failure_time))
    warned = {name: jnp.min(x) for name, x in runs.warnings.items()}
    return Trajectory(
        **joined, warnings=warned, result=ends[0], failure_time=ends[1], system=system
    )


def _widths(size: np.ndarray) -> np.ndarray:
    """How far numbers go; those that hardly move by the others, one where all rest."""
    largest = np.max(size, initial=0.0)
    return np.maximum(size, 1e-2 * largest) if largest > 0 else np.ones_like(size)
