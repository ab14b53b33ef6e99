"""Rigid bodies in natural coordinates: two points and two vectors, and a constant mass matrix.

Notation of Piva, Richiedei and Trevisani, "Using differential-algebraic equations and natural
coordinates for modelling and simulating cable-driven parallel robots" (2024), after García de Jalón
and Bayo: `q = (r_i, r_j, v_i, v_j)`, `X = [r_j - r_i, v_i, v_j]` with columns fixed in the body.
Any point of the body is linear in q."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import (
    known_values,
    require_finite,
    require_positive,
    require_shape,
    require_symmetric,
    require_values,
)
from ..._base.precision import as_float_array, float_field
from ...math.linalg import gram, inverse3, matmul


class NaturalBody(eqx.Module):
    """Rigid body described in body axes: `mass` [kg], `inertia` about the centre of mass (3, 3) [kg
    m^2], `centre` of mass (3,) [m], and the points `r_i`, `r_j` [m] and vectors `v_i`, `v_j`, (3,)
    each, that define its natural coordinates. The vectors need not be orthogonal, nor of unit
    length, nor right-handed."""

    mass: Float[Array, ""] = float_field(unit="kg")
    inertia: Float[Array, "3 3"] = float_field(unit="kg m^2")
    centre: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    r_i: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    r_j: Float[Array, " 3"] = float_field(unit="m", default=(1.0, 0.0, 0.0))
    v_i: Float[Array, " 3"] = float_field(default=(0.0, 1.0, 0.0))
    v_j: Float[Array, " 3"] = float_field(default=(0.0, 0.0, 1.0))

    def __check_init__(self):
        require_positive("mass", self.mass)
        for name in ("centre", "r_i", "r_j", "v_i", "v_j"):
            require_shape(name, getattr(self, name), (3,))
            require_finite(name, getattr(self, name))
        require_symmetric("inertia", self.inertia)
        _check_extent(self.inertia)
        vectors = self.r_j, self.r_i, self.v_i, self.v_j
        expected = "r_j - r_i, v_i and v_j other than zero that do not lie in one plane"
        require_values("r_j", _is_basis, *vectors, expected=expected)

    # --- geometry
    @property
    def local_axes(self) -> Float[Array, "3 3"]:
        """X in the axes of the body, shape (3, 3)."""
        return jnp.stack([self.r_j - self.r_i, self.v_i, self.v_j], axis=1)

    def weights(self, point) -> Float[Array, "... 4"]:
        """Weights (..., 4) of `r_i, r_j, v_i, v_j` in the position of a body point, which is given
        in body axes, shape (..., 3)."""
        arm = jnp.asarray(point) - self.r_i
        c = jnp.sum(arm[..., None, :] * inverse3(self.local_axes), axis=-1)
        return jnp.concatenate([1.0 - c[..., :1], c], axis=-1)

    def rotation(self, q) -> Float[Array, "3 3"]:
        """Body axes in world axes, `R = X Xb^-1`."""
        return matmul(axes(q), inverse3(self.local_axes))

    def angular_velocity(self, q, v) -> Float[Array, " 3"]:
        """Angular velocity in world axes [rad/s]: half the sum of `y_k x dx_k/dt`, with y_k the
        rows of X^-1."""
        y, dx = inverse3(axes(q)), axes(v).T
        return 0.5 * jnp.sum(jnp.cross(y, dx), axis=0)

    def coordinates(self, position, rotation, velocity=None, angular_velocity=None):
        """Vectors `q` and `v`, shape (12,) each, from the position of the body's origin
        [m], its axes (3, 3), the velocity of the origin [m/s] and the angular velocity [rad/s],
        both in world axes."""
        R, p = jnp.asarray(rotation), jnp.asarray(position)
        arms = matmul(jnp.stack([self.r_i, self.r_j, self.v_i, self.v_j]), R.T)
        point = jnp.array([1.0, 1.0, 0.0, 0.0])[:, None]
        velocity = jnp.zeros(3) if velocity is None else jnp.asarray(velocity)
        spin = jnp.zeros(3) if angular_velocity is None else jnp.asarray(angular_velocity)
        q = arms + point * p
        v = jnp.cross(spin, arms) + point * velocity
        return q.reshape(12), v.reshape(12)

    # --- mechanics
    @property
    def mass_weights(self) -> Float[Array, "4 4"]:
        """Matrix K (4, 4) of the constant mass matrix `kron(K, 1)`: eqs. (9)-(13)."""
        m, a, Z = self.mass, self.weights(self.centre)[1:], self.second_moment
        Z = Z + m * jnp.outer(a, a)
        corner = m - 2.0 * m * a[0] + Z[0, 0]
        edge = m * a - Z[0]
        # the coordinates are (r_i, r_j, ...) while x_1 = r_j - r_i
        return jnp.concatenate(
            [
                jnp.concatenate([corner[None], edge])[None],
                jnp.concatenate([edge[:, None], Z], axis=1),
            ]
        )

    @property
    def second_moment(self) -> Float[Array, "3 3"]:
        """Second moment of the mass about its centre, in the natural basis of the body:
        `Xb^-1 (tr(J)/2 - J) Xb^-T`."""
        inverse = inverse3(self.local_axes)
        E = 0.5 * jnp.trace(self.inertia) * jnp.eye(3) - self.inertia
        return matmul(matmul(inverse, E), inverse.T)

    @property
    def gram(self) -> Float[Array, "3 3"]:
        """Gram matrix of the columns of X, which is constant."""
        return gram(self.local_axes, self.local_axes)

    def constraint(self, q) -> Float[Array, " 6"]:
        """Rigidity constraints, eq. (14): the columns of X keep their lengths and angles."""
        return rigidity(q, self.gram)


def axes(q) -> Float[Array, "3 3"]:
    """Matrix X of natural coordinates, or its rate for velocities; its columns are fixed in the
    body."""
    r_i, r_j, v_i, v_j = q.reshape(4, 3)
    return jnp.stack([r_j - r_i, v_i, v_j], axis=1)


def place(weights, q) -> Float[Array, "... 3"]:
    """Body points [m] with given weights (..., 4), or their velocities, in world axes. This is a
    sum because a matrix product would keep XLA from compiling a time loop into one function."""
    return jnp.sum(weights[..., None] * q.reshape(4, 3), axis=-2)


#: order of the rigidity constraints as pairs of columns of X = [l, v_i, v_j]: |l|^2, |v_j|^2,
#: |v_i|^2, l.v_j, l.v_i, v_i.v_j
PAIRS = ((0, 0), (2, 2), (1, 1), (0, 2), (0, 1), (1, 2))
_ROWS, _COLUMNS = (np.array(side) for side in zip(*PAIRS, strict=True))


def rigidity(q, gram) -> Float[Array, " 6"]:
    """Products of the columns of X minus their reference values, in the order of `PAIRS`."""
    X = axes(q)
    return jnp.sum(X[:, _ROWS] * X[:, _COLUMNS], axis=0) - gram[_ROWS, _COLUMNS]


def point_force(weights, force) -> Float[Array, " 12"]:
    """Generalised force of a force (3,) [N], in world axes, at a body point with weights (4,)."""
    return (weights[:, None] * force).reshape(12)


def torque_force(q, torque) -> Float[Array, " 12"]:
    """Generalised force of a torque (3,) [N m] in world axes: `T x y_k / 2` on column k of X."""
    y = inverse3(axes(q))
    on_axes = 0.5 * jnp.cross(torque, y)
    return jnp.concatenate([-on_axes[:1], on_axes]).reshape(12)


def box_inertia(mass, size) -> Float[Array | np.ndarray, "3 3"]:
    """Inertia (3, 3) [kg m^2] of a uniform box about its centre, with edges `size` (3,) [m]."""
    with jax.ensure_compile_time_eval():  # concrete values stay concrete within jit
        mass, size = as_float_array(mass, "mass"), as_float_array(size, "size")
    require_shape("mass", mass, ())
    require_shape("size", size, (3,))
    require_positive("mass", mass)
    require_positive("size", size, zero_allowed=True)
    m, edges = known_values(mass), known_values(size)
    if m is None or edges is None:
        squares = size**2
        return mass / 12.0 * jnp.diag(jnp.sum(squares) - squares)
    return m / 12.0 * np.diag(np.sum(edges**2) - edges**2)


def _check_extent(inertia) -> None:
    require_values(
        "inertia",
        _has_extent,
        inertia,
        expected="that of a body with extent in all three directions (principal moments > 0, each "
        "less than the sum of the others): the mass matrix of a body without thickness is singular",
    )


_AFTER, _BEFORE = np.array([1, 2, 0]), np.array([2, 0, 1])


def _cross(a, b):
    return a[_AFTER] * b[_BEFORE] - a[_BEFORE] * b[_AFTER]


def _is_basis(r_j, r_i, v_i, v_j):
    a = r_j - r_i
    volume = (a * _cross(v_i, v_j)).sum()
    return volume**2 > 1e-12 * (a * a).sum() * (v_i * v_i).sum() * (v_j * v_j).sum()


def _has_extent(J):
    # all eigenvalues of the second-moment matrix are positive if and only if the coefficients of
    # its characteristic polynomial are (trace, sum of principal minors, determinant)
    E = 0.5 * (J[0, 0] + J[1, 1] + J[2, 2]) * np.eye(3) - J
    a, b, c = E
    trace = a[0] + b[1] + c[2]
    minors = (E[_AFTER, _AFTER] * E[_BEFORE, _BEFORE] - E[_AFTER, _BEFORE] ** 2).sum()
    return (trace > 0) & (minors > 0) & ((a * _cross(b, c)).sum() > 1e-9 * trace * minors)
