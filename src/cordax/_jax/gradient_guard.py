"""`shield`: keep NaNs of failed steps out of reverse-mode gradients.

`jnp.where(ok, new, old)` selects values and tangents, but reverse mode still goes through the
branch that was not selected, and there `0 * inf` is NaN. The usual remedy is to replace the inputs
of the failing computation by harmless ones, but then the failure must be known beforehand. Here
`opened, token = shield(inputs)` and `close(outputs, token, ok)` bracket a computation. Both are the
identity, in forward mode too, and cost nothing. In reverse mode `close` reports a failure back
through the token, and `shield` then sets the cotangents of its inputs to zero. This happens
separately for each batch member; inputs that members share are copied to each member first."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from . import features


def shield(tree):
    """Return `tree` and a token for `close`. Only floating-point arrays of `tree` are guarded."""
    if not features.is_on("gradient guard"):
        return tree, None
    leaves, treedef = jax.tree.flatten(tree)
    which = [i for i, leaf in enumerate(leaves) if _is_float(leaf)]
    *opened, token = _open_p.bind(*[leaves[i] for i in which], ndim=0)
    for i, leaf in zip(which, opened, strict=True):
        leaves[i] = leaf
    return jax.tree.unflatten(treedef, leaves), token


def close(tree, token, ok):
    """Return `tree` unchanged. `ok` (bool): whether the results computed since `shield` are valid,
    so that derivatives may pass through them."""
    if token is None:
        return tree
    leaves, treedef = jax.tree.flatten(tree)
    which = [i for i, leaf in enumerate(leaves) if _is_float(leaf)]
    closed = _close_p.bind(*[leaves[i] for i in which], token, ok, ndim=0)
    for i, leaf in zip(which, closed, strict=True):
        leaves[i] = leaf
    return jax.tree.unflatten(treedef, leaves)


def frozen(tree):
    """Return `tree` with its derivatives set to zero."""
    is_array = lambda x: isinstance(x, jax.Array)
    return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if is_array(x) else x, tree)


def without_derivatives(function, *arguments):
    """Return `function(*arguments)` with its derivatives set to zero.

    This includes derivatives with respect to arrays over which `function` closes, because a
    controller may be any Python function."""
    arguments = frozen(arguments)
    return frozen(frozen(eqx.filter_closure_convert(function, *arguments))(*arguments))


def _is_float(leaf) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)


# both primitives are linear; `ndim`: number of leading batch axes, which the token has too
_open_p, _close_p = Primitive("shield_open"), Primitive("shield_close")
_open_p.multiple_results = _close_p.multiple_results = True


def _open_rule(*xs, ndim):
    return [*xs, jnp.zeros(jnp.shape(xs[0])[:ndim])]


def _close_rule(*operands, ndim):
    return list(operands[:-2])


def _open_transpose(cotangents, *xs, ndim):
    *cotangents, token = cotangents
    if type(token) is ad.Zero:
        return cotangents
    failed = token != 0
    return [c if type(c) is ad.Zero else _where(failed, c) for c in cotangents]


def _close_transpose(cotangents, *operands, ndim):
    ok = operands[-1]
    kept = [c if type(c) is ad.Zero else _where(~ok, c) for c in cotangents]
    return [*kept, jnp.where(ok, 0.0, 1.0), None]


def _where(failed, x):
    """Set `x` to zero where `failed`; the axes of `failed` are the leading axes of `x`."""
    return jnp.where(failed.reshape(failed.shape + (1,) * (x.ndim - failed.ndim)), 0.0, x)


def _batched(primitive):
    def rule(operands, dims, *, ndim):
        size = next(x.shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
        front = [batching.bdim_at_front(x, d, size) for x, d in zip(operands, dims, strict=True)]
        out = primitive.bind(*front, ndim=ndim + 1)
        return out, [0] * len(out)

    return rule


for _p, _rule, _transpose in (
    (_open_p, _open_rule, _open_transpose),
    (_close_p, _close_rule, _close_transpose),
):
    _p.def_impl(_rule)
    _p.def_abstract_eval(
        lambda *xs, ndim, rule=_rule: [
            ShapedArray(s.shape, s.dtype)
            for s in jax.eval_shape(lambda *xs: rule(*xs, ndim=ndim), *xs)
        ]
    )
    mlir.register_lowering(_p, mlir.lower_fun(_rule, multiple_results=True))
    batching.primitive_batchers[_p] = _batched(_p)
    ad.primitive_transposes[_p] = _transpose


# values bypass the primitives: otherwise reverse mode would store arrays that no step changes
# once per step
def _open_jvp(primals, tangents, *, ndim):
    out = _open_rule(*primals, ndim=ndim)
    known = [t for t in tangents if type(t) is not ad.Zero]
    if not known:
        return out, [ad.Zero(jax.typeof(x).to_tangent_aval()) for x in out]
    *moved, token = _open_p.bind(*known, ndim=ndim)
    moved = iter(moved)
    return out, [*(t if type(t) is ad.Zero else next(moved) for t in tangents), token]


def _close_jvp(primals, tangents, *, ndim):
    out, token = _close_rule(*primals, ndim=ndim), tangents[-2]
    tangents = tangents[:-2]
    known = [t for t in tangents if type(t) is not ad.Zero]
    if not known or type(token) is ad.Zero:
        return out, list(tangents)
    moved = iter(_close_p.bind(*known, token, primals[-1], ndim=ndim))
    return out, [t if type(t) is ad.Zero else next(moved) for t in tangents]


ad.primitive_jvps[_open_p], ad.primitive_jvps[_close_p] = _open_jvp, _close_jvp
