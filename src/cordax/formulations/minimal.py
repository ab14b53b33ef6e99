"""Minimal coordinates, without constraints."""

import jax.numpy as jnp

from .base import Formulation, require_regular


class Minimal(Formulation):
    """`a = M^-1 f` for machines without constraints."""

    def check(self, system):
        rows = system.n_constraints
        if rows:
            raise ValueError(
                f"formulation: Minimal treats machines without constraints, but "
                f"{type(system).__name__} has {rows}; "
                "choose a formulation for constrained machines"
            )
        require_regular(system)

    def acceleration(self, system, t, q, v, u):
        return system.structure().acceleration(t, q, v, u), jnp.zeros(0, v.dtype)

    def linearise(self, system, t, q, v, u):
        return system.structure().linearise(t, q, v, u)
