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
    **options,
) -> Trajectory:
    """Simulate one machine for each row of `parameters`.

    **Arguments:**

    - `build`: from one row of parameters to a machine, or to `(machine, state0)`, or to `(machine,
      state0, control)`, or to an `Experiment`, whose settings other options replace.
    - `parameters`: a pytree of arrays with a common leading axis, the batch.
    - `chunk`: members advanced together in one compiled loop; small enough for the cache, large
      enough for vector units.
    - `workers`: chunks advanced at the same time, one thread each; default: the number of cores.
      One where the compiled machine calls LAPACK, whose calls would wait for each other.
    - other options as in `simulate`; `throw` is off: every member carries its own `result` and
      `failure_time`, and a failed one leaves the others alone.

    Returns a `Trajectory` whose arrays have a leading batch axis (its `system` is None: the members
    differ)."""
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
        return _simulate_rows(build, parameters, tuple(sorted(options.items(), key=lambda o: o[0])))
    frozen = tuple(sorted(options.items(), key=lambda o: o[0]))
    chunk = min(chunk, size)
    pieces = [_rows(parameters, start, chunk) for start in range(0, size, chunk)]
    run = lambda piece: jax.block_until_ready(_simulate_rows(build, piece, frozen))
    parts = [run(pieces[0])]  # compiles once, before threads ask for the same function
    if len(pieces) > 1:
        # LAPACK calls of two executions at once block each other in XLA's thread pool
        alone = _calls_lapack(build, pieces[0], frozen)
        with ThreadPoolExecutor(1 if alone else workers or os.cpu_count()) as pool:
            parts += list(pool.map(run, pieces[1:]))
    return jax.tree.map(lambda *xs: jnp.concatenate(xs)[:size], *parts)


_with_lapack: dict[Any, bool] = {}


def _calls_lapack(build, piece, options) -> bool:
    """Whether the compiled function calls LAPACK; looked up once per function and shapes."""
    leaves, structure = jax.tree.flatten((piece, options))
    numeric = lambda x: isinstance(x, (jax.Array, np.ndarray))
    key = build, structure, tuple((x.shape, x.dtype) if numeric(x) else x for x in leaves)
    if key not in _with_lapack:
        text = _simulate_rows.lower(build, piece, options).as_text()
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
def _simulate_rows(build, parameters, options) -> Trajectory:
    def one(row):
        built = build(row)
        if isinstance(built, Experiment):
            return _without_system(_simulate_experiment(built, dict(options)))
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
        return _without_system(simulate(system, state0, **keywords))

    return jax.vmap(one)(parameters)


def _without_system(trajectory: Trajectory) -> Trajectory:
    return dataclasses.replace(trajectory, system=None, phases=())


def _simulate_experiment(experiment: Experiment, options: dict) -> Trajectory:
    how = {name: options.pop(name) for name in ("adjoint", "throw", "progress") if name in options}
    return simulate(experiment.replace(**options), **how)
