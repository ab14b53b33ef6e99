"""`once`: reuse a result that was traced a moment ago from the same arguments.

A machine and the controller that holds it evaluate the same motions of bodies, some of them several
times. XLA removes most repetitions, but not all (it moves constant expressions out of loops first),
and only after they have been traced."""

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
    """The last results of this thread. A trace belongs to one thread, so nothing is shared. Each
    entry keeps its trace from being collected."""

    def __init__(self):
        self.entries: deque[_Entry] = deque(maxlen=4)


_recent = _Recent()


def once(function: Callable, *arguments):
    """Return `function(*arguments)`, or the result of an earlier call with the same objects within
    the same function that JAX traces."""
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
