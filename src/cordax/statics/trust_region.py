"""The way from a guess to a state at rest.

A trust region in the metric of kinetic energy, on the energy where there is one: the model's
stiffness is taken in size, so that every step leads down and saddles are left; a step is judged by
the work that the forces do along it, from forces and stiffness at both ends, which needs no
potential energy and loses no digits near the end. Constraints are met first and kept by corrections
after each step. Forces without an energy (follower loads, integrating controllers) are led to
balance by shifted Newton steps."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from ..mechanics import System
from .force_balance import Balance, balance

RUNNING, FOUND, STUCK, EXHAUSTED = 0, 1, 2, 3

#: steps in a row that may fail
_TRIALS = 24
#: displacement [m or rad] by which a saddle is left at first
_KICK = 0.1
#: gaps of constraints, in coordinates, below which the work of a step is what counts
_CLOSED = 1e-6
#: a first step may take the machine as far as this time [s] would
_FIRST = 0.1


class Search(NamedTuple):
    """Where it ends: configuration `q`, what is known `at` it, the largest `correction` that
    Newton's method would still make, `steps` tried and `code`."""

    q: Float[Array, " n_q"]
    at: Balance
    correction: Float[Array, ""]
    steps: Int[Array, ""]
    code: Int[Array, ""]


class _Plan(NamedTuple):
    """How far the next step may go: `radius` [kg^1/2 m], the `portion` of what constraints lack,
    and a `kick` off a saddle [m or rad]."""

    radius: Float[Array, ""]
    portion: Float[Array, ""]
    kick: Float[Array, ""]


class _Proposal(NamedTuple):
    """A displacement `d` (n,) to the configuration `ahead`, its `length` in the metric without what
    closes constraints, the work [J] `expected` of it, and the norm of the unbalanced forces that
    should be `left`."""

    ahead: Float[Array, " n_q"]
    d: Float[Array, " n"]
    length: Float[Array, ""]
    expected: Float[Array, ""]
    left: Float[Array, ""]


class _Way(NamedTuple):
    q: Float[Array, " n_q"]
    at: Balance
    plan: _Plan
    next: _Proposal
    correction: Float[Array, ""]
    failed: Int[Array, ""]
    steps: Int[Array, ""]
    code: Int[Array, ""]


def search(system: System, t, q, u, *, tolerance, max_steps, stable: bool) -> Search:
    """Follow the forces from `q` to a state at rest; with `stable`, to one that stays."""
    q = lax.stop_gradient(q)
    real = lambda x: jnp.asarray(x, q.dtype)

    def onward(way: _Way) -> _Way:
        # the stiffness is traced here and nowhere else: it is what takes long to compile
        begin = way.steps == 0
        new = balance(system, t, way.next.ahead, u)
        good, plan = _judge(system, t, way, new, stable)
        good = good | begin
        at, q = _choose(good, (new, way.next.ahead), (way.at, way.q))
        failed = jnp.where(good, 0, way.failed + 1)

        closing = -at.close @ at.phi
        g = at.gradient(at.f, closing)
        full = at.tangent(closing + _step(at, g, 0.0, stable))
        correction = jnp.max(jnp.abs(full)) / (1.0 + jnp.max(jnp.abs(q)))
        leave = (at.values[0] < -at.round_off) & ~at.skew if stable else jnp.asarray(False)
        # where round-off is all that is left, no step can show that it leads down
        stuck = failed >= _TRIALS
        closed = jnp.max(jnp.abs(at.tangent(closing))) <= _CLOSED
        silent = closed & jnp.all(jnp.abs(at.unheld(at.f)) <= at.noise)
        arrived = ((correction <= tolerance) & ~leave) | (stuck & silent)
        code = jnp.where(arrived, FOUND, jnp.where(stuck, STUCK, RUNNING))

        first = jnp.linalg.norm(_step(at, g, 1.0 / _FIRST**2, stable))
        plan = _choose(begin, _Plan(first, real(1.0), real(_KICK)), plan)
        ahead = _propose(system, t, q, at, leave, plan, stable)
        return _Way(q, at, plan, ahead, correction, failed, way.steps + 1, code)

    shapes = eqx.filter_eval_shape(balance, system, t, q, u)
    nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    zero, none = real(0.0), jnp.asarray(0)
    here = _Proposal(q, jnp.zeros_like(nothing.f), zero, zero, zero)
    start = _Way(q, nothing, _Plan(zero, zero, zero), here, zero, none, none, none)
    running = lambda way: (way.code == RUNNING) & (way.steps < max_steps)
    way = lax.while_loop(running, onward, start)
    code = jnp.where(way.code == RUNNING, EXHAUSTED, way.code)
    return Search(way.q, way.at, way.correction, way.steps, code)


def _choose(which, a, b):
    return jax.tree.map(lambda a, b: jnp.where(which, a, b), a, b)


def _step(at: Balance, g, shift, down: bool):
    """Towards balance, with a shift [1/s^2]; `down` the gradient too, with the stiffness in size.
    What nothing holds goes as far as one second would take it: nowhere, unless pushed."""
    size = jnp.where(at.neutral, jnp.maximum(1.0, at.round_off), jnp.abs(at.values)) + shift
    size = size if down else jnp.where(at.neutral | (at.values > 0), size, -size)
    straight = lambda g: -at.directions @ ((g @ at.directions) / size)
    return lax.cond(at.skew, at.shifted(shift), straight, g)


def _shift_within(at: Balance, g, radius):
    """The shift [1/s^2] that makes a step as long as the radius; none if it is shorter."""
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
    # on a saddle nothing says where to go: along what is least stable
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


def _judge(system: System, t, way: _Way, new: Balance, stable: bool):
    """Whether a step may be taken, and how far the next one may go."""
    at, plan, (ahead, d, length, expected, hoped) = way.at, way.plan, way.next
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
    # in a bowl, and where there is no energy, nearer to balance is good as well
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
