"""Workspaces of cable robots: which poses of a grid its cables can hold.

A cable only pulls, between a least and a largest tension. At a pose with structure matrix W (6, n)
the wrenches it can exert are `W f` with `minimum <= f <= maximum`:

- the *static* workspace: poses at which the weight can be held,
- the *wrench-feasible* workspace: poses at which every wrench of a set can be exerted besides,
- the *wrench-closure* workspace: poses at which any wrench can be exerted by tensions that are
  large enough, which the geometry alone decides."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from .._base.checks import (
    require,
    require_finite,
    require_number,
    require_rotation,
    require_shape,
)
from .._base.precision import as_float_array
from .._jax.identity import filter_jit
from ..math.linalg import matvec
from ..math.qp import solve_qp
from ..math.safe import safe_norm

#: weight of tensions relative to that of the missing wrench [1]
_SOFT = 1e-8
#: tensions are kept near the middle of their range, up to this multiple of the wrench [1]
_FAR = 100.0


class Workspace(eqx.Module):
    """`positions` (k, 3) [m] of the platform's origin, and which are `inside` (k,). `shortfall`
    (k,) [N]: distance of the worst wrench from those that the cables can exert, zero inside;
    moments are divided by the robot's size `length` [m]. It is smooth, so its gradient can improve
    a design. `tensions` (k, n) [N] balance the weight alone. Both are NaN, and the pose is not
    inside, if the quadratic programme does not converge."""

    positions: Float[Array, "k 3"]
    inside: Bool[Array, " k"]
    shortfall: Float[Array, " k"]
    tensions: Float[Array, "k n"]
    length: Float[Array, ""]

    @property
    def share(self) -> float:
        """Fraction of the positions that are inside, from 0 to 1."""
        return float(np.mean(self.inside))

    def summary(self) -> str:
        """How many poses are inside, where, and the tensions there [N], in a few lines."""
        inside = np.asarray(self.inside)
        lines = [f"{inside.sum()} of {inside.size} poses inside, {100 * self.share:.1f} %"]
        if inside.any():
            within = np.asarray(self.positions)[inside]
            spans = zip("xyz", within.min(axis=0), within.max(axis=0), strict=True)
            lines.append(", ".join(f"{n} {a:.3g} to {b:.3g} m" for n, a, b in spans))
            f = np.asarray(self.tensions)[inside]
            lines.append(f"tensions at rest {f.min():.4g} to {f.max():.4g} N")
        return "\n".join(lines)


def box_grid(low, high, count) -> Float[Array, "k 3"]:
    """Positions on a grid between two corners (3,) [m], `count` along each axis, one number or
    three; the last axis changes fastest."""
    low, high = as_float_array(low, "low"), as_float_array(high, "high")
    for name, x in (("low", low), ("high", high)):
        require_shape(name, x, (3,))
    require(bool(np.all(np.asarray(high) >= np.asarray(low))), "high", high, "low or more")
    counts = as_float_array(count, "count")
    whole = counts.shape in ((), (3,)) and bool(np.all((counts >= 1) & (counts == counts // 1)))
    require(whole, "count", count, "one whole number >= 1, or three")
    counts = np.broadcast_to(np.asarray(counts, int), (3,))
    axes = [np.linspace(a, b, n) for a, b, n in zip(low, high, counts, strict=True)]
    return jnp.asarray(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3))


def static(robot, positions, *, minimum, maximum, rotation=None) -> Workspace:
    """Static workspace: poses at which the cables can hold the platform with its payload.

    **Arguments:** `robot`: a machine with `state_at(position, rotation)`, `structure_matrix`,
    `static_wrench` and `attachments`, such as a `CableRobot`; `positions` (k, 3) [m],
    `box_grid(...)`; `minimum`, `maximum`: allowed tensions [N]; `rotation` (3, 3) of the platform,
    by default the robot's."""
    return wrench_feasible(
        robot, positions, jnp.zeros((1, 6)), minimum=minimum, maximum=maximum, rotation=rotation
    )


def wrench_feasible(robot, positions, wrenches, *, minimum, maximum, rotation=None) -> Workspace:
    """Wrench-feasible workspace: poses at which the cables can exert each of the `wrenches` (m, 6)
    in addition to the weight: force [N] and moment about the centre of mass [N m] in world axes.
    For a box of wrenches, its corners suffice. Other arguments as in `static`."""
    positions, wrenches = _table("positions", positions, 3), _table("wrenches", wrenches, 6)
    _check_robot(robot)
    require_number("minimum", minimum, positive=False)
    require(minimum >= 0, "minimum", minimum, "0 N or more: cables only pull")
    require_number("maximum", maximum)
    require(maximum > minimum, "maximum", maximum, f"more than minimum, {minimum:g} N")
    bounds = as_float_array(minimum), as_float_array(maximum)
    return _feasible(robot, positions, wrenches, bounds, _rotation(rotation))


