"""Force and parameters of the study."""

import jax.numpy as jnp

from ...control import Quintic

#: values of the paper: duration, times of its linearisations [s]; computing times of its full and
#: reduced models
DURATION, POINTS = 15.0, (0.0, 4.2, 5.0, 5.5)
PAPER_SECONDS = (39.1, 20.0)
#: step of all implicit runs, and interval between compared states [s]
STEP, RECORDED = 1e-3, 0.025
#: values that are not in the paper: lifting force [N], 6 % above the weight of the platform, and
#: times [s] at which it begins, is largest and ends. They are chosen such that ropes are slack at
#: the times of the linearisations of the paper
LIFT, TIMES = 52.0, (2.0, 4.5, 7.0)


def lift(size: float = LIFT):
    """Control that applies an upward force to the platform, which rises to `size` and falls to
    zero."""
    begin, top, end = TIMES
    up = jnp.array([0.0, size, 0.0])
    path = Quintic(jnp.zeros(3), jnp.stack([up, -up]), [[begin, top], [top, end]])
    return lambda t, state: path.position(t)
