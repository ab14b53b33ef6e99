"""Unit quaternions `(w, x, y, z)`, body to world."""

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
    half_square = 0.25 * jnp.sum(phi * phi)
    small = half_square < 1e-8
    half = jnp.sqrt(jnp.where(small, 1.0, half_square))
    # series of sin(a)/a and cos(a) in a^2, exact to round-off where they are used
    sinc = jnp.where(small, 1.0 - half_square / 6.0, jnp.sin(half) / half)
    cosine = jnp.where(small, 1.0 - 0.5 * half_square, jnp.cos(half))
    return jnp.concatenate([cosine[None], 0.5 * sinc * phi])


def rate(q, omega):
    """dq/dt of a unit quaternion with body-fixed angular velocity `omega` [rad/s], shape (3,)."""
    return 0.5 * multiply(q, jnp.concatenate([jnp.zeros(1, q.dtype), omega]))


def retract(q, phi):
    """Turn `q` by the body-fixed rotation vector `phi` [rad] and normalise."""
    turned = multiply(q, exponential(phi))
    return turned / safe_norm(turned)


def logarithm(q):
    """The rotation vector [rad], shape (3,), of a unit quaternion, at most pi long; smooth at
    zero."""
    q = jnp.where(q[0] < 0, -q, q)  # q and -q are one rotation
    square = jnp.sum(q[1:] * q[1:])
    small = square < 1e-8
    sine = jnp.sqrt(jnp.where(small, 1.0, square))
    # series of asin(s)/s in s^2, exact to round-off where it is used
    factor = jnp.where(small, 1.0 + square / 6.0, jnp.arctan2(sine, q[0]) / sine)
    return 2.0 * factor * q[1:]


def difference(p, q):
    """The body-fixed rotation vector [rad] that turns `p` into `q`: the inverse of `retract`."""
    return logarithm(multiply(p * jnp.array([1.0, -1.0, -1.0, -1.0]), q))


def rotate(q, x):
    """The body vector `x`, shape (3,), in world axes."""
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
    """Angles [rad] of `R = R_z(yaw) R_y(pitch) R_x(roll)`, as (roll, pitch, yaw), for output: they
    jump where the pitch passes 90 degrees."""
    pitch = jnp.arctan2(-R[2, 0], safe_norm(jnp.stack([R[0, 0], R[1, 0]])))
    return jnp.stack([jnp.arctan2(R[2, 1], R[2, 2]), pitch, jnp.arctan2(R[1, 0], R[0, 0])])
