"""Shortest paths of a cable around a smooth convex surface, by geodesics.

A surface is the zero set of a level function, negative inside. The cable runs straight to a point
P, tangent to the surface, along a geodesic of length s, and straight on from its end Q. The
unknowns are P, the direction there and s (Scholz et al., "A fast multi-obstacle muscle wrapping
method using natural geodesic variations", 2015, solve the same conditions). Newton's method solves
for them. Its initial guess is a path in the plane of both end points and the outward normal at the
deepest point of the straight line. Derivatives follow from the implicit function theorem."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from ...math.linalg import solve
from ...math.safe import safe_norm, safe_unit

#: number of Runge-Kutta steps along a geodesic, and largest number of Newton steps
_STEPS, _NEWTON = 32, 40
#: number of rays from inside the surface for the initial guess, and number of bisection steps
_RAYS, _BISECTIONS = 65, 50
#: number of points and relaxation steps of a string pulled tight, the second initial guess
_STRING, _PULLS = 24, 600
#: squared residual below which a path counts as solved
_SOLVED = 1e-26

_S = np.sqrt(21.0)
#: Runge-Kutta method of order 8 by Cooper and Verner (1972): rows of coefficients
_A = [
    [],
    [1 / 2],
    [1 / 4, 1 / 4],
    [1 / 7, (-7 - 3 * _S) / 98, (21 + 5 * _S) / 49],
    [(11 + _S) / 84, 0, (18 + 4 * _S) / 63, (21 - _S) / 252],
    [(5 + _S) / 48, 0, (9 + _S) / 36, (-231 + 14 * _S) / 360, (63 - 7 * _S) / 80],
    [(10 - _S) / 42, 0, (-432 + 92 * _S) / 315, (633 - 145 * _S) / 90, (-504 + 115 * _S) / 70,
     (63 - 13 * _S) / 35],
    [1 / 14, 0, 0, 0, (14 - 3 * _S) / 126, (13 - 3 * _S) / 63, 1 / 9],
    [1 / 32, 0, 0, 0, (91 - 21 * _S) / 576, 11 / 72, (-385 - 75 * _S) / 1152,
     (63 + 13 * _S) / 128],
    [1 / 14, 0, 0, 0, 1 / 9, (-733 - 147 * _S) / 2205, (515 + 111 * _S) / 504,
     (-51 - 11 * _S) / 56, (132 + 28 * _S) / 245],
    [0, 0, 0, 0, (-42 + 7 * _S) / 18, (-18 + 28 * _S) / 45, (-273 - 53 * _S) / 72,
     (301 + 53 * _S) / 72, (28 - 28 * _S) / 45, (49 - 7 * _S) / 18],
]  # fmt: skip
_B = [1 / 20, 0, 0, 0, 0, 0, 0, 49 / 180, 16 / 45, 49 / 180, 1 / 20]
_TABLE = np.array([np.pad(row, (0, len(_B) - len(row))) for row in _A])


class Contact(NamedTuple):
    """Contact of a cable with a surface: points `first` and `second` (3,) [m] where it meets and
    leaves the surface, directions `into` and `out` (3,) there, `arc` length [m], `turn` [rad], and
    whether it `touches`."""

    first: Float[Array, " 3"]
    second: Float[Array, " 3"]
    into: Float[Array, " 3"]
    out: Float[Array, " 3"]
    arc: Float[Array, ""]
    turn: Float[Array, ""]
    touches: Bool[Array, ""]


def geodesic_end(surface, point, along, length, other=None):
    """Follow the geodesic of a `length` [m] from a `point` (3,) in direction `along` (3,).

    Returns its end point (3,) [m] and direction (3,) there, the angle [rad] by which its direction
    turns, and the integral of curvature times the distance [m] to an `other` surface nearby,
    positive outside."""

    def rate(state):
        x, t = state[:3], state[3:6]
        slope, bent = jax.jvp(jax.grad(surface.level), (x,), (t,))
        square = jnp.sum(slope * slope)
        square = jnp.where(square > 0, square, 1.0)
        curvature = jnp.sum(t * bent) / square
        pushed = jnp.zeros_like(curvature)
        if other is not None:
            pushed = -curvature * other.level(x)
        turning = curvature * jnp.sqrt(square)
        return jnp.concatenate([t, -curvature * slope, jnp.stack([turning, pushed])])

    h = length / _STEPS

    def step(state, _):
        def stage(stages, row):
            weights, here = row
            value = rate(state + h * jnp.sum(weights[:, None] * stages, axis=0))
            return jnp.where(here[:, None], value, stages), None

        # a loop over the stages, so that the rate is compiled once instead of eleven times
        rows = jnp.asarray(_TABLE, state.dtype), np.eye(len(_B), dtype=bool)
        stages, _ = lax.scan(stage, jnp.zeros((len(_B), 8), state.dtype), rows)
        return state + h * jnp.sum(jnp.asarray(_B, state.dtype)[:, None] * stages, axis=0), None

    start = jnp.concatenate([point, along, jnp.zeros_like(point[:2])])
    state, _ = lax.scan(step, start, None, length=_STEPS)
    return state[:3], state[3:6], state[6], state[7]


def contact(surface, x0, x1) -> Contact:
    """Contact of the cable from `x0` to `x1` (3,) [m] with the surface."""
    unknown, touches = _unknowns(surface, x0, x1)
    first, into, arc = unknown[:3], unknown[3:6], unknown[6]
    second, out, turn, _ = geodesic_end(surface, first, into, arc)
    return Contact(first, second, into, out, arc, turn, touches)


@jax.custom_jvp
def length_past(surface, x0, x1) -> Float[Array, ""]:
    """Length [m] of the cable from `x0` to `x1` (3,) [m]."""
    at = contact(surface, x0, x1)
    around = safe_norm(at.first - x0) + at.arc + safe_norm(x1 - at.second)
    return jnp.where(at.touches, around, safe_norm(x1 - x0))


@length_past.defjvp
def _length_jvp(values, rates):
    """Derivative of the length. The path is stationary, so end points contribute by the directions
    there, and the surface by the pressure on it."""
    (surface, x0, x1), (change, x0_rate, x1_rate) = values, rates
    unknown, touches = _unknowns(surface, x0, x1)
    into = unknown[3:6]
    _, out, _, _ = geodesic_end(surface, unknown[:3], into, unknown[6])
    moved = lambda other: geodesic_end(surface, unknown[:3], into, unknown[6], other)[3]
    slopes = zip(*map(jax.tree.leaves, (jax.grad(moved)(surface), change)), strict=True)
    pushed = sum(jnp.sum(a * b) for a, b in slopes)
    straight = safe_unit(x1 - x0)
    into, out = (jnp.where(touches, x, straight) for x in (into, out))
    rate = jnp.sum(out * x1_rate) - jnp.sum(into * x0_rate)
    return length_past(*values), rate + jnp.where(touches, pushed, 0.0)


def _residual(unknown, surface, x0, x1):
    """Residual (7,), zero if a path is tangent to the surface and to the lines to its end
    points."""
    first, into, arc = unknown[:3], unknown[3:6], unknown[6]
    second, out, _, _ = geodesic_end(surface, first, into, arc)
    size = surface.size()
    n0, n1 = (safe_unit(jax.grad(surface.level)(x)) for x in (first, second))
    before, after = (first - x0) / size, (x1 - second) / size
    return jnp.stack(
        [
            surface.level(first) / size,
            jnp.sum(n0 * into),
            0.5 * (jnp.sum(into * into) - 1.0),
            jnp.sum(n0 * before),
            jnp.sum(_cross(n0, into) * before),
            jnp.sum(n1 * after),
            jnp.sum(_cross(n1, out) * after),
        ]
    )


@jax.custom_jvp
def _unknowns(surface, x0, x1):
    """First contact point, direction there and arc length (7,), and whether the cable touches. If
    it does not touch, the values are arbitrary but regular."""
    share, touches = deepest(surface, x0, x1)
    values, idle = (surface, x0, x1), _idle(surface)
    usable = lambda w: jnp.where(touches & jnp.all(jnp.isfinite(w)), w, idle)
    guess, corner = _planar_guess(*values, x0 + share * (x1 - x0))
    found, error = _newton(*values, usable(guess), touches)
    again = touches & ((error > _SOLVED) | (found[6] < 0))
    relaxed = lambda: _newton(*values, usable(_relaxed_guess(*values, corner)), again)
    second, other = lax.cond(again, relaxed, lambda: (found, error))
    return usable(jnp.where(other < error, second, found)), touches


@_unknowns.defjvp
def _unknowns_jvp(values, rates):
    unknown, touches = _unknowns(*values)
    J = jax.jacfwd(_residual)(unknown, *values)
    moved = jax.jvp(partial(_residual, unknown), values, rates)[1]
    rate = jnp.where(touches, _least_squares(J, -moved, 1e-13), 0.0)
    return (unknown, touches), (rate, np.zeros((), jax.dtypes.float0))


def _least_squares(J, b, share):
    """Least-squares solution (7,) of J x = b, regularised by a fraction `share` of the trace."""
    square = jnp.sum(J[:, :, None] * J[:, None, :], axis=0)
    weight = share * jnp.trace(square)
    scaled = square + weight * jnp.eye(7, dtype=b.dtype)
    return solve(scaled, jnp.sum(J * b[:, None], 0), spd=True, unrolled=False)


def _newton(surface, x0, x1, guess, touches):
    """Newton's method; each step uses the best of several dampings."""
    values = surface, x0, x1
    error = lambda w: jnp.sum(_residual(w, *values) ** 2)
    dampings = jnp.array([0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0], guess.dtype)

    def step(state):
        w, norm, count = state
        residual = _residual(w, *values)
        J = jax.jacfwd(_residual)(w, *values)
        trials = w + jax.vmap(lambda d: _least_squares(J, -residual, 1e-15 + d))(dampings)
        norms = jax.vmap(error)(trials)
        norms = jnp.where(jnp.isfinite(norms), norms, jnp.inf)
        best = jnp.argmin(norms)
        better = norms[best] < norm
        return (
            jnp.where(better, trials[best], w),
            jnp.minimum(norms[best], norm),
            (jnp.where(better, count + 1, _NEWTON)),
        )

    more = lambda state: touches & (state[1] > _SOLVED) & (state[2] < _NEWTON)
    return lax.while_loop(more, step, (guess, error(guess), jnp.zeros((), int)))[:2]


