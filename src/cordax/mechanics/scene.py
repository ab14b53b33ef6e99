"""What a machine looks like, without a word on how it is drawn."""

import equinox as eqx
from jaxtyping import Array, Float


class Scene(eqx.Module):
    """Geometry at one instant, for pictures and films.

    `lines` maps a kind ("bar", "tendon", "spring", "cable"...) to polylines, shape (n_lines,
    n_points, 2 or 3) [m]; `points` maps a kind to positions, shape (n_points, 2 or 3) [m]. Kinds
    choose the style. `plane` names the axes of points in the plane."""

    lines: dict[str, Float[Array, "n k d"]] = eqx.field(default_factory=dict)
    points: dict[str, Float[Array, "n d"]] = eqx.field(default_factory=dict)
    plane: str = eqx.field(static=True, default="xy")
