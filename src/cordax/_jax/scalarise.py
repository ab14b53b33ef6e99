"""Split a function of small arrays into operations on scalars.

XLA's CPU backend compiles a batched step of a machine into some hundred loops over the batch, each
of which writes to memory what the next one reads. Written in scalars, the same step is one long
expression, which `batch_kernel` compiles into one loop over the batch. Constants such as a routing
of zeros and ones are simplified away. A product with a constant zero is not computed, but its
result records the other factor: if that factor is not finite, `0 x` is NaN here too."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend import core

from .constant_gather import IMPLEMENTATIONS

#: primitives that act elementwise
_EACH = frozenset(
    "abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil clamp "
    "convert_element_type copy copy_p cos cosh div eq erf exp exp2 expm1 floor ge gt integer_pow "
    "is_finite le log log1p logistic lt max min mul ne neg nextafter not or pow rem round rsqrt "
    "select_n sign sin sinh sqrt square stop_gradient sub tan tanh xor".split()
)
#: primitives that only move entries
_PLACE = frozenset(
    "broadcast_in_dim concatenate dynamic_slice dynamic_update_slice expand_dims gather pad "
    "reshape rev scatter slice split squeeze stack tile transpose".split()
)
#: operands of these primitives that are indices
_INDICES = {"dynamic_slice": slice(1, None), "dynamic_update_slice": slice(2, None)}
_INDICES |= {"gather": slice(1, 2), "scatter": slice(1, 2)}
_SUMS = {
    "reduce_sum": lax.add_p,
    "reduce_prod": lax.mul_p,
    "reduce_max": lax.max_p,
    "reduce_min": lax.min_p,
    "reduce_and": lax.and_p,
    "reduce_or": lax.or_p,
}
_CALLS = frozenset(
    "pjit jit closed_call core_call remat checkpoint custom_jvp_call custom_vjp_call "
    "custom_vjp_call_jaxpr constant_gather constant_sum".split()
)
_IDENTITY = frozenset({"materialise", "optimization_barrier"})


def count(jaxpr) -> int | None:
    """Estimate the number of scalars that a function computes.

    None if the function cannot be split: it has loops of unknown length, library calls or other
    unsupported primitives."""
    total = 0
    for e in jaxpr.eqns:
        name, size = e.primitive.name, sum(v.aval.size for v in e.outvars)
        if name in _EACH:
            more = size
        elif name in _SUMS or name in ("cumsum", "dot_general"):
            more = sum(v.aval.size for v in e.invars)
        elif name in _CALLS or name == "custom_linear_solve":
            more = count(_called(e).jaxpr)
        elif name == "cond":
            parts = [count(b.jaxpr) for b in e.params["branches"]]
            more = None if None in parts else sum(parts) + size  # pyright: ignore
        elif name == "scan":
            more = count(e.params["jaxpr"].jaxpr)
            # doubled: as a loop the body is compiled once, split into scalars once per pass
            more = None if more is None else 2 * more * e.params["length"]
        else:
            more = 0 if name in _PLACE | _IDENTITY | {"iota"} else None
        if more is None:
            return None
        total += more
    return total


def _called(e) -> Any:
    p = e.params
    if e.primitive in IMPLEMENTATIONS:
        (x,), function = e.invars, functools.partial(IMPLEMENTATIONS[e.primitive], **p)
        return jax.make_jaxpr(function)(jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype))
    if e.primitive.name == "custom_linear_solve":
        return p["jaxprs"].solve
    found = next(p[k] for k in ("jaxpr", "call_jaxpr", "fun_jaxpr") if p.get(k) is not None)
    return found if hasattr(found, "consts") else core.ClosedJaxpr(found, ())


class Unknown(Exception):
    """An index depends on a value that is not concrete."""


def evaluate(closed, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Evaluate a closed jaxpr on scalars.

    Arguments and results are NumPy arrays of objects. Each entry is a NumPy scalar if its value is
    concrete, otherwise a JAX array, either of a shape common to all entries or without axes."""
    numbers = _Numbers()
    results = _evaluate(numbers, closed, arguments)
    return [_map(lambda i, x=x: numbers.complete(x[i], result=True), x.shape) for x in results]


def apart(x) -> np.ndarray:
    """Split an array into its scalars: a NumPy array of objects of the same shape."""
    out = np.empty(np.shape(x), object)
    known = not isinstance(x, Tracer)
    flat = np.asarray(x).reshape(-1) if known else jnp.reshape(x, -1)
    for k, i in enumerate(np.ndindex(*out.shape)):
        out[i] = flat[k]
    return out


