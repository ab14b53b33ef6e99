"""Natural coordinates against a quaternion body; any basis gives the same motion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from cordax import State, System, float_field, simulate
from cordax.math import rotations
from cordax.mechanics.parts.cables import ElasticCables
from cordax.mechanics.parts.drives import ProgrammedLengths
from cordax.mechanics.parts.exits import PointExit
from cordax.systems.cable_robot import CableRobot
from cordax.systems.cable_robot.natural import NaturalBody

MASS, CENTRE = 3.0, np.array([0.03, -0.02, 0.05])
INERTIA = np.array([[0.05, 0.004, -0.003], [0.004, 0.07, 0.006], [-0.003, 0.006, 0.09]])
ATTACHMENTS = np.array([[-0.2, -0.3, 0.1], [-0.2, 0.3, 0.0], [0.2, 0.3, 0.1], [0.2, -0.3, 0.0]])
EXITS = np.array([[-2.0, -2.0, 2.0], [-2.0, 2.1, 2.2], [2.0, 2.0, 2.0], [2.2, -2.0, 1.9]])
STIFFNESS, DAMPING, WIDTH = 4e3, 12.0, 1e-3
POSITION = np.array([0.1, -0.05, 0.3])
TURN = np.array([0.2, -0.1, 0.3])
VELOCITY, SPIN = np.array([0.2, -0.1, 0.05]), np.array([1.0, -2.0, 1.5])
GRAVITY = np.array([0.0, 0.0, -9.81])

BASES = {
    "orthonormal": {},
    "short and left-handed": {
        "r_j": [0.0, 0.1, 0.0],
        "v_i": [1.0, 0.0, 0.0],
        "v_j": [0.0, 0.0, 1.0],
    },
    "oblique and away from the origin": {
        "r_i": [0.1, 0.2, -0.1],
        "r_j": [0.4, 0.3, 0.0],
        "v_i": [0.3, 1.2, 0.1],
        "v_j": [-0.2, 0.4, 0.8],
    },
}


ROTATION = Rotation.from_rotvec(TURN).as_matrix()
QUATERNION = Rotation.from_rotvec(TURN).as_quat(scalar_first=True)
UNSTRETCHED = np.linalg.norm(POSITION + ATTACHMENTS @ ROTATION.T - EXITS, axis=1) - 5e-3


def robot(basis, **options):
    body = NaturalBody(MASS, INERTIA, CENTRE, **BASES[basis])
    return CableRobot(
        body,
        ATTACHMENTS,
        PointExit(EXITS),
        ProgrammedLengths(UNSTRETCHED),
        position=POSITION,
        rotation=ROTATION,
        **options,
    )


class HungBody(System):
    """Newton and Euler: centre of mass in world axes, quaternion, body-fixed angular velocity."""

    mass: jax.Array = float_field(default=MASS)
    cables: jax.Array = float_field(default=1.0)

    coordinate_names = ("x", "y", "z", "qw", "qx", "qy", "qz")
    velocity_names = ("vx", "vy", "vz", "wx", "wy", "wz")

    def mass_matrix(self, q):
        return jax.scipy.linalg.block_diag(self.mass * jnp.eye(3), jnp.asarray(INERTIA))

    def retract(self, q, dq):
        return jnp.concatenate([q[:3] + dq[:3], rotations.retract(q[3:], dq[3:])])

    def force(self, t, q, v, u):
        R = rotations.matrix(q[3:])
        arms = jnp.asarray(ATTACHMENTS - CENTRE)
        line = q[:3] + arms @ R.T - EXITS
        length = jnp.linalg.norm(line, axis=1)
        rate = jnp.sum(line * (v[:3] + jnp.cross(v[3:], arms) @ R.T), axis=1) / length
        e = (length - UNSTRETCHED) / WIDTH
        soft = STIFFNESS * WIDTH * jnp.log1p(jnp.exp(-jnp.abs(e))) + STIFFNESS * WIDTH * (
            jnp.maximum(e, 0.0)
        )
        T = self.cables * jnp.maximum(soft + DAMPING * rate / (1.0 + jnp.exp(-e)), 0.0)
        pull = -(T / length)[:, None] * line
        torque = jnp.sum(jnp.cross(arms, pull @ R), axis=0)
        gyro = jnp.cross(v[3:], jnp.asarray(INERTIA) @ v[3:])
        return jnp.concatenate([self.mass * GRAVITY + pull.sum(axis=0), torque - gyro])

    def default_state(self):
        R = ROTATION
        q = np.concatenate([POSITION + R @ CENTRE, QUATERNION])
        centre_velocity = VELOCITY + np.cross(SPIN, R @ CENTRE)
        return State(jnp.asarray(q), jnp.asarray(np.concatenate([centre_velocity, R.T @ SPIN])))


OPTIONS = {"dt": 1e-3, "duration": 1.0, "save_every": 100}


def swung(basis, **options):
    machine = robot(basis, **options)
    start = machine.state_at(velocity=VELOCITY, angular_velocity=SPIN)
    return simulate(machine, start, **OPTIONS)


@pytest.fixture(scope="module")
def reference():
    return simulate(HungBody(), **OPTIONS)


@pytest.mark.parametrize("basis", BASES)
def test_the_same_motion_as_a_quaternion_body(basis, reference):
    """On elastic cables, whose law is written out once more there."""
    run = swung(basis, cables=ElasticCables(np.full(4, STIFFNESS), DAMPING, WIDTH))
    np.testing.assert_allclose(run["position"], reference.q[:, :3], atol=2e-9)
    quaternion = np.asarray(run["quaternion"])
    sign = np.sign(np.sum(quaternion * np.asarray(reference.q[:, 3:]), axis=1, keepdims=True))
    np.testing.assert_allclose(sign * quaternion, reference.q[:, 3:], atol=2e-8)
    np.testing.assert_allclose(run["velocity"], reference.v[:, :3], atol=2e-7)


def test_a_free_body():
    """Cables too long to pull: the centre of mass falls, angular momentum about it stays."""
    machine = robot("oblique and away from the origin", cables=ElasticCables(np.full(4, 1e3)))
    machine = CableRobot(
        machine.platform,
        ATTACHMENTS,
        machine.exits,
        ProgrammedLengths(np.full(4, 50.0)),
        machine.cables,
        position=POSITION,
        rotation=ROTATION,
    )
    run = simulate(machine, machine.state_at(velocity=VELOCITY, angular_velocity=SPIN), **OPTIONS)
    t = np.asarray(run.t)[:, None]
    start = np.asarray(run["position"])[0], np.asarray(run["velocity"])[0]
    fall = start[0] + t * start[1] + 0.5 * t**2 * GRAVITY
    np.testing.assert_allclose(run["position"], fall, atol=1e-10)
    R = np.asarray(jax.vmap(rotations.matrix)(run["quaternion"]))
    momentum = np.einsum("kij,jl,kml,km->ki", R, INERTIA, R, np.asarray(run["angular_velocity"]))
    np.testing.assert_allclose(momentum, np.tile(momentum[0], (len(t), 1)), atol=1e-8)
    energy = np.asarray(run.energy()["total"])
    assert np.ptp(energy) < 1e-7
