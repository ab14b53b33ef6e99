"""Errors raised by compiled code, with a readable message in the log first."""

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
    """Return `tree`; where `failed`, raise an error with `messages[index]`, also in compiled code.

    Under `jax.jit` the error is wrapped in an XLA error and preceded by many lines. The message is
    therefore also written to the log "cordax", before the error is raised. If `tell` is given, the
    text in the log is `tell(message, time)`, where `time` is a number that is known only when the
    error occurs."""

    def say(index, time):
        message = messages[int(index)]
        _log.error(message if tell is None else tell(message, float(time)))
        return index

    failed = jnp.asarray(failed)
    index, time = jax.lax.stop_gradient((jnp.asarray(index), jnp.asarray(time)))
    index = unvmap_max(jnp.where(failed, index, 0))
    time = unvmap_max(jnp.where(failed, time, -jnp.inf))  # in a batch: largest of failed members
    failed = unvmap_any(failed)
    shape = jax.ShapeDtypeStruct(index.shape, index.dtype)
    # the error needs the index that the callback returns, so it cannot precede the log message
    said = lambda: jax.pure_callback(say, shape, index, time)
    index = jax.lax.cond(failed, said, lambda: index)
    tree, one = eqx.branched_error_if((tree, jnp.ones(())), failed, index, messages)
    # a product, so that derivatives depend on the error check even if the values are not used
    times = lambda x: x * one.astype(x.dtype) if eqx.is_inexact_array(x) else x
    return jax.tree.map(times, tree)
