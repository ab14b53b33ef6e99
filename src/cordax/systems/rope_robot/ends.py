"""Supports at the ends of ropes: their constraints and the resulting accelerations."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.linalg import solve
from ...mechanics.constraints import ConstraintTerms, Stabilisation
from .forward import AtEnd, Condensed, sym
from .platform import Platform
from .segments import Motion

Ends = Float[Array, "2 m"]


class Held(NamedTuple):
    """Prescribed motion of the rope ends: `place`, `rate` and `acceleration` for a platform that
    does not accelerate, (2, m) each; `arm` (2, m): its lever arms, or None."""

    place: Ends
    rate: Ends
    acceleration: Ends
    arm: Ends | None


def held_by_platform(platform: Platform, pose, rate) -> Held:
    """Motion of ends that a platform holds. `pose` x, z [m] and angle [rad]; `rate` their
    derivatives, (3,) each."""
    arm, turned = platform.arms(pose[2])
    place = pose[:2, None] + arm
    return Held(place, rate[:2, None] + rate[2] * turned, -(rate[2] ** 2) * arm, turned)


def held_by_motion(end_point, t) -> Held:
    """Motion of ends that follow `end_point`, a `Reference` of (m, 2) [m]."""
    position = lambda t: end_point.position(t).T
    one = jnp.ones_like(t)
    moving = lambda t: jax.jvp(position, (t,), (one,))
    (place, rate), (_, acceleration) = jax.jvp(moving, (t,), (one,))
    return Held(place, rate, acceleration, None)


def place_of_ends(roots, x: Motion) -> tuple[Ends, Ends, Ends]:
    """Positions and velocities of the rope ends, and their accelerations at zero second
    derivatives."""
    step = x.length * x.along
    rate = x.stretch_rate * x.along + (x.length * x.angle_rate) * x.across
    bias = (2.0 * x.stretch_rate * x.angle_rate) * x.across - (x.length * x.angle_rate**2) * x.along
    place = roots.T + jnp.sum(step, axis=1)
    return place, jnp.sum(rate, axis=1), jnp.sum(bias, axis=1)


def terms(roots, x: Motion, held: Held) -> ConstraintTerms:
    """Constraint terms of `Phi = end - place`, with rows x, z of one rope after the other."""
    place, rate, bias = place_of_ends(roots, x)
    s, m = x.length.shape
    rows = lambda y: y.T.reshape(2 * m)
    by_segment = jnp.stack([x.along, x.length * x.across], axis=-1)  # (2, s, m, 2)
    eye = jnp.eye(m, dtype=x.length.dtype)
    ropes = eye[:, None, :, None, None] * by_segment.transpose(2, 0, 1, 3)[:, :, None]
    J = ropes.reshape(2 * m, 2 * s * m)
    if held.arm is not None:
        fixed = jnp.broadcast_to(jnp.eye(2, dtype=J.dtype), (m, 2, 2))
        J = jnp.concatenate(
            [J, -jnp.concatenate([fixed, held.arm.T[:, :, None]], axis=2).reshape(2 * m, 3)], axis=1
        )
    parts = (place - held.place, rate - held.rate, bias - held.acceleration)
    phi, rate, bias = (rows(y) for y in parts)
    return ConstraintTerms(phi, J, rate, bias)


def close(
    roots, x: Motion, c: Condensed | AtEnd, held: Held, stabilisation: Stabilisation, push=None
):
    """Accelerations of the ends (2, m), of the platform (3,) or None, and the forces (2, m) with
    which ropes pull at their supports. `push`: inertias and forces of the platform, (3,) each."""
    place, rate, _ = place_of_ends(roots, x)
    alpha, beta, _ = stabilisation
    wanted = held.acceleration - 2.0 * alpha * (rate - held.rate) - beta**2 * (place - held.place)
    if held.arm is None:
        return wanted, None, c.push - sym(c.stiff, wanted)
    assert push is not None
    inertias, force = push
    # each rope: S (wanted + G a) = g - pull, with G = [1, arm]
    S, g = c.stiff, c.push - sym(c.stiff, wanted)
    Sr = sym(S, held.arm)
    total = jnp.sum(S, axis=1)
    turning = jnp.sum(Sr, axis=1)
    last = jnp.sum(held.arm[0] * Sr[0] + held.arm[1] * Sr[1])
    A = jnp.stack(
        [
            jnp.stack([total[0], total[1], turning[0]]),
            jnp.stack([total[1], total[2], turning[1]]),
            jnp.stack([turning[0], turning[1], last]),
        ]
    ) + jnp.diag(inertias)
    moment = jnp.sum(held.arm[0] * g[0] + held.arm[1] * g[1])
    b = force + jnp.concatenate([jnp.sum(g, axis=1), moment[None]])
    a = solve(*materialise((A, b)), spd=True)
    moved = a[:2, None] + a[2] * held.arm
    return wanted + moved, a, g - sym(S, moved)
