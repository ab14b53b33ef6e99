"""Mechanisms of the IFToMM library of multibody benchmarks, with published solutions."""

import math

import numpy as np

from ..._base.checks import require
from .body import Body
from .elements import JointLoads, PointSpring
from .joints import Revolute
from .loops import RevoluteLoop, SphericalLoop
from .mechanism import Mechanism
from .solids import Solid, box, point_mass, rod


def simple_pendulum() -> Mechanism:
    """A01: simple pendulum of 1 kg on 1 m, from rest at x = -1 m, y = 0; gravity along -y."""
    bob = point_mass(1.0, (1.0, 0.0, 0.0))
    arm = Body("arm", Revolute("z"), solids=bob, start=[math.pi])
    return Mechanism([arm], gravity=(0.0, -9.81, 0.0))


def n_four_bar(n: int) -> Mechanism:
    """A02: n windows of 2n + 1 thin rods of 1 m and 1 kg, upright, the top moving at 1 m/s along x.

    The mechanism passes positions in which the constraints lose rank, with all rods in one line."""
    require(n >= 1, "n", n, "1 or more windows")
    bar = rod(1.0, mass=1.0, centre=(0.5, 0.0, 0.0))
    bodies, loops = [], []
    for i in range(n + 1):
        crank = Body(f"crank{i}", Revolute("z"), at=(float(i), 0, 0), solids=bar,
                     start=[0.5 * math.pi], start_rate=[-1.0])  # fmt: skip
        bodies.append(crank)
        if i < n:
            bodies.append(
                Body(f"coupler{i}", Revolute("z"), f"crank{i}", at=(1, 0, 0), solids=bar,
                     start=[-0.5 * math.pi], start_rate=[1.0])
            )  # fmt: skip
            pin = SphericalLoop(f"coupler{i}", f"crank{i + 1}", (1, 0, 0), (1, 0, 0), axes="xy")
            loops.append(pin)
    names = ("crank0",)
    return Mechanism(bodies, loops, gravity=(0.0, -9.81, 0.0), independent=names)


def andrews_squeezer() -> Mechanism:
    """A03: Andrews' squeezer, seven bodies in a plane with three loops through one point, a spring
    and a motor."""

    def plate(mass, inertia, x=0.0, y=0.0):
        return Solid(mass, (x, y, 0.0), np.diag([0.5 * inertia, 0.5 * inertia, inertia]))

    A, B, C = (-0.06934, -0.00227, 0), (-0.03635, 0.03273, 0), (0.014, 0.072, 0)
    z = lambda: Revolute("z")
    bodies = [
        Body("k1", z(), solids=plate(0.04325, 2.194e-6, 0.00092), start=[-0.0617138900142764496]),
        Body("k2", z(), "k1", at=(0.007, 0, 0), solids=plate(0.00365, 4.410e-7, -0.0115)),
        Body("k3", z(), at=B, solids=plate(0.02373, 5.255e-6, 0.01874, 0.01043),
             start=[0.455279819163070380]),
        Body("k5", z(), at=A, solids=plate(0.07050, 1.169e-5, 0.02308, 0.00916),
             start=[0.487364979543842550]),
        Body("k4", z(), "k5", at=(0.04, 0, 0), solids=plate(0.00706, 5.667e-7, 0, -0.00579),
             start=[0.222668390165885885]),
        Body("k7", z(), at=A, solids=plate(0.05498, 1.912e-5, 0.01228, 0.00449),
             start=[1.23054744454982119]),
        Body("k6", z(), "k7", at=(0, -0.04, 0), solids=plate(0.00706, 5.667e-7, 0.00579),
             start=[-0.222668390165885885]),
    ]  # fmt: skip
    E = (-0.028, 0.0, 0.0)
    pins = [
        SphericalLoop(body, "k2", point, E, axes="xy")
        for body, point in (("k3", (0, -0.035, 0)), ("k4", (0, -0.02, 0)), ("k6", (0.02, 0, 0)))
    ]
    spring = PointSpring("k3", "world", (0.02, -0.018, 0), C, stiffness=4530.0, rest_length=0.07785)
    motor = JointLoads("k1", torque=0.033)
    return Mechanism(bodies, pins, [spring, motor], gravity=(0, 0, 0), independent=("k1",))


def bricard() -> Mechanism:
    """A04: Bricard mechanism, five rods of 1 m and 1 kg, 0.1 m square, on six hinges.

    It has one degree of freedom, although the number of its constraints leaves none: one row is
    redundant in every position."""
    joints = np.array([(0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1)], float)
    bodies = []
    for i, axis in enumerate("yzxyz"):
        along = joints[i + 1] - joints[i]
        sizes = 0.1 + 0.9 * np.abs(along)
        bodies.append(
            Body(f"rod{i + 1}", Revolute(axis), f"rod{i}" if i else "world",
                 at=_place(joints, i), solids=box(sizes, mass=1.0, centre=0.5 * along))
        )  # fmt: skip
    loop = RevoluteLoop("world", "rod5", joints[5], joints[5] - joints[4], (1, 0, 0))
    return Mechanism(bodies, [loop], gravity=(0.0, -9.81, 0.0))


def _place(joints, i):
    """Position of the joint of rod i in the axes of its parent."""
    return joints[i] - joints[i - 1] if i else joints[0]
