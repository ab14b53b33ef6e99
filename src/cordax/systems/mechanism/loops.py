"""Joints that close loops: constraints between two bodies of the tree.

A loop defines the residual of two frames as a function of their poses only. Its Jacobian and
velocity terms follow from the motions of the two bodies. They are evaluated for all loops of a kind
together."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import (
    require,
    require_direction,
    require_positive,
    require_rotation,
    require_shape,
)
from ..._base.fields import name_field, names_field
from ..._base.precision import as_float_array, float_field
from ..._jax.constant_gather import take
from ..._jax.materialise import materialise
from ...math.safe import safe_sqrt
from ...mechanics.constraints import ConstraintTerms
from .body import NAMELESS
from .guides import Frame
from .joints import rotation_between
from .kinematics import Motions, cross
from .tree import Tree, picked

_EYE = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class Loop(eqx.Module):
    """Constraint between bodies ("world" for the ground)."""

    @property
    def bodies(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of scalar joint coordinates on which the residual depends."""
        return ()

    @property
    def row_names(self) -> tuple[str, ...]:
        raise NotImplementedError

    #: rows that can only pull
    one_sided: ClassVar[bool] = False

    def nameless(self) -> "Loop":
        """Copy of the loop without names. Loops with the same structure are evaluated together."""
        raise NotImplementedError

    def residual(self, t, frames: Sequence[Frame], y) -> Float[Array, " m"]:
        """Residual of the loop, zero if the loop is closed, with the bodies at `frames` and joint
        coordinates `y`."""
        raise NotImplementedError

    def along(self, t, R, p, V, A, y, y_rate):
        """Derivatives of the residual as returned by the function `along`. Subclasses may override
        this method with a closed form."""
        residual = lambda t, R, p, y: self.residual(t, frames(R, p), y)
        return along(residual, t, R, p, V, A, y, y_rate)


class _Pair(Loop):
    """Loop between a `predecessor` and a `successor`."""

    predecessor: eqx.AbstractVar[str]
    successor: eqx.AbstractVar[str]

    @property
    def bodies(self):
        return (self.predecessor, self.successor)

    def nameless(self):
        return dataclasses.replace(self, predecessor=NAMELESS, successor=NAMELESS)


class SphericalLoop(_Pair):
    """Ball joint that closes a loop: a point of one body coincides with a point of the other [m].

    The residual is `Phi = x_successor - x_predecessor` along the world `axes` named. A pin between
    bodies of a planar mechanism needs two of them."""

    predecessor: str = name_field()
    successor: str = name_field()
    point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    successor_point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    axes: str = eqx.field(static=True, default="xyz")

    def __check_init__(self):
        require_shape("point", self.point, (3,))
        require_shape("successor_point", self.successor_point, (3,))
        ok = isinstance(self.axes, str) and self.axes != "" and set(self.axes) <= set("xyz")
        require(ok, "axes", repr(self.axes), "letters of 'xyz'")

    @property
    def row_names(self):
        return tuple(self.axes)

    def residual(self, t, frames, y):
        first, second = frames
        return take(second.point(self.successor_point) - first.point(self.point), self._kept)

    @property
    def _kept(self) -> np.ndarray:
        return np.array(["xyz".index(a) for a in self.axes])

    def along(self, t, R, p, V, A, y, y_rate):
        local = jnp.stack([self.point, self.successor_point])
        x = p + jnp.sum(R * local[:, None, :], axis=2)
        omega = V[:, :3]
        speed = V[:, 3:] + cross(omega, x)
        bias = A[:, 3:] + cross(A[:, :3], x) + cross(omega, speed)
        # a twist moves the point by v + omega x (point)
        zero = jnp.zeros_like(x[:, 0])
        lever = jnp.stack(
            [
                jnp.stack([zero, x[:, 2], -x[:, 1]], axis=1),
                jnp.stack([-x[:, 2], zero, x[:, 0]], axis=1),
                jnp.stack([x[:, 1], -x[:, 0], zero], axis=1),
            ]
        )
        sign, shift = np.array([-1.0, 1.0])[:, None], np.broadcast_to(np.eye(3)[:, None], (3, 2, 3))
        W = jnp.concatenate([lever, jnp.asarray(shift, x.dtype)], axis=2) * sign
        gap = lambda a: take(a[1] - a[0], self._kept)
        return (
            gap(x),
            take(W, self._kept),
            jnp.zeros((len(self.axes), 0), x.dtype),
            gap(speed),
            gap(bias),
        )


