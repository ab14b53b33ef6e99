"""Limits of joints and tendons, and couplings between bodies, joints or tendons, as stiff springs
and dampers.

MuJoCo's soft constraints act on accelerations. Here a constraint is a spring whose stiffness gives
the same violation under a constant load, with separate damping; see docs/coming-from.md."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.fields import part_field
from ..._base.precision import float_field
from ..._jax.constant_gather import add_at, take
from ...math import rotations
from ...math.safe import safe_norm, safe_unit
from .elements import Instant, spread
from .kinematics import cross
from .points import Sites, place, velocity, with_ground
from .tendons import TendonState


class Springs(eqx.Module):
    """Springs and dampers of k rows: `stiffness` (k,), `damping` (k,), and `width` (k,), the
    violation above which limits act with full damping."""

    stiffness: Float[Array, " k"] = float_field()
    damping: Float[Array, " k"] = float_field()
    width: Float[Array, " k"] = float_field()

    def hold(self, x, rate):
        """Force on `x` that holds it at zero."""
        return -self.stiffness * x - self.damping * rate

    def stop(self, beyond, rate):
        """Force, never negative, on a coordinate that exceeds its limit by `beyond`."""
        near = jnp.clip(beyond / self.width, 0.0, 1.0)
        push = self.stiffness * beyond + self.damping * near * rate
        return jnp.where(beyond > 0, jnp.maximum(push, 0.0), 0.0)


class Limits(eqx.Module):
    """Ranges (k, 2) of scalars, enforced by `springs`; infinite for no limit."""

    range: Float[Array, "k 2"] = float_field(checked=False)
    springs: Springs = part_field()

    def force(self, x, rate):
        """Forces on scalars `x` (k,) with given rates."""
        low, high = self.range[:, 0], self.range[:, 1]
        return self.springs.stop(low - x, -rate) - self.springs.stop(x - high, rate)


class Curves(eqx.Module):
    """Couplings that hold scalars y at the polynomial `c0 + c1 x + ... + c4 x^4` of other scalars
    x. `coefficients` (k, 5) are c0 to c4. Both scalars are measured from `reference` (k, 2), of y
    and x."""

    coefficients: Float[Array, "k 5"] = float_field()
    reference: Float[Array, "k 2"] = float_field()
    springs: Springs = part_field()

    def force(self, y, y_rate, x, x_rate):
        """Forces on y and on x."""
        c, x = self.coefficients, x - self.reference[:, 1]
        value = c[:, 0] + x * (c[:, 1] + x * (c[:, 2] + x * (c[:, 3] + x * c[:, 4])))
        slope = c[:, 1] + x * (2.0 * c[:, 2] + x * (3.0 * c[:, 3] + x * 4.0 * c[:, 4]))
        push = self.springs.hold(y - self.reference[:, 0] - value, y_rate - slope * x_rate)
        return push, -slope * push


class Fasteners(eqx.Module):
    """Pairs of frames, on a `first` and a `second` body. `springs` hold their origins together;
    `twist` holds their rotations together if it has stiffness."""

    first: Sites
    second: Sites
    springs: Springs
    twist: Springs

    def wrenches(self, at: Instant) -> Float[Array, "N 6"]:
        bodies, tree = with_ground(at.motions), at.tree
        ends = [(s.carriers(tree), s) for s in (self.first, self.second)]
        x = [place(bodies, carriers, s.position) for carriers, s in ends]
        V = [take(bodies.V, carriers) for carriers, _ in ends]
        R = [
            jnp.sum(take(bodies.R, carriers)[..., None] * s.rotation[:, None], axis=2)
            for carriers, s in ends
        ]
        gap, gap_rate = x[1] - x[0], velocity(V[1], x[1]) - velocity(V[0], x[0])
        by_row = lambda s: Springs(s.stiffness[:, None], s.damping[:, None], s.width[:, None])
        pull = by_row(self.springs).hold(gap, gap_rate)
        relative = jnp.sum(R[0][..., None] * R[1][:, :, None, :], axis=1)
        turned = jax.vmap(lambda Q: rotations.logarithm(rotations.from_matrix(Q)))(relative)
        turned = jnp.sum(R[0] * turned[:, None, :], axis=2)
        torque = by_row(self.twist).hold(turned, V[1][:, :3] - V[0][:, :3])
        each = [
            jnp.concatenate([cross(x[0], -pull) - torque, -pull], axis=1),
            jnp.concatenate([cross(x[1], pull) + torque, pull], axis=1),
        ]
        carriers = np.concatenate([c for c, _ in ends])
        return add_at(jnp.concatenate(each), carriers, tree.n_bodies)


class Rows(NamedTuple):
    """Indices of the constrained quantities (static): limited scalar joints (q, v), limited ball
    joints (q, v), limited tendons, coupled joints (q and v of y, q and v of x; -1 for none) and
    coupled tendons (y, x or -1)."""

    joints: tuple[tuple[int, int], ...] = ()
    balls: tuple[tuple[int, int], ...] = ()
    tendons: tuple[int, ...] = ()
    joint_curves: tuple[tuple[int, int, int, int], ...] = ()
    tendon_curves: tuple[tuple[int, int], ...] = ()


class SoftConstraints(eqx.Module):
    """All limits and couplings of a machine; those not listed in `rows` are None."""

    rows: Rows = eqx.field(static=True)
    joints: Limits | None = None
    balls: Limits | None = None
    tendons: Limits | None = None
    joint_curves: Curves | None = None
    tendon_curves: Curves | None = None
    fasteners: Fasteners | None = None

    def forces(self, at: Instant, tendons: TendonState | None):
        """Joint forces (n_v,), forces along the tendons (n,) or None, and wrenches (N, 6) or
        None."""
        n, rows = at.tree.n_v, self.rows
        joint, along, wrenches = jnp.zeros(n, at.q.dtype), None, None
        if self.joints is not None:
            q, v = np.array(rows.joints).T
            joint = joint + spread(v, n, self.joints.force(take(at.q, q), take(at.v, v)))
        if self.balls is not None:
            joint = joint + self._ball_limits(at)
        if self.joint_curves is not None:
            joint = joint + self._joint_curves(at)
        if tendons is not None and (rows.tendons or rows.tendon_curves):
            along = self._along_tendons(tendons)
        if self.fasteners is not None:
            wrenches = self.fasteners.wrenches(at)
        return joint, along, wrenches

    def _ball_limits(self, at: Instant):
        assert self.balls is not None
        q = take(at.q, np.array([[a + i for i in range(4)] for a, _ in self.rows.balls]))
        v = np.array([[b + i for i in range(3)] for _, b in self.rows.balls])
        turned = jax.vmap(rotations.logarithm)(q / safe_norm(q)[:, None])
        axis = safe_unit(turned)
        torque = self.balls.force(safe_norm(turned), jnp.sum(axis * take(at.v, v), axis=1))
        return spread(v.reshape(-1), at.tree.n_v, (torque[:, None] * axis).reshape(-1))

    def _joint_curves(self, at: Instant):
        assert self.joint_curves is not None
        places = np.array(self.rows.joint_curves)
        given = places[:, 2] >= 0
        x_q, x_v = np.maximum(places[:, 2], 0), np.maximum(places[:, 3], 0)
        mask = jnp.asarray(given, at.q.dtype)
        x = jnp.where(given, take(at.q, x_q), self.joint_curves.reference[:, 1])
        on_y, on_x = self.joint_curves.force(
            take(at.q, places[:, 0]), take(at.v, places[:, 1]), x, mask * take(at.v, x_v)
        )
        n = at.tree.n_v
        return spread(places[:, 1], n, on_y) + spread(x_v, n, mask * on_x)

    def _along_tendons(self, state: TendonState):
        n, force = state.length.shape[0], jnp.zeros_like(state.length)
        if self.tendons is not None:
            index = np.array(self.rows.tendons)
            push = self.tendons.force(take(state.length, index), take(state.rate, index))
            force = force + spread(index, n, push)
        if self.tendon_curves is not None:
            y, x = np.array(self.rows.tendon_curves).T
            mask, x = jnp.asarray(x >= 0, force.dtype), np.maximum(x, 0)
            other = jnp.where(mask > 0, take(state.length, x), self.tendon_curves.reference[:, 1])
            on_y, on_x = self.tendon_curves.force(
                take(state.length, y), take(state.rate, y), other, mask * take(state.rate, x)
            )
            force = force + spread(y, n, on_y) + spread(x, n, mask * on_x)
        return force
