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


def retract(q, phi):
    """Turn `q` by the body-fixed rotation vector `phi` [rad] and normalise."""
    turned = multiply(q, exponential(phi))
    return turned / safe_norm(turned)


def rotate(q, x):
    """The body vector `x`, shape (3,), in world axes."""
    w, u = q[0], q[1:]
    return x + 2.0 * (w * jnp.cross(u, x) + jnp.cross(u, jnp.cross(u, x)))
