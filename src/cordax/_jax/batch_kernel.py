"""`in_lanes`: compile a batch of steps into one loop over the batch.

`vmap` adds a batch axis to every operation of a step, and XLA's CPU backend compiles the result
into some hundred loops. Here `scalarise` first splits the step into scalars. The step is then one
expression with many results, which is compiled into a single loop over the batch: scalars stay in
registers, batch members in the lanes of vector units. XLA does not find this fusion by itself,
because it repeats terms that several results share in each of them. So the expression is passed to
XLA as a finished fusion. Three-joint neck, linearly implicit step, 4096 members: 18.7 million steps
per second on two cores instead of 3.7 (benchmarks/batch.py)."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray, Tracer
from jax.extend.core import ClosedJaxpr, Primitive
from jax.interpreters import ad, batching, mlir

from . import features
from .materialise import materialise
from .scalarise import Unknown, apart, count, evaluate

#: largest number of scalars of a step; above, compilation costs more time than the loop saves
MOST = 20_000

_lanes_p = Primitive("lanes")
_lanes_p.multiple_results = True


def in_lanes(function: Callable, carry: Any, index) -> tuple[Callable, Any, Callable] | None:
    """Convert a step `(carry, index) -> carry` to scalars, for loops under `jax.vmap`.

    The loop begins with `carry` and `index`, increases the index by one per step, and has no
    derivatives.

    Returns the step as a function from scalars to scalars, the initial scalars, and a function that
    assembles the carry from scalars. None if the step contains an iteration or is too large.
    """
    counting = lambda carry, i: (function(carry, i), i + 1)
    carry = carry, jnp.asarray(index)
    closed, shapes = jax.make_jaxpr(counting, return_shape=True)(*carry)
    leaves, tree = jax.tree.flatten(carry)
    size = count(closed.jaxpr)
    if size is None or size > MOST:
        return None
    if not all(map(_fits, leaves[:-1])):
        if any(x.dtype == jnp.float32 for x in leaves):
            features.warn("batch kernel", "single precision; call cordax.enable_x64()")
        return None
    shaped = lambda xs: [(jnp.shape(x), x.dtype) for x in xs]
    if shaped(jax.tree.leaves(shapes)) != shaped(leaves):
        return None
    known = [None if isinstance(c, Tracer) else np.asarray(c) for c in closed.consts]
    given = [c for c in closed.consts if isinstance(c, Tracer)]
    body = _Body(closed.jaxpr, known)
    begin = tuple(x.astype(jnp.float64) for x in _singles(leaves))
    try:
        body.look(begin[0], *_singles(given), *begin)
    except Unknown:  # indices that depend on data
        return None
    except (AttributeError, KeyError, NotImplementedError, TypeError) as error:
        # a JAX primitive has parameters that were not tested; the step on arrays always works
        features.warn("batch kernel", f"{type(error).__name__}: {error}")
        return None
    # scalars that all members share are copied to each member before the loop, because all
    # operands of the fused loop must have the same shape
    held = [jnp.where(begin[0] != begin[0], x, x) for x in _singles(given)]

    def step(numbers, index):
        # stored, so that LLVM does not merge the loops over steps and members into one loop that
        # it cannot vectorise
        one = materialise(jnp.where(index < 0, 2.0, 1.0).astype(jnp.float64))
        return tuple(_lanes_p.bind(one, *held, *numbers, body=body))

    def together(numbers):
        numbers, arrays = iter(numbers), []
        for x in leaves:
            some = [next(numbers) for _ in range(x.size)]
            arrays.append(jnp.stack(some).reshape(x.shape).astype(x.dtype) if some else x)
        return jax.tree.unflatten(tree, arrays)[0]

    return step, begin, together


def _fits(x) -> bool:
    """Return whether a double represents all values of its dtype; loops carry only doubles."""
    small = jnp.issubdtype(x.dtype, jnp.integer) and x.dtype.itemsize <= 4
    return small or x.dtype in (jnp.float64, jnp.bool_)


def _singles(arrays) -> list:
    return [x for a in arrays for x in jnp.reshape(a, -1)] if arrays else []


class _Body:
    """A step as a function of scalars: the number 1, traced constants, and arguments.

    `known` holds the values of concrete constants, and None for each traced one.

    Results are multiplied by a 1 whose value the compiler does not know, because XLA aborts if one
    of several results is an unchanged argument. XLA also rejects unused arguments: the first result
    therefore depends on them formally, in the case that the 1 is negative."""

    def __init__(self, jaxpr, known):
        self.jaxpr, self.known = jaxpr, known
        self.idle: list[int] = []

    def look(self, one, *numbers) -> None:
        """Find the unused arguments. Raises `Unknown` if an index depends on data."""
        found = jax.make_jaxpr(self)(one, *numbers).jaxpr
        live = {id(v) for v in found.outvars}
        for e in reversed(found.eqns):
            if any(id(v) in live for v in e.outvars):
                live |= {id(v) for v in e.invars}
        self.idle = [k for k, v in enumerate(found.invars[1:]) if id(v) not in live]

    def __call__(self, one, *numbers):
        rest, shape = iter(numbers), max((x.shape for x in numbers), key=len)

        def filled(v):
            out = np.empty(v.aval.shape, object)
            for i in np.ndindex(*out.shape):
                x = next(rest)
                out[i] = x if x.dtype == v.aval.dtype else x.astype(v.aval.dtype)
            return out

        both = zip(self.known, self.jaxpr.constvars, strict=True)
        held = [filled(v) if x is None else apart(x) for x, v in both]
        arguments = [filled(v) for v in self.jaxpr.invars]
        plain = ClosedJaxpr(
            self.jaxpr.replace(invars=[*self.jaxpr.constvars, *self.jaxpr.invars], constvars=[]), ()
        )
        found = evaluate(plain, [*held, *arguments])
        flat = [x for array in found for x in array.reshape(-1)]
        out = [one * jnp.broadcast_to(jnp.asarray(x, jnp.float64), shape) for x in flat]
        for k in self.idle:
            out[0] = jnp.where(one < 0.0, numbers[k], out[0])
        return out


@_lanes_p.def_abstract_eval
def _(*xs, body):
    shape = max((x.shape for x in xs), key=len)
    results = sum(v.aval.size for v in body.jaxpr.outvars)
    return [ShapedArray(shape, jnp.float64)] * results


def _batched(arguments, axes, *, body):
    if any(x.ndim > (a is not None) for x, a in zip(arguments, axes, strict=True)):
        found = jax.vmap(body, axes)(*arguments)  # nested batches
    else:
        size = next(len(x) for x, a in zip(arguments, axes, strict=True) if a is not None)
        found = _lanes_p.bind(*[jnp.broadcast_to(x, (size,)) for x in arguments], body=body)
    return found, [0] * len(found)


def _fused(ctx, *arguments, body):
    """Lower to one fusion: XLA's term for a loop that computes several results together."""
    from jaxlib.mlir import ir

    kinds = [(a.shape, mlir.dtype_to_ir_type(a.dtype)) for a in ctx.avals_out]
    op = ir.Operation.create(
        "mhlo.fusion",
        results=[ir.RankedTensorType.get(*kind) for kind in kinds],
        operands=list(arguments),
        attributes={"fusion_kind": ir.Attribute.parse("#mhlo<fusion_kind kLoop>")},
        regions=1,
    )
    block = op.regions[0].blocks.append(*[x.type for x in arguments])
    with ir.InsertionPoint(block):
        found = mlir.lower_fun(body, multiple_results=True)(ctx, *block.arguments)
        ir.Operation.create("mhlo.return", operands=jax.tree.leaves(found))
    return list(op.results)


def _pushed(numbers, slopes, *, body):
    """Forward-mode derivative, needed where a transformation traces arrays that the loop uses; it
    is computed from the step without fusion."""
    plain = lambda *xs: tuple(body(*xs))
    slopes = [ad.instantiate_zeros(x) for x in slopes]
    found, moved = jax.jvp(plain, tuple(numbers), tuple(slopes))
    return list(found), list(moved)


_lanes_p.def_impl(lambda *xs, body: jax.jit(body)(*xs))
ad.primitive_jvps[_lanes_p] = _pushed
batching.primitive_batchers[_lanes_p] = _batched
mlir.register_lowering(_lanes_p, mlir.lower_fun(lambda *xs, body: body(*xs), multiple_results=True))
mlir.register_lowering(_lanes_p, _fused, platform="cpu")
