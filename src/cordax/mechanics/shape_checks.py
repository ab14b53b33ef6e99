"""Checks of the shapes that a machine's methods return, made once while tracing."""

import jax

from .._base.checks import require, require_shape


def check_shapes(system, t, state, u, multipliers) -> None:
    """Raise `ValueError`, with the name of the method, if a result of the machine has a wrong shape
    or is not a dictionary of arrays as expected."""
    q, v, n = state.q, state.v, system.n_v
    name = type(system).__name__
    _shape(f"{name}.mass_matrix", system.mass_matrix, (q,), (n, n))
    _shape(f"{name}.force", system.force, (t, q, v, u), (n,))
    outputs = _call(f"{name}.outputs", system.outputs, (t, q, v, u, multipliers), "a dictionary")
    fits = isinstance(outputs, dict) and all(isinstance(key, str) for key in outputs)
    given = type(outputs).__name__
    require(fits, f"{name}.outputs", given, "a dictionary from names to arrays")
    odd = [key for key, x in outputs.items() if not hasattr(x, "shape")]
    require(not odd, f"{name}.outputs", f"no array for {', '.join(odd)}", "one array per name")


def _shape(field: str, function, arguments, shape: tuple[int, ...]) -> None:
    found = _call(field, function, arguments, f"an array of shape {shape}")
    require(hasattr(found, "shape"), field, type(found).__name__, f"an array of shape {shape}")
    require_shape(field, found, shape)


def _call(field: str, function, arguments, expected: str):
    try:
        return jax.eval_shape(function, *arguments)
    except (TypeError, ValueError, IndexError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"{field}: got an error ({reason}), expected {expected}") from error
