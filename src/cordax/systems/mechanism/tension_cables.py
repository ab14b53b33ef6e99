"""Cables whose tensions are the inputs."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require, require_positive, require_shape
from ..._base.precision import as_float_array
from .cables import carriers, pulled, route_lengths, stacked_routes
from .elements import Effort, Element, Instant, as_names
from .guides import Guide
from .routes import Route
from .tree import Tree


class TensionCables(Element):
    """Set of n cables over guides of the same kinds, `ways`, whose tensions [N] are the inputs. All
    segments of a cable have the same tension. A negative tension would push.

    - `names`: names of the cables; the inputs are `tension_NAME`;
    - `least`, `most` (n,) [N]: bounds for tension distributions; `most` is None for no upper bound.
      They do not limit the inputs;
    - `axial_flexibility` (n,) [1/N]: 1/(E A) of the cables, zero for ideal cables;
    - `device_stiffness` (n, c) [N/m, 1/m, ...]: stiffness of a device in series with each cable, as
      coefficients of a polynomial in the tension, constant term first; all zero for no device.

    Outputs, prefixed with the `name` of the set: `length` (n,) [m] and `stiffness` (n,) [N/m] at
    the current tension, which is infinite for ideal cables."""

    routes: Route
    least: Float[Array, " n"] = eqx.field(metadata={"unit": "N"})
    most: Float[Array, " n"] | None = eqx.field(metadata={"unit": "N"})
    axial_flexibility: Float[Array, " n"] = eqx.field(metadata={"unit": "1/N"})
    device_stiffness: Float[Array, "n c"]
    bodies: tuple[tuple[str, ...], ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    name: str = eqx.field(static=True)

    def __init__(
        self,
        ways: Sequence[Sequence[Guide]],
        names: Sequence[str],
        *,
        least=0.0,
        most=None,
        axial_flexibility=0.0,
        device_stiffness=None,
        name: str = "cable",
    ):
        self.routes, self.bodies = stacked_routes(ways)
        n = len(self.bodies)
        self.names, self.name = as_names(names), name
        unique = len(self.names) == n and len(set(self.names)) == n
        require(unique, "names", self.names, f"{n} different names, one for each cable")
        self.least = _each("least", least, n)
        self.most = None if most is None else _each("most", most, n)
        self.axial_flexibility = _each("axial_flexibility", axial_flexibility, n)
        require_positive("axial_flexibility", self.axial_flexibility, zero_allowed=True)
        device = [[0.0]] * n if device_stiffness is None else device_stiffness
        self.device_stiffness = as_float_array(device, "device_stiffness")
        shape = self.device_stiffness.shape
        fits = len(shape) == 2 and shape[0] == n and shape[1] > 0
        require(fits, "device_stiffness", f"shape {shape}", f"({n}, c), coefficients of each cable")

    @property
    def input_names(self):
        return tuple(f"tension_{name}" for name in self.names)

    @property
    def output_names(self):
        return f"{self.name}_length", f"{self.name}_stiffness"

    def check(self, tree: Tree):
        for names in self.bodies:
            for body in names:
                tree.body(body, f"{self.name}: body")

    def carriers(self, tree: Tree):
        """Indices (n, g) of the bodies that carry the guides."""
        return carriers(tree, self.bodies)

    def lengths(self, at: Instant) -> Float[Array, " n"]:
        """Lengths of the cable paths from end to end [m]."""
        return route_lengths(self.routes, self.carriers(at.tree), at)

    def effort(self, at, u):
        segments = len(self.routes.guides) - 1
        tension = jnp.broadcast_to(u[:, None], (len(self.bodies), segments))
        return Effort(wrenches=pulled(self.routes, self.carriers(at.tree), at, tension))

    def stiffness(self, length, tension) -> Float[Array, " n"]:
        """Stiffness [N/m] of cable and device in series, at lengths (n,) [m] and tensions (n,)
        [N]."""
        device = jnp.zeros_like(tension)
        for i in range(self.device_stiffness.shape[1] - 1, -1, -1):
            device = device * tension + self.device_stiffness[:, i]
        present = jnp.any(self.device_stiffness != 0, axis=1)
        compliance = length * self.axial_flexibility
        compliance = compliance + jnp.where(present, 1.0 / jnp.where(present, device, 1.0), 0.0)
        ideal = compliance == 0
        return jnp.where(ideal, jnp.inf, 1.0 / jnp.where(ideal, 1.0, compliance))

    def outputs(self, at, u):
        length = self.lengths(at)
        return dict(zip(self.output_names, (length, self.stiffness(length, u)), strict=True))


def _each(field: str, x, n: int) -> Float[Array, " n"]:
    x = as_float_array(x, field)
    require_shape(field, x, (), (n,))
    return jnp.broadcast_to(x, (n,))
