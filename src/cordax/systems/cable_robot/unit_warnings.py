"""Numbers that cannot be meant, or hardly: likely mistakes of units."""

import warnings

import numpy as np

from ..._base.checks import known_values, require
from ...mechanics.parts.cables import ElasticCables

#: as often as this the size of the frame a platform may be away from it
FAR = 100.0
#: [N/m]: a metre of steel a quarter of a metre thick
STIFF = 1e10


def warn_if_unlikely(position, exits, stiffness) -> None:
    """Of a platform at a position (3,) [m] on cables from exits (n, 3) [m] with a stiffness [N/m],
    None where they have none."""
    place, points = known_values(position), known_values(exits)
    if place is not None and points is not None:
        middle = points.mean(axis=0)
        size = float(np.sqrt(np.max(np.sum((points - middle) ** 2, axis=1))))
        away = float(np.sqrt(np.sum((place - middle) ** 2)))
        if away > FAR * size > 0.0:
            _warn(
                f"position: got {place.tolist()}, {away:.3g} m from the middle of exits that lie "
                f"within {size:.3g} m of it; are both in metres?"
            )
    stiffest = known_values(stiffness)
    if stiffest is not None and np.max(stiffest) > STIFF:
        _warn(
            f"cables.stiffness: got {np.max(stiffest):.3g} N/m, more than a metre of steel 25 cm "
            "thick has; is it in N/m? RigidCables() do not stretch at all"
        )


def check_slack(cables: ElasticCables, weight) -> None:
    """A cable that is not stretched must not lift the platform."""
    carried, most = known_values(cables.unstretched_tension), known_values(weight)
    if carried is None or most is None or most <= 0:
        return
    width = np.asarray(cables.passage)
    require(
        bool(np.all(carried <= most)),
        "cables.width",
        f"{width.max():g} m, with which an unstretched cable carries {carried.max():.4g} N",
        f"at most {np.min(width * (most / carried)):.2g} m: unstretched cables that carry less "
        f"than the platform weighs, {most:.4g} N",
    )


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=5)
