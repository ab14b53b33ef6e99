"""Geometry of a machine for drawing, independent of the drawing tool."""

import equinox as eqx
from jaxtyping import Array, Float


class Bodies(eqx.Module):
    """Bodies of one kind: their poses, and faces that move with them.

    `position` (n, d) [m] and `rotation` (n, d, d), whose columns are the body's axes; `faces` (n,
    n_faces, n_corners, d) [m], corners in the body's axes. In the plane a face is an outline."""

    position: Float[Array, "n d"]
    rotation: Float[Array, "n d d"]
    faces: Float[Array, "n f k d"]

    def corners(self) -> Float[Array, "n f k d"]:
        """World positions [m] of the corners of all faces."""
        turned = (self.rotation[..., None, None, :, :] * self.faces[..., None, :]).sum(axis=-1)
        return self.position[..., None, None, :] + turned


class Scene(eqx.Module):
    """Geometry at one instant, for pictures and animations.

    `lines` maps a kind ("bar", "tendon", "spring", "cable"...) to polylines, shape (n_lines,
    n_points, 2 or 3) [m]; `points` maps a kind to positions, shape (n_points, 2 or 3) [m]; `bodies`
    maps a kind ("body", "payload"...) to `Bodies`. Kinds choose the style. `plane` names the axes
    of points in the plane."""

    lines: dict[str, Float[Array, "n k d"]] = eqx.field(default_factory=dict)
    points: dict[str, Float[Array, "n d"]] = eqx.field(default_factory=dict)
    bodies: dict[str, Bodies] = eqx.field(default_factory=dict)
    plane: str = eqx.field(static=True, default="xy")
