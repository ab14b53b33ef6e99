"""Initial states from measurements."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require
from ..mechanics import State, System
from ..mechanics.consistent_state import consistent
from ..mechanics.constraints import position_on_constraints, velocity_on_constraints
from ..recordings.recording import Recording

#: number of samples at the beginning of a recording from which the initial velocity is estimated
SAMPLES = 9


class MeasuredState(eqx.Module):
    """Initial state near a measured one, for `Experiment(state0=...)`.

    `q` (n_q,) and `v` (n_v,) are moved by `position` and `velocity`, shape (n,), along the columns
    of `basis` (n_v, n), the directions that the constraints allow, and projected onto the
    constraints. Fit it with the parameters `"state0.position"` and `"state0.velocity"` (in the
    units of the coordinates and their rates)."""

    q: Float[Array, " n_q"]
    v: Float[Array, " n_v"]
    position: Float[Array, " n"]
    velocity: Float[Array, " n"]
    basis: Float[Array, "n_v n"]
    t: float = eqx.field(static=True, default=0.0)

    def __call__(self, system: System) -> State:
        q = system.retract(self.q, self.basis @ self.position)
        v = self.v + self.basis @ self.velocity
        if not system.n_constraints:
            return State(q, v)
        t = jnp.asarray(self.t, q.dtype)
        q = position_on_constraints(system, t, q, 12)
        return State(q, velocity_on_constraints(system, t, q, v)[0])


def measured_state(
    system: System, recording: Recording, default: State | None = None
) -> MeasuredState:
    """Initial state at the first instant of a recording, projected onto the constraints.

    Recorded coordinates come from a parabola through their first samples. Velocities come from `d_`
    columns, or else from the slope of that parabola. Components that were not recorded are those of
    `default`, or of the machine's default state. Values are in SI units."""
    state = system.default_state() if default is None else default
    q, v = np.array(state.q, dtype=float), np.array(state.v, dtype=float)
    same = system.n_q == system.n_v
    for i, name in enumerate(system.coordinate_names):
        found = _first(recording, name)
        if found is not None:
            q[i] = found[0]
            if same:
                v[i] = found[1]
    for i, name in enumerate(system.velocity_names):
        found = _first(recording, f"d_{name}")
        if found is not None:
            v[i] = found[0]
    t = float(recording.t[0])
    basis = np.eye(system.n_v)
    first = State(jnp.asarray(q), jnp.asarray(v))
    if system.n_constraints:
        first = consistent(system, first, t=t)
        J = np.asarray(system.structure().constraint_terms(jnp.asarray(t), first.q, first.v)[1])
        _, s, V = np.linalg.svd(J)
        rank = int(np.sum(s > 1e-9 * max(float(s[0]), 1e-300))) if s.size else 0
        basis = V[rank:].T
    require(basis.shape[1] > 0, "system", "no free coordinates", "a machine that can move")
    zero = jnp.zeros(basis.shape[1])
    return MeasuredState(first.q, first.v, zero, zero, jnp.asarray(basis), t)


def _first(recording: Recording, name: str) -> tuple[float, float] | None:
    """Value and slope at the first instant, or None without samples."""
    if name not in recording.values:
        return None
    x = np.asarray(recording.values[name], dtype=float)
    if x.ndim != 1:
        return None
    rows = np.flatnonzero(np.isfinite(x))[:SAMPLES]
    if rows.size < 2:
        return None if rows.size == 0 else (float(x[rows[0]]), 0.0)
    t = recording.t[rows] - recording.t[0]
    degree = 2 if rows.size >= 5 else 1
    *_, slope, value = np.polyfit(t, x[rows], degree)
    return float(value), float(slope)
