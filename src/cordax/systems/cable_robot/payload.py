"""Payload: a second body that a robot picks up, carries and puts down."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require_known
from ..._base.fields import part_field
from ..._base.precision import float_field
from .natural import NaturalBody, axes, place

#: pairs of columns of the carrier's and the payload's X whose scalar products fix the relative
#: orientation. Crossed pairs are l.v_i, v_i.v_j and v_j.l. Equal pairs, as in eq. (20) of Piva et
#: al. (2024), are stationary for parallel axes, and their rows are then redundant.
CROSSED = ((0, 1), (1, 2), (2, 0))
EQUAL = ((0, 0), (2, 2), (1, 1))


class Payload(eqx.Module):
    """Rigid `body` that is held by the ground, by the platform, or by nothing.

    `joint` (3,) [m]: the point, in the payload's axes, at which it is held; `anchor`: the same
    point as four weights on the platform's coordinates, or (3,) [m] in the world; `frame` (3, 3):
    the axes of the ground on which it lies; `products` (3,): constant values of the products of
    axes in `pairs`. The methods `rest`, `join` and `free` set the last three."""

    body: NaturalBody = part_field()
    joint: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    held_by: Literal["ground", "platform", "nothing"] = eqx.field(static=True, default="nothing")
    anchor: Float[Array, " k"] | None = eqx.field(default=None, metadata={"unit": "m"})
    frame: Float[Array, "3 3"] | None = None
    products: Float[Array, " 3"] | None = None
    pairs: tuple[tuple[int, int], ...] = eqx.field(static=True, default=CROSSED)

    def __check_init__(self):
        require_known("held_by", self.held_by, ("ground", "platform", "nothing"))

    def rest(self, q) -> "Payload":
        """Payload that rests on the ground at its coordinates `q` (12,)."""
        frame = axes(q)
        return self._held("ground", place(self.body.weights(self.joint), q), frame, frame, q)

    def join(self, platform: NaturalBody, q_platform, q) -> "Payload":
        """Payload held by the platform, at the present coordinates (12,) of both."""
        point = place(self.body.weights(self.joint), q)
        X = axes(q_platform)
        c = jnp.linalg.solve(X, point - q_platform[:3])
        weights = jnp.concatenate([1.0 - c[:1], c])
        return self._held("platform", weights, None, X, q)

    def free(self) -> "Payload":
        """Payload held by nothing."""
        return Payload(self.body, self.joint, "nothing", pairs=self.pairs)

    def _held(self, by, anchor, frame, other, q):
        products = self._products(other, axes(q))
        return Payload(self.body, self.joint, by, anchor, frame, products, self.pairs)

    def _products(self, other, own):
        return jnp.stack([jnp.sum(other[:, i] * own[:, j]) for i, j in self.pairs])

    def constraint(self, q_platform, q, weights) -> Float[Array, " 6"]:
        """Constraints that fix the joint and the orientation of the payload relative to its
        holder; `weights` (4,) are those of the joint."""
        assert self.products is not None and self.anchor is not None
        point = place(weights, q)
        if self.held_by == "platform":
            other, anchor = axes(q_platform), place(self.anchor, q_platform)
        else:
            other, anchor = self.frame, self.anchor
        return jnp.concatenate([point - anchor, self._products(other, axes(q)) - self.products])
