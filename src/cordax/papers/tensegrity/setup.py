"""Values of the thesis: control values, tables, and choices that it leaves open."""

import math

import numpy as np

from ...control import Hermite

#: Table 4.1: times [s] and control values x, y; derivatives are zero
SPLINE_TIMES = (0.0, 2.0, 4.0, 6.0)
SPLINE_VALUES = ((0.0, 0.0), (4.0, 0.0), (0.0, 3.0), (0.0, 0.0))

#: section 5.2: modulus [Pa] and pulley torques [N m]
VARIANTS_MODULUS, VARIANTS_TORQUES = 50e6, (0.1001, 0.1, 0.1)
#: not in the thesis: cables initially have the strain that balances 0.1 N m, and the run lasts 1 s
VARIANTS_FOR = 1.0
#: pulley radius of the strut [m], Table 5.3
PULLEY_RADIUS = 0.07
#: mass of a cable end [kg] in models with massive ends, which Simscape needs; not in the thesis
END_MASS = 1e-3

#: Table 5.7: modulus [Pa] to the largest deviations of phi and psi [rad] (printed: [m])
TABLE_5_7 = {
    2e8: (8.403e-3, 8.293e-3),
    2e9: (1.080e-3, 8.105e-4),
    2e10: (2.162e-4, 1.330e-4),
}
#: the same deviations, by modulus [Pa] and viscosity [Pa s] of the cables, from a model of the
#: strut in minimal coordinates that shares no code with this library, with a converged step
MINIMAL_MODEL = {
    (2e8, 0.0): (1.89362e-2, 1.10244e-2),
    (2e9, 0.0): (3.27024e-3, 1.38909e-3),
    (2e10, 0.0): (4.8082e-4, 1.3894e-4),
    (2e8, 1e6): (1.21869e-2, 2.55797e-2),
    (2e9, 1e6): (1.70893e-3, 1.85081e-3),
    (2e10, 1e6): (1.7415e-4, 1.8031e-4),
}
#: smallest stress of the cables [Pa], also in the initial state
STRESS = 20e6
#: duration of the path of the strut [s]
STRUT_FOR = 9.0

#: symmetric equilibrium of the manipulator with the end effector at h0: strut angles [rad] and
#: strains, twice each; the slackest cable carries the smallest stress
REST_ANGLES, REST_STRAINS = (-0.0252794, -0.2206120) * 3, (0.01, 0.0148825) * 3
LEAST_STRAIN = 0.01
#: height of the end effector of the nominal prism [m]
HEIGHT = math.sqrt(0.5) * (1.0 + math.sqrt(2.0 / 3.0))
#: viscous friction in the joints of the struts [N m s]; the thesis has none
FRICTION = 5.0
EFFECTOR = ("ee", (0.0, 0.0, 0.0))
#: results of another program for the manipulator, in coordinates without drift: heights of the end
#: effector [m] and second strut angles [rad] at 1, 2, 3... s, by case; and their tolerances
REFERENCE_HEIGHTS = {
    "vertical, no friction": (1.2324062, 1.1082872, 0.9601536, 0.8359601, 0.7838549),
    "vertical": (1.2324122, 1.1082955, 0.9601617, 0.8359700, 0.7838539),
    "stabilisation": (1.2862739, 1.2881910, 1.2900951),
}
REFERENCE_ANGLES = {"stabilisation": (-0.2082036, -0.2261715, -0.2209910)}
NEAR_HEIGHT = {"vertical, no friction": 2e-5, "vertical": 2e-5, "stabilisation": 2e-4}
NEAR_ANGLE = 1e-3


def table_4_1() -> Hermite:
    return Hermite(SPLINE_TIMES, SPLINE_VALUES, np.zeros((4, 2)))


def strut_path() -> Hermite:
    """Path of the strut in Table 5.6: phi and psi [rad]."""
    a = math.pi / 4
    values = [[0.0, 0.0], [0.0, 0.0], [0.0, a], [a, 0.0], [0.0, 0.0]]
    return Hermite([0.0, 1.0, 3.0, 7.0, 9.0], values, np.zeros((5, 2)))


def effector_path(axis: int | None, low: float, high: float) -> Hermite:
    """Path of the end effector [m] in Tables 5.8 and 5.9: from its initial position along an axis
    to `low`, to `high` and back. If the axis is None, the end effector does not move."""
    values = np.tile([0.0, 0.0, HEIGHT], (4, 1))
    if axis is not None:
        values[1, axis] += low
        values[2, axis] += high
    return Hermite([0.0, 5.0, 15.0, 20.0], values, np.zeros((4, 3)))
