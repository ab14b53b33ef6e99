"""Many variants of a machine at once."""

import dataclasses
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from ._checks import require, require_whole
from ._closures import same_if_equal
from .experiment import Experiment
from .mechanics import System
from .simulate import simulate
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

    - `build`: from one row of parameters to a machine, or to `(machine, state0)`, or to `(machine,
      state0, control)`, or to an `Experiment`, whose settings other options replace.
    - `parameters`: a pytree of arrays with a common leading axis, the batch.
    - `chunk`: members advanced together in one compiled loop; small enough for the cache, large
      enough for vector units.
    - `workers`: chunks advanced at the same time, one thread each; default: the number of cores.
      One where the compiled machine calls LAPACK, whose calls would wait for each other.
    - `keep`: what to return of each member instead of its whole trajectory, computed within the
      compiled loop: a function from a `Trajectory`, which knows its machine, to any arrays.
    - other options as in `simulate`; `throw` is off: every member carries its own `result` and
      `failure_time`, and a failed one leaves the others alone.

    Returns a `Trajectory` whose arrays have a leading batch axis (its `system` is None: the members
    differ), or what `keep` returns, with that axis. Where JAX has several devices, chunks are
    spread over them."""
    build = same_if_equal(build)  # a lambda is a new function each time
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
    require(callable(build), "build", build, "a function from a row of parameters to a machine")
    require_whole("chunk", chunk, 1)
    if workers is not None:
        require_whole("workers", workers, 1)
    options = {**options, "throw": False, "progress": False}
    known = not any(isinstance(x, Tracer) for x in leaves)
    if known and options.get("accuracy") is not None:
        # nothing to differentiate: a loop that ends when its slowest member does
        options = {"adjoint": "forward", **options}
    if any(isinstance(x, Tracer) for x in leaves):
        frozen = tuple(sorted(options.items(), key=lambda o: o[0]))
        return _simulate_rows(build, keep, parameters, frozen)
    frozen = tuple(sorted(options.items(), key=lambda o: o[0]))
    devices = jax.local_devices()
    mesh = Mesh(np.asarray(devices), "batch") if len(devices) > 1 else None
    chunk = min(chunk, -(-size // len(devices))) * len(devices)
    pieces = [_rows(parameters, start, chunk) for start in range(0, size, chunk)]
    run = lambda piece: jax.block_until_ready(_simulate_rows(build, keep, piece, frozen, mesh))
    parts = [run(pieces[0])]  # compiles once, before threads ask for the same function
    if len(pieces) > 1:
        # LAPACK calls of two executions at once block each other in XLA's thread pool
        alone = mesh is not None or _calls_lapack(build, keep, pieces[0], frozen)
        with ThreadPoolExecutor(1 if alone else workers or os.cpu_count()) as pool:
            parts += list(pool.map(run, pieces[1:]))
    if mesh is not None:  # whoever goes on with it need not know of the devices
        parts = jax.device_put(parts, devices[0])
    return jax.tree.map(lambda *xs: jnp.concatenate(xs)[:size], *parts)


_with_lapack: dict[Any, bool] = {}


def _calls_lapack(build, keep, piece, options) -> bool:
    """Whether the compiled function calls LAPACK; looked up once per function and shapes."""
    leaves, structure = jax.tree.flatten((build, keep, piece, options))
    numeric = lambda x: isinstance(x, (jax.Array, np.ndarray))
    key = structure, tuple((x.shape, x.dtype) if numeric(x) else x for x in leaves)
    if key not in _with_lapack:
        text = _simulate_rows.lower(build, keep, piece, options).as_text()
        _with_lapack[key] = "@lapack_" in text
    return _with_lapack[key]


def _rows(parameters, start: int, count: int):
    """`count` rows from `start`; the last row is repeated where they run out, so that all chunks
    have one shape."""
    index = jnp.minimum(
        jnp.arange(start, start + count), jax.tree.leaves(parameters)[0].shape[0] - 1
    )
    return jax.tree.map(lambda x: jnp.asarray(x)[index], parameters)


@eqx.filter_jit
def _simulate_rows(build, keep, parameters, options, mesh: Mesh | None = None) -> Any:
    def one(row):
        run = simulated(row)
        return _without_system(run) if keep is None else keep(run)

    def simulated(row) -> Trajectory:
        built = build(row)
        if isinstance(built, Experiment):
            return _simulate_experiment(built, dict(options))
        system, state0, *rest = built if isinstance(built, tuple) else (built, None)
        require(
            isinstance(system, System),
            "build",
            system,
            "a function returning a System or a tuple starting with one",
        )
        keywords = dict(options)
        if rest:
            keywords["control"] = rest[0]
        return simulate(system, state0, **keywords)

    if mesh is None:
        return jax.vmap(one)(parameters)
    # every device its own members: nothing that the compiler could spread otherwise
    spread = jax.shard_map(
        jax.vmap(one), mesh=mesh, in_specs=P("batch"), out_specs=P("batch"), check_vma=False
    )
    return spread(parameters)


def _without_system(trajectory: Trajectory) -> Trajectory:
    return dataclasses.replace(trajectory, system=None, phases=())


def _simulate_experiment(experiment: Experiment, options: dict) -> Trajectory:
    how = {name: options.pop(name) for name in ("adjoint", "throw", "progress") if name in options}
    return simulate(experiment.replace(**options), **how)
