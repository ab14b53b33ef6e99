"""One joint with rigid tendons, where everything has a formula of one variable."""

import diffrax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.systems.neck import Bars, Neck, Springs
from cordax.systems.neck.tendons import Motors, RigidTendon, Routing

b, L, m_t, m_d, k, rest, inertia, B, f_v, g = (
    0.05,
    0.1,
    0.03,
    0.06,
    400.0,
    0.04,
    2e-5,
    8e-4,
    2e-3,
    9.81,
)


def neck(pivot_friction=0.0):
    return Neck(
        bars=Bars(b, L, m_t, m_d),
        springs=Springs(k, rest),
        motors=Motors(inertia, B, 1.0),
        tendon=RigidTendon(),
        routing=Routing.named("single", 1),
        pivot_friction=pivot_friction,
        gravity=g,
    )


# functions of a possibly complex angle: derivatives by complex step
def derivative(f, a):
    return np.imag(f(a + 1e-30j)) / 1e-30


def height(a):
    return np.sqrt(L**2 - b**2 * np.cos(a / 2) ** 2)


def side(a, sign):
    return height(a) + sign * b * np.sin(a / 2)


def height_slope(a):
    return b**2 * np.sin(a) / (4 * height(a))


def side_slope(a, sign):
    return height_slope(a) + sign * b / 2 * np.cos(a / 2)


def mass(a):
    """Bodies on the line n(a/2) at distance r, speed^2 = r'^2 + (r/2)^2, and rotors."""
    M = m_t * (height_slope(a) ** 2 + height(a) ** 2 / 4) + m_t * b**2 / 12
    for sign in (-1, 1):
        M = M + m_d * (side_slope(a, sign) ** 2 / 4 + side(a, sign) ** 2 / 16)
        M = M + m_d * L**2 / 12 * (side(a, sign) / (2 * height(a))) ** 2
        M = M + inertia * (side_slope(a, sign) / B) ** 2
    return M


def potential(a):
    weight = (m_t + m_d) * height(a) * np.cos(a / 2)  # the diagonals' centres average at h/2
    return g * weight + sum(k / 2 * (side(a, sign) - rest) ** 2 for sign in (-1, 1))


@pytest.mark.parametrize("angle", [-2.0, -0.3, 0.0, 0.7, 2.5])
def test_acceleration(angle):
    rate, torque = 1.7, np.array([-0.05, -0.03])
    friction = f_v * (1 + (b * np.sin(angle / 2) / height(angle)) ** 2) * rate
    pull = sum(side_slope(angle, s) / B * u for s, u in zip((-1, 1), torque, strict=True))
    inertial = 0.5 * derivative(mass, angle) * rate**2
    expected = (pull - friction - inertial - derivative(potential, angle)) / mass(angle)
    computed = (
        neck(f_v)
        .structure()
        .acceleration(0.0, jnp.asarray([angle]), jnp.asarray([rate]), jnp.asarray(torque))
    )
    assert float(computed[0]) == pytest.approx(expected, rel=1e-10)


def test_release_takes_the_time_of_the_quadrature():
    """From rest at 1 rad to 0.5 rad: t = integral of sqrt(M/(2 (V(1) - V(a)))) da."""
    start, end = 1.0, 0.5
    x, w = np.polynomial.legendre.leggauss(60)
    x, w = 0.5 * (x + 1), 0.5 * w
    a = start + (end - start) * x**2  # removes the square root at the start
    speed = np.sqrt(2 * (potential(start) - potential(a)) / mass(a))
    time = float(np.sum(w * 2 * x * (start - end) / speed))
    run = cordax.simulate(
        neck(),
        cordax.State([start], [0.0]),
        dt=time / 4,
        duration=time,
        integrator=cordax.Diffrax(diffrax.Dopri8(), diffrax.PIDController(rtol=1e-12, atol=1e-12)),
    )
    assert float(run["alpha_1"][-1]) == pytest.approx(end, abs=1e-9)
