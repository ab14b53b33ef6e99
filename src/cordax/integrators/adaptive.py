"""Adaptive step size: substeps that reach a requested accuracy."""

import dataclasses
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._base.checks import require, require_positive
from .._base.precision import float_field
from .._base.results import GOOD, Result, code_unless
from .._jax.gradient_guard import close, frozen, shield
from ..math.linalg import matmul
from ..mechanics import State
from ..mechanics.linearisation import bare
from .base import Inputs, Integrator, Report, Step, Traits, as_inputs
from .bounded_loop import repeat

#: smallest and largest factor between two substep sizes, and safety factor of the step size
_SHRINK, _GROW, _AIM = 0.2, 4.0, 0.9
#: factor of the size of a substep that the method could not solve
_UNSOLVED = 0.25
#: the step fails when a substep becomes shorter than this fraction of it: smaller ones gain nothing
_LEAST = 1e-12
#: a switching time of the inputs closer than this fraction of a step counts as already passed
_NEAR = 1e-10
#: relative amount by which a substep may exceed the wanted size, to avoid an additional substep
_ROUND = 1e-6


class _Way(NamedTuple):
    """Progress within a step: time, remaining time [s], state, carry of the inner method, next
    substep to try [s], numbers of accepted and rejected substeps, work counts of the inner method,
    and number of attempts."""

    t: Array
    left: Array
    state: State
    inner: Any
    h: Array
    taken: Array
    refused: Array
    work: dict[str, Array]
    tries: Array


class _Between(Inputs):
    """Inputs between two instants [s] at which they may jump. At both instants the value inside
    the interval is used."""

    u: Any
    begin: Array
    end: Array

    def __call__(self, t, q, v):
        return self.u(jnp.clip(t, self.begin, self.end), q, v)


def _until_switch(dt, u, way: _Way):
    """Time [s] to the end of the step, or to the next jump or kink of the inputs if that comes
    first; and the inputs within that time."""
    times = as_inputs(u).switching_times()
    if times is None or times.size == 0:
        return way.left, u
    t, times = lax.stop_gradient((way.t, times))
    near = _NEAR * dt + 8.0 * jnp.finfo(t.dtype).eps * jnp.abs(t)
    next_one = jnp.searchsorted(times, t + near, side="right")
    ahead = jnp.append(times, jnp.inf)[next_one] - t
    left = jnp.where(ahead < way.left - near, ahead, way.left)
    inside = jnp.minimum(2.0 * near, 0.5 * left)
    return left, _Between(u, t + inside, t + left - inside)


