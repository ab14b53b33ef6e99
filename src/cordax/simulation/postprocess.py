"""From stored states to a trajectory: outputs, warnings and failures due to constraints."""

import functools
from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._base.results import GOOD, Result
from .._jax.tracing import depending_on, is_traced
from ..formulations import Dynamics
from ..mechanics.constraints import rank_margin
from .adjoints import each
from .trajectory import Trajectory

#: runs with a larger |Phi| fail with constraint_drift
MAX_DRIFT = 1e-3
#: smallest pivot of the scaled Phi_q M^-1 Phi_q^T below which rows count as redundant
REDUNDANT = 1e-11


def stored_trajectory(
    plan, system, t, states, u, multipliers, records, alarms, status, count=None, reverse=False
):
    """Compute outputs, warnings and constraint errors of the stored states.

    `system` is the machine of the user; `multipliers` is None if they are still to be computed;
    `alarms` are the first times found by the time loop. Only the first `count` rows are valid, if
    it is given. Returns the trajectory, its last state and its status, a code and a time: rows
    after a failure repeat the last good one."""
    dynamics, integrator = plan.dynamics, plan.integrator
    machine = dynamics.system
    shown = machine.presentation()
    constrained = machine.n_constraints > 0
    code, failure = status

    def look(t, q, v, u, multipliers, record):
        if constrained:
            if multipliers is None:
                multipliers = integrator.multipliers(dynamics, record, t, q, v, u)
            drift = jnp.max(jnp.abs(integrator.violation(dynamics, record, t, q)))
        else:
            multipliers, drift = jnp.zeros(0, q.dtype), jnp.zeros((), q.dtype)
        outputs = machine.outputs(t, q, v, u, multipliers)
        bad = {name: jnp.any(x) for name, x in shown.warnings(outputs).items()}
        return (q, v, u, multipliers, drift, outputs), bad

    given = t, states.q, states.v, u, multipliers, records
    rows, bad = each(look, *given, count=count, reverse=reverse)
    end = t.shape[0] if count is None else count
    t_known = jnp.where(jnp.arange(t.shape[0]) < end, t, jnp.inf)
    last = jax.tree.map(lambda x: x[end - 1], (t, states))
    first = lambda b: jnp.where(jnp.any(b), t[jnp.argmax(b)], jnp.inf)
    if constrained:
        drifted = first((rows[4] > MAX_DRIFT) & (t_known < failure))
        code, failure = _judge_constraints(dynamics, last[0], last[1], drifted, code, failure)
        late = code == Result.CONSTRAINT_DRIFT
        best = jnp.where(late, jnp.maximum(jnp.sum(t_known < failure) - 1, 0), end - 1)
        good = jnp.minimum(jnp.arange(t.shape[0]), best)
        rows = jax.tree.map(lambda x: x[good], rows)
    q, v, u, multipliers, drift, outputs = rows
    stored = {name: first(b & (t_known < failure)) for name, b in bad.items()}
    seen = {name: jnp.where(x < failure, x, jnp.inf) for name, x in alarms.items()}
    warnings = {name: jnp.minimum(x, seen.get(name, jnp.inf)) for name, x in stored.items()}
    trajectory = Trajectory(
        t, q, v, u, multipliers, drift, outputs, warnings, code, failure, system
    )
    return trajectory, type(states)(q[end - 1], v[end - 1]), (code, failure)


def _judge_constraints(dynamics: Dynamics, t, last, drifted, code, failure):
    """Update the status of a run if constraints explain its end: by drift or, if steps had no
    solution, by rows that have become redundant in the `last` good state."""
    unsolved = (code == Result.NONFINITE_STATE) | (code == Result.NEWTON_NOT_CONVERGED)
    margin = jax.lax.cond(
        unsolved,
        lambda: rank_margin(dynamics.system, t, last.q),
        lambda: jnp.ones((), last.q.dtype),
    )
    # a margin of NaN means that a diagonal entry has vanished
    singular = unsolved & ~(margin > REDUNDANT)
    code = jnp.where(singular, Result.SINGULAR_CONSTRAINTS, code)
    late = (code == GOOD) & jnp.isfinite(drifted)
    return jnp.where(late, Result.CONSTRAINT_DRIFT, code), jnp.where(late, drifted, failure)


