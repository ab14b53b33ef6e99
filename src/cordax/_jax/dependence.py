"""Whether a function looks at its arguments."""

import jax
from jax.interpreters.partial_eval import dce_jaxpr


def depends(function, *args) -> bool:
    """Whether any result of `function` is computed from any of `args`; found by tracing, so a
    product with a computed zero counts."""
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    _, used = dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return any(used)
