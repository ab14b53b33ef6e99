"""Closed-form equations of motion of the neck, with the derivatives for implicit time steps.

They equal the equations that differentiation of the energies in `neck` gives (tested to round-off)
and need a fraction of the operations: a step of the elastic three-joint neck takes microseconds
with derived equations and less than one microsecond in closed form (`benchmarks/neck.py`).

With link vectors e_i = h_i n(mid_i), P_j = e_1 + ... + e_j, and the two diagonals of a joint placed
symmetrically about its mid-link point, the kinetic energy of the structure is

    T = 1/2 sum_ik C_ik edot_i . edot_k + 1/2 sum_j (A_j alphadot_j^2 + B_j middot_j^2 + I_t
    Thetadot_j^2)

with a constant matrix C of masses and functions A(alpha), B(alpha) of each single joint. The digits
in `h1`, `h2`, `h3` count derivatives with respect to alpha. `E` is de/dalpha. `materialise` marks
values that are used many times."""

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..._jax.materialise import materialise
from ...math.linalg import gram, matmul, matvec, solve, vecmat
from ...math.trigonometry import sincos
from ...mechanics.linearisation import DenseLinearisation, Linearisation
from .tendon_linearisation import TendonLinearisation

if TYPE_CHECKING:
    from .neck import Neck


@cache
def MID(n: int) -> np.ndarray:
    """d(mid)/d(alpha), shape (n, n): mid_j = alpha_1 + ... + alpha_{j-1} + alpha_j/2."""
    return np.tril(np.ones((n, n)), -1) + 0.5 * np.eye(n)


class _Joints(NamedTuple):
    """Shape functions of every joint at alpha and sine and cosine of mid, shape (n,) each."""

    sin_mid: Array
    cos_mid: Array
    h: Array
    h1: Array
    h2: Array
    h3: Array
    s: Array
    s1: Array
    ratio: Array  # s/h
    ratio1: Array
    ratio2: Array
    sin: Array
    cos: Array

    @property
    def s2(self):
        return -0.25 * self.s

    @property
    def s3(self):
        return -0.25 * self.s1


def _joints(neck: "Neck", alpha) -> _Joints:
    n = neck.n_joints
    sine, cosine = materialise(sincos(jnp.concatenate([0.5 * alpha, matvec(MID(n), alpha)])))
    b, half_sin, half_cos = neck.bars.width, sine[:n], cosine[:n]
    sin, cos = 2.0 * half_sin * half_cos, half_cos * half_cos - half_sin * half_sin
    q = 0.25 * b * b
    h = jnp.sqrt(neck.bars.diagonal**2 - b * b * half_cos * half_cos)
    inverse = 1.0 / h
    h1 = q * sin * inverse
    h2 = (q * cos - h1 * h1) * inverse
    h3 = -(q * sin + 3.0 * h1 * h2) * inverse
    s, s1 = b * half_sin, 0.5 * b * half_cos
    ratio = s * inverse
    ratio1 = (s1 - ratio * h1) * inverse
    ratio2 = (-0.25 * s - 2.0 * ratio1 * h1 - ratio * h2) * inverse
    return materialise(
        _Joints(sine[n:], cosine[n:], h, h1, h2, h3, s, s1, ratio, ratio1, ratio2, sin, cos)
    )


def _link_masses(neck: "Neck"):
    """Mass matrix C of the links, shape (n, n) [kg], mass carried by each link (n,) [kg] and rotary
    inertia of the top bars (n, n) [kg m^2]."""
    n = neck.n_joints
    lower = np.tril(np.ones((n, n)))
    twice = lower + np.tril(np.ones((n, n)), -1)
    m_t, m_d = (
        jnp.broadcast_to(neck.bars.top_mass, (n,)),
        jnp.broadcast_to(neck.bars.diagonal_mass, (n,)),
    )
    C = gram(lower, m_t[:, None] * lower) + 0.5 * gram(twice, m_d[:, None] * twice)
    carried = vecmat(m_t, lower) + vecmat(m_d, twice)
    tops = gram(lower, (m_t * neck.bars.width**2 / 12.0)[:, None] * lower)
    return C, carried, tops