def wrench_closure(robot, positions, *, rotation=None) -> Bool[Array, " k"]:
    """Wrench-closure workspace (k,): poses at which cables could exert any wrench with unlimited
    tensions. It is empty for fewer than seven cables. Arguments as in `static`."""
    positions = _table("positions", positions, 3)
    _check_robot(robot)
    return _closed(robot, positions, _rotation(rotation))


def _rotation(rotation):
    if rotation is None:
        return None
    rotation = as_float_array(rotation, "rotation")
    require_rotation("rotation", rotation)
    return rotation


def _table(name: str, rows, width: int):
    rows = as_float_array(rows)
    fits = rows.ndim == 2 and rows.shape[0] > 0 and rows.shape[1] == width
    require(fits, name, f"shape {rows.shape}", f"shape (k, {width}), one row or more")
    require_finite(name, rows)
    return rows


def _check_robot(robot) -> None:
    asked = ("state_at", "structure_matrix", "static_wrench", "attachments")
    lacks = [name for name in asked if not hasattr(robot, name)]
    given = f"{type(robot).__name__} without {', '.join(lacks)}"
    require(not lacks, "robot", given, "a robot on cables, such as a CableRobot")


def _matrix(robot, position, rotation):
    """W with moments in units of length, the weight likewise, and that length [m]."""
    given: Any = {} if rotation is None else {"rotation": rotation}
    q = robot.state_at(position, **given).q
    W, weight = robot.structure_matrix(q), robot.static_wrench(q)
    length = _size(robot)
    scale = jnp.concatenate([jnp.ones(3), jnp.full(3, 1.0 / length)])
    return scale[:, None] * W, scale * weight, scale, length


def _size(robot):
    """Size of the platform: mean distance of its attachments from their centre [m]."""
    arms = robot.attachments - jnp.mean(robot.attachments, axis=0)
    return jnp.mean(jnp.sqrt(jnp.sum(arms * arms, axis=1) + 1e-12))


@filter_jit
def _feasible(robot, positions, wrenches, bounds, rotation) -> Workspace:
    low, high = bounds

    def one(position):
        W, weight, scale, length = _matrix(robot, position, rotation)
        lacking = lambda wrench: _distribute(W, weight + scale * wrench, low, high)
        every = jnp.concatenate([jnp.zeros((1, 6), W.dtype), wrenches])
        f, short = jax.vmap(lacking)(every)
        return f[0], jnp.max(short[1:]), length

    f, short, length = jax.lax.map(one, positions, batch_size=256)
    return Workspace(positions, short == 0.0, short, f, length[0])


def _distribute(W, wrench, low, high):
    """Tensions (n,) [N] within bounds that exert a wrench as closely as possible, and the norm of
    the missing wrench, zero if it is below one part in a million."""
    n, size = W.shape[1], safe_norm(wrench)
    # near the middle of the range, or a hundred times the wrench where the range is far larger
    near = jnp.minimum(0.5 * (low + high), low + _FAR * size)
    exact = solve_qp(jnp.eye(n, dtype=W.dtype), jnp.full(n, -near), W, wrench, low, high)
    # a wrench out of reach: 1/2 |missing|^2 and a small weight on tensions
    P = jnp.diag(jnp.concatenate([jnp.full(n, _SOFT), jnp.ones(6)]))
    wish = jnp.concatenate([jnp.full(n, -_SOFT * near), jnp.zeros(6)])
    rows = jnp.concatenate([W, jnp.eye(6, dtype=W.dtype)], axis=1)
    every = jnp.full(6, jnp.inf, W.dtype)
    least = jnp.concatenate([jnp.full(n, low, W.dtype), -every])
    most = jnp.concatenate([jnp.full(n, high, W.dtype), every])
    nearest = solve_qp(P, wish, rows, wrench, least, most)
    f = jnp.where(nearest.solved, nearest.x[:n], jnp.nan)
    short = safe_norm(wrench - matvec(W, f))
    short = jnp.where(exact.solved | (short < 1e-6 * size), 0.0, short)
    return jnp.where(exact.solved, exact.x, f), short


@filter_jit
def _closed(robot, positions, rotation):
    def one(position):
        W, *_ = _matrix(robot, position, rotation)
        n = W.shape[1]
        # full rank, and tensions of one at least that cancel out
        regular = jnp.linalg.svd(W, compute_uv=False)[-1] > 1e-9 if n >= 6 else jnp.array(False)
        found = solve_qp(jnp.eye(n), jnp.zeros(n), W, jnp.zeros(6), 1.0, jnp.inf)
        return found.solved & regular

    return jax.lax.map(one, positions, batch_size=256)