def _idle(surface):
    point = surface.regular_point()
    along = jnp.array([0.0, 1.0, 0.0], point.dtype)
    return jnp.concatenate([point, along, jnp.zeros_like(point[:1])])


def deepest(surface, x0, x1):
    """Position, as a fraction of its length, at which the straight line from `x0` to `x1` (3,) [m]
    has its lowest level, and whether that level is negative; without derivatives."""
    surface, x0, x1 = lax.stop_gradient((surface, x0, x1))
    at = lambda share: x0 + share * (x1 - x0)
    level = lambda share: surface.level(at(share))
    shares = jnp.linspace(0.0, 1.0, 2 * _RAYS)
    here = jnp.argmin(jax.vmap(level)(shares))
    low, high = (jnp.take(shares, jnp.clip(here + k, 0, 2 * _RAYS - 1)) for k in (-1, 1))

    def halve(_, ends):
        low, high = ends
        middle = 0.5 * (low + high)
        rising = jax.grad(level)(middle) > 0
        return jnp.where(rising, low, middle), jnp.where(rising, middle, high)

    low, high = lax.fori_loop(0, _BISECTIONS, halve, (low, high))
    share = 0.5 * (low + high)
    return share, level(share) < 0


def _planar_guess(surface, x0, x1, inner):
    """Initial guess: unknowns (7,) of the path in the plane of the line and the normal at `inner`
    (3,) [m], a point of the line, outward from the surface; and the point (3,) in the middle of the
    path."""
    along = safe_unit(x1 - x0)
    normal = jax.grad(surface.level)(inner)
    normal = normal - along * jnp.sum(along * normal)
    other = _cross(along, jnp.array([1.0, 0.0, 0.0]))
    other = jnp.where(
        jnp.sum(other * other) > 0.1, other, _cross(along, jnp.array([0.0, 1.0, 0.0]))
    )
    normal = jnp.where(jnp.sum(normal * normal) > 0, safe_unit(normal), safe_unit(other))
    angles = np.linspace(0.0, np.pi, _RAYS)[1:-1]
    rays = -np.cos(angles)[:, None] * along + np.sin(angles)[:, None] * normal
    # the level is not larger than the distance, so steps of its size never leave the surface
    onward = lambda _, r: r - jax.vmap(lambda r, ray: surface.level(inner + r * ray))(r, rays)
    reach = lax.fori_loop(0, _BISECTIONS, onward, jnp.zeros(len(angles), along.dtype))
    points = inner + reach[:, None] * rays

    def steepness(x, sign):
        gap = points - x
        return jnp.arctan2(jnp.sum(gap * normal, 1), sign * jnp.sum(gap * along, 1))

    i = jnp.argmax(steepness(x0, 1.0))
    j = jnp.maximum(jnp.argmax(steepness(x1, -1.0)), i)
    pieces = safe_norm(points[1:] - points[:-1])
    index = np.arange(len(angles) - 1)
    arc = jnp.sum(jnp.where((index >= i) & (index < j), pieces, 0.0))
    first = points[i]
    n = safe_unit(jax.grad(surface.level)(first))
    into = points[jnp.minimum(i + 1, len(angles) - 1)] - points[jnp.maximum(i - 1, 0)]
    into = safe_unit(into - n * jnp.sum(n * into))
    return jnp.concatenate([first, into, arc[None]]), points[(i + j) // 2]


def _relaxed_guess(surface, x0, x1, corner):
    """Initial guess: unknowns (7,) of a string over a `corner` (3,) [m] that is pulled tight around
    the surface."""
    shares = np.linspace(0.0, 1.0, _STRING)[1:-1, None]
    first, second = (x0 + 2 * shares * (corner - x0), corner + (2 * shares - 1) * (x1 - corner))
    levels, slopes = jax.vmap(surface.level), jax.vmap(jax.grad(surface.level))

    def outside(x):
        level, slope = levels(x), slopes(x)
        square = jnp.sum(slope * slope, axis=1)
        push = jnp.minimum(level, 0.0) / jnp.where(square > 0, square, 1.0)
        return x - push[:, None] * slope

    def pull(_, x):
        before = jnp.concatenate([x0[None], x[:-1]])
        after = jnp.concatenate([x[1:], x1[None]])
        return outside(0.5 * (before + after))

    x = lax.fori_loop(0, _PULLS, pull, outside(jnp.where(shares < 0.5, first, second)))
    on = levels(x) < 1e-3 * surface.size()
    i = jnp.argmax(on)
    j = len(shares) - 1 - jnp.argmax(on[::-1])
    index = np.arange(len(shares) - 1)
    arc = jnp.sum(jnp.where((index >= i) & (index < j), safe_norm(x[1:] - x[:-1]), 0.0))
    n = safe_unit(jax.grad(surface.level)(x[i]))
    into = x[i] - x0
    return jnp.concatenate([x[i], safe_unit(into - n * jnp.sum(n * into)), arc[None]])


def _cross(a, b):
    return jnp.stack(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )
