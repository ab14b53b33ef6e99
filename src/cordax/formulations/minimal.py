"""Minimal coordinates: nothing is constrained."""

import jax
import jax.numpy as jnp

from ..mechanics import System
from .base import Formulation


class Minimal(Formulation):
    """`a = M^-1 f` for machines without constraints."""

    def check(self, system):
        if type(system).constraint is System.constraint:
            return
        q = jax.ShapeDtypeStruct((system.n_q,), float)
        rows = jax.eval_shape(system.constraint, jax.ShapeDtypeStruct((), float), q).shape[0]
        if rows:
            raise ValueError(
                f"formulation: Minimal treats machines without constraints, but "
                f"{type(system).__name__} has {rows}; "
                "choose a formulation for constrained machines"
            )

    def acceleration(self, system, t, q, v, u):
        return system.acceleration(t, q, v, u), jnp.zeros(0, v.dtype)

    def linearise(self, system, t, q, v, u):
        return system.linearise(t, q, v, u)
