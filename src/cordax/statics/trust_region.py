"""Trust-region search for a static equilibrium.

The metric is that of the kinetic energy. The model uses absolute values of the stiffness, so that
every step descends and saddle points are left. The work of the forces along a step, computed from
forces and stiffness at both ends, decides whether it is accepted. This needs no potential energy
and loses no digits near the end. Constraints are satisfied first and kept by corrections after each
step. Forces without a potential (follower loads, integrating controllers) are balanced by shifted
Newton steps."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from ..mechanics import System
from .force_balance import Balance, balance

RUNNING, FOUND, STUCK, EXHAUSTED = 0, 1, 2, 3

#: largest number of consecutive rejected steps
_TRIALS = 24
#: first displacement [m or rad] from a saddle point
_KICK = 0.1
#: constraint errors, in coordinates, below which the work of a step decides
_CLOSED = 1e-6
#: the first step is as long as the motion in this time [s]
_FIRST = 0.1


class Search(NamedTuple):
    """Final configuration `q`, the forces and stiffness `at` it, the largest remaining Newton
    `correction`, the number of `steps` and the `code`."""

    q: Float[Array, " n_q"]
    at: Balance
    correction: Float[Array, ""]
    steps: Int[Array, ""]
    code: Int[Array, ""]


class _Plan(NamedTuple):
    """Limits of the next step: trust `radius` [kg^1/2 m], the `portion` of the constraint errors
    to remove, and the `kick` from a saddle point [m or rad]."""

    radius: Float[Array, ""]
    portion: Float[Array, ""]
    kick: Float[Array, ""]


class _Proposal(NamedTuple):
    """A displacement `d` (n,) to the configuration `ahead`, its `length` in the metric without the
    constraint correction, its `expected` work [J], and the expected norm of the unbalanced forces
    that are `left`."""

    ahead: Float[Array, " n_q"]
    d: Float[Array, " n"]
    length: Float[Array, ""]
    expected: Float[Array, ""]
    left: Float[Array, ""]


class _Progress(NamedTuple):
    q: Float[Array, " n_q"]
    at: Balance
    plan: _Plan
    next: _Proposal
    correction: Float[Array, ""]
    failed: Int[Array, ""]
    steps: Int[Array, ""]
    code: Int[Array, ""]


def search(system: System, t, q, u, *, tolerance, max_steps, stable: bool) -> Search:
    """Search for an equilibrium from `q`; with `stable`, for a stable one."""
    q = lax.stop_gradient(q)
    real = lambda x: jnp.asarray(x, q.dtype)

    def advance(progress: _Progress) -> _Progress:
        # the stiffness takes long to compile, so it is traced only here
        begin = progress.steps == 0
        new = balance(system, t, progress.next.ahead, u)
        good, plan = _judge(system, t, progress, new, stable)
        good = good | begin
        at, q = _choose(good, (new, progress.next.ahead), (progress.at, progress.q))
        failed = jnp.where(good, 0, progress.failed + 1)

        closing = -at.close @ at.phi
        g = at.gradient(at.f, closing)
        full = at.tangent(closing + _step(at, g, 0.0, stable))
        correction = jnp.max(jnp.abs(full)) / (1.0 + jnp.max(jnp.abs(q)))
        leave = (at.values[0] < -at.round_off) & ~at.skew if stable else jnp.asarray(False)
        # if only round-off is left, no step can show a descent
        stuck = failed >= _TRIALS
        closed = jnp.max(jnp.abs(at.tangent(closing))) <= _CLOSED
        silent = closed & jnp.all(jnp.abs(at.unheld(at.f)) <= at.noise)
        arrived = ((correction <= tolerance) & ~leave) | (stuck & silent)
        code = jnp.where(arrived, FOUND, jnp.where(stuck, STUCK, RUNNING))

        first = jnp.linalg.norm(_step(at, g, 1.0 / _FIRST**2, stable))
        plan = _choose(begin, _Plan(first, real(1.0), real(_KICK)), plan)
        ahead = _propose(system, t, q, at, leave, plan, stable)
        return _Progress(q, at, plan, ahead, correction, failed, progress.steps + 1, code)

    shapes = eqx.filter_eval_shape(balance, system, t, q, u)
    nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    zero, none = real(0.0), jnp.asarray(0)
    here = _Proposal(q, jnp.zeros_like(nothing.f), zero, zero, zero)
    start = _Progress(q, nothing, _Plan(zero, zero, zero), here, zero, none, none, none)
    running = lambda progress: (progress.code == RUNNING) & (progress.steps < max_steps)
    progress = lax.while_loop(running, advance, start)
    code = jnp.where(progress.code == RUNNING, EXHAUSTED, progress.code)
    return Search(progress.q, progress.at, progress.correction, progress.steps, code)


def _choose(which, a, b):
    return jax.tree.map(lambda a, b: jnp.where(which, a, b), a, b)


def _step(at: Balance, g, shift, down: bool):
    """Newton step with a shift [1/s^2]; with `down` a descent step, with absolute values of the
    stiffness. Neutral directions move as far as their force would move them in one second."""
    size = jnp.where(at.neutral, jnp.maximum(1.0, at.round_off), jnp.abs(at.values)) + shift
    size = size if down else jnp.where(at.neutral | (at.values > 0), size, -size)
    straight = lambda g: -at.directions @ ((g @ at.directions) / size)
    return lax.cond(at.skew, at.shifted(shift), straight, g)


def _shift_within(at: Balance, g, radius):
    """The shift [1/s^2] that limits a step to the radius; zero if the step is shorter."""
    c = g @ at.directions
    size = jnp.where(at.neutral, jnp.maximum(1.0, at.round_off), jnp.abs(at.values))
    length = lambda shift: jnp.sqrt(jnp.sum((c / (size + shift)) ** 2))

    def halve(_, bounds):
        low, high = bounds
        middle = 0.5 * (low + high)
        long = length(jnp.exp(middle)) > radius
        return jnp.where(long, middle, low), jnp.where(long, high, middle)

    safe = jnp.finfo(c.dtype).tiny
    high = jnp.log(jnp.sqrt(jnp.sum(c * c)) / jnp.maximum(radius, safe) + safe)
    low = high - 60.0
    shift = jnp.exp(lax.fori_loop(0, 50, halve, (low, high))[1])
    return jnp.where(length(0.0) > radius, shift, 0.0)


def _propose(system: System, t, q, at: Balance, leave, plan: _Plan, stable: bool) -> _Proposal:
    closing = -plan.portion * (at.close @ at.phi)
    g = at.gradient(at.f, closing)
    y = _step(at, g, _shift_within(at, g, plan.radius), stable)
    # on a saddle point the gradient vanishes: move along the least stable direction
    least = at.directions[:, 0]
    still = leave & (jnp.max(jnp.abs(at.tangent(y))) < plan.kick)
    side = jnp.where(g @ least > 0, -1.0, 1.0) / jnp.max(jnp.abs(at.tangent(least)))
    y = y + jnp.where(still, side * plan.kick, 0.0) * least
    left = at.allowed @ (g + at.reduced @ y)
    expected = -0.5 * (g + left) @ y
    d = at.tangent(closing + y)
    if at.phi.shape[0] > 0:
        lacking = lambda d: at.close @ system.constraint(t, system.retract(q, d))
        d = lax.fori_loop(0, 3, lambda _, d: d - at.tangent(lacking(d)), d)
    return _Proposal(system.retract(q, d), d, jnp.linalg.norm(y), expected, jnp.linalg.norm(left))


def _judge(system: System, t, progress: _Progress, new: Balance, stable: bool):
    """Whether the step is accepted, and the limits of the next one."""
    at, plan, (ahead, d, length, expected, hoped) = progress.at, progress.plan, progress.next
    # multipliers do no work between configurations that satisfy the constraints
    before = at.f - at.multipliers @ at.jacobian
    after = new.f - at.multipliers @ new.jacobian
    work = 0.5 * (before + after) @ d + (new.curvature(d) - at.curvature(d)) / 12.0
    unbalanced = lambda f: jnp.linalg.norm(at.allowed @ at.covector(f))

    ratio = work / jnp.where(expected > 0, expected, 1.0)
    down = (expected > 0) & (ratio > 0.1)
    gain = unbalanced(before) - unbalanced(after)
    wanted = unbalanced(before) - hoped
    nearer = (wanted > 0) & (gain > 0.1 * wanted)
    ratio = ratio if stable else gain / jnp.where(wanted > 0, wanted, 1.0)
    # where the stiffness is positive or there is no potential, smaller unbalanced forces suffice
    bowl = at.skew | (at.values[0] >= -at.round_off)
    good = down | (nearer & bowl) if stable else nearer
    if at.phi.shape[0] > 0:
        apart = lambda phi: jnp.max(jnp.abs(at.tangent(at.close @ phi)))
        gap = apart(at.phi)
        left = apart(new.phi)
        good = jnp.where(gap <= _CLOSED, good & (left <= _CLOSED), left < 0.7 * gap)
    rest = jnp.zeros_like(d)
    good = good & jnp.all(jnp.isfinite(ahead)) & jnp.isfinite(work) & system.valid(t, ahead, rest)
    longer = jnp.where(ratio > 0.75, jnp.maximum(plan.radius, 3.0 * length), plan.radius)
    longer = jnp.where(ratio < 0.25, 0.5 * length, longer)
    portion, kick = jnp.minimum(2.0 * plan.portion, 1.0), jnp.minimum(2.0 * plan.kick, _KICK)
    easier = _Plan(longer, portion, kick)
    smaller = _Plan(0.25 * length, 0.5 * plan.portion, 0.25 * plan.kick)
    return good, _choose(good, easier, smaller)
