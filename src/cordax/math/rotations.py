"""Rotations from body to world axes as unit quaternions `(w, x, y, z)`."""

import jax.numpy as jnp

from .safe import safe_norm


def multiply(p, q):
    """Quaternion product p q, shape (4,) each."""
    pw, px, py, pz = p
    qw, qx, qy, qz = q
    return jnp.stack(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ]
    )


def exponential(phi):
    """Quaternion of the rotation vector `phi` [rad], shape (3,); smooth at zero."""
    *_, sinc, cosine = _half_angle(phi)
    return jnp.concatenate([cosine[None], 0.5 * sinc * phi])


def rate(q, omega):
    """Time derivative dq/dt of a unit quaternion with body-fixed angular velocity `omega` [rad/s],
    shape (3,)."""
    return 0.5 * multiply(q, jnp.concatenate([jnp.zeros(1, q.dtype), omega]))


def displacement(phi, x):
    """Translation of the exponential map of SE(3), shape (3,): the displacement, in the body axes
    at the start, of a body whose angular velocity and velocity are constant in body axes and
    integrate to `phi` [rad] and `x`, shape (3,) each. Smooth at zero."""
    square, small, safe, sinc, cosine = _half_angle(phi)
    series = 1.0 / 6.0 - square * (1.0 / 120.0 - square * (1.0 / 5040.0 - square / 362880.0))
    second = jnp.where(small, series, (1.0 - sinc * cosine) / safe)
    return _turned(phi, x, 0.5 * sinc * sinc, second)


def inverse_displacement(phi, x):
    """Inverse of `displacement`: the vector (3,) that it maps to `x`, for |phi| < 2 pi."""
    square, small, safe, sinc, cosine = _half_angle(phi)
    series = 1.0 / 12.0 + square * (1.0 / 720.0 + square * (1.0 / 30240.0 + square / 1209600.0))
    second = jnp.where(small, series, (1.0 - cosine / jnp.where(small, 1.0, sinc)) / safe)
    return _turned(phi, x, -0.5, second)


def _turned(phi, x, first, second):
    """Compute `x + first phi x x + second phi x (phi x x)` (cross products)."""
    once = jnp.cross(phi, x)
    return x + first * once + second * jnp.cross(phi, once)


def _half_angle(phi):
    """For a rotation vector of angle a: a^2; whether it is small; a^2, or 1 where it is small;
    sin(a/2)/(a/2); and cos(a/2)."""
    square = jnp.sum(phi * phi)
    small = square < 1e-2  # where series to a^6 are exact to round-off
    safe = jnp.where(small, 1.0, square)
    half, x = 0.5 * jnp.sqrt(safe), 0.25 * square
    sinc_series = 1.0 - x / 6.0 * (1.0 - x / 20.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0)))
    cosine_series = 1.0 - x / 2.0 * (1.0 - x / 12.0 * (1.0 - x / 30.0 * (1.0 - x / 56.0)))
    sinc = jnp.where(small, sinc_series, jnp.sin(half) / half)
    return square, small, safe, sinc, jnp.where(small, cosine_series, jnp.cos(half))


def retract(q, phi):
    """Rotate `q` by the body-fixed rotation vector `phi` [rad] and normalise."""
    turned = multiply(q, exponential(phi))
    return turned / safe_norm(turned)


def logarithm(q):
    """Rotation vector [rad], shape (3,), of a unit quaternion. Its length is at most pi; smooth at
    zero."""
    q = jnp.where(q[0] < 0, -q, q)  # q and -q are the same rotation
    square = jnp.sum(q[1:] * q[1:])
    small = square < 1e-8
    sine = jnp.sqrt(jnp.where(small, 1.0, square))
    # series of asin(s)/s in s^2, exact to round-off where it is used
    factor = jnp.where(small, 1.0 + square / 6.0, jnp.arctan2(sine, q[0]) / sine)
    return 2.0 * factor * q[1:]


def difference(p, q):
    """Body-fixed rotation vector [rad] that rotates `p` into `q`: the inverse of `retract`."""
    return logarithm(multiply(p * jnp.array([1.0, -1.0, -1.0, -1.0]), q))


def rotate(q, x):
    """Rotate the body vector `x`, shape (3,), to world axes."""
    w, u = q[0], q[1:]
    return x + 2.0 * (w * jnp.cross(u, x) + jnp.cross(u, jnp.cross(u, x)))


def matrix(q):
    """The rotation matrix (3, 3) of a unit quaternion; columns are the body axes in world axes."""
    return jnp.stack([rotate(q, e) for e in jnp.eye(3, dtype=q.dtype)], axis=1)


def from_matrix(R):
    """The unit quaternion of a rotation matrix (3, 3), with w >= 0.

    The four squares 4 w^2, 4 x^2, ... add up to 4, so one of them is at least 1; the row built from
    the largest is well conditioned, and the others carry no derivative."""
    (a, b, c), (d, e, f), (g, h, i) = R
    rows = jnp.stack(
        [
            jnp.stack([1 + a + e + i, h - f, c - g, d - b]),
            jnp.stack([h - f, 1 + a - e - i, b + d, c + g]),
            jnp.stack([c - g, b + d, 1 - a + e - i, f + h]),
            jnp.stack([d - b, c + g, f + h, 1 - a - e + i]),
        ]
    )
    row = rows[jnp.argmax(jnp.diagonal(rows))]
    quaternion = row / safe_norm(row)
    return jnp.where(quaternion[0] < 0, -quaternion, quaternion)


def exponential_matrix(phi):
    """The rotation matrix (3, 3) of the rotation vector `phi` [rad], shape (3,)."""
    return matrix(exponential(phi))


def euler_zyx(R):
    """Angles [rad] of `R = R_z(yaw) R_y(pitch) R_x(roll)`, as (roll, pitch, yaw). For output
    only: they jump where the pitch passes 90 degrees."""
    pitch = jnp.arctan2(-R[2, 0], safe_norm(jnp.stack([R[0, 0], R[1, 0]])))
    return jnp.stack([jnp.arctan2(R[2, 1], R[2, 2]), pitch, jnp.arctan2(R[1, 0], R[0, 0])])
