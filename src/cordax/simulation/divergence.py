"""Detection of diverging runs."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

#: speed [m/s, rad/s], relative to 1 and the largest initial speed, that no machine reaches
_BEYOND = 1e10
#: relative speed that is suspicious if it was reached in leaps; number of steps in a window, factor
#: by which the largest speed so far grows in a window with a leap, and number of consecutive leaps
#: that is too large
_FAST, _WINDOW, _LEAP, _LEAPS = 1e3, 8, 1.4, 25
#: relative speed that is suspicious earlier, if all windows but one had a leap: from the window
#: `_EARLY` on, and from the window `_EARLIER` on if the last one grew by the factor `_GREAT`, which
#: no power of time reaches there
_FASTER, _EARLY, _EARLIER, _GREAT = 1e4, 16, 5, 3.0


class Watch(NamedTuple):
    """Detector of runs that diverge because the time step is too large: their speed grows by some
    factor every few steps, without end.

    A motion that the time step resolves grows like this only at its beginning: one that grows like
    t^p leaps about 3 p times. Speed is the sum of all |v|."""

    scale: jax.Array
    largest: jax.Array
    window: jax.Array
    #: plus four for a window with a leap, minus one for a window without
    leaps: jax.Array

    @staticmethod
    def of(v) -> "Watch":
        speed = jax.lax.stop_gradient(jnp.sum(jnp.abs(v)))
        return Watch(jnp.maximum(speed, 1.0), speed, jnp.zeros_like(speed), jnp.int32(0))

    def look(self, i, speed) -> tuple["Watch", jax.Array]:
        """Update at the end of step `i`; return the detector and whether the run has not
        diverged."""
        window = jnp.maximum(self.window, speed)
        full = i % _WINDOW == _WINDOW - 1
        leap = jnp.where(window > _LEAP * self.largest, 4, -1)
        great = full & (window > _GREAT * self.largest)
        leaps = jnp.where(full, jnp.maximum(self.leaps + leap, 0), self.leaps)
        largest = jnp.where(full, jnp.maximum(self.largest, window), self.largest)
        window = jnp.where(full, 0.0, window)
        suspicious = (leaps > 4 * _LEAPS) & (speed > _FAST * self.scale)
        windows = (i + 1) // _WINDOW
        early = (windows >= _EARLY) | ((windows >= _EARLIER) & great)
        early = early & (leaps >= 4 * windows - 5)
        suspicious = suspicious | early & (speed > _FASTER * self.scale)
        away = suspicious | (speed > _BEYOND * self.scale)
        return Watch(self.scale, largest, window, leaps.astype(jnp.int32)), ~away
