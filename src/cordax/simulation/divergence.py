"""Whether a run runs away."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

#: speeds [m/s, rad/s], against 1 and the largest at the start, that no machine has
_BEYOND = 1e10
#: speeds that are suspicious if they came about in leaps; steps of a window, the factor by which
#: the largest speed ever leaps within one, and how many leaps in a row are too many
_FAST, _WINDOW, _LEAP, _LEAPS = 1e3, 8, 1.4, 25
#: speeds that are so earlier, where all windows but one leapt: from some window on, and still
#: earlier if the last one leapt by a factor that no power of time reaches there
_FASTER, _EARLY, _EARLIER, _GREAT = 1e4, 16, 5, 3.0


class Watch(NamedTuple):
    """Whether a run grows like one whose step is too large: by some factor in every few steps, for
    ever. A motion that its steps resolve does so at its beginning at most: one that grows like t^p
    leaps about 3 p times. Speed: the sum of all |v|."""

    scale: jax.Array
    largest: jax.Array
    window: jax.Array
    #: four for a leap, one less for a window without
    leaps: jax.Array

    @staticmethod
    def of(v) -> "Watch":
        speed = jax.lax.stop_gradient(jnp.sum(jnp.abs(v)))
        return Watch(jnp.maximum(speed, 1.0), speed, jnp.zeros_like(speed), jnp.int32(0))

    def look(self, i, speed) -> tuple["Watch", jax.Array]:
        """At the end of step `i`: the watch, and whether all is well."""
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
