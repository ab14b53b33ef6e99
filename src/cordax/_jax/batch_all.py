"""`everywhere`: test whether a condition holds in all members of a batch.

Under `vmap`, a condition that differs between members turns `lax.cond` into a selection: both
branches are computed for all members. Where both branches give a valid result, a single decision
for the whole batch avoids computing the expensive branch."""

import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from . import features

_everywhere_p = Primitive("everywhere")


def everywhere(condition):
    """Return the condition, a bool of shape (); under `vmap`, whether it holds in every member."""
    if not features.is_on("batch conditions"):
        return lax.stop_gradient(jnp.asarray(condition, bool))
    return _everywhere_p.bind(lax.stop_gradient(jnp.asarray(condition, bool)))


def _all_members(args, dims):
    (condition,), (dim,) = args, dims
    return _everywhere_p.bind(jnp.all(condition, axis=dim)), None  # no batch axis


_everywhere_p.def_impl(lambda x: x)
_everywhere_p.def_abstract_eval(lambda x: x)
mlir.register_lowering(_everywhere_p, lambda ctx, x: [x])
batching.primitive_batchers[_everywhere_p] = _all_members
