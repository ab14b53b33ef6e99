"""Small convex quadratic programmes, for example for tensions and torques.

    minimise  1/2 x^T P x + q^T x    subject to    A x = b,    lower <= C x <= upper

`solve_qp` first finds the active bounds: up to `SMALL` rows by the dual active-set method of
Goldfarb and Idnani (1983), above by the interior-point method of qpax. It then solves the KKT
equations of these bounds. Only the KKT equations are differentiated, as a linear system.
Derivatives of any order in forward and reverse mode are therefore correct wherever the active set
does not change.

The active set is represented by a tableau, in which a bound enters or leaves by one sweep. Sweeps
are array operations of fixed shape without LAPACK, which XLA compiles into the surrounding time
loop."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from .linalg import matmul, matvec, vecmat

#: largest number of rows of A and C for which the active set is found by sweeps. Microseconds by
#: sweeps and by the interior-point method (`benchmarks/qp.py`): 2 and 200 for 5 equations and 6
#: bounds, 4 and 850 for 6 and 8, 150 and 1300 for 20 and 40
SMALL = 60

SOLVED, INFEASIBLE, UNFINISHED, NOT_CONVEX = range(4)


class QPSolution(eqx.Module):
    """Solution of a quadratic programme.

    - `x` (n,): the minimum.
    - `equality` (m,), `bounds` (k,): Lagrange multipliers of the equations and of the bounds, with
      `P x + q = A^T equality + C^T bounds`. Those of bounds are positive at a lower bound and
      negative at an upper bound.
    - `status`: SOLVED, INFEASIBLE (no x satisfies equations and bounds), UNFINISHED (too many
      iterations) or NOT_CONVEX (P and A both vanish along some direction). If it is not SOLVED, `x`
      is the last iterate and not a solution.
    - `iterations`: number of iterations to find the active set."""

    x: Float[Array, " n"]
    equality: Float[Array, " m"]
    bounds: Float[Array, " k"]
    status: Int[Array, ""]
    iterations: Int[Array, ""]

    @property
    def solved(self) -> Bool[Array, ""]:
        return self.status == SOLVED


def solve_qp(
    P,
    q,
    A=None,
    b=None,
    lower=-jnp.inf,
    upper=jnp.inf,
    C=None,
    *,
    method: Literal["sweeps", "interior"] | None = None,
    max_iterations: int | None = None,
) -> QPSolution:
    """Solve a convex quadratic programme; return a `QPSolution`.

    **Arguments:**

    - `P` (n, n): symmetric, and positive definite in the directions that `A` leaves free; `q` (n,).
    - `A` (m, n), `b` (m,): equations. They may be linearly dependent if they are consistent.
    - `lower`, `upper`: bounds (k,), or one number for all; infinite where there is no bound.
    - `C` (k, n): matrix of the bounded quantities `C x`; None for bounds on x itself.
    - `method`: "sweeps" or "interior"; by default it depends on the number of rows.
    - `max_iterations`: largest number of bounds that enter or leave (of interior-point iterations
      with "interior"), by default 10 + 4 k."""
    n = q.shape[0]
    A = jnp.zeros((0, n), q.dtype) if A is None else A
    b = jnp.zeros(0, q.dtype) if b is None else b
    C = jnp.eye(n, dtype=q.dtype) if C is None else C
    m, k = A.shape[0], C.shape[0]
    lower, upper = (jnp.broadcast_to(jnp.asarray(x, q.dtype), (k,)) for x in (lower, upper))
    rows = jnp.concatenate([A, C])
    least, most = jnp.concatenate([b, lower]), jnp.concatenate([b, upper])
    limit = 10 + 4 * k if max_iterations is None else max_iterations
    frozen = lax.stop_gradient((P, q, rows, least, most))
    sweeps = m + k <= SMALL if method is None else method == "sweeps"
    find = _by_sweeps if sweeps else _by_qpax
    scale, active, solve, status, iterations = find(*frozen, m, limit)
    status = jnp.where(jnp.any(least > most), INFEASIBLE, status)

    # KKT equations of the active bounds; inactive rows have the multiplier zero
    acts = active != 0
    scaled = scale[:, None] * rows
    target = scale * jnp.where(active < 0, most, least)
    split = lambda y: (y[:n], y[n:])
    y = lax.custom_linear_solve(
        lambda y: jnp.concatenate(_kkt(P, scaled, acts, split(y))),
        jnp.concatenate([-q, jnp.where(acts, -jnp.where(acts, target, 0.0), 0.0)]),
        lambda _, r: jnp.concatenate(solve(split(r))),
        lambda _, r: jnp.concatenate(solve(split(r))),
        symmetric=True,
    )
    x, multipliers = split(y)
    multipliers = scale * multipliers
    return QPSolution(x, multipliers[:m], multipliers[m:], status, iterations)


def _kkt(P, rows, acts, y):
    """Apply the operator `[P, -B^T; -B, 0]` to (x, multipliers), where B are the active rows."""
    x, multipliers = y
    held = jnp.where(acts, multipliers, 0.0)
    return matvec(P, x) - vecmat(held, rows), jnp.where(acts, -matvec(rows, x), -multipliers)


def _refined(solve, P, rows, acts):
    """Return `solve` followed by one step of iterative refinement."""

    def twice(r):
        y = solve(r)
        left = jax.tree.map(jnp.subtract, r, _kkt(P, rows, acts, y))
        return jax.tree.map(jnp.add, y, solve(left))

    return twice


def _tolerance(dtype):
    return float(jnp.finfo(dtype).eps) ** 0.6


# --- the active set by sweeps


def _by_sweeps(P, q, rows, least, most, m: int, limit: int):
    """Find the active set by sweeps.

    Returns the scales of the rows, the active rows (1 at the lower bound, -1 at the upper bound, 0
    if inactive), a solver of their KKT equations, a status and the number of iterations."""
    tolerance = _tolerance(q.dtype)
    # P may be singular: add a term that is constant where the equations hold
    A = rows[:m] / _or_one(jnp.sqrt(jnp.sum(rows[:m] ** 2, axis=1)))[:, None]
    weight = _or_one(jnp.trace(P)) / _or_one(jnp.sum(A * A))
    inverse, convex = _inverse(P + weight * matmul(A.T, A), tolerance)
    reach = matmul(rows, inverse)
    scale = 1.0 / jnp.sqrt(_or_one(jnp.sum(reach * rows, axis=1)))
    rows, least, most = scale[:, None] * rows, scale * least, scale * most
    H = matmul(scale[:, None] * reach, rows.T)
    # values of the rows at the minimum without constraints
    value = -matvec(rows, matvec(inverse, q))
    start = jnp.zeros_like(value), value, jnp.zeros(value.shape, int)
    # all rows have the same scale, hence the same round-off, even for a target near zero
    largest = jnp.max(jnp.abs(jnp.concatenate([value, least[:m]])), initial=0.0)
    room = tolerance * (jnp.abs(value) + largest)
    room = room + tolerance * jnp.where(jnp.isfinite(least), jnp.abs(least), 0.0)
    table, carry, consistent = _equations(H, start, least, room, m, tolerance)
    table, active, status, iterations = _bounds(
        table, carry, least, most, room, m, limit, tolerance
    )
    status = jnp.where(consistent, status, INFEASIBLE)
    status = jnp.where(convex, status, NOT_CONVEX)
    acts = active != 0
    mobility = jnp.where(acts[:, None] & acts[None], table, 0.0)
    # a skipped equation is a combination of others
    equation = jnp.arange(rows.shape[0]) < m
    combination = jnp.where(acts[:, None] & equation[None], table, 0.0)
    row_weight = weight / _or_one(jnp.sum(rows * rows, axis=1))

    def solve(r):
        r1, r2 = r
        c = jnp.where(acts, -r2, 0.0)
        implied = jnp.where(acts, c, vecmat(c, combination))
        r1 = r1 + vecmat(jnp.where(equation, row_weight * implied, 0.0), rows)
        free = matvec(inverse, r1)
        multipliers = matvec(mobility, c - matvec(rows, free))
        x = free + matvec(inverse, vecmat(multipliers, rows))
        return x, jnp.where(acts, multipliers, -r2)

    return scale, active, _refined(solve, P, rows, acts), status, iterations


def _equations(table, carry, target, room, m: int, tolerance):
    """Let all independent equations enter, and check whether the others agree with them."""
    index = jnp.arange(target.shape[0])

    def enter(i, state):
        table, (multipliers, value, active) = state
        pivot = table[i, i]
        independent = pivot > tolerance
        step = jnp.where(independent, (target[i] - value[i]) / _or_one(pivot), 0.0)
        multipliers, value = _moved(table, multipliers, value, active, i, step)
        table = jnp.where(independent, _sweep(table, i), table)
        active = jnp.where((index == i) & independent, 1, active)
        return table, (multipliers, value, active)

    table, carry = lax.fori_loop(0, m, enter, (table, carry))
    left = jnp.abs(carry[1] - target) <= 10.0 * room
    return table, carry, jnp.all(left | (index >= m))


def _bounds(table, carry, least, most, room, m: int, limit: int, tolerance):
    """Find the active bounds (Goldfarb and Idnani): the most violated bound enters, and an active
    bound leaves when its multiplier reaches zero on the way."""
    bound = jnp.arange(least.shape[0]) >= m

    def violated(value, active):
        worst = jnp.maximum(least - value, value - most) - room
        return jnp.where(bound & (active == 0), worst, -jnp.inf)

    def go(state):
        return (state[-1] < limit) & (state[-2] == UNFINISHED)

    def body(state):
        table, multipliers, value, active, kept, _, count = state
        violation = violated(value, active)
        p = jnp.where(kept >= 0, kept, jnp.argmax(violation))
        done = (kept < 0) & ~(violation[p] > 0.0)
        side = jnp.where(least[p] - value[p] > value[p] - most[p], 1, -1)
        gap = jnp.where(side > 0, least[p] - value[p], value[p] - most[p])
        pivot = table[p, p]
        whole = jnp.where(pivot > tolerance, jnp.maximum(gap, 0.0) / _or_one(pivot), jnp.inf)
        falls = active * side * table[:, p]
        blocks = bound & (active != 0) & (falls > tolerance)
        ratio = jnp.maximum(active * multipliers, 0.0) / jnp.where(blocks, falls, 1.0)
        ratio = jnp.where(blocks, ratio, jnp.inf)
        j = jnp.argmin(ratio)
        enters = whole <= ratio[j]
        step = jnp.where(enters, whole, ratio[j])
        stuck = ~jnp.isfinite(step)
        stop = done | stuck
        multipliers_new, value_new = _moved(
            table, multipliers, value, active, p, jnp.where(stop, 0.0, side * step)
        )
        changed = jnp.where(enters, p, j)
        here = jnp.arange(active.shape[0]) == changed
        multipliers_new = jnp.where(here & ~enters, 0.0, multipliers_new)
        active_new = jnp.where(here, jnp.where(enters, side, 0), active)
        status = jnp.where(done, SOLVED, jnp.where(stuck, INFEASIBLE, UNFINISHED))
        return (
            jnp.where(stop, table, _sweep(table, changed)),
            multipliers_new,
            value_new,
            jnp.where(stop, active, active_new),
            jnp.where(enters | stop, -1, p),
            status,
            jnp.where(done, count, count + 1),
        )

    first = (table, *carry, jnp.array(-1), jnp.array(UNFINISHED), jnp.array(0))
    if least.shape[0] == m:
        return table, carry[2], jnp.array(SOLVED), jnp.array(0)
    table, _, _, active, _, status, count = lax.while_loop(go, body, first)
    return table, active, status, count


def _moved(table, multipliers, value, active, p, step):
    """Multipliers of active rows and values of the others after the multiplier of row p has been
    increased by `step`."""
    column = step * table[:, p]
    here = jnp.where(jnp.arange(value.shape[0]) == p, step, 0.0)
    acts = active != 0
    return multipliers + jnp.where(acts, -column, here), value + jnp.where(acts, 0.0, column)


def _sweep(T, k):
    """Sweep row k of the tableau (a Gauss-Jordan step in place).

    With W the swept rows and U the others, `T_WW = H_WW^-1`, `T_WU = H_WW^-1 H_WU`, and T_UU is the
    Schur complement. A second sweep of the same row undoes the first."""
    here = jnp.arange(T.shape[0]) == k
    column = T[:, k]
    row = jnp.where(here, 1.0, T[k]) / T[k, k]
    rest = jnp.where(here[None], 0.0, T) - column[:, None] * row
    return jnp.where(here[:, None], row, rest)


def _inverse(S, tolerance):
    """Inverse of a symmetric positive definite matrix, and whether the matrix is definite."""
    diagonal = jnp.diagonal(S)

    def enter(k, state):
        T, good = state
        definite = T[k, k] > tolerance * diagonal[k]
        return jnp.where(definite, _sweep(T, k), T), good & definite

    inverse, good = lax.fori_loop(0, S.shape[0], enter, (S, jnp.array(True)))
    return 0.5 * (inverse + inverse.T), good


def _or_one(x):
    """Return `x` where it is positive, otherwise 1, for use as a divisor."""
    return jnp.where(x > 0.0, x, 1.0)


# --- larger programmes


def _by_qpax(P, q, rows, least, most, m: int, limit: int):
    """Find the active set by the interior-point method of qpax; returns the same as `_by_sweeps`.

    The method gives the active bounds only approximately. They are corrected, and checked, by the
    solution of their KKT equations."""
    import qpax

    n, tolerance = q.shape[0], 10.0 * float(jnp.finfo(q.dtype).eps) ** 0.5  # accuracy of qpax
    scale = 1.0 / _or_one(jnp.sqrt(jnp.sum(rows * rows, axis=1)))
    rows, least, most = scale[:, None] * rows, scale * least, scale * most
    A, C = rows[:m], rows[m:]
    weight = _or_one(jnp.trace(P)) / _or_one(jnp.sum(A * A))
    G = jnp.concatenate([C, -C])
    h = jnp.concatenate([most[m:], -least[m:]])
    some = jnp.isfinite(h)
    size = 1.0 + jnp.max(jnp.abs(jnp.concatenate([least[:m], jnp.where(some, h, 0.0)])))
    cost = jnp.max(jnp.abs(P)) + jnp.max(jnp.abs(q)) / size
    x, s, z, _, _, iterations = qpax.solve_qp(
        (P + weight * A.T @ A) / cost,
        (q - weight * A.T @ least[:m]) / (size * cost),
        A,
        least[:m] / size,
        jnp.where(some[:, None], G, 0.0),
        jnp.where(some, h, 1.0) / size,
        solver_tol=tolerance,
        max_iter=limit,
    )
    shift = jnp.where(jnp.arange(n + rows.shape[0]) < n, 0.0, -1e-12 / _or_one(jnp.trace(P)))

    def solver(acts):
        unit = lambda e: jnp.concatenate(_kkt(P, rows, acts, (e[:n], e[n:])))
        K = jax.vmap(unit, out_axes=1)(jnp.eye(n + rows.shape[0], dtype=q.dtype))
        # the shift lets dependent rows share their multiplier; the refinement removes its error
        factor = jax.scipy.linalg.lu_factor(K + jnp.diag(shift))

        def plain(r):
            y = jax.scipy.linalg.lu_solve(factor, jnp.concatenate(r))
            return y[:n], y[n:]

        return _refined(plain, P, rows, acts)

    def corrected(_, active):
        """Update the active set: a bound is active where its multiplier outweighs its slack."""
        acts = active != 0
        x, multipliers = solver(acts)((-q, -aim(active)))
        value = matvec(rows, x)
        low = multipliers + cost * (least - value) > 0.0
        high = multipliers + cost * (most - value) < 0.0
        return jnp.where(jnp.arange(rows.shape[0]) < m, 1, low.astype(int) - high.astype(int))

    aim = lambda active: jnp.where(active > 0, least, jnp.where(active < 0, most, 0.0))
    upper, lower = jnp.split((some & (z > s)).astype(int), 2)
    active = jnp.concatenate([jnp.ones(m, int), lower - upper])
    active = lax.fori_loop(0, 4, corrected, active)
    acts = active != 0
    solve = solver(acts)
    off = lambda x: jnp.maximum(
        jnp.max(jnp.abs(A @ x - least[:m]), initial=0.0),
        jnp.max(jnp.where(some, G @ x - h, 0.0), initial=0.0),
    )
    y, multipliers = solve((-q, -aim(active)))
    pushes = jnp.max(jnp.where(acts, -active * multipliers, 0.0)[m:], initial=0.0)
    right = (off(y) < tolerance * size) & (pushes < tolerance * size * cost)
    status = jnp.where(off(size * x) > 1e3 * tolerance * size, INFEASIBLE, UNFINISHED)
    return scale, active, solve, jnp.where(right, SOLVED, status), iterations