def _diagonal_inertia(neck: "Neck"):
    return neck.bars.diagonal_mass * neck.bars.diagonal**2 / 12.0


def _world(j: _Joints, along_n, along_t):
    """World components of vectors that are given per link along n(mid) and t(mid), as arrays of
    shape (n,) or (n, k)."""
    sine, cosine = (x if along_n.ndim == 1 else x[:, None] for x in (j.sin_mid, j.cos_mid))
    return -sine * along_n + cosine * along_t, cosine * along_n + sine * along_t


def _link_jacobian(j: _Joints):
    """E = de/dalpha in world components, x and y, shape (n, n) each."""
    n = j.h.shape[0]
    return _world(j, np.eye(n) * j.h1[:, None], -MID(n) * j.h[:, None])


def _structure_mass(neck: "Neck", j: _Joints, C, tops, Ex, Ey, CEx, CEy):
    n = neck.n_joints
    m_d, inertia = neck.bars.diagonal_mass, _diagonal_inertia(neck)
    A = 0.5 * (m_d * j.s1 * j.s1 + inertia * j.ratio * j.ratio)
    B = 0.5 * m_d * j.s * j.s + 2.0 * inertia
    U = MID(n)
    return gram(CEx, Ex) + gram(CEy, Ey) + gram(U, B[:, None] * U) + np.eye(n) * A + tops


class _Loads(NamedTuple):
    """Forces on the structure and intermediate values for their derivatives, shape (n,) each."""

    mid_rate: Array
    e_n: Array  # velocity-product acceleration of link vectors, along n and t
    e_t: Array
    F_n: Array  # force each link must transmit, along n and t
    F_t: Array
    B1: Array
    f: Array  # -c_s - g - pivot friction


def _loads(neck: "Neck", j: _Joints, rate, link_acceleration=None) -> _Loads:
    """Inverse dynamics of the structure: generalised force (n,) for joint rates and, optionally,
    the link accelerations (x, y) that result from joint accelerations."""
    n = neck.n_joints
    C, carried, _ = _link_masses(neck)
    m_d, inertia = neck.bars.diagonal_mass, _diagonal_inertia(neck)
    U = MID(n)
    mu = matvec(U, rate)
    e_n, e_t = j.h2 * rate * rate - j.h * mu * mu, -2.0 * j.h1 * rate * mu
    x, y = _world(j, e_n, e_t)
    if link_acceleration is not None:
        x, y = x + link_acceleration[0], y + link_acceleration[1]
    x, y = materialise((x, y))
    Fx, Fy = matvec(C, x), matvec(C, y) + neck.gravity * carried
    F_t, F_n = j.cos_mid * Fx + j.sin_mid * Fy, -j.sin_mid * Fx + j.cos_mid * Fy
    A1 = m_d * j.s1 * j.s2 + inertia * j.ratio * j.ratio1
    B1 = m_d * j.s * j.s1
    mu, F_t, F_n = materialise((mu, F_t, F_n))
    inertial = (
        j.h1 * F_n - vecmat(j.h * F_t - B1 * rate * mu, U) + 0.5 * (A1 * rate * rate - B1 * mu * mu)
    )
    k, rest = neck.springs.stiffness, neck.springs.rest_length
    spring = k * neck.bars.width**2 * j.sin * (1.0 - 0.5 * rest / j.h)
    friction = neck.pivot_friction * (1.0 + j.ratio * j.ratio) * rate
    return _Loads(mu, e_n, e_t, F_n, F_t, B1, -inertial - spring - friction)


class _Tendons(NamedTuple):
    J: Array  # dl/dalpha, shape (n_tendons, n)
    H: Array  # d^2 l/dalpha^2


