"""Drawing of the neck."""

from typing import TYPE_CHECKING

import jax.numpy as jnp

from ...mechanics import Scene
from ...mechanics.parts.pulley_drawing import wheels

if TYPE_CHECKING:
    from .neck import Neck


def geometry(neck: "Neck", q) -> Scene:
    """Scene of one configuration: bars, springs, tendons and drums, in the plane [m]."""
    alpha = neck.split(q)[0]
    n, width = neck.n_joints, neck.bars.width
    top, _, _ = neck.centres(alpha)
    centre = jnp.concatenate([jnp.zeros((2, 1)), top], axis=1).T
    angle = jnp.concatenate([jnp.zeros(1), jnp.cumsum(alpha)])
    half = 0.5 * width * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    left, right = centre - half, centre + half
    pair = lambda a, b: jnp.stack([a, b], axis=1)
    bars = jnp.concatenate(
        [pair(left, right), pair(left[:-1], right[1:]), pair(right[:-1], left[1:])]
    )
    springs = jnp.concatenate([pair(left[:-1], left[1:]), pair(right[:-1], right[1:])])
    # A tendon stays on its side of a joint. Where it runs along neither side, it follows a diagonal
    # bar from the opposite side to the side on which it enters the next joint.
    enter = jnp.zeros((neck.n_tendons, n)) + neck.routing.right - neck.routing.left
    leave = enter
    for j in reversed(range(n - 1)):
        leave = leave.at[:, j].set(jnp.where(enter[:, j] == 0, enter[:, j + 1], leave[:, j]))
        enter = enter.at[:, j].set(jnp.where(enter[:, j] == 0, -leave[:, j], enter[:, j]))
    used = neck.routing.left + neck.routing.right > 0
    last = n - 1 - jnp.argmax(used[:, ::-1], axis=1)
    # tendons are drawn slightly beside springs and bars, each at a different distance
    side = jnp.sign(jnp.take_along_axis(enter, last[:, None], axis=1))
    beside = side * (0.28 + 0.14 * jnp.arange(neck.n_tendons)[:, None] / neck.n_tendons)
    place = lambda at, x: centre[at] + (x + beside)[:, :, None] * half[at]
    base = jnp.arange(n)
    tendons = jnp.stack([place(base, enter), place(base + 1, leave)], axis=2)
    # a tendon ends at the last joint along whose side it runs
    index = jnp.minimum(jnp.arange(2 * n)[None], 2 * last[:, None] + 1)
    tendons = jnp.take_along_axis(
        tendons.reshape(neck.n_tendons, 2 * n, 2), index[:, :, None], axis=1
    )
    # drums below the base, one below the other on each side, turned by the tendon paid out
    radius = jnp.broadcast_to(neck.motors.drum_radius, (neck.n_tendons,))
    paid_out = neck.motor_angle(q) * neck.motors.travel
    side = jnp.sign(tendons[:, 0, :1])
    before = jnp.sum(jnp.tril(side == side.T, -1), axis=1)
    depth = (1.6 + 2.3 * before) * jnp.max(radius)
    drums = tendons[:, 0] - jnp.stack([jnp.zeros_like(depth), depth], axis=1)
    outwards = side * jnp.array([1.0, 0.0])
    down = jnp.broadcast_to(jnp.array([0.0, -1.0]), outwards.shape)
    drawn = wheels(drums + radius[:, None] * outwards, outwards, down, paid_out / radius, radius)
    tendons = jnp.concatenate([drums[:, None], tendons], axis=1)
    ground = jnp.array([[[-1.0, 0.0], [1.0, 0.0]]]) * width
    return Scene(
        {"ground": ground, "spring": springs, "tendon": tendons, "bar": bars},
        {"pivot": jnp.concatenate([left, right]), "end": centre[-1:]},
        {"drum": drawn},
    )
