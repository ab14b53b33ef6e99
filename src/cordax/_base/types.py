"""Array types used in signatures. Shapes are written as jaxtyping strings: `Float[Array, "n"]`."""

from collections.abc import Callable
from typing import TypeAlias

from jaxtyping import Array, Float

Scalar: TypeAlias = Float[Array, ""]
Vector: TypeAlias = Float[Array, " n"]
Matrix: TypeAlias = Float[Array, "n n"]
# inputs as a function of time, coordinates and velocities, called by integrators within a step
InputFunction: TypeAlias = Callable[[Scalar, Vector, Vector], Vector]
