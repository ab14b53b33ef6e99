"""From stored states to a trajectory: outputs, warnings, and what constraints say of the end."""

import jax
import jax.numpy as jnp

from ._results import GOOD, RESULTS, Code, result_of
from .formulations import Dynamics
from .loops import each
from .mechanics.constraints import rank_margin
from .trajectory import Trajectory

#: largest |Phi| of a run that counts as one
MAX_DRIFT = 1e-3
#: smallest pivot of the scaled Phi_q M^-1 Phi_q^T below which rows count as redundant
REDUNDANT = 1e-11


def stored_trajectory(run, system, t, states, u, records, alarms, status):
    """Outputs, warnings and constraint errors of the stored states; `system` as the user gave it,
    `alarms` the first times seen by the time loop. Returns the trajectory, its last state and its
    status, a code and a time: rows after a failure repeat the last good one."""
    dynamics, integrator = run.dynamics, run.integrator
    machine = dynamics.system
    constrained = machine.n_constraints > 0
    code, failure = status

    def look(t, q, v, u, record):
        if constrained:
            multipliers = integrator.multipliers(dynamics, record, t, q, v, u)
            drift = jnp.max(jnp.abs(integrator.violation(dynamics, record, t, q)))
        else:
            multipliers, drift = jnp.zeros(0, q.dtype), jnp.zeros((), q.dtype)
        outputs = machine.outputs(t, q, v, u, multipliers)
        bad = {name: jnp.any(x) for name, x in machine.warnings(outputs).items()}
        return (q, v, u, multipliers, drift, outputs), bad

    rows, bad = each(look, t, states.q, states.v, u, records)
    first = lambda b: jnp.where(jnp.any(b), t[jnp.argmax(b)], jnp.inf)
    if constrained:
        drifted = first((rows[4] > MAX_DRIFT) & (t < failure))
        code, failure = _judge_constraints(dynamics, t, states, drifted, code, failure)
        late = code == Code.CONSTRAINT_DRIFT
        last = jnp.where(late, jnp.maximum(jnp.sum(t < failure) - 1, 0), t.shape[0] - 1)
        good = jnp.minimum(jnp.arange(t.shape[0]), last)
        rows = jax.tree.map(lambda x: x[good], rows)
    q, v, u, multipliers, drift, outputs = rows
    stored = {name: first(b & (t < failure)) for name, b in bad.items()}
    seen = {name: jnp.where(x < failure, x, jnp.inf) for name, x in alarms.items()}
    warnings = {name: jnp.minimum(x, seen.get(name, jnp.inf)) for name, x in stored.items()}
    trajectory = Trajectory(
        t, q, v, u, multipliers, drift, outputs, warnings, result_of(code), failure, system
    )
    return trajectory, type(states)(q[-1], v[-1]), (code, failure)


def _judge_constraints(dynamics: Dynamics, t, states, drifted, code, failure):
    """Whether constraints explain how a run ended: drift, or, where steps had no solution, rows
    that have become redundant in the last good state."""
    last = jax.tree.map(lambda x: x[-1], states)
    unsolved = (code == Code.NONFINITE_STATE) | (code == Code.NEWTON_NOT_CONVERGED)
    margin = jax.lax.cond(
        unsolved,
        lambda: rank_margin(dynamics.system, t[-1], last.q),
        lambda: jnp.ones((), last.q.dtype),
    )
    # a margin that is not a number means that even a diagonal entry has vanished
    singular = unsolved & ~(margin > REDUNDANT)
    code = jnp.where(singular, Code.SINGULAR_CONSTRAINTS, code)
    late = (code == GOOD) & jnp.isfinite(drifted)
    return jnp.where(late, Code.CONSTRAINT_DRIFT, code), jnp.where(late, drifted, failure)


def join(parts: list[Trajectory]) -> Trajectory:
    """Trajectories end to end; the instant two of them share is taken from the later one."""
    arrays = lambda get: jnp.concatenate([get(p)[:-1] for p in parts[:-1]] + [get(parts[-1])])
    last = parts[-1]
    outputs = {name: arrays(lambda p, n=name: p.outputs[n]) for name in last.outputs}
    warnings = {n: jnp.min(jnp.stack([p.warnings[n] for p in parts])) for n in last.warnings}
    result, failure = parts[0].result, parts[0].failure_time
    for part in parts[1:]:
        good = result == RESULTS.successful
        result = RESULTS.where(good, part.result, result)
        failure = jnp.where(good, part.failure_time, failure)
    return Trajectory(
        arrays(lambda p: p.t),
        arrays(lambda p: p.q),
        arrays(lambda p: p.v),
        arrays(lambda p: p.u),
        _padded(parts),
        arrays(lambda p: p.violation),
        outputs,
        warnings,
        result,
        failure,
        last.system,
        _all_events(parts),
    )


def _padded(parts: list[Trajectory]):
    """Multipliers end to end; a phase with fewer constraints than another has zeros for the
    rest."""
    rows = max(p.multipliers.shape[-1] for p in parts)
    wide = [jnp.pad(p.multipliers, ((0, 0), (0, rows - p.multipliers.shape[-1]))) for p in parts]
    return jnp.concatenate([w[:-1] for w in wide[:-1]] + [wide[-1]])


def _all_events(parts: list[Trajectory]):
    if any(p.events is None for p in parts):
        return None
    return jax.tree.map(lambda *xs: jnp.concatenate(xs), *(p.events for p in parts))
