"""Drawing of a cable robot."""

from typing import TYPE_CHECKING

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...mechanics import Bodies, Scene
from ...mechanics.parts.exits import exit_frames
from ...mechanics.parts.pulley_drawing import wheels
from .natural import NaturalBody, place

if TYPE_CHECKING:
    from .robot import CableRobot

#: corners of the faces of a cube of edge 2, shape (6, 4, 3)
_CUBE = np.array(
    [
        [np.insert(np.array([a, b]), axis, side) for a, b in ((-1, -1), (-1, 1), (1, 1), (1, -1))]
        for axis in range(3)
        for side in (-1, 1)
    ],
    dtype=float,
)


def box(body: NaturalBody) -> Float[Array, "6 4 3"]:
    """Faces, in body axes [m], of the uniform box with the mass, centre and inertia of a body."""
    axes, half = _equal_box(body)
    return body.centre + (_CUBE * half) @ axes.T


def solid(body: NaturalBody, attachments) -> Float[Array, "6 k 3"]:
    """Faces of a platform in its axes [m]. They form its `box` if this contains all attachments
    (n, 3), and otherwise the polygon with the attachments as corners (plus five degenerate
    faces)."""
    axes, half = _equal_box(body)
    inside = jnp.all(jnp.abs((attachments - body.centre) @ axes) <= half * (1.0 + 1e-6) + 1e-9)
    arms = attachments - jnp.mean(attachments, axis=0)
    # corners sorted by angle in the plane of the two directions of largest extent
    plane = jnp.linalg.eigh(arms.T @ arms)[1][:, 1:]
    x, y = (arms @ plane).T
    corners = attachments[jnp.argsort(jnp.arctan2(y, x))]
    k = max(4, attachments.shape[0])
    corners = jnp.concatenate([corners, jnp.broadcast_to(corners[:1], (k - corners.shape[0], 3))])
    polygon = jnp.concatenate([corners[None], jnp.broadcast_to(corners[0], (5, k, 3))])
    faces = box(body)
    faces = jnp.concatenate([faces, jnp.broadcast_to(faces[:, -1:], (6, k - 4, 3))], axis=1)
    return jnp.where(inside, faces, polygon)


def _equal_box(body: NaturalBody):
    """Axes (3, 3) and half edges (3,) [m] of the equivalent box, whose second moments are
    m edge^2/12."""
    moments = 0.5 * jnp.trace(body.inertia) * jnp.eye(3) - body.inertia
    values, axes = jnp.linalg.eigh(moments)
    return axes, jnp.sqrt(3.0 * jnp.maximum(values, 0.0) / body.mass)


def posed(body: NaturalBody, q, faces) -> Bodies:
    """Body at natural coordinates `q`, drawn with `faces` that are given in body axes."""
    origin = place(body.weights(jnp.zeros(3)), q)
    return Bodies(origin[None], body.rotation(q)[None], faces[None])


def drums(exits, drives, angle, path) -> tuple[Bodies, Float[Array, "n k 3"]]:
    """Drums turned by `angle` (n,) [rad], and the cables from the drums along their `path`
    (n, k - 1, 3) [m]. A robot does not define the positions of its drums; they are drawn behind
    the exits."""
    n = path.shape[0]
    x, _, z = exit_frames(getattr(exits, "axis", None), n)
    radius = jnp.broadcast_to(drives.radius, (n,))[:, None]
    behind = 2.5 * radius + getattr(exits, "radius", jnp.zeros(n)).reshape(-1, 1)
    leaves = path[:, 0] - behind * z
    drawn = wheels(leaves + radius * x, x, -z, angle, radius[:, 0])
    return drawn, jnp.concatenate([leaves[:, None], path], axis=1)


def scene(robot: "CableRobot", t, q) -> Scene:
    """Bodies, cables, pulleys and drums in one configuration."""
    c, parts = robot._constants(), robot.split(q)
    b = place(c.attachments, parts.platform)
    path = robot.exits.path(t, b, parts.exits, 12)
    platform = solid(robot.platform, robot.attachments)
    bodies = {"body": posed(robot.platform, parts.platform, platform)}
    if robot.payload is not None:
        payload = robot.payload.body
        bodies["payload"] = posed(payload, parts.payload, box(payload))
    points = {"joint": b}
    if (pulleys := robot.exits.wheels(t, b, parts.exits)) is None:
        points["exit"] = path[:, 0]
    else:
        bodies["pulley"] = pulleys
    if "theta" in robot.drives.coordinates:
        turned = parts.drives[:, robot.drives.coordinates.index("theta")]
        bodies["drum"], path = drums(robot.exits, robot.drives, turned, path)
    return Scene({"cable": path}, points, bodies)
