"""Minimal coordinates: nothing is constrained."""

import jax
import jax.numpy as jnp

from .base import Formulation


class Minimal(Formulation):
    """`a = M^-1 f` for machines without constraints."""

    def check(self, system):
        state = jax.eval_shape(system.default_state)
        rows = jax.eval_shape(system.constraint, jax.ShapeDtypeStruct((), state.q.dtype), state.q).shape[0]
        if rows:
            raise ValueError(
                f"formulation: Minimal treats machines without constraints, but {type(system).__name__} has {rows}; "
                "choose a formulation for constrained machines"
            )

    def acceleration(self, system, t, q, v, u):
        return system.acceleration(t, q, v, u), jnp.zeros(0, v.dtype)

    def linearise(self, system, t, q, v, u):
        return system.linearise(t, q, v, u)
