"""Which transformations of JAX a call is made under."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


def is_traced(tree) -> bool:
    """Whether an array of `tree` belongs to a JAX transformation, which hides its values."""
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


class Transformed(NamedTuple):
    """What hides numbers: nothing at all, or forward mode, one level of reverse mode, and batches
    of so many members."""

    any: bool
    reverse: bool
    members: int

    @staticmethod
    def of(tree) -> "Transformed | None":
        """Of the numbers in `tree`. None where a program is being compiled around the call, or
        derivatives are nested in a way that needs the time loop as JAX differentiates it."""
        tracers = [x for x in jax.tree.leaves(tree) if isinstance(x, Tracer)]
        if not tracers:
            return Transformed(False, False, 1)
        if isinstance(jax.lax.neg(np.int32(1)), Tracer):  # hidden though it depends on nothing
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
    """How often reverse mode is applied to a tracer, and to how many members; None where that is
    not known or happens outside of forward mode."""
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
    """The same; to JAX all numbers of `tree` depend on those of `others`, by a derivative of zero.
    Programs that hand numbers on to each other are then differentiated and batched alike, the first
    of them too, and compiled once."""
    floats = [x for x in jax.tree.leaves(others) if eqx.is_inexact_array(x) and x.size]
    if not floats:
        return tree
    nothing = jnp.where(jnp.zeros((), bool), sum(x.ravel()[0] for x in floats), 0.0)

    def on(x):
        more = nothing.astype(x.dtype)
        return x | more if x.dtype == bool else x + more

    return jax.tree.map(lambda x: on(x) if eqx.is_array(x) else x, tree)
