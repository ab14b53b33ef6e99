"""A step in parts, as many as it turns out to need."""

import math

import jax
from jax import lax


def repeat(going, go, times: int, *, again: bool = False):
    """A function that repeats `go` on what it is given while `going` says so, `times` times or a
    few more at most; forward and reverse mode go through it.

    Three loops in each other, because most steps take one pass and skipping the others costs time
    too. `again`: reverse mode computes a pass again rather than store all that a step may take,
    which is nine times slower where they are many."""

    def loop(inner):
        go = jax.checkpoint(inner, prevent_cse=False) if again else inner
        once = lambda now, _: (lax.cond(going(now), go, lambda now: now, now), None)
        return lambda now: lax.scan(once, now, length=math.ceil(times ** (1 / 3)))[0]

    for _ in range(3):
        go = loop(go)
    return go
