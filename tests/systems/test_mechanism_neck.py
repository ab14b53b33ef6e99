"""The three-joint neck put together from bars, pins that close loops, springs and cables: a second
formulation of `Neck`, in angles of the bars and with constraints."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax._base.fields import names_field
from cordax._base.precision import float_field
from cordax.mechanics.parts.cables import ElasticCables
from cordax.systems import Neck
from cordax.systems import mechanism as parts

JOINTS = 3
WIDTH, DIAGONAL = 0.05, 0.1
TORQUE = -8e-4 * np.array([60.0, 22.0, 30.0, 38.0])  # about the tensions [N] that hold it up


class PinFriction(parts.Element):
    """Viscous friction in the pin that closes the loop of each joint, where diagonal `bc` meets the
    top bar: its rate is that of `ad` and `top` less that of `bc`."""

    joints: tuple[str, ...] = names_field()
    friction: jnp.ndarray = float_field()

    def effort(self, at, u):
        rows = np.zeros((len(self.joints), at.tree.n_v))
        for row, j in zip(rows, self.joints, strict=True):
            _, v = at.tree.scalars((f"ad{j}", f"top{j}", f"bc{j}"), "joints")
            row[v] = 1.0, 1.0, -1.0
        return parts.Effort(joint=-self.friction * (jnp.asarray(rows).T @ (rows @ at.v)))


class RotorFriction(parts.Element):
    """`torque 2/pi arctan(slope rate)`, as the neck's motors have it."""

    joints: tuple[str, ...] = names_field()
    torque: jnp.ndarray = float_field()
    slope: jnp.ndarray = float_field()

    def effort(self, at, u):
        _, v = at.tree.scalars(self.joints, "joints")
        friction = self.torque * 2.0 / np.pi * jnp.arctan(self.slope * at.v[v])
        return parts.Effort(joint=-jnp.zeros(at.tree.n_v).at[v].set(friction))


def bar_angles(alpha):
    """Of diagonals AD and BC to the base bar, and of the top bar to AD."""
    beta = np.arccos(WIDTH / DIAGONAL * np.cos(0.5 * alpha))
    return 0.5 * alpha + beta, 0.5 * alpha + np.pi - beta, 0.5 * alpha - beta