def _evaluate(numbers: "_Numbers", closed, arguments) -> list[np.ndarray]:
    values: dict = dict(zip(closed.jaxpr.constvars, map(apart, closed.consts), strict=True))
    values |= dict(zip(closed.jaxpr.invars, arguments, strict=True))

    def read(v):
        if isinstance(v, core.Literal):
            return apart(np.asarray(v.val, v.aval.dtype))  # pyright: ignore
        return values[v]

    for e in closed.jaxpr.eqns:
        found = _one(numbers, e, [read(v) for v in e.invars])
        values |= dict(zip(e.outvars, found, strict=True))
    return [read(v) for v in closed.jaxpr.outvars]


def _one(numbers: "_Numbers", e, xs) -> list[np.ndarray]:
    name, shape = e.primitive.name, e.outvars[0].aval.shape
    if name in _IDENTITY or name in ("copy", "copy_p", "stop_gradient"):
        return xs
    if name in _CALLS:
        return _evaluate(numbers, _called(e), xs)
    if name == "custom_linear_solve":
        n = e.params["const_lengths"]
        first = n.matvec + n.vecmat
        given = xs[first : first + n.solve] + xs[first + n.solve + n.transpose_solve :]
        return _evaluate(numbers, _called(e), given)
    if name == "cond":
        return _either(numbers, e, xs)
    if name == "scan":
        return _repeated(numbers, e, xs)
    if name in _PLACE:
        return _place(e, xs)
    if name == "iota":
        return [apart(np.asarray(_known(e.primitive, [], e.params)))]
    if (name in _SUMS or name == "dot_general") and not all(x.size for x in xs):
        empty = [np.zeros(x.shape, v.aval.dtype) for x, v in zip(xs, e.invars, strict=True)]
        return [apart(np.asarray(_known(e.primitive, empty, e.params)))]  # empty operands
    if name in _SUMS:
        axes = e.params["axes"]
        x = np.moveaxis(xs[0], axes, range(len(axes))).reshape(-1, *shape)
        add = functools.partial(numbers.bind, _SUMS[name], {})
        return [_map(lambda i: functools.reduce(add, x[(slice(None), *i)]), shape)]
    if name == "cumsum":
        return [_running(numbers, e, xs[0])]
    if name == "dot_general":
        return [_product(numbers, e, *xs)]
    if name == "convert_element_type" and e.invars[0].aval.dtype == e.outvars[0].aval.dtype:
        return xs
    full = [np.broadcast_to(x, shape) for x in xs]
    return [_map(lambda i: numbers.bind(e.primitive, e.params, *(x[i] for x in full)), shape)]


def _map(function, shape) -> np.ndarray:
    out = np.empty(shape, object)
    for i in np.ndindex(*shape):
        out[i] = function(i)
    return out


def _place(e, xs) -> list[np.ndarray]:
    """Apply a primitive that moves entries: it acts on their positions, which select scalars."""
    where = _INDICES.get(e.primitive.name, slice(0, 0))
    fixed = set(range(len(xs))[where])
    flat = [x for k, x in enumerate(xs) if k not in fixed for x in x.reshape(-1)]
    places, given = iter(range(len(flat))), []
    for k, x in enumerate(xs):
        if k in fixed:
            if not all(isinstance(i, np.generic) for i in x.reshape(-1)):
                raise Unknown(e.primitive.name)
            given.append(np.array(x.tolist(), e.invars[k].aval.dtype).reshape(x.shape))
        else:
            given.append(np.array([next(places) for _ in range(x.size)], int).reshape(x.shape))
    found = _known(e.primitive, given, e.params)
    found = found if e.primitive.multiple_results else [found]
    pick = lambda at: _map(lambda i: flat[at[i]], at.shape)
    return [pick(np.asarray(at)) for at in found]


def _known(primitive, arguments, parameters):
    with jax.ensure_compile_time_eval():
        return primitive.bind(*map(jnp.asarray, arguments), **parameters)


def _either(numbers: "_Numbers", e, xs) -> list[np.ndarray]:
    """Evaluate `cond`: all branches, of which the index selects the results. If the index is
    concrete, only its branch."""
    which, *rest = xs
    index, last = which[()], np.int32(len(e.params["branches"]) - 1)
    index = numbers.bind(lax.clamp_p, {}, np.int32(0), index, last)
    if isinstance(index, np.generic):
        return _evaluate(numbers, e.params["branches"][int(index)], rest)
    found = [_evaluate(numbers, b, rest) for b in e.params["branches"]]
    if last == 1:
        index = numbers.bind(lax.ne_p, {}, index, np.int32(0))
    pick = lambda *cases: numbers.bind(lax.select_n_p, {}, index, *cases)
    return [
        _map(lambda i, all=all: pick(*(x[i] for x in all)), all[0].shape)
        for all in zip(*found, strict=True)
    ]