class FrameLoop(_Pair):
    """Two frames, one on each body, whose relative position and rotation vanish in the given
    `rows`.

    The rows are "x", "y", "z" for positions [m] along the axes of the predecessor's frame, and
    "rx", "ry", "rz" for rotations about them
    [rad, for small errors; 2 sin(angle/2) with all three rotations]. All six rows are a weld;
    without "rz", a hinge about z; without "z", a slider along z; without both, a cylindrical
    joint."""

    predecessor: str = name_field()
    successor: str = name_field()
    point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    successor_point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    turned: Float[Array, "3 3"] = float_field(default=_EYE)
    successor_turned: Float[Array, "3 3"] = float_field(default=_EYE)
    rows: tuple[str, ...] = names_field(default=("x", "y", "z", "rx", "ry"))

    def __check_init__(self):
        for name in ("point", "successor_point"):
            require_shape(name, getattr(self, name), (3,))
        for name in ("turned", "successor_turned"):
            require_rotation(name, getattr(self, name))
        ok = len(self.rows) > 0 and set(self.rows) <= {"x", "y", "z", "rx", "ry", "rz"}
        require(ok, "rows", self.rows, "some of 'x', 'y', 'z', 'rx', 'ry', 'rz'")

    @property
    def row_names(self):
        return self.rows

    def residual(self, t, frames, y):
        first, second = frames
        A, B = _product(first.R, self.turned), _product(second.R, self.successor_turned)
        gap = second.point(self.successor_point) - first.point(self.point)
        along = jnp.sum(A * gap[:, None], axis=0)
        Q = jnp.sum(A[:, :, None] * B[:, None, :], axis=0)
        turn = 0.5 * jnp.stack([Q[2, 1] - Q[1, 2], Q[0, 2] - Q[2, 0], Q[1, 0] - Q[0, 1]])
        if {"rx", "ry", "rz"} <= set(self.rows):
            # sin(angle) also vanishes at half a turn, 2 sin(angle/2) does not; close to half a
            # turn the axis is lost in round-off, and any value far from zero will do
            cosine = 1.0 + jnp.trace(Q)
            turn = turn * 2.0 / safe_sqrt(jnp.maximum(cosine, 1e-9))
            turn = jnp.where(cosine > 1e-9, turn, 2.0)
        every = ("x", "y", "z", "rx", "ry", "rz")
        return jnp.concatenate([along, turn])[np.array([every.index(r) for r in self.rows])]


class DistanceLoop(_Pair):
    """Massless bar of a `length` [m] between two points: `Phi = (d^2 - L^2)/(2 L)`."""

    predecessor: str = name_field()
    successor: str = name_field()
    length: Float[Array, ""] = float_field(unit="m")
    point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    successor_point: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))

    def __check_init__(self):
        require_shape("length", self.length, ())
        require_positive("length", self.length)

    @property
    def row_names(self):
        return ("length",)

    def residual(self, t, frames, y):
        first, second = frames
        gap = second.point(self.successor_point) - first.point(self.point)
        return ((jnp.sum(gap * gap) - self.length**2) / (2.0 * self.length))[None]


def RevoluteLoop(
    predecessor: str, successor: str, point, successor_point, axis, successor_axis=None
) -> FrameLoop:
    """Hinge that closes a loop: points (3,) [m] of both bodies coincide, and an `axis` (3,) of the
    predecessor is parallel to `successor_axis` of the successor (default: the same components)."""
    axis = as_float_array(axis)
    other = axis if successor_axis is None else as_float_array(successor_axis)
    require_direction("axis", axis)
    require_direction("successor_axis", other)
    z = jnp.array([0.0, 0.0, 1.0])
    return FrameLoop(
        predecessor,
        successor,
        point,
        successor_point,
        rotation_between(z, axis),
        rotation_between(z, other),
    )


def _product(A, B):
    return jnp.sum(A[:, :, None] * B[None], axis=1)


class LoopGroup(NamedTuple):
    """Loops of one kind: their indices, the indices of their bodies (k, b), of the coordinates and
    velocities on which they depend (k, c), and of their rows among all constraints (k, r)."""

    members: tuple[int, ...]
    bodies: np.ndarray
    joints_q: np.ndarray
    joints_v: np.ndarray
    rows: np.ndarray