def join(parts: list[Trajectory]) -> Trajectory:
    """Concatenate phases; the instant that two phases share is taken from the later one."""
    arrays = lambda get: _end_to_end(_as_wide([get(p) for p in parts], jnp.nan))
    last = parts[-1]
    names = list(dict.fromkeys(name for p in parts for name in p.outputs))
    outputs = {name: arrays(lambda p, n=name: _output(parts, p, n)) for name in names}
    never = {
        name: [p.warnings[name] for p in parts if name in p.warnings] for name in _warned(parts)
    }
    warnings = {name: jnp.min(jnp.stack(times)) for name, times in never.items()}
    result, failure = parts[0].result, parts[0].failure_time
    for part in parts[1:]:
        good = result == Result.SUCCESSFUL
        result = jnp.where(good, part.result, result)
        failure = jnp.where(good, part.failure_time, failure)
    return Trajectory(
        arrays(lambda p: p.t),
        arrays(lambda p: p.q),
        arrays(lambda p: p.v),
        arrays(lambda p: p.u),
        _end_to_end(_as_wide([p.multipliers for p in parts], 0.0)),
        arrays(lambda p: p.violation),
        outputs,
        warnings,
        result,
        failure,
        last.system,
        _all_events(parts),
        _sums([p.statistics for p in parts]),
        tuple(parts),
    )


def _warned(parts: list[Trajectory]) -> list[str]:
    return list(dict.fromkeys(name for p in parts for name in p.warnings))


def _output(parts: list[Trajectory], part: Trajectory, name: str):
    """Output of a phase by name; NaN if the phase does not have it."""
    if name in part.outputs:
        return part.outputs[name]
    shape = next(p.outputs[name].shape[1:] for p in parts if name in p.outputs)
    return np.full((part.t.shape[0], *shape), np.nan)


def _as_wide(arrays: list, fill: float) -> list:
    """Pad all arrays with `fill` to the widest trailing axes."""
    shape = np.max([x.shape[1:] for x in arrays], axis=0, initial=0).astype(int)
    numpy = jnp if is_traced(arrays) else np
    pad = lambda x: [(0, 0), *((0, int(n) - m) for n, m in zip(shape, x.shape[1:], strict=True))]
    fits = lambda x: tuple(shape) == x.shape[1:]
    return [x if fits(x) else numpy.pad(x, pad(x), constant_values=fill) for x in arrays]


def _end_to_end(arrays: list):
    """Concatenate arrays; the instant that two of them share is taken from the later one.

    Concrete values are concatenated by NumPy, since JAX would compile for every shape."""
    if is_traced(arrays):
        return jnp.concatenate([x[:-1] for x in arrays[:-1]] + [arrays[-1]])
    arrays = [np.asarray(x) for x in arrays]
    return jax.device_put(np.concatenate([x[:-1] for x in arrays[:-1]] + [arrays[-1]]))


#: number of runs of the same length after which the selection of rows is compiled: compiling takes
#: as long as some hundred copies by NumPy
_OFTEN = 20
_runs_of_length: Counter[tuple[int, ...]] = Counter()


def pieces_together(
    parts: list[Trajectory], counts: list[int], system, end: Any = (), axis: int = 0
) -> Trajectory:
    """Assemble one phase from the chunks in which it was computed.

    Of each chunk the first `counts` rows are taken along `axis`, plus the last row of the last
    chunk; `end`: carry of the last chunk under a transformation. NumPy does this unless the length
    is frequent or values are traced, since JAX would compile for every length."""
    last = parts[-1]
    which = lambda p: (p.t, p.q, p.v, p.u, p.multipliers, p.violation, p.outputs)
    rows, warned = [which(p) for p in parts], [p.warnings for p in parts]
    compiled = is_traced((rows, warned))
    if not compiled:
        length = tuple(counts)
        _runs_of_length[length] += 1
        compiled = _runs_of_length[length] > _OFTEN
    if compiled:
        arrays, warnings = _rows_together(rows, warned, end, tuple(counts), axis)
    else:
        arrays, warnings = jax.device_put(_take_rows(np, rows, warned, counts, axis))
    rest = last.result, last.failure_time, system, last.events, last.statistics
    return Trajectory(*arrays, warnings, *rest)  # pyright: ignore[reportCallIssue]


def _take_rows(numpy, rows: list, warned: list, counts, axis: int):
    before = (slice(None),) * axis
    first = lambda x, n: numpy.asarray(x)[(*before, slice(0, n))]

    def together(*xs):
        kept = [first(x, n) for x, n in zip(xs[:-1], counts, strict=False)]
        return numpy.concatenate([*kept, first(xs[-1], counts[-1] + 1)], axis=axis)

    least = lambda *xs: numpy.min(numpy.stack(xs), axis=0)
    return jax.tree.map(together, *rows), jax.tree.map(least, *warned)


@functools.partial(jax.jit, static_argnums=(3, 4))
def _rows_together(rows: list, warned: list, end, counts, axis: int):
    # the last chunk is differentiated like the others, also with respect to its carry
    return _take_rows(jnp, depending_on(rows, end), warned, counts, axis)


def _sums(counts: list[dict]) -> dict:
    return {name: sum(c.get(name, 0) for c in counts) for name in counts[-1]}


def _all_events(parts: list[Trajectory]):
    if any(p.events is None for p in parts):
        return None
    return jax.tree.map(lambda *xs: jnp.concatenate(xs), *(p.events for p in parts))
