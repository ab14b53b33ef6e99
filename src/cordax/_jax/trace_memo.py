"""`once`: reuse a result that was recently traced from the same arguments.

A machine and its controller evaluate the same motions of bodies, some of them several times. XLA
removes most of these repetitions, but not all, because it first moves constant expressions out of
loops. It also removes them only after they have been traced, which takes time."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from . import features
from .tracing import is_traced

try:
    from jax.extend.core import get_opaque_trace_state
except ImportError:  # jax 0.9
    from jax.core import get_opaque_trace_state  # pyright: ignore


class _Entry(NamedTuple):
    function: Callable
    structure: Any
    leaves: list
    trace: Any
    result: Any


class _Recent(threading.local):
    """The most recent results of this thread.

    A trace belongs to one thread, so threads share no results. Each entry holds a reference to its
    trace, which is therefore not garbage-collected."""

    def __init__(self):
        self.entries: deque[_Entry] = deque(maxlen=4)


_recent = _Recent()


def once(function: Callable, *arguments):
    """Return `function(*arguments)`, computed or reused.

    A result is reused if an earlier call had the same argument objects and belongs to the same
    JAX trace."""
    leaves, structure = jax.tree.flatten(arguments)
    if not is_traced(leaves) or not features.is_on("trace memo"):
        return function(*arguments)
    trace = get_opaque_trace_state(convention="nnx")
    for entry in tuple(_recent.entries):
        if entry.function is function and entry.trace == trace and entry.structure == structure:
            if all(x is y for x, y in zip(entry.leaves, leaves, strict=True)):
                return entry.result
    result = function(*arguments)
    _recent.entries.append(_Entry(function, structure, leaves, trace, result))
    return result