def _repeated(numbers: "_Numbers", e, xs) -> list[np.ndarray]:
    """Unroll a loop of known length, such as the stages of a step."""
    p, length = e.params, e.params["length"]
    fixed, carried = _scan_counts(e)
    ends = fixed + carried
    constants, carry, rows = xs[:fixed], xs[fixed:ends], xs[ends:]
    stored = [np.empty(v.aval.shape, object) for v in e.outvars[carried:]]
    for k in reversed(range(length)) if p["reverse"] else range(length):
        found = _evaluate(numbers, p["jaxpr"], [*constants, *carry, *(x[k, ...] for x in rows)])
        carry = found[:carried]
        for all, one in zip(stored, found[carried:], strict=True):
            all[k, ...] = one
    return [*carry, *stored]


def _scan_counts(e) -> tuple[int, int]:
    """Count the constants and the carried arrays of a scan.

    The counts follow from ranks: scanned and stacked arrays have one more axis outside the loop.
    Parameters of the primitive are not used, because their names differ between versions of JAX."""
    inside = e.params["jaxpr"].jaxpr
    longer = lambda outer, inner: sum(
        x.aval.ndim > y.aval.ndim for x, y in zip(outer, inner, strict=True)
    )
    scanned, stacked = longer(e.invars, inside.invars), longer(e.outvars, inside.outvars)
    carried = len(e.outvars) - stacked
    return len(e.invars) - scanned - carried, carried


def _running(numbers: "_Numbers", e, x) -> np.ndarray:
    """Cumulative sum along an axis."""
    axis, backwards = e.params["axis"], slice(None, None, -1 if e.params["reverse"] else 1)
    x = np.moveaxis(x, axis, 0)[backwards].copy()
    for k in range(1, len(x)):
        add = lambda i, k=k: numbers.bind(lax.add_p, {}, x[(k - 1, *i)], x[(k, *i)])
        x[k, ...] = _map(add, x.shape[1:])  # `x[k]` would store an array as an entry of a vector
    return np.moveaxis(x[backwards], 0, axis)


def _product(numbers: "_Numbers", e, a, b) -> np.ndarray:
    (summed_a, summed_b), (each_a, each_b) = e.params["dimension_numbers"]
    free = lambda x, *used: [k for k in range(x.ndim) if k not in [*used[0], *used[1]]]
    order_a = [*each_a, *free(a, each_a, summed_a), *summed_a]
    order_b = [*each_b, *free(b, each_b, summed_b), *summed_b]
    shape, each = e.outvars[0].aval.shape, len(each_a)
    rows = a.ndim - len(summed_a)
    a, b = a.transpose(order_a), b.transpose(order_b)
    times = functools.partial(numbers.bind, lax.mul_p, {})
    add = functools.partial(numbers.bind, lax.add_p, {})

    def entry(i):
        left, right = a[i[:rows]].reshape(-1), b[(*i[:each], *i[rows:])].reshape(-1)
        return functools.reduce(add, [times(x, y) for x, y in zip(left, right, strict=True)])

    return _map(entry, shape)


@dataclasses.dataclass(frozen=True, eq=False)
class _Zeroed:
    """A scalar whose computation omitted products with zero: NaN if one of the `sources` of the
    other factors is not finite, otherwise `value`."""

    value: Any
    sources: int  # bit set of indices into `_Numbers.sources`


#: functions that are NaN where an argument is NaN
_KEEP_NAN = frozenset(
    "abs acos acosh add add_any asin asinh atan atan2 atanh cbrt cos cosh div erf exp exp2 expm1 "
    "log log1p logistic mul neg rsqrt sin sinh sqrt square sub tan tanh".split()
)
#: functions that are finite if and only if all arguments are, apart from overflow
_KEEP_FINITE = frozenset("abs add add_any cos mul neg sin square sub".split())
#: functions that are not finite where the first argument is not, and at some finite arguments
_PARTIAL = frozenset("acos asin div log sqrt tan".split())