def grouped(loops: tuple[Loop, ...], tree: Tree) -> list[LoopGroup]:
    """Group loops by kind, so that many loops compile as fast as one."""
    known = lambda x: (jax.tree.structure(x.nameless()), x.bodies, x.joints, len(x.row_names))
    return _grouped(tuple(map(known, loops)), tree)


@functools.cache
def _grouped(loops, tree: Tree) -> list[LoopGroup]:
    kinds: dict = {}
    start = 0
    for i, (kind, names, joints, count) in enumerate(loops):
        bodies = np.array([tree.body(name, "loop: body") for name in names])
        places = tree.scalars(joints, "loop: joints")
        kinds.setdefault(kind, []).append((i, bodies, *places, np.arange(start, start + count)))
        start += count
    return [
        LoopGroup(tuple(members), *(np.stack(x) for x in arrays))
        for members, *arrays in (zip(*entries, strict=True) for entries in kinds.values())
    ]


def pattern(tree: Tree, groups: list[LoopGroup]) -> np.ndarray:
    """Mask of the entries of the Jacobian (m, n_v) that may be nonzero."""
    touched = np.zeros((sum(g.rows.size for g in groups), tree.n_v), bool)
    for g in groups:
        for rows, bodies, joints in zip(g.rows, g.bodies, g.joints_v, strict=True):
            touched[rows] = tree.moves[bodies].any(axis=0)
            touched[np.ix_(rows, joints)] = True
    return touched


def stacked(loops: tuple[Loop, ...], groups: list[LoopGroup]) -> tuple[Loop, ...]:
    """Stacked parameters of each group, as one `Loop` with a leading axis."""
    stack = lambda members: jax.tree.map(
        lambda *x: jnp.stack(x), *(loops[i].nameless() for i in members)
    )
    return tuple(stack(g.members) for g in groups)


def residuals(groups: list[LoopGroup], loops: tuple[Loop, ...], t, q, R, p) -> Float[Array, " m"]:
    """Constraint residuals Phi (m,) at world poses (N, 3, 3), (N, 3)."""
    if not groups:
        return jnp.zeros(0, p.dtype)
    R, p = with_ground(R, p)
    values = [
        jax.vmap(lambda loop, R, p, y: loop.residual(t, frames(R, p), y))(
            kind, take(R, g.bodies), take(p, g.bodies), take(q, g.joints_q)
        )
        for g, kind in zip(groups, loops, strict=True)
    ]
    return _in_order(groups, values)


def terms(
    tree: Tree, groups: list[LoopGroup], loops: tuple[Loop, ...], t, q, v, at: Motions
) -> ConstraintTerms:
    """Constraint residuals Phi, their Jacobian (m, n_v), rate and bias."""
    S = at.poses.S
    if not groups:
        none = jnp.zeros(0, S.dtype)
        return ConstraintTerms(none, jnp.zeros((0, tree.n_v), S.dtype), none, none)
    R, p = with_ground(at.poses.R, at.poses.p)
    still = jnp.zeros((1, 6), S.dtype)
    V, A = jnp.concatenate([at.V, still]), jnp.concatenate([at.A, still])
    phis, jacobians, rates, biases = [], [], [], []
    t = jnp.asarray(t, S.dtype)
    for g, kind in zip(groups, loops, strict=True):
        b = g.bodies
        each = jax.vmap(lambda loop, *state: loop.along(t, *state))
        phi, W, by_joint, rate, bias = materialise(
            each(
                kind, *(take(x, b) for x in (R, p, V, A)), take(q, g.joints_q), take(v, g.joints_v)
            )
        )
        jacobian = _columns(tree, b, W, S)
        if g.joints_v.shape[1]:
            onto = jnp.asarray(np.eye(tree.n_v)[g.joints_v], S.dtype)
            jacobian = jacobian + jnp.sum(by_joint[..., None] * onto[:, None], axis=2)
        jacobians.append(jacobian)
        phis.append(phi)
        rates.append(rate)
        biases.append(bias)
    return materialise(
        ConstraintTerms(*(_in_order(groups, x) for x in (phis, jacobians, rates, biases)))
    )


