"""Detect which JAX transformations (`jit`, `vmap`, derivatives) apply to a call."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


def is_traced(tree) -> bool:
    """Return whether any array in `tree` is traced, so that its values are not available."""
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


class Transformed(NamedTuple):
    """JAX transformations that apply to the arrays of a call.

    - `any`: whether any array is traced.
    - `reverse`: whether one level of reverse mode applies.
    - `members`: number of batch members; 1 without `vmap`."""

    any: bool
    reverse: bool
    members: int

    @staticmethod
    def of(tree) -> "Transformed | None":
        """Return the transformations that apply to the arrays in `tree`.

        None if the call is part of a program that is being compiled, or if derivatives are nested
        such that JAX must differentiate the time loop itself."""
        tracers = [x for x in jax.tree.leaves(tree) if isinstance(x, Tracer)]
        if not tracers:
            return Transformed(False, False, 1)
        if isinstance(jax.lax.neg(np.int32(1)), Tracer):  # a constant is traced: inside jit
            return None
        looked = [_levels(x) for x in tracers]
        known = [x for x in looked if x is not None]
        if len(known) < len(looked):
            return None
        reverse = max(depth for depth, _ in known)
        if reverse > 1:
            return None
        return Transformed(True, reverse > 0, max(n for _, n in known))


def _levels(x: Any) -> tuple[int, int] | None:
    """Return the number of reverse-mode levels and of batch members of a tracer.

    None for an unknown kind of tracer, and where reverse mode is applied around forward mode."""
    if not isinstance(x, Tracer):
        return 0, 1
    kind = type(x).__name__
    if kind == "BatchTracer":
        inside: Any = x.val  # pyright: ignore[reportAttributeAccessIssue]
        inner = _levels(inside)
        return inner and (inner[0], inner[1] * max(1, inside.size // max(1, x.size)))
    if kind not in ("JVPTracer", "LinearizeTracer"):
        return None
    primal = _levels(x.primal)  # pyright: ignore[reportAttributeAccessIssue]
    if kind == "LinearizeTracer":
        return primal and (primal[0] + 1, primal[1])
    tangent = _levels(x.tangent)  # pyright: ignore[reportAttributeAccessIssue]
    if primal is None or tangent is None or primal[0] or tangent[0]:
        return None
    return 0, max(primal[1], tangent[1])


def depending_on(tree, others):
    """Return `tree` with equal values that depend formally, with derivative zero, on `others`.

    JAX then differentiates and batches consecutive programs that pass arrays to each other in the
    same manner, including the first one, so that they are compiled only once."""
    floats = [x for x in jax.tree.leaves(others) if eqx.is_inexact_array(x) and x.size]
    if not floats:
        return tree
    nothing = jnp.where(jnp.zeros((), bool), sum(x.ravel()[0] for x in floats), 0.0)

    def on(x):
        more = nothing.astype(x.dtype)
        return x | more if x.dtype == bool else x + more

    return jax.tree.map(lambda x: on(x) if eqx.is_array(x) else x, tree)
