"""Controllers, which compute the inputs of a machine."""

import abc
import inspect
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._base.checks import require, require_finite, require_shape
from .._base.precision import as_float_array
from .state import State
from .system import System


class Controller(eqx.Module):
    """A function `(t, state, memory) -> (u, memory)`, with `u` of shape (n_u,). A controller that
    `may_fail` returns `(u, memory, code)` with a `Result` as code: 0 if successful, otherwise the
    run stops with it.

    `memory` is a pytree, `()` if there is none. With `period` (seconds, a multiple of dt) the
    controller is sampled: it is called once per period and its output is held. Without `period`, a
    memoryless controller is evaluated in every stage of the integrator, and a controller with
    memory is sampled once per step."""

    may_fail: ClassVar[bool] = False
    # not annotated: an annotation would make it the first field of subclasses that declare it
    period = None

    def prepare(self) -> "Controller":
        """Equivalent controller with all quantities precomputed that are constant during a run.
        Called inside the compiled function, before the time loop."""
        return self

    def switching_times(self) -> Float[Array, " k"] | None:
        """Increasing instants [s] at which the inputs, as functions of time, jump or have a kink;
        empty if there are none, None if they are not known. Runs with `accuracy` end a substep at
        each of them."""
        return None

    def unsampled(self) -> "Controller":
        """Controller with the same inputs without a `period`, if they depend on time alone. Runs
        with `accuracy` use it to follow the inputs within steps."""
        return self

    def init(self, state: State):
        """Initial memory; `()` for none."""
        return ()

    def otherwise(self) -> "dict[str, Controller]":
        """Alternative controllers that interpret the same data in another way, by a description of
        the difference. Fits check whether an alternative explains their residuals."""
        return {}

    def failure_reason(self, t, state: State) -> str:
        """Sentence for the error of a run that this controller ended at time `t` [s] and `state`:
        which demand cannot be met, and what limits it. Empty if there is nothing to add."""
        return ""

    @abc.abstractmethod
    def __call__(self, t, state: State, memory) -> Any: ...


class _Constant(Controller):
    u: jnp.ndarray

    def switching_times(self):
        return jnp.zeros(0, self.u.dtype)

    def __call__(self, t, state, memory):
        return self.u, memory


class _Function(Controller):
    function: object

    def __call__(self, t, state, memory):
        return self.function(t, state), memory  # pyright: ignore[reportCallIssue]


def as_controller(control, system: System, dtype) -> Controller:
    """Convert to a Controller: a Controller, an array of constant inputs, a function
    `(t, state) -> u`, or None (zero inputs)."""
    if isinstance(control, Controller):
        return control
    if control is None:
        return _Constant(jnp.zeros(system.n_u, dtype))
    if callable(control):
        check_function(control)
        return _Function(control)
    require(
        hasattr(control, "__len__") or hasattr(control, "shape"),
        "control",
        control,
        "a Controller, a function or an array",
    )
    u = as_float_array(control, "control")
    require_shape("control", u, (system.n_u,))
    require_finite("control", u)
    return _Constant(u)


def check_function(control) -> None:
    """Raise if `control` is a function that does not accept the arguments `(t, state)`."""
    if callable(control) and not isinstance(control, Controller):
        expected = "a Controller, or a function (t, state)"
        require(takes_arguments(control, 2), "control", control, expected)


def takes_arguments(function, count: int) -> bool:
    """Whether a function can be called with `count` positional arguments. Classes count as
    functions of at most one argument."""
    try:
        inspect.signature(function).bind(*(None,) * count)
    except TypeError:
        return False
    except ValueError:  # a built-in function without a signature
        return count == 2
    return count == 1 or not isinstance(function, type)