def _columns(tree: Tree, bodies, W, S):
    """Jacobians (k, r, n_v) from derivatives `W` (k, r, b, 6) with respect to the twists of
    `bodies` (k, b)."""
    moves = tree.moves[bodies] > 0
    loop, body, velocity = np.nonzero(moves)
    if 3 * len(loop) > moves.size:
        columns = jnp.sum(W[:, :, :, None, :] * S, axis=-1)
        return jnp.sum(columns * jnp.asarray(moves, S.dtype)[:, None], axis=2)
    k, n, b = W.shape[0], S.shape[0], W.shape[2]
    by_body = take(jnp.swapaxes(W, 1, 2).reshape(k * b, -1, 6), loop * b + body)
    entries = materialise(jnp.sum(by_body * take(S, velocity)[:, None, :], axis=-1))
    place = np.full(moves.shape, len(loop))
    place[moves] = np.arange(len(loop))
    parts = [picked(entries, place[:, i].reshape(-1)).reshape(k, n, -1) for i in range(b)]
    return jnp.swapaxes(sum(parts[1:], parts[0]), 1, 2)


def along(function, t, R, p, V, A, y, y_rate):
    """Value and derivatives of `function(t, R, p, y)`, a vector (m,), with b bodies at poses
    (b, 3, 3), (b, 3).

    Returns the value, the derivatives with respect to the twists (m, b, 6) and the joint
    coordinates (m, c), the rate, and the second time derivative at zero joint accelerations."""
    R_rate = _turning(V, R)
    p_rate = V[:, 3:] + cross(V[:, :3], p)
    # a spatial acceleration contains dv/dt at a point fixed in space, but the body's origin moves
    R_bias = _turning(A, R) + _turning(V, R_rate)
    p_bias = A[:, 3:] + cross(A[:, :3], p) + cross(V[:, :3], p_rate)

    def moved(s):
        return function(
            t + s,
            R + s * (R_rate + 0.5 * s * R_bias),
            p + s * (p_rate + 0.5 * s * p_bias),
            y + s * y_rate,
        )

    def twisted(X, dy):
        return function(t, R + _turning(X, R), p + X[:, 3:] + cross(X[:, :3], p), y + dy)

    zero, one = jnp.zeros((), p.dtype), jnp.ones((), p.dtype)
    moving = lambda s: jax.jvp(moved, (s,), (one,))
    (value, rate), (_, bias) = jax.jvp(moving, (zero,), (one,))
    # reverse mode for one row, forward mode for several
    derivative = jax.jacrev if value.shape[0] == 1 else jax.jacfwd
    W, by_joint = derivative(twisted, argnums=(0, 1))(jnp.zeros_like(V), jnp.zeros_like(y))
    return value, W, by_joint, rate, bias


def rates(function, R, p, V):
    """Value and rate of `function(R, p)`, with b bodies at poses (b, 3, 3), (b, 3) moving with
    twists `V` (b, 6)."""
    return jax.jvp(function, (R, p), (_turning(V, R), V[:, 3:] + cross(V[:, :3], p)))


def by_twists(function, R, p, weights):
    """Derivatives (b, 6) of `weights` (m,) times `function(R, p)`, a vector (m,), with respect to
    the twists of b bodies, by one reverse-mode pass."""
    twisted = lambda X: function(R + _turning(X, R), p + X[:, 3:] + cross(X[:, :3], p))
    return jax.vjp(twisted, jnp.zeros((*p.shape[:1], 6), p.dtype))[1](weights)[0]


def frames(R, p) -> list[Frame]:
    """List of frames from stacked poses (b, 3, 3), (b, 3)."""
    return [Frame(R[i], p[i]) for i in range(p.shape[0])]


def _turning(X, R):
    """`omega x` applied to the columns of R, for stacked twists (k, 6) and matrices (k, 3, 3)."""
    omega = X[:, None, :3]
    return jnp.swapaxes(cross(omega, jnp.swapaxes(R, 1, 2)), 1, 2)


def with_ground(R, p):
    """Poses with the pose of the ground appended."""
    eye, zero = jnp.eye(3, dtype=R.dtype)[None], jnp.zeros((1, 3), p.dtype)
    return jnp.concatenate([R, eye]), jnp.concatenate([p, zero])


def _in_order(groups: list[LoopGroup], values):
    """Rows of all groups (k, rows, ...) in the order of the constraints (m, ...)."""
    flat = jnp.concatenate([x.reshape(-1, *x.shape[2:]) for x in values])
    order = np.argsort(np.concatenate([g.rows.reshape(-1) for g in groups]))
    return take(flat, order)
