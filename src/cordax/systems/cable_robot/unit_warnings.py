"""Warnings about implausible parameters, which are likely mistakes of units."""

import warnings

import numpy as np

from ..._base.checks import known_values, require
from ...mechanics.parts.cables import ElasticCables

#: largest plausible distance of the platform from the frame, in sizes of the frame
FAR = 100.0
#: largest plausible stiffness [N/m]: one metre of steel with a thickness of 0.25 m
STIFF = 1e10


def warn_if_unlikely(position, exits, stiffness) -> None:
    """Warn if the platform position (3,) [m] is implausibly far from the exits (n, 3) [m], or if
    the cable stiffness [N/m] is implausibly large (None for cables without stiffness)."""
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
    """Raise if an unstretched cable carries more than the weight of the platform."""
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