def _tendons(neck: "Neck", j: _Joints) -> _Tendons:
    left, right = neck.routing.left, neck.routing.right
    return materialise(
        _Tendons(
            left * (j.h1 - j.s1) + right * (j.h1 + j.s1),
            left * (j.h2 - j.s2) + right * (j.h2 + j.s2),
        )
    )


def _tendon_length(neck: "Neck", j: _Joints):
    h0 = jnp.sqrt(neck.bars.diagonal**2 - neck.bars.width**2)
    return matvec(neck.routing.left, j.h - j.s - h0) + matvec(neck.routing.right, j.h + j.s - h0)


def _tension(neck: "Neck", j: _Joints, tendons: _Tendons, rate, theta, theta_rate):
    B = neck.motors.travel
    stretch = _tendon_length(neck, j) - B * theta
    stretching = matvec(tendons.J, rate) - B * theta_rate
    return neck.tendon.stiffness * stretch + neck.tendon.damping * stretching  # pyright: ignore


# --- functions called by `Neck`
def tension(neck: "Neck", q, v):
    """Tensions of elastic tendons [N]. They use the same terms as an implicit step from this state,
    so that the compiler computes these terms once."""
    (alpha, theta), (rate, theta_rate) = neck.split(q), neck.split(v)
    j = _joints(neck, alpha)
    return _tension(neck, j, _tendons(neck, j), rate, theta, theta_rate)


def length_derivatives(neck: "Neck", alpha):
    return _tendons(neck, _joints(neck, alpha))


def joint_torque(neck: "Neck", alpha, rate, acceleration):
    n = neck.n_joints
    j = _joints(neck, alpha)
    Ex, Ey = _link_jacobian(j)
    loads = _loads(neck, j, rate, (matvec(Ex, acceleration), matvec(Ey, acceleration)))
    # local inertia of the diagonals and of the top bars
    m_d, inertia = neck.bars.diagonal_mass, _diagonal_inertia(neck)
    A = 0.5 * (m_d * j.s1 * j.s1 + inertia * j.ratio * j.ratio)
    B = 0.5 * m_d * j.s * j.s + 2.0 * inertia
    U = MID(n)
    local = A * acceleration + vecmat(B * matvec(U, acceleration), U)
    return -loads.f + local + matvec(_link_masses(neck)[2], acceleration)


def _structure_mass_matrix(neck: "Neck", j: _Joints):
    C, _, tops = _link_masses(neck)
    Ex, Ey = materialise(_link_jacobian(j))
    return _structure_mass(neck, j, C, tops, Ex, Ey, *materialise((matmul(C, Ex), matmul(C, Ey))))


def mass_matrix(neck: "Neck", q):
    alpha, _ = neck.split(q)
    j = _joints(neck, alpha)
    M = _structure_mass_matrix(neck, j)
    rotor = jnp.broadcast_to(neck.motors.inertia, (neck.n_tendons,))
    if not neck.elastic:
        J = _tendons(neck, j).J / _per_tendon(neck.motors.travel)
        return M + gram(J, rotor[:, None] * J)
    n, k = neck.n_joints, neck.n_tendons
    return jnp.block([[M, jnp.zeros((n, k))], [jnp.zeros((k, n)), jnp.diag(rotor)]])


def force(neck: "Neck", q, v, u):
    (alpha, theta), (rate, theta_rate) = neck.split(q), neck.split(v)
    j = _joints(neck, alpha)
    tendons = _tendons(neck, j)
    f = _loads(neck, j, rate).f
    if not neck.elastic:
        return f + vecmat(
            _rigid_motor_torque(neck, tendons, rate, u) / neck.motors.travel, tendons.J
        )
    T = _tension(neck, j, tendons, rate, theta, theta_rate)
    return jnp.concatenate([f - vecmat(T, tendons.J), u + neck.motors.travel * T])


