"""The force and the numbers of the study."""

import jax.numpy as jnp

from ...control import Quintic

#: of the paper: duration, instants of its linearisations [s], its computing times, full and reduced
DURATION, POINTS = 15.0, (0.0, 4.2, 5.0, 5.5)
PAPER_SECONDS = (39.1, 20.0)
#: step of all implicit runs, and interval of what is compared [s]
STEP, RECORDED = 1e-3, 0.025
#: not in the paper: lift [N], 6 % above the weight of the platform, and when it begins, is there
#: and is gone [s], so that ropes are slack at the instants about which the paper linearises
LIFT, TIMES = 52.0, (2.0, 4.5, 7.0)


def lift(size: float = LIFT):
    """A control: force on the platform up and back, then gone."""
    begin, top, end = TIMES
    up = jnp.array([0.0, size, 0.0])
    path = Quintic(jnp.zeros(3), jnp.stack([up, -up]), [[begin, top], [top, end]])
    return lambda t, state: path.position(t)
