"""Outputs and drawing of a rope robot: nodes, tensions, scene."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from ...mechanics import Scene
from .platform import Platform
from .segments import Field, Motion


def nodes(roots: Float[Array, "m 2"], x: Motion) -> Float[Array, "m k 2"]:
    """Positions [m] of the k = s + 1 nodes of each rope, roots first."""
    step = jnp.cumsum(x.length * x.along, axis=1)
    points = jnp.concatenate([jnp.zeros_like(step[:, :1]), step], axis=1)
    return roots[:, None] + points.transpose(2, 1, 0)


def outputs(
    roots: Float[Array, "m 2"], x: Motion, tension: Field, pull: Float[Array, "m 2"] | None
) -> dict[str, Array]:
    """Outputs of ropes under a `tension` (s, m) [N] that `pull` [N] at the supports of their ends,
    if there are any."""
    out = {"node": nodes(roots, x), "root_tension": tension[0], "stretch": x.stretch.T}
    if pull is not None:
        out["end_force"] = pull
        # along the last segment: positive where the rope pulls
        out["tension"] = -jnp.sum(pull * x.along[:, -1].T, axis=1)
    return out


def scene(ropes: Float[Array, "m k 2"], platform: Platform | None, pose) -> Scene:
    """Scene with ropes through their nodes, and the platform in its pose (3,)."""
    points, bodies = {"exit": ropes[:, 0]}, {}
    if platform is not None:
        bodies["body"] = platform.body(pose)
        points["joint"] = ropes[:, -1]
    return Scene({"cable": ropes}, points, bodies, plane="xz")