def motor_force(neck: "Neck", q, torque):
    alpha, _ = neck.split(q)
    if neck.elastic:
        return jnp.concatenate([jnp.zeros_like(alpha), torque])
    return vecmat(torque / neck.motors.travel, length_derivatives(neck, alpha).J)


def rigid_motor_rate(neck: "Neck", q, v):
    return matvec(length_derivatives(neck, q).J, v) / neck.motors.travel


def acceleration(neck: "Neck", q, v, u, held):
    """Acceleration of joints and motors. Elastic motors are decoupled, so that only the joints
    need a linear solve."""
    if not neck.elastic:
        return solve(mass_matrix(neck, q), force(neck, q, v, u + held), spd=True)
    n = neck.n_joints
    f = force(neck, q, v, u + held)
    joints = solve(_structure_mass_matrix(neck, _joints(neck, neck.split(q)[0])), f[:n], spd=True)
    return jnp.concatenate([joints, f[n:] / neck.motors.inertia])


def linearise(neck: "Neck", q, v, u, held, acceleration=None, drag=None) -> Linearisation:
    """Linearise the equations of motion about a state. With an `acceleration`, the
    derivative d(M a)/dq is included. `drag` (k,) is the slope of motor friction [N m s], for
    friction that is not held constant in the step (elastic tendons only)."""
    (alpha, theta), (rate, theta_rate) = neck.split(q), neck.split(v)
    j = _joints(neck, alpha)
    loads = materialise(_loads(neck, j, rate))
    tendons = _tendons(neck, j)
    M, K, D = _structure_matrices(neck, j, loads, rate)
    if acceleration is not None:
        K = K - materialise(_inertia_slope(neck, alpha, neck.split(acceleration)[0]))
    if not neck.elastic:
        return _rigid(neck, j, tendons, M, loads.f, K, D, rate, u + held)
    T = _tension(neck, j, tendons, rate, theta, theta_rate)
    f_alpha, f_theta = loads.f - vecmat(T, tendons.J), u + held + neck.motors.travel * T
    k, d = neck.tendon.stiffness, neck.tendon.damping  # pyright: ignore
    slope = _per_tendon(k) * tendons.J + _per_tendon(d) * tendons.H * rate
    n = neck.n_joints
    per_motor = lambda x: jnp.broadcast_to(x, (neck.n_tendons,))
    return materialise(
        TendonLinearisation(
            f=jnp.concatenate([f_alpha, f_theta]),
            M_a=M,
            K_a=K - np.eye(n) * vecmat(T, tendons.H),
            D_a=D,
            J=tendons.J,
            slope=slope,
            inertia_m=per_motor(neck.motors.inertia),
            travel=per_motor(neck.motors.travel),
            k=per_motor(k),
            d=per_motor(d),
            drag=per_motor(jnp.zeros((), q.dtype) if drag is None else drag),
        )
    )


def _inertia_slope(neck: "Neck", alpha, acceleration):
    """Derivative d(M a)/dalpha, shape (n, n), of the joints and, with rigid tendons, the motors."""

    def inertial(alpha):
        if not neck.elastic:
            return matvec(mass_matrix(neck, alpha), acceleration)
        return matvec(_structure_mass_matrix(neck, _joints(neck, alpha)), acceleration)

    return jax.jacfwd(inertial)(alpha)


