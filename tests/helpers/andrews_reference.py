"""Andrews' squeezer in its seven angles, as Schiehlen (1990) and the test set for initial value
problems write it, in NumPy: nothing in common with `Mechanism`.

The published solution at 0.03 s (of an index-3 solver at a tolerance of 1e-14) satisfies the loops
to 1e-16 m, but its velocities leave them at 1e-9 m/s, its energy is off by 2e-10 J, and the
multipliers that belong to its own state differ from those it prints by 1.3e-6. The form here has
one degree of freedom: beta is integrated, the other angles follow from the loops."""

import functools

import numpy as np
from scipy.integrate import solve_ivp

M1, M2, M3, M4, M5, M6, M7 = 0.04325, 0.00365, 0.02373, 0.00706, 0.07050, 0.00706, 0.05498
I1, I2, I3, I4 = 2.194e-6, 4.410e-7, 5.255e-6, 5.667e-7
I5, I6, I7 = 1.169e-5, 5.667e-7, 1.912e-5
XA, YA, XB, YB, XC, YC = -0.06934, -0.00227, -0.03635, 0.03273, 0.014, 0.072
D, DA, E, EA, RR, RA = 0.028, 0.0115, 0.02, 0.01421, 0.007, 0.00092
SS, SA, SB = 0.035, 0.01874, 0.01043
SC, SD, TA, TB, U, UA, UB, ZF, ZT, FA = (
    0.018, 0.02, 0.02308, 0.00916, 0.04, 0.01228, 0.00449, 0.02, 0.04, 0.01421,
)  # fmt: skip
C0, L0, MOTOR = 4530.0, 0.07785, 0.033

#: beta, Theta, gamma, Phi, delta, Omega, epsilon [rad] at the start, at rest
START = np.array([-0.0617138900142764496, 0.0, 0.455279819163070380, 0.222668390165885885,
                  0.487364979543842550, -0.222668390165885885, 1.23054744454982119])  # fmt: skip
#: published at 0.03 s: angles [rad], rates [rad/s], multipliers [N]
Q = np.array([15.81077119629904, -15.75637105984298, 0.04082224013073101, -0.5347301163226948,
              0.5244099658805304, 0.5347301163226948, 1.048080741042263])  # fmt: skip
V = np.array([1139.920302151208, -1424.379294994111, 11.03291221937134, 19.29337464421385,
              0.5735699284790808, -19.29337464421385, 0.3231791658026955])  # fmt: skip
MULTIPLIERS = np.array([199.1753333731910, -29.75531228015052, 23.06654119098399,
                        31.45271365475927, 22.64249232082739, 11.61740700019673])  # fmt: skip


def loops(q):
    """Three pins (6,) [m]."""
    be, th, ga, ph, de, om, ep = q
    x = RR * np.cos(be) - D * np.cos(be + th)
    y = RR * np.sin(be) - D * np.sin(be + th)
    return np.array([
        x - SS * np.sin(ga) - XB,
        y + SS * np.cos(ga) - YB,
        x - E * np.sin(ph + de) - ZT * np.cos(de) - XA,
        y + E * np.cos(ph + de) - ZT * np.sin(de) - YA,
        x - ZF * np.cos(om + ep) - U * np.sin(ep) - XA,
        y - ZF * np.sin(om + ep) + U * np.cos(ep) - YA,
    ])  # fmt: skip


def jacobian(q):
    be, th, ga, ph, de, om, ep = q
    J = np.zeros((6, 7))
    J[::2, 1], J[1::2, 1] = D * np.sin(be + th), -D * np.cos(be + th)
    J[::2, 0] = J[::2, 1] - RR * np.sin(be)
    J[1::2, 0] = J[1::2, 1] + RR * np.cos(be)
    J[0, 2], J[1, 2] = -SS * np.cos(ga), -SS * np.sin(ga)
    J[2, 3], J[3, 3] = -E * np.cos(ph + de), -E * np.sin(ph + de)
    J[2, 4], J[3, 4] = J[2, 3] + ZT * np.sin(de), J[3, 3] - ZT * np.cos(de)
    J[4, 5], J[5, 5] = ZF * np.sin(om + ep), -ZF * np.cos(om + ep)
    J[4, 6], J[5, 6] = J[4, 5] - U * np.cos(ep), J[5, 5] - U * np.sin(ep)
    return J


