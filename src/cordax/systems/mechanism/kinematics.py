"""Positions, velocities and accelerations of all bodies of a tree, in world axes.

Spatial vectors are `[omega; v]` with v at the world's origin, so they add up along branches without
any transformation."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._jax.constant_gather import take
from ..._jax.materialise import materialise
from .body import Body
from .tree import Tree


class Placements(NamedTuple):
    """Parameters of the bodies, stacked once per run: joints grouped by kind, and predecessor
    frames relative to the parents."""

    joints: tuple
    R: Float[Array, "N 3 3"]
    p: Float[Array, "N 3"]


class Poses(NamedTuple):
    """World poses (N, 3, 3), (N, 3) [m] of the bodies and the motion subspace `S` (n_v, 6)."""

    R: Float[Array, "N 3 3"]
    p: Float[Array, "N 3"]
    S: Float[Array, "n_v 6"]


class Motions(NamedTuple):
    """`poses`, spatial velocities `V` (N, 6) and velocity-product accelerations `A` (N, 6): those
    at zero joint accelerations, without gravity."""

    poses: Poses
    V: Float[Array, "N 6"]
    A: Float[Array, "N 6"]


def groups(tree: Tree) -> list[np.ndarray]:
    """Bodies grouped by kind of joint, in order of first appearance."""
    kinds: dict[type, list[int]] = {}
    for i, kind in enumerate(tree.kinds):
        kinds.setdefault(kind, []).append(i)
    return [np.array(k) for k in kinds.values()]


def placements(bodies: tuple[Body, ...], tree: Tree) -> Placements:
    stack = lambda joints: jax.tree.map(lambda *x: jnp.stack(x), *joints)
    joints = tuple(stack([bodies[i].joint for i in group]) for group in groups(tree))
    return Placements(
        joints, jnp.stack([b.turned for b in bodies]), jnp.stack([b.at for b in bodies])
    )


def motions(tree: Tree, placed: Placements, q, v) -> Motions:
    """Poses, velocities and velocity-product accelerations of all bodies at coordinates `q` (n_q,)
    and velocities `v` (n_v,)."""
    R, p, S, c = _joint_motions(tree, placed, q, v)
    local_R = jnp.sum(placed.R[:, :, :, None] * R[:, None, :, :], axis=2)
    local_p = placed.p + jnp.sum(placed.R * p[:, None, :], axis=2)
    R, p = materialise(tree.compose(*materialise((local_R, local_p))))
    S = materialise(to_world(take(R, tree.owner), take(p, tree.owner), S))
    c = to_world(R, p, c)
    joint_velocity = _per_body(tree, S * v[:, None])
    V = materialise(tree.towards_root(joint_velocity))
    A = tree.towards_root(c + cross_motion(V, joint_velocity))
    return materialise(Motions(Poses(R, p, S), V, A))


def point_terms(tree: Tree, at: Motions, body: int, point):
    """Jacobian (3, n_v) of a `point` (3,) of the body with index `body`, which may be the ground,
    and its acceleration (3,) at zero joint accelerations."""
    if body == tree.n_bodies:
        return jnp.zeros((3, tree.n_v), point.dtype), jnp.zeros_like(point)
    x = at.poses.p[body] + jnp.sum(at.poses.R[body] * point, axis=1)
    S = at.poses.S * jnp.asarray(tree.moves[body], point.dtype)[:, None]
    J = S[:, 3:] + cross(S[:, :3], x)
    V, A = at.V[body], at.A[body]
    speed = V[3:] + cross(V[:3], x)
    return J.T, A[3:] + cross(A[:3], x) + cross(V[:3], speed)


def poses(tree: Tree, placed: Placements, q) -> Poses:
    """World poses and motion subspace of all bodies, without velocities."""
    return motions(tree, placed, q, jnp.zeros(tree.n_v, q.dtype)).poses


def _joint_motions(tree: Tree, placed: Placements, q, v):
    """Motions of all joints: R (N, 3, 3), p (N, 3), c (N, 6), stacked over bodies, and S (n_v, 6),
    stacked over velocities."""
    Rs, ps, Ss, cs, places = [], [], [], [], []
    members = groups(tree)
    for joints, group in zip(placed.joints, members, strict=True):
        kind = tree.kinds[group[0]]
        nq, nv = len(kind.coordinates), len(kind.velocities)
        q_rows = tree.q_start[group][:, None] + np.arange(nq)
        v_rows = tree.v_start[group][:, None] + np.arange(nv)
        R, p, S, c = jax.vmap(lambda joint, q, v: joint.motion(q, v), axis_size=len(group))(
            joints, take(q, q_rows), take(v, v_rows)
        )
        Rs.append(R)
        ps.append(p)
        cs.append(c)
        Ss.append(S.reshape(-1, 6))
        places.append(v_rows.reshape(-1))
    body_order = np.argsort(np.concatenate(members))
    v_order = np.argsort(np.concatenate(places))
    join = lambda parts, order: take(jnp.concatenate(parts), order)
    return materialise(
        (join(Rs, body_order), join(ps, body_order), join(Ss, v_order), join(cs, body_order))
    )


def _per_body(tree: Tree, x):
    """Sum the rows of each body's joint, (n_v, 6) to (N, 6)."""
    if np.array_equal(tree.owner, np.arange(tree.n_bodies)):
        return x
    # each joint has at most six rows: pad with a row of zeros and add
    sizes = np.diff(tree.v_start)
    padded = jnp.concatenate([x, jnp.zeros_like(x[:1])])
    total = jnp.zeros((tree.n_bodies, x.shape[1]), x.dtype)
    for k in range(int(sizes.max(initial=0))):
        total = total + take(padded, np.where(sizes > k, tree.v_start[:-1] + k, tree.n_v))
    return total


def to_world(R, p, motion):
    """Convert motion vectors (k, 6) from body axes at the body's origin to world axes at the
    world's origin."""
    omega = jnp.sum(R * motion[:, None, :3], axis=2)
    v = jnp.sum(R * motion[:, None, 3:], axis=2)
    return jnp.concatenate([omega, v + cross(p, omega)], axis=1)


def cross(a, b):
    """Cross product of rows (..., 3)."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return jnp.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def cross_motion(V, m):
    """Spatial cross product of motion vectors, rows (..., 6)."""
    omega, v = V[..., :3], V[..., 3:]
    first, second = m[..., :3], m[..., 3:]
    return jnp.concatenate([cross(omega, first), cross(omega, second) + cross(v, first)], axis=-1)


def cross_force(V, f):
    """Spatial cross product of a motion with a force [n; f], rows (..., 6)."""
    omega, v = V[..., :3], V[..., 3:]
    n, linear = f[..., :3], f[..., 3:]
    return jnp.concatenate([cross(omega, n) + cross(v, linear), cross(omega, linear)], axis=-1)
