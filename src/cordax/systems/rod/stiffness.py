"""Second derivatives of a spline rod's energy, span by span.

A span involves four control points. With Gauss points inside the spans, all forces on the rod are
sums over spans, so the stiffness is a chain of 16 x 16 matrices."""

import jax.numpy as jnp

from ..._jax.materialise import materialise
from .energy import Stiffness, cross, dot, skew
from .kelvin_voigt import Stresses
from .quadrature import Local, Spans


def second_derivatives(at: Local, H: Stiffness, rest, held: Stresses | None = None):
    """Second derivatives of the energy per length by r', r'', r''' and theta', in closed form,
    shape (10, 10, ...); with `held` stresses, also those of the work of these constant stresses on
    the strains.

    The energy is a function of S = |r'|^2, N = |r' x r''|^2, T = (r' x r'').r''' and theta'. The
    work of a constant moment w is a function of U = (r' x r'').w too."""
    a, b, c, twist = at
    C = cross(a, b)
    S, N, T = dot(a, a), dot(C, C), dot(C, c)
    aa, ab, bb = S, dot(a, b), dot(b, b)
    i = 1.0 / jnp.sqrt(S)
    i3 = i * i * i
    i5, i6 = i3 * i * i, i3 * i3
    p = 1.0 / (N + H.torsion_width**2)
    m = jnp.sqrt(N + H.bending_width**2)
    bent = rest[2] / m
    tau = H.twist * (twist - T * p - rest[1])
    half = 0.5 * H.bending
    # first derivatives
    e_S = 0.5 * H.stretch * (1.0 - (1.0 - rest[0]) * i)
    e_S = e_S + half * (3.0 * bent * m * m * i5 - 3.0 * N * i6 * i * i)
    e_N = tau * T * p * p + half * (i6 - bent * i3)
    e_T = -tau * p
    # second derivatives
    e_SS = 0.25 * H.stretch * (1.0 - rest[0]) * i3
    e_SS = e_SS + half * (12.0 * N * i5 * i5 - 7.5 * bent * m * m * i5 * i * i)
    e_SN = half * (1.5 * bent * i5 - 3.0 * i6 * i * i)
    stiff = H.twist * p * p
    e_NN = stiff * T * T * p * p - 2.0 * tau * T * p * p * p + half * 0.5 * bent * i3 / (m * m)
    e_NT = tau * p * p - stiff * T * p
    e_TT = stiff
    e_zN, e_zT = H.twist * T * p * p, -H.twist * p
    if held is not None:
        # of |r'| = S^(1/2), theta' - T p and U S^(-3/2)
        U = dot(C, held.bending)
        e_S = e_S + 0.5 * held.stretch * i - 1.5 * U * i5
        e_N = e_N + held.twist * T * p * p
        e_T = e_T - held.twist * p
        e_SS = e_SS - 0.25 * held.stretch * i3 + 3.75 * U * i5 * i * i
        e_NN = e_NN - 2.0 * held.twist * T * p * p * p
        e_NT = e_NT + held.twist * p * p
    scalars = (e_S, e_N, e_T, e_SS, e_SN, e_NN, e_NT, e_TT, e_zN, e_zT, C, aa, ab, bb)
    e_S, e_N, e_T, e_SS, e_SN, e_NN, e_NT, e_TT, e_zN, e_zT, C, aa, ab, bb = materialise(scalars)
    # gradients of S, N and T by (a, b, c)
    zero = jnp.zeros_like(a)
    g_S = jnp.concatenate([2.0 * a, zero, zero])
    g_N = jnp.concatenate([2.0 * (bb * a - ab * b), 2.0 * (aa * b - ab * a), zero])
    g_T = jnp.concatenate([cross(b, c), cross(c, a), C])
    g_S, g_N, g_T = materialise((g_S, g_N, g_T))
    along_S = e_SS * g_S + e_SN * g_N
    along_N = e_SN * g_S + e_NN * g_N + e_NT * g_T
    along_T = e_NT * g_N + e_TT * g_T
    outer = lambda x, y: x[:, None] * y[None]
    W = outer(g_S, along_S) + outer(g_N, along_N) + outer(g_T, along_T)
    # second derivatives of S, N and T
    eye = jnp.eye(3, dtype=a.dtype).reshape(3, 3, *(1,) * (a.ndim - 1))
    W_aa = 2.0 * ((e_S + e_N * bb) * eye - e_N * outer(b, b))
    W_bb = 2.0 * e_N * (aa * eye - outer(a, a))
    W_ab = 2.0 * e_N * (2.0 * outer(a, b) - outer(b, a) - ab * eye) - e_T * skew(c)
    if held is not None:
        moment, e_U, e_SU = materialise((held.bending, i3, -1.5 * i5))
        g_U = jnp.concatenate([cross(b, moment), cross(moment, a), zero])
        crossed = outer(g_S, e_SU * g_U)
        W = W + crossed + crossed.swapaxes(0, 1)
        W_ab = W_ab - e_U * skew(moment)
    W_ac, W_bc = e_T * skew(b), -e_T * skew(a)
    turn = lambda x: x.swapaxes(0, 1)
    none = jnp.zeros_like(W_ac)
    curved = [[W_aa, W_ab, W_ac], [turn(W_ab), W_bb, W_bc], [turn(W_ac), turn(W_bc), none]]
    W = W + jnp.concatenate([jnp.concatenate(row, axis=1) for row in curved])
    mixed = e_zN * g_N + e_zT * g_T
    corner = H.twist * jnp.ones_like(twist)
    bottom = jnp.concatenate([mixed, corner[None]])
    return jnp.concatenate([jnp.concatenate([W, mixed[:, None]], axis=1), bottom[None]])


