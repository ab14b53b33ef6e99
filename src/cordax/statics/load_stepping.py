"""Equilibria followed from a small load to the full load."""

from collections.abc import Callable

from ..mechanics import System

#: first and smallest increment of the load factor
_FIRST, _LEAST = 0.25, 1e-4


def follow(load: Callable[[float], System], rest: Callable, q):
    """Follow the equilibrium to a load factor near 1. `load(s)` is the machine under the load
    factor s (0 to 1); `rest(machine, q)` searches an equilibrium from q. An increment that fails is
    halved. Returns the last result and its load factor."""
    result = rest(load(0.0), q)
    factor, increment = 0.0, _FIRST
    while bool(result.found) and factor + increment < 1.0:
        trial = rest(load(factor + increment), result.state.q)
        if bool(trial.found):
            result, factor, increment = trial, factor + increment, 2.0 * increment
        elif increment > _LEAST:
            increment *= 0.5
        else:
            return trial, factor + increment
    return result, factor
