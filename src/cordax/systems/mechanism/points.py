"""Points fixed to bodies, evaluated together: world positions, velocities and accelerations."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require_shape
from ..._base.fields import names_field
from ..._base.precision import float_field
from ..._jax.constant_gather import take
from .kinematics import cross
from .tree import Tree


class Sites(eqx.Module):
    """Frames fixed to bodies: `names` (n), the `bodies` (n) that carry them ("world" for the
    ground), `position` (n, 3) [m] and `rotation` (n, 3, 3) in body axes."""

    names: tuple[str, ...] = names_field()
    bodies: tuple[str, ...] = names_field()
    position: Float[Array, "n 3"] = float_field(unit="m")
    rotation: Float[Array, "n 3 3"] = float_field()

    def __check_init__(self):
        n = len(self.names)
        require_shape("bodies", np.array(self.bodies), (n,))
        require_shape("position", self.position, (n, 3))
        require_shape("rotation", self.rotation, (n, 3, 3))

    def carriers(self, tree: Tree) -> np.ndarray:
        """Indices (n,) of the bodies that carry the sites; the ground has the last index."""
        return np.array([tree.body(name, "site: body") for name in self.bodies], int)


class Ground(NamedTuple):
    """Poses, velocities and accelerations of all bodies, followed by those of the ground."""

    R: Float[Array, "N 3 3"]
    p: Float[Array, "N 3"]
    V: Float[Array, "N 6"]
    A: Float[Array, "N 6"]


def with_ground(motions) -> Ground:
    poses = motions.poses
    zero = jnp.zeros((1, 6), poses.p.dtype)
    return Ground(
        jnp.concatenate([poses.R, jnp.eye(3, dtype=poses.R.dtype)[None]]),
        jnp.concatenate([poses.p, zero[:, :3]]),
        jnp.concatenate([motions.V, zero]),
        jnp.concatenate([motions.A, zero]),
    )


def place(bodies: Ground, carriers: np.ndarray, local):
    """World positions (n, 3) of points (n, 3) of bodies."""
    R, p = take(bodies.R, carriers), take(bodies.p, carriers)
    return p + jnp.sum(R * local[:, None, :], axis=2)


def velocity(twists, x):
    """Velocities (n, 3) of body points at world positions (n, 3), for bodies with twists (n, 6)."""
    return twists[:, 3:] + cross(twists[:, :3], x)


def acceleration(bodies: Ground, carriers: np.ndarray, x):
    """Accelerations of body points at world positions (n, 3), at zero joint accelerations."""
    V, A = take(bodies.V, carriers), take(bodies.A, carriers)
    return A[:, 3:] + cross(A[:, :3], x) + cross(V[:, :3], velocity(V, x))
