"""Multiple shooting: a recording is split into segments with free initial states.

Errors grow little over a short segment. A search from poor parameter values therefore converges
where a simulation of the whole recording would diverge: long, unstable or strongly nonlinear
motions. The unknowns are the parameters and the states at the cuts. The gaps, end of one segment
less initial state of the next, are residuals with weights that grow until the gaps are closed. The
result is the starting point of an ordinary search over the whole recording.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import known_values, require
from .._base.results import GOOD
from .._jax.identity import filter_jit
from ..mechanics import State, System
from ..parameters.parameter import ParameterSet
from ..simulation.experiment import Experiment
from ..simulation.plan import Plan
from .problem import Problem, Trial
from .resample import values_at
from .time_grid import Grid

#: allowed gap at a cut relative to the size of each coordinate, for successive searches; the last
#: is so small that the final search of a chaotic motion starts close enough
MISSES = (0.1, 0.01, 1e-3, 1e-5, 1e-7)


class Pieces(eqx.Module):
    """Cuts of one recording: guessed states, shape (n_cuts, ...) each, their scales, and the start
    time of each segment [s]. Instants of segment i are `t[rows[i]]`, a table padded with row 0
    where `used` is False; `grids` contain their positions in it."""

    cuts: State
    size_q: Float[Array, " n_v"]
    size_v: Float[Array, " n_v"]
    begin: Float[Array, " s"]
    rows: Array
    used: Array
    beyond: Array
    places: Array
    steps: int = eqx.field(static=True)


class Shooting(eqx.Module):
    """A `Problem` with the states at cuts as additional unknowns: coordinates (y, cuts of the first
    recording, of the second...)."""

    problem: Problem
    pieces: tuple[Pieces, ...]
    weight: Float[Array, ""]

    @property
    def parameters(self) -> ParameterSet:
        return self.problem.parameters

    @property
    def origin(self) -> Array:
        size = sum(p.cuts.v.size * 2 for p in self.pieces)
        return jnp.zeros(self.problem.parameters.size + size)

    def failed(self, trajectories) -> Array:
        """No failed recordings: a segment that fails makes all residuals infinite."""
        return jnp.zeros(1, bool)

    def jacobian(self, z):
        """As `Problem.jacobian`; each segment is differentiated only by the unknowns it depends
        on."""
        p = self.problem.parameters.size
        y, used, blocks_r, blocks_J, good = z[:p], p, [], [], True
        for i, (trial, pieces) in enumerate(zip(self.problem.trials, self.pieces, strict=True)):
            m, n = len(pieces.cuts.q), pieces.cuts.v.shape[-1]
            shifts = z[used : used + 2 * n * m].reshape(m, 2 * n)
            r, J, ok = self._trial(i, trial, pieces, y, shifts)
            wide = jnp.zeros((len(r), z.size)).at[:, :p].set(J[:, :p])
            wide = wide.at[:, used : used + 2 * n * m].set(J[:, p:])
            blocks_r.append(r)
            blocks_J.append(wide)
            good, used = good & ok, used + 2 * n * m
        known = self.problem.parameters.prior_residuals
        blocks_r.append(known(y))
        prior = jax.jacfwd(known)(y)
        blocks_J.append(jnp.zeros((len(prior), z.size)).at[:, :p].set(prior))
        r, J = jnp.concatenate(blocks_r), jnp.concatenate(blocks_J)
        return jnp.where(good, J, 0.0), (jnp.where(good, r, jnp.inf), ())

    def _trial(self, number: int, trial: Trial, pieces: Pieces, y, shifts):
        """Residuals of all segments, followed by the gaps at cuts; their Jacobian by (y,
        shifts)."""
        p, (m, n2) = y.size, shifts.shape
        insert = self.problem.parameters.insert
        system = trial.experiment.system

        def first(y):
            return insert(trial.experiment, y, number).start

        def later(i, shift):
            return _moved(system, pieces, i, shift)

        def segment(y, state, begin, rows, used, places, beyond):
            return _segment(
                insert(trial.experiment, y, number), trial, pieces, state,
                begin, rows, used, places, beyond,
            )  # fmt: skip

        data = pieces.begin, pieces.rows, pieces.used, pieces.places, pieces.beyond
        of_first = lambda y: segment(y, first(y), *(x[0] for x in data))
        (J0, E0), (r0, e0, ok0) = jax.jacfwd(lambda y: _twice(of_first(y)), has_aux=True)(y)

        def of_later(i, shift):
            f = lambda both: segment(both[0], later(i, both[1]), *(x[i + 1] for x in data))
            return jax.jacfwd(lambda both: _twice(f(both)), has_aux=True)((y, shift))

        (Js, Es), (rs, es, oks) = jax.vmap(of_later)(jnp.arange(m), shifts)
        # residuals
        r = jnp.concatenate([r0, rs.ravel()])
        rows_later = jnp.zeros((m, rs.shape[1], m, n2))
        rows_later = rows_later.at[jnp.arange(m), :, jnp.arange(m), :].set(Js[1])
        by_shift = jnp.concatenate(
            [jnp.zeros((len(r0), m * n2)), rows_later.reshape(m * rs.shape[1], m * n2)]
        )
        J = jnp.concatenate([jnp.concatenate([J0, Js[0].reshape(-1, p)]), by_shift], axis=1)
        # gap at each cut: the end of the segment before it less the state at the cut
        ends = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b[:-1]]), e0, es)
        size = jnp.concatenate([pieces.size_q, pieces.size_v])

        def missed(end, i, shift):
            state = later(i, shift)
            gap = jnp.concatenate([system.difference(state.q, end[0]), end[1] - state.v])
            return self.weight * gap / size

        each = jnp.arange(m)
        gaps = jax.vmap(missed)(ends, each, shifts)
        by_end = jax.vmap(jax.jacfwd(missed))(ends, each, shifts)
        by_own = jax.vmap(jax.jacfwd(missed, argnums=2))(ends, each, shifts)
        (Eq_y, Eq_s), (Ev_y, Ev_s) = Es  # derivatives of (q, v) at the ends by (y, shift)
        before = [jnp.concatenate([a[None], b[:-1]]) for a, b in zip(E0, (Eq_y, Ev_y), strict=True)]
        G_y = _chained(by_end, before)
        own = jnp.zeros((m, n2, m, n2)).at[each, :, each, :].set(by_own)
        own = own.at[each[1:], :, each[:-1], :].set(
            _chained([x[1:] for x in by_end], [x[:-1] for x in (Eq_s, Ev_s)])
        )
        G = jnp.concatenate([G_y.reshape(m * n2, p), own.reshape(m * n2, m * n2)], axis=1)
        return (
            jnp.concatenate([r, gaps.ravel()]),
            jnp.concatenate([J, G]),
            ok0 & jnp.all(oks),
        )


def _chained(by_end, ends) -> Array:
    """d(gap)/d(end) d(end)/dx of each cut, summed over coordinates and velocities."""
    return sum(jnp.einsum("mij,mjk->mik", a, b) for a, b in zip(by_end, ends, strict=True))  # pyright: ignore


def _twice(found):
    r, end, ok = found
    return (r, end), (r, end, ok)


def _moved(system: System, pieces: Pieces, i, shift) -> State:
    n = pieces.size_v.size
    q = system.retract(pieces.cuts.q[i], shift[:n] * pieces.size_q)
    return State(q, pieces.cuts.v[i] + shift[n:] * pieces.size_v)


def _segment(
    experiment: Experiment, trial: Trial, pieces: Pieces, state, begin, rows, used, places, beyond
):
    """Residuals of one segment, its last state, and whether it succeeded."""
    grid = trial.grid
    plan = Plan.of(experiment.replace(dt=grid.dt, save_every=grid.save_every), state)
    t0 = jnp.asarray(begin)
    part, carry = plan.advance(plan.begin(state, t0), t0, pieces.steps // grid.save_every)
    here = Grid(0.0, grid.dt, pieces.steps, grid.save_every, grid.on_rows, places, beyond)
    values = trial.recording.values
    simulated = values_at(part, experiment, here, values)
    found = []
    for name, recorded in values.items():
        level = jnp.broadcast_to(trial.noise[name], recorded.shape)[rows]
        recorded = recorded[rows]
        r = (recorded - simulated[name]) / level
        mask = used.reshape(-1, *(1,) * (r.ndim - 1)) & ~jnp.isnan(recorded)
        found.append(jnp.where(mask, r, 0.0).ravel())
    return jnp.concatenate(found), (carry.state.q, carry.state.v), carry.status[0] == GOOD


def shooting(problem: Problem, y, segments: int) -> Shooting:
    """Split every recording into `segments` segments; components of the states at cuts that were
    not recorded are guessed from the simulation at `y`."""
    trajectories = filter_jit(lambda p, y: p.run(y))(problem, y)
    pairs = zip(problem.trials, trajectories, strict=True)
    pieces = tuple(_pieces(trial, run, segments) for trial, run in pairs)
    return Shooting(problem, pieces, jnp.asarray(1.0))


def _pieces(trial: Trial, run, segments: int) -> Pieces:
    system, grid = trial.experiment.system, trial.grid
    _check(trial)
    stored = grid.steps // grid.save_every
    require(segments <= stored, "segments", segments, f"at most the {stored} stored steps")
    each = -(-stored // segments)
    count = -(-stored // each)
    rows = np.asarray(grid.rows)
    # an instant on a cut belongs to the segment before it; the first instant to the first
    on_cut = (np.asarray(grid.beyond) == 0) & (rows > 0)
    owner = np.clip((rows - on_cut) // each, 0, count - 1)
    most = int(np.max(np.bincount(owner, minlength=count)))
    table, used = np.zeros((count, most), int), np.zeros((count, most), bool)
    places, beyond = np.zeros((count, most), int), np.zeros((count, most))
    for i in range(count):
        mine = np.flatnonzero(owner == i)
        table[i, : mine.size], used[i, : mine.size] = mine, True
        places[i, : mine.size] = rows[mine] - i * each
        beyond[i, : mine.size] = np.asarray(grid.beyond)[mine]
    begin = grid.t0 + np.arange(count) * each * grid.save_every * grid.dt
    cuts = [_guess(system, trial, run, int(i * each), float(begin[i])) for i in range(1, count)]
    q, v = (np.array([c[k] for c in cuts]) for k in (0, 1))
    size_v = np.sqrt(np.mean(v**2, axis=0)) + 1e-3 * np.sqrt(np.mean(v**2)) + 1e-12
    span = each * grid.save_every * grid.dt
    size_q = np.maximum(size_v * span, 1e-6)
    if system.flat:
        size_q = np.sqrt(np.mean(q**2, axis=0)) + 1e-3 * np.sqrt(np.mean(q**2)) + 1e-12
    arrays = (jnp.asarray(x) for x in (size_q, size_v, begin, table, used, beyond, places))
    return Pieces(State(jnp.asarray(q), jnp.asarray(v)), *arrays, steps=each * grid.save_every)


def _check(trial: Trial) -> None:
    e = trial.experiment
    plain = e.system.n_constraints == 0 and not e.switches
    if not plain:
        raise ValueError(
            "segments > 1 is not supported for constrained machines or experiments with switches"
        )
    whole = e.integrator is not None and e.integrator.traits.owns_time_loop
    require(not whole, "segments", type(e.integrator).__name__, "1 with this integrator")
    inputs = e.inputs
    sampled = getattr(inputs, "period", None) is not None
    require(not sampled, "segments", type(inputs).__name__, "1 with a sampled controller")
    known = all(known_values(x) is not None for x in trial.recording.values.values())
    require(known, "segments", "hidden numbers", "1 under jax.jit and jax.vmap")


def _guess(system: System, trial: Trial, run, row: int, time: float):
    """State at a cut: recorded where available, else simulated."""
    good = bool(np.all(np.isfinite(run.q[row]))) and float(run.failure_time) > time
    row = row if good else 0
    q, v = np.array(run.q[row]), np.array(run.v[row])
    t = np.asarray(trial.recording.t)
    for i, name in enumerate(system.coordinate_names):
        line = _line(t, trial.recording.values.get(name), time)
        if line is not None:
            q[i] = line[0]
            if system.flat:
                v[i] = line[1]
    for i, name in enumerate(system.velocity_names):
        line = _line(t, trial.recording.values.get(f"d_{name}"), time)
        if line is not None:
            v[i] = line[0]
    return np.asarray(system.normalise(jnp.asarray(q))), v


def _line(t, x, time: float):
    """Value and slope at `time` of the parabola through the seven nearest samples."""
    if x is None or np.ndim(x) != 1:
        return None
    x = np.asarray(x)
    seen = np.flatnonzero(~np.isnan(x))
    if seen.size < 7:
        return None
    near = seen[np.argsort(np.abs(t[seen] - time))[:7]]
    s = t[near] - time
    _, slope, value = np.polyfit(s, x[near], 2)
    return float(value), float(slope)