def span_matrices(W, spans: Spans, h):
    """Convert `W` (10, 10, g, s), derivatives of a local law by r', r'', r''' and theta', to
    matrices of the four control points of each span, shape (4, 4, 4, 4, s): components c, d, then
    control points i, k."""
    B = [spans.basis[p] / h**p for p in (1, 2, 3)]  # (4, g, s) each
    weighted = materialise([b * (h * spans.weights) for b in B])
    # columns: from r', r'', r''' and theta' to x, y, z and theta of control points
    position = sum(W[:, 3 * q : 3 * q + 3, None] * b for q, b in enumerate(weighted))
    angle = W[:, 9:, None] * weighted[0]
    columns = materialise(jnp.concatenate([position, angle], axis=1))  # (10, d, k, g, s)
    # rows likewise; sums over orders and points are written out, spans stay contiguous
    points = range(W.shape[2])
    terms = [
        columns[3 * p : 3 * p + 3, :, None, :, g] * b[:, None, g]
        for p, b in enumerate(B)
        for g in points
    ]
    angles = [columns[9:, :, None, :, g] * B[0][:, None, g] for g in points]
    return jnp.concatenate([_sum(terms), _sum(angles)])


def _sum(terms):
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def contact_matrices(W, basis):
    """Convert `W` (6, 6, g, s), derivatives of forces on both ends of the g pieces of each span by
    the positions of these ends, to span matrices (4, 4, 4, 4, s); `basis` (4, g + 1, s): values of
    the functions of a span at the ends of its pieces."""
    g = W.shape[2]
    W = W.reshape(2, 3, 2, 3, *W.shape[2:])
    ends = basis[:, :-1], basis[:, 1:]
    columns = materialise([W[:, :, a, :, None] * ends[a] for a in (0, 1)])  # (b, c, d, k, g, s)
    terms = [
        columns[a][b, :, :, None, :, i] * ends[b][:, None, i]
        for a in (0, 1)
        for b in (0, 1)
        for i in range(g)
    ]
    return jnp.pad(_sum(terms), ((0, 1), (0, 1), (0, 0), (0, 0), (0, 0)))
