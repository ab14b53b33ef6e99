"""States at rest followed from an easy load to the whole one."""

from collections.abc import Callable

from ..mechanics import System

#: part of the load tried first, and the smallest part worth trying
_FIRST, _LEAST = 0.25, 1e-4


def follow(load: Callable[[float], System], rest: Callable, q):
    """The configuration at rest under nearly all of a load: `load(s)` is the machine under the part
    s of it, from 0 to 1, and `rest(machine, q)` searches from q. A part that is too much at once is
    halved; returns the last result, at the part of the load that it names, and that part."""
    found = rest(load(0.0), q)
    part, ahead = 0.0, _FIRST
    while bool(found.found) and part + ahead < 1.0:
        further = rest(load(part + ahead), found.state.q)
        if bool(further.found):
            found, part, ahead = further, part + ahead, 2.0 * ahead
        elif ahead > _LEAST:
            ahead *= 0.5
        else:
            return further, part + ahead
    return found, part
