"""Simulate many variants of a machine in one batch."""

import dataclasses
import functools
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from .._base.checks import require, require_whole
from .._jax import features
from .._jax.identity import by_value, filter_jit, jit, token_of
from .._jax.tracing import is_traced
from ..mechanics import State, System
from ._simulate import simulate
from .executor import Static, batch_capacity, split
from .experiment import Experiment, stored_count
from .plan import Plan
from .postprocess import pieces_together
from .trajectory import Trajectory


def simulate_batch(
    build: Callable[[Any], Any],
    parameters: Any,
    *,
    chunk: int = 64,
    workers: int | None = None,
    keep: Callable[[Trajectory], Any] | None = None,
    **options,
) -> Any:
    """Simulate one machine for each row of `parameters`.

    **Arguments:**

    - `build`: function from one row of parameters to a machine, to `(machine, state0)`, to
      `(machine, state0, control)`, or to an `Experiment`, whose settings are replaced by other
      options.
    - `parameters`: a pytree of arrays with a common leading axis, the batch axis.
    - `chunk`: number of batch members that one compiled loop advances; small enough for the cache,
      large enough for vector units.
    - `workers`: number of chunks that run at the same time, one thread each; default: the number of
      cores. One chunk at a time runs if the compiled machine calls LAPACK, whose calls would wait
      for each other.
    - `keep`: function from the `Trajectory` of a member, which contains its machine, to any arrays,
      computed within the compiled loop. They are returned instead of the whole trajectory.
    - other options as in `simulate`; `throw` is off: every member has its own `result` and
      `failure_time`, and a failed member does not affect the others.

    Returns a `Trajectory` whose arrays have a leading batch axis (its `system` is None because
    members differ), or the result of `keep` with that axis. If JAX has several devices, chunks are
    distributed over them.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    import jax.numpy as jnp
    from cordax.systems import Pendulum

    lengths = jnp.array([0.8, 0.9, 1.0])
    swing = lambda length: Pendulum(length=length)
    runs = cordax.simulate_batch(swing, lengths, dt=0.01, duration=0.5)
    print(runs.q.shape)  # (3, 51, 1)
    ```
    """
    require(callable(build), "build", build, "a function from a row of parameters to a machine")
    build = by_value(build)  # a lambda is a new function each time
    leaves = jax.tree.leaves(parameters)
    require(
        len(leaves) > 0 and all(jnp.ndim(x) >= 1 for x in leaves),
        "parameters",
        parameters,
        "arrays with a leading batch axis",
    )
    size = leaves[0].shape[0]
    require(
        all(x.shape[0] == size for x in leaves),
        "parameters",
        [x.shape for x in leaves],
        "equal leading axes",
    )
    require_whole("chunk", chunk, 1)
    if workers is not None:
        require_whole("workers", workers, 1)
    options = {name: x for name, x in options.items() if name not in ("throw", "progress")}
    if is_traced(leaves):
        return _simulate_rows(build, keep, parameters, _frozen(options))
    devices = jax.local_devices()
    mesh = Mesh(np.asarray(devices), "batch") if len(devices) > 1 else None
    chunk = min(chunk, -(-size // len(devices))) * len(devices)
    parameters = jax.tree.map(_known_rows, parameters)
    pieces = [_rows(parameters, start, chunk) for start in range(0, size, chunk)]
    counted = keep is None and _is_static(build)
    found = _counted(build, pieces[0], options, chunk, mesh) if counted else None
    if found is None:
        found = _whole(build, keep, pieces[0], options, mesh, known=True)
    run, alone = found
    first = run(pieces[0])  # compiles once, before several threads request the same function
    if is_traced(first):
        # `build` refers to traced values
        run, alone = _whole(build, keep, pieces[0], options, mesh, known=False)
        first = run(pieces[0])
    parts = [first]
    if len(pieces) > 1:
        # LAPACK calls of two simultaneous executions block each other in XLA's thread pool
        with ThreadPoolExecutor(1 if alone() else workers or os.cpu_count()) as pool:
            parts += list(pool.map(run, pieces[1:]))
    return jax.tree.map(lambda *xs: _together(xs, size), *parts)


def _is_static(build) -> bool:
    return not any(eqx.is_array(x) for x in jax.tree.leaves(build))


def _frozen(options: dict) -> tuple:
    return tuple(sorted(options.items(), key=lambda o: o[0]))


def _together(xs, size: int):
    """Concatenate chunks on one device.

    Concrete values are concatenated by NumPy, since JAX would compile for every shape."""
    if is_traced(xs):
        return jnp.concatenate(xs)[:size]
    return jax.device_put(np.concatenate([np.asarray(x) for x in xs])[:size])


def _whole(build, keep, piece, options, mesh, *, known: bool):
    """Return a function that runs a chunk in one loop, compiled for the duration, and a function
    that returns whether chunks must run one at a time. `known`: nothing is differentiated."""
    given, how = (build, keep), (_frozen(options), mesh, known)
    run = lambda piece: jax.block_until_ready(_simulate_rows(*given, piece, *how))
    lapack = lambda: _calls_lapack(_simulate_rows, *given, piece, *how)
    return run, lambda: mesh is not None or lapack()


def _counted(build, piece, options, chunk: int, mesh):
    """Return the same two functions for any duration: they run in chunks of a fixed size, as
    `simulate` does. Returns None if members have phases or an integrator with its own time loop."""
    settings = {name: x for name, x in options.items() if name not in ("duration", "adjoint")}
    static, arrays = split(_frozen(settings))
    times = _member_times(build, static, arrays, piece)
    if times is None:
        return None
    t0, dt, save_every, own = times
    duration = own if options.get("duration") is None else options["duration"]
    require(duration is not None, "duration", duration, "the simulated time in seconds")
    n_saves = stored_count(t0, t0 + duration, dt, save_every)
    capacity = batch_capacity(chunk, save_every)
    given = build, static, capacity, mesh, arrays

    def run(piece) -> Trajectory:
        carry, parts, counts = _begin_rows(build, static, mesh, arrays, piece), [], []
        for first in range(0, n_saves, capacity):
            count = min(capacity, n_saves - first)
            numbers = np.asarray(first), np.asarray(count)
            part, carry = _advance_rows(*given, piece, carry, *numbers)
            parts.append(part)
            counts.append(count)
        return pieces_together(jax.block_until_ready(parts), counts, None, axis=1)

    def alone() -> bool:
        some = np.asarray(0)
        carry = jax.eval_shape(functools.partial(_begin_rows, build, static, mesh), arrays, piece)
        return _calls_lapack(_advance_rows, *given, piece, carry, some, some)

    return run, alone


_with_lapack: dict[Any, bool] = {}
#: a call whose first operand has more axes than a matrix
_BATCHED = re.compile(r"@lapack_[^\n]*?: \(tensor<\d+x\d+x\d+x")


def _calls_lapack(function, *arguments) -> bool:
    """Whether the compiled function calls LAPACK for batches; cached by function and shapes."""
    leaves, structure = jax.tree.flatten(arguments)
    numeric = lambda x: hasattr(x, "dtype")
    key = (
        function,
        structure,
        tuple((x.shape, x.dtype) if numeric(x) else x for x in leaves),
        token_of(*arguments),
    )
    if key not in _with_lapack:
        text = function.lower(*arguments).as_text()
        _with_lapack[key] = _BATCHED.search(text) is not None
    return _with_lapack[key]


def _rows(parameters, start: int, count: int):
    """Select `count` rows from `start`; at the end the last row is repeated, so that all chunks
    have the same shape."""
    last = jax.tree.leaves(parameters)[0].shape[0] - 1
    index = np.minimum(np.arange(start, start + count), last)
    return jax.tree.map(lambda x: x[index], parameters)


def _known_rows(x):
    """Convert to a NumPy array if possible: a JAX operation outside of a compiled function takes as
    long as many steps."""
    return x if jnp.issubdtype(x.dtype, jax.dtypes.extended) else np.asarray(x)


def _experiment(built, options: dict) -> Experiment:
    """Experiment of one batch member from the result of `build`."""
    if isinstance(built, Experiment):
        return Experiment.of(built, **options)
    system, state0, *control = built if isinstance(built, tuple) else (built, None)
    expected = "a function returning a System or a tuple starting with one"
    require(isinstance(system, System), "build", system, expected)
    given = {"control": control[0]} if control else {}
    return Experiment.of(system, **({"state0": state0} | options | given))


def _in_chunks(experiment: Experiment) -> bool:
    """Whether the number of steps can be data: one phase, by an integrator without its own time
    loop."""
    if experiment.switches:  # which of them come before the end is unknown here
        return False
    return not Plan.of(experiment).integrator.traits.owns_time_loop


_times: dict = {}


def _member_times(build, static: Static, arrays, piece):
    """Initial time, time step [s], `save_every` and duration [s] of the members; None unless their
    number of steps can be data."""
    key = build, static, token_of(build, static)
    if key not in _times:
        row = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), piece)

        def look(row, arrays):
            member = _experiment(build(row), dict(static.put(arrays)))
            times = member.t0, member.time_step, member.save_every, member.duration
            _times[key] = times if _in_chunks(member) else None

        jax.eval_shape(look, row, arrays)
        for old in list(_times)[:-64]:
            _times.pop(old, None)
    return _times[key]


