"""Errors of compiled code, said in cordax' own words first."""

import logging
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any, unvmap_max

_log = logging.getLogger("cordax")


def raise_compiled(
    tree, failed, index, messages: Sequence[str], tell: Callable[..., str] | None = None, time=0.0
):
    """`tree`; where `failed` an error with the message of this `index`, from compiled code too.

    Under `jax.jit` that error arrives inside of one of XLA's, after many lines. So the message goes
    to the log "cordax" as well, and there it comes first: what `tell(message, time)` makes of it,
    `time` being a number known at that moment only."""

    def say(index, time):
        message = messages[int(index)]
        _log.error(message if tell is None else tell(message, float(time)))
        return index

    failed = jnp.asarray(failed)
    index, time = jax.lax.stop_gradient((jnp.asarray(index), jnp.asarray(time)))
    index = unvmap_max(jnp.where(failed, index, 0))
    time = unvmap_max(jnp.where(failed, time, -jnp.inf))  # in a batch of one of those that failed
    failed = unvmap_any(failed)
    shape = jax.ShapeDtypeStruct(index.shape, index.dtype)
    # the index that the error needs has been said: so the error cannot come before
    said = lambda: jax.pure_callback(say, shape, index, time)
    index = jax.lax.cond(failed, said, lambda: index)
    tree, one = eqx.branched_error_if((tree, jnp.ones(())), failed, index, messages)
    # derivatives need the error too, where nobody looks at the values
    times = lambda x: x * one.astype(x.dtype) if eqx.is_inexact_array(x) else x
    return jax.tree.map(times, tree)
