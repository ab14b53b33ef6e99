"""What decides the inputs of a machine."""

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
    """`(t, state, memory) -> (u, memory)`, with `u` of shape (n_u,); a controller that `may_fail`
    returns `(u, memory, code)`, a `Result` that is 0 where all is well, and the run ends with it.

    `memory` is a pytree, `()` if there is none. With `period` (seconds, a multiple of dt) the
    controller is sampled: called once per period, its output held. Without, a memoryless controller
    is evaluated wherever the integrator asks, in every stage; one with memory is sampled at every
    step."""

    may_fail: ClassVar[bool] = False
    # not annotated: it would come first among the fields of classes that have it as one
    period = None

    def prepare(self) -> "Controller":
        """An equal controller that has computed once what does not change along a run; called
        inside of the compiled function, before the time loop."""
        return self

    def switching_times(self) -> Float[Array, " k"] | None:
        """Increasing instants [s] at which the inputs, as functions of time, jump or bend; empty if
        they never do, None if that is not known. Runs with `accuracy` step from one to the next."""
        return None

    def unsampled(self) -> "Controller":
        """The same inputs without a `period`, where they depend on time alone: runs with `accuracy`
        follow them within steps."""
        return self

    def init(self, state: State):
        """The memory at the start; `()` for none."""
        return ()

    def otherwise(self) -> "dict[str, Controller]":
        """By what is done otherwise: controllers that read the same numbers in another way, where
        that is a matter of choice. Fits ask whether the choice explains their residuals."""
        return {}

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
    """A Controller from a Controller, an array of constant inputs, a function `(t, state) -> u`, or
    None (zero inputs)."""
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
    """Raise where `control` is a function of anything but time and state."""
    if callable(control) and not isinstance(control, Controller):
        expected = "a Controller, or a function (t, state)"
        require(takes_arguments(control, 2), "control", control, expected)


def takes_arguments(function, count: int) -> bool:
    """Whether a function can be called with so many positional arguments; classes count as
    functions of one argument at most."""
    try:
        inspect.signature(function).bind(*(None,) * count)
    except TypeError:
        return False
    except ValueError:  # a built-in function without a signature
        return count == 2
    return count == 1 or not isinstance(function, type)