def _structure_matrices(neck: "Neck", j: _Joints, loads: _Loads, rate):
    """Mass matrix of the structure, and derivatives of `-c_s - g - pivot friction` with respect to
    alpha and to its rate."""
    n = neck.n_joints
    C, _, tops = _link_masses(neck)
    I, U = np.eye(n), MID(n)
    mu, col = loads.mid_rate, lambda x: x[:, None]
    Ex, Ey = materialise(_link_jacobian(j))
    # derivatives of the velocity-product accelerations with respect to rate and alpha
    Vx, Vy = _world(
        j,
        col(2.0 * j.h2 * rate) * I - col(2.0 * j.h * mu) * U,
        -col(2.0 * j.h1 * mu) * I - col(2.0 * j.h1 * rate) * U,
    )
    Qx, Qy = _world(
        j,
        col(j.h3 * rate * rate - j.h1 * mu * mu) * I + col(loads.e_t) * U,
        -col(2.0 * j.h2 * rate * mu) * I - col(loads.e_n) * U,
    )
    CEx, CEy, Vx, Vy, Qx, Qy = materialise((matmul(C, Ex), matmul(C, Ey), Vx, Vy, Qx, Qy))
    m_d, inertia = neck.bars.diagonal_mass, _diagonal_inertia(neck)
    A1 = m_d * j.s1 * j.s2 + inertia * j.ratio * j.ratio1
    A2 = m_d * (j.s2 * j.s2 + j.s1 * j.s3) + inertia * (j.ratio1 * j.ratio1 + j.ratio * j.ratio2)
    B1, B2 = loads.B1, m_d * (j.s1 * j.s1 + j.s * j.s2)
    k, rest, b2 = neck.springs.stiffness, neck.springs.rest_length, neck.bars.width**2
    relative = 0.5 * rest / j.h
    spring = k * b2 * (j.cos * (1.0 - relative) + j.sin * relative * j.h1 / j.h)
    pivots = neck.pivot_friction * (1.0 + j.ratio * j.ratio)
    pivots1 = neck.pivot_friction * 2.0 * j.ratio * j.ratio1
    lever = col(j.h1 * loads.F_t) * U
    diagonal_K = (
        j.h2 * loads.F_n + 0.5 * (A2 * rate * rate - B2 * mu * mu) + spring + pivots1 * rate
    )
    diagonal_D = A1 * rate + pivots
    weights = materialise(
        (j.h * loads.F_n, B1 * rate, B1 * mu, B2 * rate * mu, diagonal_K, diagonal_D)
    )
    hF, B1r, B1m, B2rm, diagonal_K, diagonal_D = weights
    K = (
        gram(CEx, Qx)
        + gram(CEy, Qy)
        - gram(U, col(hF) * U)
        + (col(B2rm) * U).T
        - lever
        - lever.T
        + I * diagonal_K
    )
    D = (
        gram(CEx, Vx)
        + gram(CEy, Vy)
        + gram(U, col(B1r) * U)
        + (col(B1m) * U).T
        - col(B1m) * U
        + I * diagonal_D
    )
    return _structure_mass(neck, j, C, tops, Ex, Ey, CEx, CEy), -K, -D


def _rigid_motor_torque(neck: "Neck", tendons: _Tendons, rate, torque):
    """Torque of the motors on the tendons, minus the inertial torque of the motors at zero joint
    acceleration, shape (n_tendons,)."""
    return torque - neck.motors.inertia / neck.motors.travel * matvec(tendons.H, rate * rate)


def _rigid(neck: "Neck", j: _Joints, tendons: _Tendons, M, f, K, D, rate, torque):
    left, right = neck.routing.left, neck.routing.right
    J, H = tendons
    third = left * (j.h3 - j.s3) + right * (j.h3 + j.s3)
    B = neck.motors.travel
    reflected = jnp.broadcast_to(neck.motors.inertia / (B * B), (neck.n_tendons,))
    pull = _rigid_motor_torque(neck, tendons, rate, torque) / B
    weighted = reflected[:, None] * J
    return DenseLinearisation(
        M=M + gram(J, weighted),
        f=f + vecmat(pull, J),
        K=K + np.eye(neck.n_joints) * vecmat(pull, H) - gram(weighted, third * rate * rate),
        D=D - 2.0 * gram(weighted, H * rate),
    )


def _per_tendon(x):
    """Scalar as it is, or values per tendon as a column."""
    return x if x.ndim == 0 else x[:, None]
