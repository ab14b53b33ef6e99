"""Run one phase in fixed-size compiled chunks, so that a new duration does not recompile."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.results import GOOD
from .._jax.program_cache import cached_jit
from .._jax.tracing import Transformed, depending_on, is_traced
from ..mechanics.consistent_state import check_start, look, look_compiled
from .diffrax_loop import integrate_whole
from .plan import Plan
from .postprocess import pieces_together
from .time_loop import UNSOLVED, failed_controller

#: stored instants of a compiled chunk; the number of chunks, and of instants in the last one, is
#: data
CAPACITY = 2048
#: limits under a transformation: number of steps whose state reverse mode stores in a chunk, and
#: number of steps in a chunk summed over all batch members
REVERSE_STEPS, BATCH_STEPS = 2048, 32768
#: number of cached plans that are split into static part and arrays
_CACHED = 8


def run_phase(plan: Plan, state, memory, status, t0, n_saves, *, progress=False, joined=False):
    """Run one phase of `n_saves` blocks of steps from `t0` [s].

    Returns its trajectory and the last state, controller memory and status. `memory` is that of the
    controller; None stands for its initial memory. `joined`: the phase follows another one, so its
    constraints may be new.

    Outside of `jax.jit` the phase runs in chunks of a fixed size, so that a new duration does not
    recompile. A progress bar advances from chunk to chunk, since the compiled loop never calls
    back."""
    given, time = (state, memory, status), np.asarray(t0, state.q.dtype)
    if plan.integrator.traits.owns_time_loop:
        return _in_one_loop(plan, given, time, n_saves, joined)
    static, arrays = _split_cached(plan)
    seen = Transformed.of(given if static.known else (arrays, given))
    if seen is None:
        return _in_one_loop(plan, given, time, n_saves, joined)
    capacity = CAPACITY
    if seen.any:
        reverse = seen.reverse and plan.adjoint != "forward"
        if reverse:
            static, arrays = split(plan)
        else:  # a program for reverse mode would take longer to compile
            static, arrays = split(plan.reversible(False).with_stride_as_data())
        static = Static(*static.key[:3], traced=True, reverse=reverse)
        capacity = _capacity(plan, seen)
    done = _in_chunks(plan, static, arrays, given, time, n_saves, capacity, progress, joined)
    if done is not None:
        return done
    return _in_one_loop(plan.reversible(), given, time, n_saves, joined)


def run_in_one_loop(plan: Plan, state, memory, status, t0, n_saves: int):
    """Run a phase in which everything, its times too, may be traced; return its trajectory."""
    return _in_one_loop(plan.reversible(), (state, memory, status), t0, n_saves, joined=False)[0]


def _in_one_loop(plan: Plan, given, time, n_saves, joined):
    """Run a phase in one loop that is compiled for this number of blocks."""
    system, time = plan.dynamics.system, jnp.asarray(time)
    if not is_traced((system, given[0])):
        looked = look_compiled(
            system, given[0], time, plan.integrator.traits.allows_open_constraints
        )
        check_start(system, given[0], time, looked, joined=joined)
    static, arrays = split(plan)
    part, *end = _compiled_loop(static, n_saves, arrays, *given, time)
    return dataclasses.replace(part, system=system), *end


def _in_chunks(plan: Plan, static, arrays, given, time, n_saves, capacity, progress, joined):
    """Run a phase in chunks; return None if a function of the machine or of the controller refers
    to a traced number."""
    traced = static.traced
    carry, looked = _compiled_start(static, arrays, *given, time)
    if not traced and is_traced(carry):
        return None
    system = plan.dynamics.system
    check_start(system, given[0], time, looked, joined=joined)
    if progress:
        from tqdm.auto import tqdm

        bar = tqdm(total=n_saves * plan.save_every, unit="step", unit_scale=True)
    else:
        bar = None
    per_chunk = min(capacity, -(-n_saves // 50)) if progress else capacity
    parts, counts = [], []
    for first in range(0, n_saves, per_chunk):
        count = min(per_chunk, n_saves - first)
        numbers = np.asarray(first), time, np.asarray(count)
        part, carry = _compiled_blocks(static, capacity, arrays, carry, *numbers)
        if not traced and is_traced((part, carry)):
            return None
        parts.append(part)
        counts.append(count)
        if bar is not None:
            jax.block_until_ready(part.t)
            bar.update(count * plan.save_every)
    if bar is not None:
        bar.close()
    trajectory = pieces_together(parts, counts, system, carry if traced else ())
    if not traced and plan.controller_explains and int(carry.status[0]) in UNSOLVED:
        # compiled only if it is needed
        code = _compiled_explanation(static, arrays, carry.state, carry.status)
        if code != GOOD:
            trajectory = dataclasses.replace(trajectory, result=code)
            carry = carry._replace(status=(code, carry.status[1]))
    return trajectory, carry.state, carry.memory, carry.status


def _capacity(plan: Plan, seen: Transformed) -> int:
    """Number of stored instants in a chunk under a transformation; more if the batch is small."""
    every = int(plan.save_every)
    rows = batch_capacity(seen.members, every)
    return min(rows, max(1, REVERSE_STEPS // every)) if seen.reverse else rows


def batch_capacity(members: int, save_every: int) -> int:
    """Number of stored instants in a chunk of a batch.

    It is small where much is computed for each instant, since all rows are first set to zero."""
    return min(CAPACITY, max(BATCH_STEPS // (members * save_every), 8))


class Static:
    """Static part of a run or of another tree, and the positions of its arrays.

    `which[i]` is the index of the array that is leaf i, or -1 if leaf i is in `others`. An array
    that occurs more than once (a controller holds the machine) is stored once, so that what is
    computed from it is computed once.

    `traced`: whether a transformation may hide values; `reverse`: whether reverse mode is one of
    them; `known`: not `traced`. The hash is computed once, since `jax.jit` uses it at every call.
    """

    def __init__(self, structure, which, others, *, traced=True, reverse=False):
        self.key = structure, which, others, traced, reverse
        self.traced, self.reverse, self.known = traced, reverse, not traced
        self._hash = hash(self.key)

    def __hash__(self):
        return self._hash

    def __eq__(self, other):
        return self is other or (isinstance(other, Static) and self.key == other.key)

    def identity_parts(self) -> tuple:
        """Everything that a compiled program depends on, see `cordax._jax.reachable`."""
        return self.key

    def put(self, arrays):
        """Rebuild the tree from its arrays."""
        structure, which, others, *_ = self.key
        leaves = [x if k < 0 else arrays[k] for k, x in zip(which, others, strict=True)]
        return jax.tree.unflatten(structure, leaves)

    def plan(self, arrays) -> Plan:
        plan = self.put(arrays)
        return plan if self.traced else dataclasses.replace(plan, traced=False)


def split(tree, *, traced: bool = True) -> tuple[Static, list]:
    """Split a run or another tree into a static part for `jax.jit` and its arrays."""
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


_splits: dict[int, tuple[Plan, Static, list]] = {}


def _split_cached(plan: Plan) -> tuple[Static, list]:
    """`split` with `save_every` as data; the result is cached for concrete plans, because `Plan.of`
    returns the same object for the same experiment."""
    cached = _splits.get(id(plan))
    if cached is None or cached[0] is not plan:
        static, arrays = split(plan.with_stride_as_data())
        if is_traced(arrays):
            return static, arrays
        cached = plan, Static(*static.key[:3], traced=False), arrays
        _splits[id(plan)] = cached
        for old in list(_splits)[:-_CACHED]:
            _splits.pop(old, None)
    return cached[1:]


# `jax.jit` on the bare arrays of a plan: one call of `eqx.filter_jit` takes as long as many runs.
@functools.partial(cached_jit, static=(0,))
def _compiled_start(static: Static, arrays, state, memory, status, t0):
    plan = static.plan(arrays)
    carry = plan.begin(state, t0, memory, status)
    if static.traced:
        carry = depending_on(carry, (arrays, state, memory, status))
    return carry, look(
        plan.dynamics.system, state, t0, plan.integrator.traits.allows_open_constraints
    )


@functools.partial(cached_jit, static=(0, 1))
def _compiled_blocks(static: Static, capacity: int, arrays, carry, first, t0, count):
    def chunk(plan, carry, first, t0, count):
        how = {"reverse": static.reverse, "explained": static.traced}
        part, carry = plan.advance(carry, t0, capacity, first, count=count, **how)
        return dataclasses.replace(part, system=None), carry

    plan = static.plan(arrays)
    if static.reverse and plan.adjoint == "checkpointed":
        chunk = eqx.filter_checkpoint(chunk)  # stores the initial carry only
    return chunk(plan, carry, first, t0, count)


@functools.partial(cached_jit, static=(0,))
def _compiled_explanation(static: Static, arrays, last, status):
    return failed_controller(static.plan(arrays).prepared(), last, status)


@functools.partial(cached_jit, static=(0, 1))
def _compiled_loop(static: Static, n_saves: int, arrays, state, memory, status, t0):
    """Run one phase from `state`; `status`: code and failure time of earlier phases.

    Returns the trajectory, including its first instant, and the last state, memory and status."""
    plan = static.plan(arrays)
    if plan.integrator.traits.owns_time_loop:
        part, *end = integrate_whole(plan, state, plan.checked(status, t0), t0, n_saves)
    else:
        part, carry = plan.advance(plan.begin(state, t0, memory, status), t0, n_saves)
        end = carry.state, carry.memory, carry.status
    return dataclasses.replace(part, system=None), *end
