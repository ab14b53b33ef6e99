"""`once`: what was traced a moment ago from the same numbers is not traced again.

A machine and the controller that holds it ask for the same motions of the bodies, some of them
several times. XLA finds most of what is computed twice, not all (what does not change is moved out
of loops first), and after the time to trace it."""

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.extend.core import get_opaque_trace_state

from .tracing import is_traced


class _Done(NamedTuple):
    function: Callable
    structure: Any
    given: list
    trace: Any
    result: Any


#: the last ones; each keeps what it was traced in from being collected
_done: deque[_Done] = deque(maxlen=4)


def once(function: Callable, *arguments):
    """`function(*arguments)`, or what it has returned for the same objects within the same
    function that JAX traces."""
    given, structure = jax.tree.flatten(arguments)
    if not is_traced(given):
        return function(*arguments)
    trace = get_opaque_trace_state(convention="nnx")
    for done in _done:
        same = done.function is function and done.trace == trace and done.structure == structure
        if same and all(x is y for x, y in zip(done.given, given, strict=True)):
            return done.result
    result = function(*arguments)
    _done.append(_Done(function, structure, given, trace, result))
    return result