class _Numbers:
    """Computes scalars, each only once.

    A product with zero is NaN if the other factor is not finite. Whether it is finite follows from
    its `sources`: arguments of the program, and results of functions that are not finite at some
    finite arguments or finite at some infinite ones. Overflow within a step is not considered."""

    def __init__(self):
        self.results: dict = {}
        self.sources: list = []
        self.origins: dict[int, int] = {}  # sources of a scalar, by its identity
        self.followed: dict[int, int] = {}  # sources: if one is not finite, nor is the scalar
        self.sums: dict[int, Any] = {}  # sums of sources, times zero

    def bind(self, primitive, parameters: dict, *xs) -> Any:
        name, sources = primitive.name, 0
        for x in xs:
            sources |= x.sources if isinstance(x, _Zeroed) else 0
        if sources and not _keeps_nan(name, parameters):
            xs, sources = [self.complete(x) for x in xs], 0
        xs = tuple(x.value if isinstance(x, _Zeroed) else x for x in xs)
        value = _simplified(name, xs)
        if value is None:
            value = self._computed(primitive, parameters, xs)
        elif name == "mul" and isinstance(value, np.generic):  # zero
            sources |= self._origin(xs[0]) | self._origin(xs[1])
        return _Zeroed(value, sources) if sources else value

    def complete(self, x, result: bool = False) -> Any:
        """Return the scalar including the omitted products with zero.

        A `result` of the program that is not finite for another reason may remain infinite where it
        should be NaN."""
        if not isinstance(x, _Zeroed):
            return x
        self._origin(x.value)
        missing = x.sources & ~(self.followed.get(id(x.value), 0) if result else 0)
        if not missing:
            return x.value
        if missing not in self.sums:
            operands = [s for k, s in enumerate(self.sources) if missing >> k & 1]
            add = lambda a, b: self._computed(lax.add_p, {}, (a, b))
            total = functools.reduce(add, operands)
            self.sums[missing] = self._computed(lax.mul_p, {}, (total, total.dtype.type(0)))
        return self._computed(lax.add_p, {}, (x.value, self.sums[missing]))

    def _origin(self, x) -> int:
        """Return the sources of a scalar as a bit set; the source of an argument is itself."""
        if isinstance(x, np.generic) or not jnp.issubdtype(x.dtype, jnp.floating):
            return 0
        if id(x) not in self.origins:
            self._add_source(x)
        return self.origins[id(x)]

    def _add_source(self, x, followed: int = 0) -> None:
        self.origins[id(x)] = bit = 1 << len(self.sources)
        self.followed[id(x)] = followed | bit
        self.sources.append(x)

    def _trace_sources(self, name: str, parameters: dict, xs, result) -> None:
        """Record the sources of a computed result."""
        if isinstance(result, np.generic) or not jnp.issubdtype(result.dtype, jnp.floating):
            return
        if name == "convert_element_type" or (name == "integer_pow" and parameters["y"] > 0):
            keeps = True
        else:
            keeps = name in _KEEP_FINITE or (name == "div" and isinstance(xs[1], np.generic))
        origin, followed = 0, 0
        for x in xs if keeps else xs[:1] if name in _PARTIAL else ():
            origin |= self._origin(x)
            followed |= self.followed.get(id(x), 0)
        if keeps:
            self.origins[id(result)], self.followed[id(result)] = origin, followed
        else:
            self._add_source(result, followed)

    def _computed(self, primitive, parameters: dict, xs) -> Any:
        if primitive.name == "add_any":
            primitive = lax.add_p
        if primitive.name in ("integer_pow", "square") and parameters.get("y", 2) == 2:
            primitive, parameters, xs = lax.mul_p, {}, (xs[0], xs[0])
        words = tuple(sorted((k, str(v)) for k, v in parameters.items()))
        name = lambda x: (x.item(), x.dtype) if isinstance(x, np.generic) else id(x)
        key = primitive, words, tuple(map(name, xs))
        if key not in self.results:  # stored with its arguments, so that their ids stay unique
            result = _applied(primitive, parameters, xs)
            self.results[key] = result, xs
            self._trace_sources(primitive.name, parameters, xs, result)
        return self.results[key][0]


def _keeps_nan(name: str, parameters: dict) -> bool:
    if name == "convert_element_type":
        return jnp.issubdtype(parameters["new_dtype"], jnp.floating)
    return name in _KEEP_NAN or (name == "integer_pow" and parameters["y"] != 0)


def _simplified(name: str, xs) -> Any:
    """Return the result if a constant operand makes it trivial, otherwise None."""
    constant = [isinstance(x, np.floating) for x in xs]
    if len(xs) != 2 or all(constant) or not any(constant):
        return None
    a, b = xs
    is_a = lambda c: isinstance(a, np.generic) and a == c
    is_b = lambda c: isinstance(b, np.generic) and b == c
    if name == "mul":
        if is_a(0.0) or is_b(0.0):
            return a if is_a(0.0) else b
        return b if is_a(1.0) else a if is_b(1.0) else None
    if name in ("add", "add_any"):
        return b if is_a(0.0) else a if is_b(0.0) else None
    trivial = {"sub": 0.0, "div": 1.0}
    return a if name in trivial and is_b(trivial[name]) else None


def _applied(primitive, parameters: dict, xs) -> Any:
    if all(isinstance(x, np.generic) for x in xs):
        return np.asarray(_known(primitive, xs, parameters))[()]
    shape = max((x.shape for x in xs if not isinstance(x, np.generic)), key=len)
    full = lambda x: jnp.full(shape, x, x.dtype) if not np.shape(x) and shape else x
    xs = [jnp.broadcast_to(x, shape) if x.shape != shape else jnp.asarray(x) for x in map(full, xs)]
    return primitive.bind(*xs, **parameters)