def _begun(experiment: Experiment) -> tuple[Plan, State, jax.Array]:
    """Plan, initial state and initial time of a batch member that is not differentiated."""
    lanes = jax.default_backend() == "cpu" and features.is_on("batch kernel")
    if jax.default_backend() == "cpu":
        features.warn_if_off("batch kernel")
    state = experiment.start
    plan = Plan.of(experiment.replace(adjoint="forward"), state)
    plan = dataclasses.replace(plan, traced=False, lanes=lanes)
    return plan, state, jnp.asarray(experiment.t0, state.q.dtype)


@jit(static=(0, 1, 2))
def _begin_rows(build, static: Static, mesh, arrays, rows):
    def one(arrays, row):
        plan, state, t0 = _begun(_experiment(build(row), dict(static.put(arrays))))
        return plan.begin(state, t0)

    return _spread(one, mesh, (arrays,), (rows,))


@jit(static=(0, 1, 2, 3))
def _advance_rows(build, static: Static, capacity: int, mesh, arrays, rows, carry, first, count):
    def one(arrays, first, count, row, carry):
        plan, _, t0 = _begun(_experiment(build(row), dict(static.put(arrays))))
        part, carry = plan.advance(carry, t0, capacity, first, count=count)
        return _without_system(part), carry

    return _spread(one, mesh, (arrays, first, count), (rows, carry))


