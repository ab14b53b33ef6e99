"""Run one phase in fixed-size compiled chunks, so that a new duration does not recompile."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .._base.results import GOOD, result_of
from .._jax.program_cache import cached_jit
from .._jax.tracing import Transformed, depending_on
from ..mechanics.consistent_state import check_start, look, look_compiled
from .diffrax_loop import integrate_whole
from .postprocess import pieces_together
from .time_loop import UNSOLVED, Run, blocks, failed_controller, start

#: stored instants of a compiled piece: the number of pieces, and of instants in the last, is data
CAPACITY = 2048
#: the same under a transformation: steps that reverse mode keeps the state of, and steps of all
#: members of a batch
REVERSE_STEPS, BATCH_STEPS = 2048, 32768
#: runs that are remembered in the form that is compiled
_REMEMBERED = 8


def advance(run: Run, state, memory, status, t0, dt, n_saves, progress, *, joined=False):
    """One phase of `n_saves` blocks of steps. Outside of `jax.jit` in pieces of a fixed size, so
    that no duration compiles anew; a progress bar moves from piece to piece, as the compiled loop
    itself never calls back. `joined`: constraints are new."""
    given = state, memory, status
    time, step = (np.asarray(x, state.q.dtype) for x in (t0, dt))
    if run.integrator.whole_runs:
        return _whole(run, given, time, step, n_saves, joined)
    static, arrays = _split_known(run)
    seen = Transformed.of(given if static.known else (arrays, given))
    if seen is None:
        return _whole(run, given, time, step, n_saves, joined)
    capacity = CAPACITY
    if seen.any:
        reverse = seen.reverse and run.adjoint != "forward"
        if reverse:
            static, arrays = split(run)
        static = Static(*static.key[:3], traced=True, reverse=reverse)
        capacity = _capacity(run, seen)
    found = _in_pieces(run, static, arrays, given, time, step, n_saves, capacity, progress, joined)
    if found is not None:
        return found
    return _whole(run.reversible(), given, time, step, n_saves, joined)


def advance_whole(run: Run, state, memory, status, t0, dt, n_saves: int):
    """One phase of which a transformation may hide anything, its times too."""
    run = run.reversible()
    return _whole(run, (state, memory, status), t0, dt, n_saves, joined=False)[0]


def _whole(run: Run, given, time, step, n_saves, joined):
    """In one loop, compiled for this number of blocks."""
    system, time, step = run.dynamics.system, jnp.asarray(time), jnp.asarray(step)
    if not _any_traced((system, given[0])):
        looked = look_compiled(system, given[0], time, run.integrator.lets_go)
        check_start(system, given[0], time, looked, joined=joined)
    static, arrays = split(run)
    part, *end = _compiled_whole(static, n_saves, arrays, *given, time, step)
    return dataclasses.replace(part, system=system), *end


def _any_traced(tree) -> bool:
    return any(isinstance(x, Tracer) for x in jax.tree.leaves(tree))


def _in_pieces(run: Run, static, arrays, given, time, step, n_saves, capacity, progress, joined):
    """None where it turns out that a function of the machine or of the controller refers to a
    number of some transformation."""
    traced = static.traced
    carry, looked = _compiled_start(static, arrays, *given, time, step)
    if not traced and _any_traced(carry):
        return None
    system = run.dynamics.system
    check_start(system, given[0], time, looked, joined=joined)
    if progress:
        from tqdm.auto import tqdm

        bar = tqdm(total=n_saves * run.save_every, unit="step", unit_scale=True)
    else:
        bar = None
    per_piece = min(capacity, -(-n_saves // 50)) if progress else capacity
    parts, counts = [], []
    for first in range(0, n_saves, per_piece):
        count = min(per_piece, n_saves - first)
        numbers = np.asarray(first), time, step, np.asarray(count)
        part, carry = _compiled_blocks(static, capacity, arrays, carry, *numbers)
        if not traced and _any_traced((part, carry)):
            return None
        parts.append(part)
        counts.append(count)
        if bar is not None:
            jax.block_until_ready(part.t)
            bar.update(count * run.save_every)
    if bar is not None:
        bar.close()
    together = pieces_together(parts, counts, system, carry if traced else ())
    if not traced and run.controller_explains and int(carry.status[0]) in UNSOLVED:
        # compiled only now that it is asked for
        code = _compiled_explanation(static, arrays, step, carry.state, carry.status)
        if code != GOOD:
            together = dataclasses.replace(together, result=result_of(code))
            carry = carry._replace(status=(code, carry.status[1]))
    return together, carry.state, carry.memory, carry.status


def _capacity(run: Run, seen: Transformed) -> int:
    """Stored instants of a piece: few members of a batch may have many."""
    every = int(run.save_every)
    rows = batch_capacity(seen.members, every)
    return min(rows, max(1, REVERSE_STEPS // every)) if seen.reverse else rows


def batch_capacity(members: int, save_every: int) -> int:
    """Stored instants of a piece of so many members: few where much is computed for each, since
    all of them are set to zero first."""
    return min(CAPACITY, max(BATCH_STEPS // (members * save_every), 8))


class Static:
    """What of a run, or of another tree, is no array, and where its arrays go: `which[i]` is the
    number of the array that is leaf i, -1 for those in `others`. Arrays that occur more than once
    (a controller holds the machine) are one: what is computed from both is then computed once.

    `traced`: whether a transformation may hide numbers; `reverse`: whether reverse mode is one;
    `known`: not `traced`, and found so. Hashed once: `jax.jit` asks at every call."""

    def __init__(self, structure, which, others, *, traced=True, reverse=False):
        self.key = structure, which, others, traced, reverse
        self.traced, self.reverse, self.known = traced, reverse, not traced
        self._hash = hash(self.key)

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return self is other or (isinstance(other, Static) and self.key == other.key)

    def identity_parts(self) -> tuple:
        """What a program depends on, see `cordax._jax.reachable`."""
        return self.key

    def put(self, arrays):
        """The tree with its arrays."""
        structure, which, others, *_ = self.key
        leaves = [x if k < 0 else arrays[k] for k, x in zip(which, others, strict=True)]
        return jax.tree.unflatten(structure, leaves)

    def run(self, arrays) -> Run:
        run = self.put(arrays)
        return run if self.traced else dataclasses.replace(run, traced=False)


def split(tree, *, traced: bool = True) -> tuple[Static, list]:
    """A run, or another tree, as what `jax.jit` takes for static, and its arrays."""
    leaves, structure = jax.tree.flatten(tree)
    arrays, number, which, others = [], {}, [], []
    for x in leaves:
        if isinstance(x, (jax.Array, np.ndarray)):
            if id(x) not in number:
                number[id(x)] = len(arrays)
                arrays.append(x)
            which.append(number[id(x)])
            others.append(None)
        else:
            which.append(-1)
            others.append(x)
    return Static(structure, tuple(which), tuple(others), traced=traced), arrays


_splits: dict[int, tuple[Run, Static, list]] = {}


def _split_known(run: Run) -> tuple[Static, list]:
    """`split` with `save_every` as data, remembered for runs whose numbers are known: `prepare`
    hands out the same again."""
    found = _splits.get(id(run))
    if found is None or found[0] is not run:
        static, arrays = split(run.with_stride_as_data())
        if _any_traced(arrays):
            return static, arrays
        found = run, Static(*static.key[:3], traced=False), arrays
        _splits[id(run)] = found
        for old in list(_splits)[:-_REMEMBERED]:
            _splits.pop(old, None)
    return found[1:]


# `jax.jit` on the bare arrays of a run: calling `eqx.filter_jit` takes as long as many a run.
@functools.partial(cached_jit, static=(0,))
def _compiled_start(static: Static, arrays, state, memory, status, t0, dt):
    run = static.run(arrays)
    carry = start(run, state, memory, status, t0, dt)
    if static.traced:
        carry = depending_on(carry, (arrays, state, memory, status))
    return carry, look(run.dynamics.system, state, t0, run.integrator.lets_go)


@functools.partial(cached_jit, static=(0, 1))
def _compiled_blocks(static: Static, capacity: int, arrays, carry, first, t0, dt, count):
    def piece(run, carry, first, t0, dt, count):
        how = {"reverse": static.reverse, "explained": static.traced}
        part, carry = blocks(run, carry, first, t0, dt, capacity, count, **how)
        return dataclasses.replace(part, system=None), carry

    run = static.run(arrays)
    if static.reverse and run.adjoint == "checkpointed":
        piece = eqx.filter_checkpoint(piece)  # what it began with is kept, and no more
    return piece(run, carry, first, t0, dt, count)


@functools.partial(cached_jit, static=(0,))
def _compiled_explanation(static: Static, arrays, dt, last, status):
    return failed_controller(static.run(arrays).prepared(), dt, last, status)


@functools.partial(cached_jit, static=(0, 1))
def _compiled_whole(static: Static, n_saves: int, arrays, state, memory, status, t0, dt):
    """One phase from `state`; `status` is how the phases before it ended, a code and a time.
    Returns the trajectory with its start, and the last state, memory and status."""
    run = static.run(arrays)
    if run.integrator.whole_runs:
        part, *end = integrate_whole(run, state, status, t0, dt, n_saves)
    else:
        carry = start(run, state, memory, status, t0, dt)
        part, carry = blocks(run, carry, 0, t0, dt, n_saves)
        end = carry.state, carry.memory, carry.status
    return dataclasses.replace(part, system=None), *end