class Adaptive(Integrator):
    """Adaptive substeps of a one-step method, `inner`, as long as `accuracy` allows.

    Each substep is computed once as a whole and once as two halves. The difference estimates the
    error of the halves, which must stay below `accuracy` (1 + |x|) in every coordinate and
    velocity. The result of the halves is used. A substep whose error is larger, or for which the
    method fails, is repeated with a smaller size. The remaining time of a step is divided evenly:
    this rejects a third fewer substeps than a short last substep would. A step has at most `tries`
    substeps, rejected ones included, and none shorter than 1e-12 of it. Beyond these limits the run
    stops with `accuracy_not_reached`, or with the code of a controller that explains the failure.
    The substep sizes carry no derivatives.

    Implicit methods remain stable when they do not resolve fast vibrations. For them a velocity
    error e therefore counts only as `(M - h D - h^2 K)^-1 M e`, with h = dt / (2 pi) and the whole
    step dt. Motions slower than the step count in full, vibrations whose period equals the step
    count half, and vibrations too fast for the stored instants hardly count. Their displacement,
    e / omega, still counts in the coordinates. Otherwise a metal wire with axial waves of 0.1 m/s
    and a micrometre would need substeps of microseconds at any accuracy below 0.1. Explicit methods
    must resolve all vibrations anyway.

    Substeps end at the instants at which the inputs are known to jump or have a kink
    (`Controller.switching_times`). Other inputs are evaluated only at the stages of the method, so
    a pulse much shorter than `dt` can be missed.

    `simulate(..., accuracy=...)` creates this integrator. `reverse`: whether reverse mode must be
    possible; the substeps are then computed a second time in the backward pass."""

    inner: Integrator
    accuracy: Float[Array, ""] = float_field(default=1e-6)
    tries: int = eqx.field(static=True, default=10_000)
    reverse: bool = eqx.field(static=True, default=False)

    def __check_init__(self):
        require_positive("accuracy", self.accuracy)
        require(self.tries >= 1, "tries", self.tries, "a whole number >= 1")

    @property
    def traits(self) -> Traits:  # pyright: ignore[reportIncompatibleVariableOverride]
        inner = self.inner.traits
        return Traits(
            order=inner.order,
            explicit=False,
            solves_constraints=inner.solves_constraints,
            self_starting=False,
            counts=("steps", "refused", *inner.counts),
        )

    @property
    def _order(self) -> int:
        order = self.inner.traits.order
        assert order is not None  # a method that takes steps
        return order

    def check(self, dynamics):
        self.inner.check(dynamics)
        one_step = self.inner.traits.variable_step
        require(one_step, "accuracy", type(self.inner).__name__, "a method whose steps may change")

    def init(self, dynamics, t, dt, state, u):
        return self.inner.init(dynamics, t, dt, state, u), jnp.asarray(dt)

    def step(self, dynamics, t, dt, state, u, carry):
        go = eqx.filter_checkpoint(Adaptive._go) if self.reverse else Adaptive._go
        way = go(self, dynamics, t, dt, state, u, carry, self._sieve(dynamics, t, dt, state, u))
        code = code_unless(way.left <= 0, Result.ACCURACY_NOT_REACHED)
        counts = {"steps": way.taken, "refused": way.refused, **way.work}
        return Step(way.state, (way.inner, way.h), code, Report(counts=counts))

    def _sieve(self, dynamics, t, dt, state, u):
        """Filter that removes vibrations faster than the whole step from a velocity error; None
        for explicit methods.

        The filter uses the whole step, not a substep: otherwise it would pass more as substeps
        become shorter, and they would shrink until they resolve the fastest wave of a wire. Nor
        does it use a longer time: ropes that snap have waves of a few steps that matter."""
        if self.inner.traits.explicit:
            return None
        dynamics, t, dt, now, u = frozen((dynamics, t, dt, state, u))
        inputs = u(t, now.q, now.v)
        motion = dynamics.linearise(t, now.q, now.v, inputs)
        solver = motion.implicit_solver(dt / (2.0 * math.pi))
        # keep the complete linearisation: `resolved` needs its inertia
        return dataclasses.replace(solver, factor=bare(solver.factor))

    def _go(self, dynamics, t, dt, state, u, carry, sieve) -> _Way:
        none = jnp.int32(0)
        work = dict.fromkeys(self.inner.traits.counts, none)
        inner, h = carry
        way = _Way(t, dt, state, inner, h, none, none, work, none)
        go = lambda way: self._part(dynamics, dt, u, way, sieve)
        going = lambda way: (way.left > 0) & (way.h > _LEAST * dt)
        if not self.reverse:
            return lax.while_loop(lambda way: going(way) & (way.tries < self.tries), go, way)
        return repeat(going, go, self.tries)(way)

    def _part(self, dynamics, dt, u, way: _Way, sieve) -> _Way:
        left, u = _until_switch(dt, u, way)
        parts = jnp.maximum(jnp.ceil((1.0 - _ROUND) * left / way.h), 1.0)
        h = lax.stop_gradient(left / parts)
        given = self.inner, dynamics, way.t, way.state, u, way.inner
        (method, dynamics, t, state, u, inner), token = shield(given)

        def one(now, i):
            whole = i == 2
            now = jax.tree.map(lambda x, y: jnp.where(whole, x, y), (state, inner), now)
            part = jnp.where(whole, h, 0.5 * h)
            new = method.step(dynamics, t + jnp.where(i == 1, part, 0.0), part, now[0], u, now[1])
            now = new.state, new.carry
            counts = {k: jnp.asarray(n, jnp.int32) for k, n in new.report.counts.items()}
            return now, (now, jnp.asarray(new.code, jnp.int32), counts)

        # a loop over the two halves and the whole substep, so that the step is compiled once
        _, (ends, codes, counts) = lax.scan(one, (state, inner), jnp.arange(3))
        new, carry = jax.tree.map(lambda x: x[1], ends)
        whole = jax.tree.map(lambda x: x[2], ends[0])
        work = {k: way.work[k] + n[0] + n[1] + n[2] for k, n in counts.items()}
        error = self._error(*lax.stop_gradient((whole, new)), sieve)
        if not method.traits.sees_both_ends and not as_inputs(u).held:
            middle = jax.tree.map(lambda x: x[0], ends[0])
            fixed = frozen((dynamics, t, h, middle, u))
            error = jnp.maximum(error, self._unseen(*fixed, sieve=sieve))
        solved = jnp.all(codes == GOOD) & jnp.isfinite(error)
        ok = solved & (error <= 1.0)
        new, carry = close((new, carry), token, ok)
        pick = lambda a, b: jax.tree.map(lambda x, y: jnp.where(ok, x, y), a, b)
        power = -1.0 / (self._order + 1.0)
        factor = _AIM * jnp.maximum(jnp.where(solved, error, 1.0), 1e-12) ** power
        next_h = h * jnp.where(solved, jnp.clip(factor, _SHRINK, _GROW), _UNSOLVED)
        # a substep cut short by the end of the step is no reason for shorter ones
        next_h = jnp.where(ok & (parts == 1.0), jnp.maximum(next_h, way.h), next_h)
        state, inner = pick((new, carry), (way.state, way.inner))
        return _Way(
            jnp.where(ok, way.t + h, way.t),
            jnp.where(ok, jnp.where(h < way.left, way.left - h, 0.0), way.left),
            state,
            inner,
            jnp.minimum(next_h, dt),
            way.taken + ok,
            way.refused + ~ok,
            work,
            way.tries + 1,
        )

    def _error(self, whole: State, halves: State, sieve):
        """Error of the two halves divided by the allowed error."""
        allowed = (2.0**self._order - 1.0) * self.accuracy
        part = lambda e, x: jnp.max(jnp.abs(e) / (1.0 + jnp.abs(x)), initial=0.0)
        v = whole.v - halves.v
        v = v if sieve is None else sieve.resolved(v)
        return jnp.maximum(part(whole.q - halves.q, halves.q), part(v, halves.v)) / allowed

    def _unseen(self, dynamics, t, h, middle: State, u, *, sieve):
        """Velocity error from inputs that change between the stages, divided by the allowed error.

        The error is the impulse by the trapezoidal rule over both halves minus that by their
        midpoints. A jump by J anywhere in the substep gives h J/4."""
        shares = jnp.asarray([0.0, 0.25, 0.5, 0.75, 1.0], middle.q.dtype)
        inputs = lax.map(lambda share: u(t + share * h, middle.q, middle.v), shares)
        weights = np.array([[0.25, 0.0, 0.5, 0.0, 0.25], [0.0, 0.5, 0.0, 0.5, 0.0]])
        means = matmul(jnp.asarray(weights, inputs.dtype), inputs)

        def error():
            accelerate = lambda u: dynamics.acceleration(t + 0.5 * h, middle.q, middle.v, u)
            a = lax.map(accelerate, means)  # compiled once
            v = h * (a[0] - a[1])
            v = v if sieve is None else sieve.resolved(v)
            return jnp.max(jnp.abs(v) / (1.0 + jnp.abs(middle.v)), initial=0.0) / self.accuracy

        return lax.cond(jnp.any(means[0] != means[1]), error, lambda: jnp.zeros((), h.dtype))

    def reversible(self, reverse=True):
        return dataclasses.replace(self, reverse=reverse)

    def record(self, carry):
        return self.inner.record(carry[0])

    def multipliers(self, dynamics, record, t, q, v, u):
        return self.inner.multipliers(dynamics, record, t, q, v, u)

    def violation(self, dynamics, record, t, q):
        return self.inner.violation(dynamics, record, t, q)