def neck_of_parts(neck: Neck, alpha, theta) -> parts.Mechanism:
    """In the plane of x and z. Joint j: bars A-D and B-C on the base bar A-B, the top bar C-D on
    A-D, and a pin at C. Rotors wind the tendons, one left of all joints, one right of each."""
    hinge = parts.Revolute((0.0, -1.0, 0.0))  # positive angles turn x to z
    left, right = (-0.5 * WIDTH, 0.0, 0.0), (0.5 * WIDTH, 0.0, 0.0)
    rod = lambda length, mass, x: parts.rod(length, mass=mass, centre=(x, 0.0, 0.0))
    diagonal = rod(DIAGONAL, neck.bars.diagonal_mass, 0.5 * DIAGONAL)
    end = (DIAGONAL, 0.0, 0.0)
    bodies, loops, springs = [], [], []
    base, corners = "world", (left, right)  # A and B of the joint, in the base bar
    sides = []
    for j in range(1, JOINTS + 1):
        ad, bc, top = bar_angles(alpha[j - 1])
        bodies += [
            parts.Body(f"ad{j}", hinge, base, at=corners[0], solids=diagonal, start=[ad]),
            # the top bar's frame is at D, where it hangs on the diagonal
            parts.Body(f"top{j}", hinge, f"ad{j}", at=end, start=[top],
                       solids=rod(WIDTH, neck.bars.top_mass, -0.5 * WIDTH)),
            parts.Body(f"bc{j}", hinge, base, at=corners[1], solids=diagonal, start=[bc]),
        ]  # fmt: skip
        upper = (-WIDTH, 0.0, 0.0), (0.0, 0.0, 0.0)  # C and D in the top bar
        loops.append(parts.SphericalLoop(f"top{j}", f"bc{j}", upper[0], end, axes="xz"))
        k, rest = neck.springs.stiffness[j - 1], neck.springs.rest_length
        springs += [
            parts.PointSpring(base, f"top{j}", corners[i], upper[i], k, rest) for i in (0, 1)
        ]
        sides.append(((base, corners), (f"top{j}", upper)))
        base, corners = f"top{j}", upper
    rotors = tuple(f"rotor{k}" for k in range(1, JOINTS + 2))
    inertia = float(neck.motors.inertia) * np.eye(3)
    bodies += [
        parts.Body(name, parts.Revolute("y"), solids=parts.Solid(1.0, (0, 0, 0), inertia),
                   start=[angle])
        for name, angle in zip(rotors, theta, strict=True)
    ]  # fmt: skip
    eyelet = lambda at, side: parts.Eyelet(at[0], at[1][side])
    way = [eyelet(sides[0][0], 0), *(eyelet(top, 0) for _, top in sides)]
    height = np.sqrt(DIAGONAL**2 - WIDTH**2)
    law = lambda n: ElasticCables(neck.tendon.stiffness * np.ones(n),
                                  neck.tendon.damping * np.ones(n), width=1e-6)  # fmt: skip
    travel = float(neck.motors.travel)
    cables = [
        parts.CableSet([way], law(1), [JOINTS * height], rotors[:1], [[travel]], name="long"),
        parts.CableSet(
            [[eyelet(below, 1), eyelet(top, 1)] for below, top in sides],
            law(JOINTS), height * np.ones(JOINTS), rotors[1:], travel * np.ones((JOINTS, 1)),
            name="short",
        ),
    ]  # fmt: skip
    numbers = tuple(str(j) for j in range(1, JOINTS + 1))
    pins = [f"{bar}{j}" for j in numbers for bar in ("ad", "top", "bc")]
    friction = neck.pivot_friction
    return parts.Mechanism(
        bodies,
        loops,
        [
            *springs,
            *cables,
            parts.JointSprings(pins, damping=friction),
            PinFriction(numbers, friction),
            RotorFriction(rotors, neck.motors.dry_friction, neck.motors.friction_slope),
            parts.JointMotors(rotors),
        ],
        independent=tuple(f"ad{j}" for j in numbers) + rotors,
    )


@pytest.fixture(scope="module")
def runs():
    """From a bent position under torques that do not balance, RK4 in steps of 1/16 ms: errors below
    1e-9 rad, as longer steps show."""
    neck = Neck.default(JOINTS)
    start = neck.state_at([0.1, -0.05, 0.08], tension=[60.0, 25.0, 30.0, 35.0])
    alpha, theta = (np.array(x) for x in neck.split(start.q))
    machine = neck_of_parts(neck, alpha, theta)
    options = {"duration": 0.25, "dt": 6.25e-5, "save_every": 400, "control": TORQUE}
    options |= {"integrator": cordax.RK4()}
    return cordax.simulate(neck, start, **options), cordax.simulate(machine, **options)


def test_neck_as_a_mechanism_follows_the_neck(runs):
    neck, whole = runs
    machine = whole.system
    assert machine.mobility().dof == 7
    index = machine.coordinate_names.index
    alpha = np.stack(
        [whole.q[:, index(f"ad{j}")] + whole.q[:, index(f"top{j}")] for j in (1, 2, 3)], axis=1
    )
    assert np.all(np.ptp(neck.q[:, :3], axis=0) > [0.05, 0.05, 0.005])
    np.testing.assert_allclose(alpha, neck.q[:, :3], rtol=0, atol=1e-8)
    np.testing.assert_allclose(whole.q[:, -4:], neck.q[:, 3:], rtol=0, atol=1e-6)
    tension = np.concatenate(
        [whole.outputs["long_tension"][:, :, 0], whole.outputs["short_tension"][:, :, 0]], axis=1
    )
    assert tension.min() > 1.0
    np.testing.assert_allclose(tension, neck.outputs["tension"], rtol=0, atol=1e-4)


def test_energy_of_both_necks(runs):
    neck, whole = (np.array(run.energy()["total"]) for run in runs)
    # the passage from slack to taut adds a constant, pi^2/6 k w^2 for each cable
    apart = whole - neck
    np.testing.assert_allclose(apart, 4 * np.pi**2 / 6 * 1e5 * 1e-12, rtol=0, atol=1e-8)
