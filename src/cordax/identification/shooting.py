"""Multiple shooting: a recording is split into segments with free initial states.

Errors grow little over a short segment. A search from poor parameter values therefore converges
where a simulation of the whole recording would diverge: long, unstable or strongly nonlinear
motions. The unknowns are the parameters and the states at the cuts. The gaps, end of one segment
less initial state of the next, are residuals with weights that grow until the gaps are closed. The
result is the starting point of an ordinary search over the whole recording.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import known_values, require
from .._base.results import Result
from .._jax.identity import filter_jit
from ..mechanics import State, System
from ..parameters.parameter import ParameterSet
from ..shooting import Segments, differentiate, push_forward, require_restartable
from ..simulation.experiment import Experiment
from .problem import Problem, Trial
from .resample import values_at
from .time_grid import Grid

#: allowed gap at a cut relative to the size of each coordinate, for successive searches; the last
#: is so small that the final search of a chaotic motion starts close enough
MISSES = (0.1, 0.01, 1e-3, 1e-5, 1e-7)


class Pieces(eqx.Module):
    """Segments of one recording. Instants of segment k are `t[rows[k]]`, a table padded with row 0
    where `used` is False; `places` and `beyond` are their positions in it, as in `Grid`."""

    segments: Segments
    rows: Array
    used: Array
    beyond: Array
    places: Array


class Shooting(eqx.Module):
    """A `Problem` with the states at nodes as additional unknowns: coordinates (y, nodes of the
    first recording, of the second...)."""

    problem: Problem
    pieces: tuple[Pieces, ...]
    weight: Float[Array, ""]

    @property
    def parameters(self) -> ParameterSet:
        return self.problem.parameters

    @property
    def origin(self) -> Array:
        size = sum(math.prod(p.segments.shape) for p in self.pieces)
        return jnp.zeros(self.problem.parameters.size + size)

    def failed(self, trajectories) -> Array:
        """No failed recordings: a segment that fails makes all residuals infinite."""
        return jnp.zeros(1, bool)

    def jacobian(self, z):
        """As `Problem.jacobian`."""
        p = self.problem.parameters.size
        y, used, residuals, blocks, good = z[:p], p, [], [], True
        for i, (trial, pieces) in enumerate(zip(self.problem.trials, self.pieces, strict=True)):
            end = used + math.prod(pieces.segments.shape)
            r, J, succeeded = self._trial(i, trial, pieces, jnp.append(y, z[used:end]))
            wide = jnp.zeros((len(r), z.size)).at[:, :p].set(J[:, :p])
            residuals.append(r)
            blocks.append(wide.at[:, used:end].set(J[:, p:]))
            good, used = good & succeeded, end
        priors = self.problem.parameters.prior_residuals
        residuals.append(priors(y))
        slopes = jax.jacfwd(priors)(y)
        blocks.append(jnp.zeros((len(slopes), z.size)).at[:, :p].set(slopes))
        r, J = jnp.concatenate(residuals), jnp.concatenate(blocks)
        return jnp.where(good, J, 0.0), (jnp.where(good, r, jnp.inf), ())

    def _trial(self, number: int, trial: Trial, pieces: Pieces, y):
        """Residuals of all segments, followed by the gaps at nodes; their Jacobian by `y`:
        parameters, then nodes."""
        p = self.problem.parameters.size
        nodes = y[p:].reshape(1, *pieces.segments.shape)
        insert = self.problem.parameters.insert
        experiment = trial.experiment.replace(
            t0=trial.grid.t0, dt=trial.grid.dt, save_every=trial.grid.save_every
        )

        def segment(y, k, z):
            return _segment(insert(experiment, y, number), trial, pieces, k, z)

        def rows(y, values):
            residuals, (q, v), succeeded = jax.tree.map(lambda x: x[0], values)
            nodes = y[p:].reshape(pieces.segments.shape)
            gaps = pieces.segments.gaps(insert(experiment, y, number).system, q, v, nodes)
            r = jnp.concatenate([residuals.ravel(), self.weight * gaps.ravel()])
            return r, jnp.all(succeeded)

        values, slopes = differentiate(segment, y[:p], nodes[0])
        first = lambda tree: jax.tree.map(lambda x: x[None], tree)
        return push_forward(rows, y, nodes.shape, first(values), first(slopes))


def _segment(experiment: Experiment, trial: Trial, pieces: Pieces, k, z):
    """Residuals of segment `k`, its last state, and whether it succeeded."""
    grid, steps = trial.grid, pieces.segments.steps
    run = pieces.segments.run(experiment, k, z, grid.dt)
    places, beyond = pieces.places[k], pieces.beyond[k]
    here = Grid(0.0, grid.dt, steps, grid.save_every, grid.on_rows, places, beyond)
    simulated = values_at(run, experiment, here, trial.recording.values)
    residuals, rows = [], pieces.rows[k]
    for name, recorded in trial.recording.values.items():
        level = jnp.broadcast_to(trial.noise[name], recorded.shape)[rows]
        r = (recorded[rows] - simulated[name]) / level
        used = pieces.used[k].reshape(-1, *(1,) * (r.ndim - 1)) & ~jnp.isnan(recorded[rows])
        residuals.append(jnp.where(used, r, 0.0).ravel())
    return jnp.concatenate(residuals), (run.q[-1], run.v[-1]), run.result == Result.SUCCESSFUL


def shooting(problem: Problem, y, segments: int) -> Shooting:
    """Split every recording into `segments` segments; components of the states at cuts that were
    not recorded are guessed from the simulation at `y`."""
    trajectories = filter_jit(lambda p, y: p.run(y))(problem, y)
    pairs = zip(problem.trials, trajectories, strict=True)
    pieces = tuple(_pieces(trial, run, segments) for trial, run in pairs)
    return Shooting(problem, pieces, jnp.asarray(1.0))


def _pieces(trial: Trial, run, parts: int) -> Pieces:
    system, grid = trial.experiment.system, trial.grid
    _check(trial)
    stored = grid.steps // grid.save_every
    require(parts <= stored, "segments", parts, f"at most the {stored} stored steps")
    each = -(-stored // parts)
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
    scale = jnp.asarray(np.concatenate([size_q, size_v]))
    states = State(jnp.asarray(q), jnp.asarray(v))
    segments = Segments(each * grid.save_every, states, scale)
    return Pieces(segments, *map(jnp.asarray, (table, used, beyond, places)))


def _check(trial: Trial) -> None:
    e = trial.experiment
    plain = e.system.n_constraints == 0 and not e.switches
    if not plain:
        raise ValueError(
            "segments > 1 is not supported for constrained machines or experiments with switches"
        )
    owns_loop = e.integrator is not None and e.integrator.traits.owns_time_loop
    require(not owns_loop, "segments", type(e.integrator).__name__, "1 with this integrator")
    require_restartable(e, "segments")
    concrete = all(known_values(x) is not None for x in trial.recording.values.values())
    require(concrete, "segments", "traced values", "1 under jax.jit and jax.vmap")


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
