"""Springs, dampers, friction and armature of all joints, addressed by indices in q and v."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.precision import float_field
from ..._jax.constant_gather import take
from ...math import rotations
from ...math.safe import safe_norm
from .elements import Instant, spread


def polynomial(coefficients, x):
    """`a x + b x^2 + c x^3` for coefficients (..., 3)."""
    a, b, c = (coefficients[..., i] for i in range(3))
    return x * (a + x * (b + x * c))


def polynomial_energy(coefficients, x):
    """Integral of `polynomial` from zero."""
    a, b, c = (coefficients[..., i] for i in range(3))
    return x * x * (a / 2.0 + x * (b / 3.0 + x * c / 4.0))


def drag(coefficients, v):
    """`a v + b v |v| + c v^3` for coefficients (..., 3)."""
    a, b, c = (coefficients[..., i] for i in range(3))
    return v * (a + jnp.abs(v) * (b + jnp.abs(v) * c))


class JointLaws(eqx.Module):
    """Springs, dampers and friction of the joints, and their armature.

    The forces are `-(a x + b x^2 + c x^3)` for springs, `-(a v + b v |v| + c v^3)` for dampers and
    `-friction tanh(v / friction_width)` for friction.

    - `coordinates`, `velocities`: indices in q and v of the k scalar coordinates with a spring,
      `stiffness` (k, 3), `rest` (k,);
    - `balls`: indices in q and v of the b unit quaternions with a spring, `ball_stiffness` (b, 3),
      `ball_rest` (b, 4); their displacement is the rotation vector;
    - `damping` (n_v, 3), `friction` (n_v,), `friction_width` (n_v,) and `armature` (n_v,), the
      inertia added to the diagonal of the mass matrix. All are in the SI units of the
      velocities."""

    stiffness: Float[Array, "k 3"] = float_field()
    rest: Float[Array, " k"] = float_field()
    ball_stiffness: Float[Array, "b 3"] = float_field()
    ball_rest: Float[Array, "b 4"] = float_field()
    damping: Float[Array, "n_v 3"] = float_field()
    armature: Float[Array, " n_v"] = float_field()
    friction: Float[Array, " n_v"] = float_field()
    friction_width: Float[Array, " n_v"] = float_field()
    coordinates: tuple[int, ...] = eqx.field(static=True, default=())
    velocities: tuple[int, ...] = eqx.field(static=True, default=())
    balls: tuple[tuple[int, int], ...] = eqx.field(static=True, default=())
    rubs: bool = eqx.field(static=True, default=False)

    def force(self, at: Instant) -> Float[Array, " n_v"]:
        """Joint forces of all springs, dampers and friction."""
        f = -drag(self.damping, at.v)
        if self.rubs:
            f = f - self.friction * jnp.tanh(at.v / self.friction_width)
        if self.coordinates:
            f = f - spread(
                np.array(self.velocities), at.tree.n_v, polynomial(self.stiffness, self._shift(at))
            )
        if self.balls:
            x = self._turn(at)
            a, b, c = (self.ball_stiffness[:, i : i + 1] for i in range(3))
            size = safe_norm(x)[:, None]
            rows = np.array([v + i for _, v in self.balls for i in range(3)])
            torque = (a + size * (b + size * c)) * x
            f = f - spread(rows, at.tree.n_v, torque.reshape(-1))
        return f

    def _shift(self, at: Instant):
        return take(at.q, np.array(self.coordinates)) - self.rest

    def _turn(self, at: Instant):
        """Rotation vectors (b, 3) of the ball joints relative to their rest orientations."""
        q = take(at.q, np.array([[start + i for i in range(4)] for start, _ in self.balls]))
        q = q / safe_norm(q)[:, None]
        return jax.vmap(rotations.difference)(self.ball_rest, q)

    def energy(self, at: Instant):
        """Potential energy [J] of the springs."""
        energy = jnp.zeros((), at.q.dtype)
        if self.coordinates:
            energy = energy + jnp.sum(polynomial_energy(self.stiffness, self._shift(at)))
        if self.balls:
            angle = safe_norm(self._turn(at))
            energy = energy + jnp.sum(polynomial_energy(self.ball_stiffness, angle))
        return energy
