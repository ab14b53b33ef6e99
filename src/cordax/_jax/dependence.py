"""Test whether the result of a function depends on its arguments."""

import jax
from jax.interpreters.partial_eval import dce_jaxpr


def depends(function, *args) -> bool:
    """Return whether any result of `function` is computed from any of `args`.

    The function is traced, not evaluated: a product with a zero that is computed counts as a
    dependence."""
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    _, used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return any(used)