def bias(q, v):
    """Second rates of the loops without accelerations (6,)."""
    be, th, ga, ph, de, om, ep = q
    B, T, G, P, L, W, K = v
    x = -RR * np.cos(be) * B**2 + D * np.cos(be + th) * (B + T) ** 2
    y = -RR * np.sin(be) * B**2 + D * np.sin(be + th) * (B + T) ** 2
    return np.array([
        x + SS * np.sin(ga) * G**2,
        y - SS * np.cos(ga) * G**2,
        x + E * np.sin(ph + de) * (P + L) ** 2 + ZT * np.cos(de) * L**2,
        y - E * np.cos(ph + de) * (P + L) ** 2 + ZT * np.sin(de) * L**2,
        x + ZF * np.cos(om + ep) * (W + K) ** 2 + U * np.sin(ep) * K**2,
        y + ZF * np.sin(om + ep) * (W + K) ** 2 - U * np.cos(ep) * K**2,
    ])  # fmt: skip


def mass(q):
    _, th, _, ph, _, om, _ = q
    M, a, b = np.zeros((7, 7)), E - EA, ZF - FA
    M[0, 0] = M1 * RA**2 + M2 * (RR**2 - 2 * DA * RR * np.cos(th) + DA**2) + I1 + I2
    M[0, 1] = M[1, 0] = M2 * (DA**2 - DA * RR * np.cos(th)) + I2
    M[1, 1] = M2 * DA**2 + I2
    M[2, 2] = M3 * (SA**2 + SB**2) + I3
    M[3, 3] = M4 * a**2 + I4
    M[3, 4] = M[4, 3] = M4 * (a**2 + ZT * a * np.sin(ph)) + I4
    M[4, 4] = M4 * (ZT**2 + 2 * ZT * a * np.sin(ph) + a**2) + M5 * (TA**2 + TB**2) + I4 + I5
    M[5, 5] = M6 * b**2 + I6
    M[5, 6] = M[6, 5] = M6 * (b**2 - U * b * np.sin(om)) + I6
    M[6, 6] = M6 * (b**2 - 2 * U * b * np.sin(om) + U**2) + M7 * (UA**2 + UB**2) + I6 + I7
    return M


def force(q, v):
    _, th, ga, ph, _, om, _ = q
    B, T, _, P, L, W, K = v
    x = SD * np.cos(ga) + SC * np.sin(ga) + XB - XC
    y = SD * np.sin(ga) - SC * np.cos(ga) + YB - YC
    length = np.hypot(x, y)
    pull = -C0 * (length - L0) / length
    a, b = M4 * ZT * (E - EA) * np.cos(ph), M6 * U * (ZF - FA) * np.cos(om)
    return np.array([
        MOTOR - M2 * DA * RR * T * (T + 2 * B) * np.sin(th),
        M2 * DA * RR * B**2 * np.sin(th),
        pull * (x * (SC * np.cos(ga) - SD * np.sin(ga)) + y * (SD * np.cos(ga) + SC * np.sin(ga))),
        a * L**2,
        -a * P * (P + 2 * L),
        -b * K**2,
        b * W * (W + 2 * K),
    ])  # fmt: skip


def accelerations(q, v):
    """Accelerations (7,) and multipliers (6,), by the whole saddle-point matrix."""
    J = jacobian(q)
    A = np.block([[mass(q), J.T], [J, np.zeros((6, 6))]])
    found = np.linalg.solve(A, np.concatenate([force(q, v), -bias(q, v)]))
    return found[:7], found[7:]


@functools.cache
def solution(duration, tolerance=1e-13):
    """Angles (7,), rates (7,) and multipliers (6,) after `duration` [s]."""
    guess = START.copy()

    def closed(y):
        q = guess
        q[0] = y[0]
        for _ in range(6):
            step = np.linalg.solve(jacobian(q)[:, 1:], loops(q))
            q[1:] -= step
            if np.abs(step).max() < 1e-14:
                break
        J = jacobian(q)
        return q, np.append(y[1], -np.linalg.solve(J[:, 1:], J[:, 0] * y[1]))

    def slope(_, y):
        return [y[1], accelerations(*closed(y))[0][0]]

    run = solve_ivp(slope, (0.0, duration), [START[0], 0.0], method="DOP853", rtol=tolerance,
                    atol=1e-13)  # fmt: skip
    q, v = closed(run.y[:, -1])
    return q.copy(), v, accelerations(q, v)[1]