def _spread(one, mesh: Mesh | None, shared: tuple, rows: tuple):
    """Apply a function of `shared` arguments and of one member's `rows` to all members.

    Every device computes its own members, so that the compiler has nothing to distribute
    differently."""
    members = jax.vmap(one, in_axes=(None,) * len(shared) + (0,) * len(rows))
    if mesh is None:
        return members(*shared, *rows)
    specs = (P(),) * len(shared) + (P("batch"),) * len(rows)
    spread = jax.shard_map(
        members, mesh=mesh, in_specs=specs, out_specs=P("batch"), check_vma=False
    )
    return spread(*shared, *rows)


@filter_jit
def _simulate_rows(
    build, keep, parameters, options, mesh: Mesh | None = None, known: bool = False
) -> Any:
    def one(row):
        experiment = _experiment(build(row), dict(options))
        if known and _in_chunks(experiment):
            run = _simulate_known(experiment)
        else:
            run = simulate(experiment, throw=False)
        return _without_system(run) if keep is None else keep(run)

    return _spread(one, mesh, (), (parameters,))


def _without_system(trajectory: Trajectory) -> Trajectory:
    return dataclasses.replace(trajectory, system=None, phases=())


def _simulate_known(experiment: Experiment) -> Trajectory:
    """Simulate one phase that is not differentiated.

    The loop of a batch ends with its slowest member, and each step is one loop over the members if
    possible."""
    plan, state, t0 = _begun(experiment)
    n_saves = experiment.stored_counts[0]
    return plan.advance(plan.begin(state, t0), t0, n_saves)[0]
