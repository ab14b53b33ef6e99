"""Actuators as in MuJoCo: `force = gain(length, rate) u + bias(length, rate)` on joints, tendons or
sites.

Here u is the input or an activation that follows the input."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.fields import names_field, part_field
from ..._base.precision import float_field
from ..._jax.constant_gather import take
from ...math import rotations
from ...math.linalg import gram, matmul
from .elements import Instant, spread
from .kinematics import cross
from .muscles import Muscles, activation_rate
from .points import Sites, place, with_ground
from .tendons import TendonState

#: kinds of activation dynamics
DYNAMICS = ("integrator", "filter", "muscle")


class Transmissions(NamedTuple):
    """Joints, tendons and sites on which the actuators act (static); every entry is a tuple.

    - `joints`: (actuator, index in q or -1 if the length is not used, index in v);
    - `balls`: (actuator, index of the quaternion in q); the three velocities of the ball joint are
      in `joints`;
    - `tendons`: (actuator, tendon);
    - `sites`: (actuator, site, reference site or -1)."""

    joints: tuple[tuple[int, int, int], ...] = ()
    balls: tuple[tuple[int, int], ...] = ()
    tendons: tuple[tuple[int, int], ...] = ()
    sites: tuple[tuple[int, int, int], ...] = ()


class Moments(NamedTuple):
    """`length` (n,) and `rate` (n,) of the actuators, and moments of the sites
    `site_moment` (s, n_v)."""

    length: Float[Array, " n"]
    rate: Float[Array, " n"]
    site_moment: Float[Array, "s n_v"] | None


class Actuators(eqx.Module):
    """Set of n actuators with one input each.

    - `gain`, `bias` (n, 3): coefficients of `a + b length + c rate`; `active` and `passive` add the
      gain and bias of muscles for the actuators in `active_muscles` and `passive_muscles`;
    - `input_range`, `force_range` (n, 2): limits, infinite for none;
    - `joint_gear` (j,), `ball_gear` (b, 3), `tendon_gear` (t,), `site_gear` (s, 6): factors on
      lengths and forces, in the order of `transmissions`;
    - `states`: index of the actuator of each activation; `dynamics`: "integrator", "filter" or
      "muscle" for each activation; `time_constants` (a, 3) [s, s, -]: for rising, for falling, and
      the width of the transition between them; `activation_range` (a, 2)."""

    names: tuple[str, ...] = names_field()
    gain: Float[Array, "n 3"] = float_field()
    bias: Float[Array, "n 3"] = float_field()
    input_range: Float[Array, "n 2"] = float_field(checked=False)
    force_range: Float[Array, "n 2"] = float_field(checked=False)
    joint_gear: Float[Array, " j"] = float_field()
    ball_gear: Float[Array, "b 3"] = float_field()
    tendon_gear: Float[Array, " t"] = float_field()
    site_gear: Float[Array, "s 6"] = float_field()
    time_constants: Float[Array, "a 3"] = float_field()
    activation_range: Float[Array, "a 2"] = float_field(checked=False)
    sites: Sites = part_field()
    active: Muscles | None = part_field(default=None)
    passive: Muscles | None = part_field(default=None)
    transmissions: Transmissions = eqx.field(static=True, default=Transmissions())
    active_muscles: tuple[int, ...] = eqx.field(static=True, default=())
    passive_muscles: tuple[int, ...] = eqx.field(static=True, default=())
    states: tuple[int, ...] = eqx.field(static=True, default=())
    dynamics: tuple[str, ...] = eqx.field(static=True, default=())

    @property
    def n(self) -> int:
        return len(self.names)

    def moments(self, at: Instant, tendons: TendonState | None) -> Moments:
        """Lengths and rates of the actuators, and the moments of the sites."""
        links = self.transmissions
        length, rate = jnp.zeros(self.n, at.q.dtype), jnp.zeros(self.n, at.q.dtype)
        if links.joints:
            index, q, v = (np.array(x) for x in zip(*links.joints, strict=True))
            counts = jnp.asarray(q >= 0, at.q.dtype)
            length = length + self._sum(
                index, counts * self.joint_gear * take(at.q, np.maximum(q, 0))
            )
            rate = rate + self._sum(index, self.joint_gear * take(at.v, v))
        if links.balls:
            index, q = (np.array(x) for x in zip(*links.balls, strict=True))
            turned = jnp.stack([rotations.logarithm(at.q[i : i + 4]) for i in q])
            length = length + self._sum(index, jnp.sum(self.ball_gear * turned, axis=1))
        if links.tendons:
            assert tendons is not None
            index, tendon = (np.array(x) for x in zip(*links.tendons, strict=True))
            length = length + self._sum(index, self.tendon_gear * take(tendons.length, tendon))
            rate = rate + self._sum(index, self.tendon_gear * take(tendons.rate, tendon))
        moment = None
        if links.sites:
            index = np.array([x[0] for x in links.sites])
            moment, distance = self._site_moments(at)
            length = length + self._sum(index, distance)
            rate = rate + self._sum(index, matmul(moment, at.v[:, None])[:, 0])
        return Moments(length, rate, moment)

    def _sum(self, index, values):
        return spread(index, self.n, values)

    def _site_moments(self, at: Instant):
        """Generalised forces (s, n_v) per unit force at sites, and lengths (s,). A length is zero
        without a reference site, else the position and rotation relative to it, weighted by the
        gear."""
        _, site, reference = (np.array(x) for x in zip(*self.transmissions.sites, strict=True))
        bodies, carriers = with_ground(at.motions), self.sites.carriers(at.tree)
        x = place(bodies, carriers, self.sites.position)
        R = jnp.sum(take(bodies.R, carriers)[..., None] * self.sites.rotation[:, None], axis=2)
        given = reference >= 0
        base = np.where(given, reference, site)
        turned = take(R, base)
        force = jnp.sum(turned * self.site_gear[:, None, :3], axis=2)
        torque = jnp.sum(turned * self.site_gear[:, None, 3:], axis=2)

        def columns(which):
            point = take(x, which)[:, None]
            S = at.motions.poses.S[None]
            linear = S[..., 3:] + cross(S[..., :3], point)
            work = jnp.sum(linear * force[:, None] + S[..., :3] * torque[:, None], axis=2)
            return work, at.tree.moves[carriers[which]] > 0

        work, moves = columns(site)
        back, held = columns(base)
        held = held & given[:, None]
        # exclude velocities that move both the site and its reference
        moment = work * (moves & ~held) - back * (held & ~moves)
        gap = jnp.sum(turned * (take(x, site) - take(x, base))[:, :, None], axis=1)
        relative = jnp.sum(turned[..., None] * take(R, site)[:, :, None, :], axis=1)
        spun = jnp.stack([rotations.logarithm(rotations.from_matrix(Q)) for Q in relative])
        length = jnp.sum(self.site_gear[:, :3] * gap + self.site_gear[:, 3:] * spun, axis=1)
        return moment, jnp.where(jnp.asarray(given), length, 0.0)

    def force(self, moments: Moments, u, activations) -> Float[Array, " n"]:
        """Force of each actuator [N, N m], before it is limited to `force_range`."""
        u = jnp.clip(u, self.input_range[:, 0], self.input_range[:, 1])
        drive = u
        if self.states:
            index = np.array(self.states)
            driven = np.isin(np.arange(self.n), index)
            drive = jnp.where(driven, self._sum(index, activations), u)
        L, V = moments.length, moments.rate
        affine = lambda c: c[:, 0] + c[:, 1] * L + c[:, 2] * V
        gain, bias = affine(self.gain), affine(self.bias)
        if self.active is not None:
            index = np.array(self.active_muscles)
            gain = gain + self._sum(index, self.active.gain(take(L, index), take(V, index)))
        if self.passive is not None:
            index = np.array(self.passive_muscles)
            bias = bias + self._sum(index, self.passive.passive(take(L, index)))
        return gain * drive + bias

    def onto(self, at: Instant, force, moments: Moments, n_tendons: int):
        """Convert actuator forces (n,) to joint forces (n_v,) and forces along the tendons
        (n_tendons,) or None."""
        links, joint, along = self.transmissions, jnp.zeros(at.tree.n_v, at.q.dtype), None
        if links.joints:
            index, _, v = (np.array(x) for x in zip(*links.joints, strict=True))
            joint = joint + spread(v, at.tree.n_v, self.joint_gear * take(force, index))
        if links.tendons:
            index, tendon = (np.array(x) for x in zip(*links.tendons, strict=True))
            along = spread(tendon, n_tendons, self.tendon_gear * take(force, index))
        if links.sites:
            index = np.array([x[0] for x in links.sites])
            joint = joint + gram(moments.site_moment, take(force, index)[:, None])[:, 0]
        return joint, along

    def rates(self, u, activations) -> Float[Array, " a"]:
        """Rates of the activations [1/s]."""
        index = np.array(self.states)
        u = jnp.clip(u, self.input_range[:, 0], self.input_range[:, 1])
        u = take(u, index)
        rising, falling, width = (self.time_constants[:, i] for i in range(3))
        kinds = np.array(self.dynamics)
        rate = u
        if "filter" in self.dynamics:
            rate = jnp.where(kinds == "filter", (u - activations) / rising, rate)
        if "muscle" in self.dynamics:
            muscle = activation_rate(u, activations, rising, falling, width)
            rate = jnp.where(kinds == "muscle", muscle, rate)
        low, high = self.activation_range[:, 0], self.activation_range[:, 1]
        stuck = ((activations >= high) & (rate > 0.0)) | ((activations <= low) & (rate < 0.0))
        return jnp.where(stuck, 0.0, rate)
