"""Mass matrix and velocity terms of a tree by the composite-rigid-body and recursive Newton-Euler
algorithms, each written as sums over subtrees in world axes."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._jax.constant_gather import take
from ..._jax.materialise import materialise
from .body import Body
from .kinematics import Motions, Poses, cross, cross_force
from .tree import Tree, picked


class Masses(NamedTuple):
    """Mass properties of the bodies, in body axes: mass (N,), centre (N, 3), inertia about the
    centre (N, 3, 3)."""

    mass: Float[Array, " N"]
    centre: Float[Array, "N 3"]
    inertia: Float[Array, "N 3 3"]


class WorldInertia(NamedTuple):
    """Spatial inertias about the world's origin: mass (N,), first moment (N, 3), second moment (N,
    3, 3)."""

    mass: Float[Array, " N"]
    first: Float[Array, "N 3"]
    second: Float[Array, "N 3 3"]

    def times(self, motion) -> Float[Array, "N 6"]:
        """Spatial momentum (or force) of motion vectors, rows (N, 6)."""
        omega, v = motion[:, :3], motion[:, 3:]
        n = jnp.sum(self.second * omega[:, None, :], axis=2) + cross(self.first, v)
        f = self.mass[:, None] * v - cross(self.first, omega)
        return jnp.concatenate([n, f], axis=1)

    def rows(self, index) -> "WorldInertia":
        return WorldInertia(*(take(x, index) for x in self))


def masses(bodies: tuple[Body, ...]) -> Masses:
    solids = [b.inertia() for b in bodies]
    return Masses(
        jnp.stack([s.mass for s in solids]),
        jnp.stack([s.centre for s in solids]),
        jnp.stack([s.inertia for s in solids]),
    )


def centres(poses: Poses, masses: Masses) -> Float[Array, "N 3"]:
    """World positions of the centres of mass [m]."""
    return poses.p + jnp.sum(poses.R * masses.centre[:, None, :], axis=2)


def world_inertia(poses: Poses, masses: Masses) -> WorldInertia:
    R, c = poses.R, centres(poses, masses)
    turned = jnp.sum(R[:, :, :, None] * masses.inertia[:, None, :, :], axis=2)
    about_centre = jnp.sum(turned[:, :, None, :] * R[:, None, :, :], axis=3)
    first = masses.mass[:, None] * c
    square = jnp.sum(first * c, axis=1)[:, None, None] * jnp.eye(3, dtype=c.dtype)
    second = about_centre + square - first[:, :, None] * c[:, None, :]
    return materialise(WorldInertia(masses.mass, first, second))


def mass_matrix(tree: Tree, poses: Poses, inertia: WorldInertia) -> Float[Array, "n_v n_v"]:
    """Mass matrix by the composite-rigid-body algorithm. Velocity k moves its subtree as one rigid
    body, and `M_jk = S_j . F_k` where j is on the path from k to the root."""
    n = tree.n_bodies
    flat = jnp.concatenate(
        [inertia.mass[:, None], inertia.first, inertia.second.reshape(n, 9)], axis=1
    )
    total = materialise(tree.below_sum(flat))
    composite = WorldInertia(total[:, 0], total[:, 1:4], total[:, 4:].reshape(n, 3, 3))
    F = materialise(composite.rows(tree.owner).times(poses.S))
    first, second, place = tree.pairs
    if 3 * len(first) < place.size:
        entries = materialise(jnp.sum(take(poses.S, first) * take(F, second), axis=1))
        return materialise(picked(entries, place.reshape(-1)).reshape(place.shape))
    P = jnp.sum(poses.S[:, None, :] * F[None, :, :], axis=2)
    on_the_way = tree.below[np.ix_(tree.owner, tree.owner)]
    above = on_the_way * (1.0 - on_the_way.T)
    return materialise(P * jnp.asarray(on_the_way, P.dtype) + P.T * jnp.asarray(above.T, P.dtype))


def bias(tree: Tree, at: Motions, inertia: WorldInertia, gravity, wrenches=None):
    """Joint forces (n_v,) required for zero joint accelerations: Coriolis terms, gravity (3,)
    [m/s^2] and, with a minus sign, applied `wrenches` (N, 6) about the world's origin."""
    base = jnp.concatenate([jnp.zeros(3, gravity.dtype), -gravity])
    f = inertia.times(at.A + base) + cross_force(at.V, inertia.times(at.V))
    if wrenches is not None:
        f = f - wrenches
    return joint_forces(tree, at.poses, f)


def weights(poses: Poses, masses: Masses, gravity) -> Float[Array, "N 6"]:
    """Wrenches of gravity (3,) [m/s^2] on the bodies, about the world's origin."""
    force = masses.mass[:, None] * gravity
    return jnp.concatenate([cross(centres(poses, masses), force), force], axis=1)


def joint_forces(tree: Tree, poses: Poses, wrenches) -> Float[Array, " n_v"]:
    """Generalised forces that correspond to `wrenches` (N, 6) on the bodies, about the world's
    origin."""
    total = tree.below_sum(wrenches)
    return jnp.sum(poses.S * take(total, tree.owner), axis=1)
