"""Runs of any step, stride and length with one compiled function per scheme and rod.

A loop of its own, not `simulate`, for three reasons: the study stores every n-th step for a dozen
different n and a dozen schemes, each of which `save_every` would compile; it runs the strain as
printed, which a `SplineRod` refuses; and its timings compare bare schemes, so that a run must end
where the rod has left the machine and compute nothing but states.
"""

import time
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from ...formulations import Dynamics, Minimal
from ...integrators import BY_NAME, Integrator
from ...systems import SplineRod
from ..timing import Timing, in_turn
from .setup import AMPLITUDE, DURATION, FREQUENCY

#: stored states a run can have
CAPACITY = 5001
#: a control point further away than this has left the machine [m]
FAR = 5.0


class Run(NamedTuple):
    """A run of a scheme from the straight rod at rest, to its end or its failure.

    `t` [s] (k,), `q` and `v` (k, n) stored states, the good ones; `failure_time` [s] the first
    stored time at which a position was beyond `FAR`, not a number, or a step not solved; inf if
    none; `timing` of the run, with compilation if it is not one of several and was the first of its
    kind."""

    rod: SplineRod
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    failure_time: float
    timing: Timing

    @property
    def seconds(self) -> float:
        """The least wall time [s]."""
        return self.timing.seconds

    @property
    def failed(self) -> bool:
        return bool(np.isfinite(self.failure_time))

    @property
    def control(self) -> np.ndarray:
        """Control points x, y, z, theta, shape (k, n, 4)."""
        return np.asarray(_controls(self.rod, jnp.asarray(self.q)))

    @property
    def energy(self) -> np.ndarray:
        """Total energy [J], shape (k,)."""
        return self.kinetic + np.asarray(_potentials(self.rod, jnp.asarray(self.q)))

    @property
    def kinetic(self) -> np.ndarray:
        """Kinetic energy [J], shape (k,)."""
        M = np.asarray(self.rod.mass_matrix(None))
        return 0.5 * np.einsum("ki,ij,kj->k", self.v, M, self.v, optimize=True)


def march(
    rod: SplineRod,
    scheme: str,
    dt: float,
    duration: float = DURATION,
    load: str = "gravity",
    stride: int = 1,
) -> Run:
    """Release the rod, straight and at rest, under a load of `AMPLITUDE`; every `stride`-th step
    is stored."""
    rows = round(duration / (stride * dt))
    if rows >= CAPACITY:
        raise ValueError(f"stride: got {stride}, which stores {rows} states of {CAPACITY - 1}")
    begin = time.perf_counter()
    numbers = map(jnp.asarray, (dt, AMPLITUDE[load], stride, rows))
    states, stored, failed = jax.block_until_ready(_march(rod, BY_NAME[scheme](), *numbers))
    timing = Timing((time.perf_counter() - begin,))
    good = int(stored) + 1
    q, v = (np.asarray(x[:good]) for x in states)
    failure = (good * stride) * dt if bool(failed) else np.inf
    return Run(rod, stride * dt * np.arange(good), q, v, failure, timing)


def timed(given: dict, rounds: int, dt: float, **options) -> dict:
    """Runs of rods and schemes, measured in turn; none of them compiles."""
    for rod, scheme in given.values():
        march(rod, scheme, dt, duration=dt)
    jobs = {
        key: lambda pair=pair: march(pair[0], pair[1], dt, **options) for key, pair in given.items()
    }
    return {key: run._replace(timing=t) for key, (run, t) in in_turn(jobs, rounds).items()}


@eqx.filter_jit
def _march(rod: SplineRod, integrator: Integrator, dt, amplitude, stride, rows):
    dynamics = Dynamics(rod, Minimal())
    push = lambda t, q, v: jnp.zeros(3).at[1].set(amplitude * jnp.sin(2.0 * jnp.pi * FREQUENCY * t))
    start = rod.default_state()

    def step(i, carry):
        state, inner, solved = carry
        new = integrator.step(dynamics, i * dt, dt, state, push, inner)
        return new.state, new.carry, solved & (new.code == 0)

    def block(carry):
        row, inner, state, stored, _ = carry
        first = row * stride
        state, inner, solved = jax.lax.fori_loop(
            first, first + stride, step, (state, inner, jnp.asarray(True))
        )
        near = jnp.max(jnp.abs(rod.control(0.0 * dt, state.q)[:3])) < FAR  # not if it is no number
        row = row + 1
        kept = jax.tree.map(lambda all, one: all.at[row].set(one), stored, state)
        return row, inner, state, kept, near & solved

    def going(carry):
        row, *_, good = carry
        return good & (row < rows)

    stored = jax.tree.map(lambda x: jnp.zeros((CAPACITY, *x.shape), x.dtype).at[0].set(x), start)
    inner = integrator.init(dynamics, 0.0 * dt, dt, start, push)
    carry = (jnp.asarray(0), inner, start, stored, jnp.asarray(True))
    row, _, _, stored, good = jax.lax.while_loop(going, block, carry)
    return (stored.q, stored.v), jnp.where(good, row, row - 1), ~good


@eqx.filter_jit
def _controls(rod: SplineRod, q):
    return jax.vmap(lambda q: rod.control(jnp.zeros(()), q).T)(q)


@eqx.filter_jit
def _potentials(rod: SplineRod, q):
    return jax.lax.map(lambda q: rod.potential_energy(0.0, q), q)
