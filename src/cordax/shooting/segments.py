"""Segments of a run, the gaps between them and their derivatives.

Perturbations grow less over a short segment than over the whole run, so costs and residuals of long
or unstable motions are less nonlinear in their unknowns. Segments join only at the solution. They
are simulated in one batch.
"""

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._base.checks import require
from ..mechanics import Controller, State, System
from ..simulation._simulate import simulate_steps
from ..simulation.experiment import Experiment
from ..simulation.trajectory import Trajectory


class Segments(eqx.Module):
    """Segments of a run, each of `steps` time steps.

    The first segment begins at the initial state of the run, every other one at a node. `states`
    (count - 1, ...) are the nodes before the search, which moves each of them by `scale` (2 n_v,)
    times its coordinates `z` (2 n_v,)."""

    steps: int = eqx.field(static=True)
    states: State
    scale: Float[Array, " 2*n_v"]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the coordinates `z` of all nodes, (count - 1, 2 n_v)."""
        return (*self.states.v.shape[:-1], self.scale.shape[-1])

    def node(self, system: System, k, z) -> State:
        """Initial state of segment `k` > 0: its node, moved by `z`."""
        at = lambda x: x[jnp.maximum(k - 1, 0)]
        dq, dv = jnp.split(self.scale * z, 2)
        return State(system.retract(at(self.states.q), dq), at(self.states.v) + dv)

    def run(self, experiment: Experiment, k, z, dt) -> Trajectory:
        """Simulate segment `k` with time step `dt` [s] from its node moved by `z`."""
        node = self.node(experiment.system, k, z)
        state = jax.tree.map(lambda a, b: jnp.where(k == 0, a, b), experiment.start, node)
        t0 = experiment.t0 + k * (self.steps * dt)
        return simulate_steps(experiment, self.steps, state=state, t0=t0, dt=dt)

    def gaps(self, system: System, q, v, z) -> Float[Array, "m 2*n_v"]:
        """Gaps between segments: end states less the following nodes, divided by `scale`.

        `q`, `v`: end states of all segments (count, ...), of which the last is not used. `z`
        (count - 1, 2 n_v): coordinates by which the nodes are moved."""

        def gap(k, q, v, z):
            node = self.node(system, k, z)
            return jnp.concatenate([system.difference(node.q, q), v - node.v]) / self.scale

        return jax.vmap(gap)(jnp.arange(1, len(q)), q[:-1], v[:-1], z)


def all_segments(segment: Callable, y, nodes) -> Any:
    """Evaluate `segment(y, k, z)` for all segments, with node coordinates `nodes` (count - 1, n).
    The first segment has no node; zeros are passed."""
    zs = jnp.concatenate([jnp.zeros_like(nodes[:1]), nodes])
    return jax.vmap(lambda k, z: segment(y, k, z))(jnp.arange(len(zs)), zs)


def differentiate(segment: Callable, y, nodes) -> tuple[Any, Any]:
    """Evaluate all segments as `all_segments` does, and differentiate their floating-point arrays.

    Derivatives are along a last axis: first with respect to the parameters `y` (p,), then to the
    coordinates (n,) of the node of the segment. Segments do not depend on other nodes."""
    p, n = y.shape[0], nodes.shape[1]

    def one(y, k, z):
        def moved(d):
            return eqx.partition(segment(y + d[:p], k, z + d[p:]), eqx.is_inexact_array)

        value, slopes, remaining = pushed(moved, jnp.zeros(p + n, y.dtype))
        return eqx.combine(value, remaining), slopes

    return all_segments(one, y, nodes)


def push_forward(function: Callable, y, shape: tuple[int, ...], segments, slopes):
    """Evaluate `function(y, segments)` -> (differentiable, auxiliary) and differentiate it by `y`.

    **Arguments:**

    - `y`: parameters (p,), followed by node coordinates of `shape` (cases, count - 1, n).
    - `segments`, `slopes`: results of `differentiate`, with an axis (cases,) in front.

    Returns the differentiable part, its derivatives along a last axis, and the auxiliary part."""
    p = y.shape[0] - math.prod(shape)
    smooth, remaining = eqx.partition(segments, eqx.is_inexact_array)

    def assembled(y, smooth):
        return function(y, eqx.combine(smooth, remaining))

    def push(direction):
        dz = direction[p:].reshape(shape)
        dz = jnp.concatenate([jnp.zeros_like(dz[:, :1]), dz], axis=1)
        dy = jnp.broadcast_to(direction[:p], (*dz.shape[:2], p))
        weight = jnp.concatenate([dy, dz], axis=2)  # (case, segment, direction)
        along = lambda a: jnp.einsum("sk...d,skd->sk...", a, weight)
        tangents = direction, jax.tree.map(along, slopes)
        return jax.jvp(assembled, (y, smooth), tangents, has_aux=True)

    return jax.vmap(push, out_axes=(None, -1, None))(jnp.eye(y.shape[0], dtype=y.dtype))


def pushed(function: Callable, y):
    """Evaluate `function(y)` -> (differentiable, auxiliary) and differentiate it by `y`.

    Returns the differentiable part, its derivatives along a last axis, and the auxiliary part."""
    push = lambda direction: jax.jvp(function, (y,), (direction,), has_aux=True)
    return jax.vmap(push, out_axes=(None, -1, None))(jnp.eye(y.shape[0], dtype=y.dtype))


def require_restartable(experiment: Experiment, field: str, *, memory: bool = True) -> None:
    """Check that a run can begin at any time from a state alone.

    This requires that there are no switches, no sampled controller and, with `memory`, no
    controller with a memory. `field`: name in the error message."""
    require(not experiment.switches, field, "an experiment with switches", "one without")
    control = experiment.inputs
    if not isinstance(control, Controller):
        return
    name = type(control).__name__
    sampled = control.period is not None
    require(not sampled, field, f"{name}, which is sampled", "a controller that is not")
    remembers = memory and bool(jax.tree.leaves(control.init(experiment.start)))
    require(not remembers, field, f"{name}, which has a memory", "a controller without")
