"""Dry friction with an internal state: Dahl, LuGre and elasto-plastic laws."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require_positive, require_values
from ..._base.precision import float_field


class FrictionLaw(eqx.Module):
    """Bristle model of dry friction for surfaces that stick and slip.

    Bristles deflect by z at the slip velocity v, and the friction is
    `stiffness z + damping dz/dt + viscosity v`. Steady slip at v has the friction
    `g(v) + viscosity v` with `g = coulomb + (static - coulomb) exp(-(v/stribeck)^2)`. Units are
    those of a force; for rotations read N m instead of N and rad instead of m.

    - `coulomb` [N]: level of sliding friction; `stiffness` [N/m] before slip.
    - `static` [N]: level at the beginning of slip (None: `coulomb`); `stribeck` [m/s]: width of the
      transition between the two.
    - `damping` [N s/m] of the bristles, `viscosity` [N s/m].
    - `breakaway`: fraction of g below which the bristles do not slide at all (elasto-plastic);
      None: they always slide (Dahl, LuGre), and small vibrations under a load cause creep.

    The state is `sqrt(stiffness) z`, so that half of its square is the stored energy. Friction
    never creates energy: at high speed the damping decreases to `4 g/v`, as passivity requires.

    `FrictionLaw.dahl`: Dahl (1968). `FrictionLaw.lugre`: Canudas de Wit, Olsson, Astrom and
    Lischinsky (1995). `FrictionLaw.elastoplastic`: Dupont, Hayward, Armstrong and Altpeter (2002).
    """

    coulomb: Float[Array, ""] = float_field()
    stiffness: Float[Array, ""] = float_field()
    static: Float[Array, ""] | None = float_field(default=None)
    stribeck: Float[Array, ""] = float_field(default=1e-2)
    damping: Float[Array, ""] = float_field(default=0.0)
    viscosity: Float[Array, ""] = float_field(default=0.0)
    breakaway: Float[Array, ""] | None = float_field(default=None)

    def __check_init__(self):
        for name in ("coulomb", "stiffness", "stribeck"):
            require_positive(name, getattr(self, name))
        for name in ("damping", "viscosity"):
            require_positive(name, getattr(self, name), zero_allowed=True)
        if self.static is not None:
            above = lambda static, coulomb: static >= coulomb
            expected = "at least coulomb"
            require_values("static", above, self.static, self.coulomb, expected=expected)
        if self.breakaway is not None:
            share = lambda x: (x >= 0) & (x < 1)
            require_values("breakaway", share, self.breakaway, expected="a share from 0 to below 1")

    @classmethod
    def dahl(cls, coulomb, stiffness) -> "FrictionLaw":
        """Dahl's law: `coulomb` [N], `stiffness` [N/m]."""
        return cls(coulomb, stiffness)

    @classmethod
    def lugre(
        cls, coulomb, stiffness, static, stribeck, damping=0.0, viscosity=0.0
    ) -> "FrictionLaw":
        """The LuGre law: `coulomb` and `static` [N], `stiffness` [N/m], `stribeck` [m/s], `damping`
        and `viscosity` [N s/m]."""
        return cls(coulomb, stiffness, static, stribeck, damping, viscosity)

    @classmethod
    def elastoplastic(
        cls, coulomb, stiffness, breakaway=0.7, static=None, stribeck=1e-2, damping=0.0,
        viscosity=0.0,
    ) -> "FrictionLaw":  # fmt: skip
        """The elasto-plastic law: parameters as in `lugre`, and `breakaway`, a fraction of the
        friction level."""
        return cls(coulomb, stiffness, static, stribeck, damping, viscosity, breakaway)

    def level(self, v):
        """Friction g [N] of steady slip at velocities `v` [m/s], without viscosity."""
        if self.static is None:
            return self.coulomb * jnp.ones_like(v)
        return self.coulomb + (self.static - self.coulomb) * jnp.exp(-((v / self.stribeck) ** 2))

    def __call__(self, state, v) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
        """Rate of the `state` and friction [N] against slip velocities `v` [m/s], shape (...)."""
        root, g, speed = jnp.sqrt(self.stiffness), self.level(v), jnp.abs(v)
        z = state / root
        load = self.stiffness * z / g
        z_rate = v - self._sliding(load, v) * speed * load
        damping = self.damping / (1.0 + self.damping * speed / (4.0 * g))
        force = self.stiffness * z + damping * z_rate + self.viscosity * v
        return root * z_rate, force

    def _sliding(self, load, v):
        """Factor from 0 (bristles only bend) to 1 (bristles slide fully)."""
        if self.breakaway is None:
            return jnp.ones_like(load)
        b, size = self.breakaway, jnp.abs(load)
        inside = jnp.clip((size - b) / (1.0 - b), 0.0, 1.0)
        return jnp.where(load * v > 0.0, 0.5 - 0.5 * jnp.cos(jnp.pi * inside), 0.0)
