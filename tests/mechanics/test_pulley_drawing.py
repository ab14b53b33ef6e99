"""Pulleys and drums turn as their cables run: rims move as fast as the cable, without slipping."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.mechanics.parts.exits import PulleyExit, SwivelPulleyExit
from cordax.mechanics.parts.pulley_drawing import wheels
from cordax.systems import Neck
from cordax.systems import mechanism as mech

AXIS = np.array([[0.0, 0.0, 1.0], [0.3, -0.2, 0.9], [0.0, 0.0, -1.0]])


def rim_velocity(wheels_at, at: float, rim) -> np.ndarray:
    """Velocity (n, d) of the points of the wheels that are at `rim` (n, d) now, with the velocity
    of their centres taken off."""
    now, rate = jax.jit(lambda at: jax.jvp(wheels_at, (at,), (1.0,)))(at)
    local = np.einsum("nij,ni->nj", now.rotation, rim - now.position)
    return np.einsum("nij,nj->ni", rate.rotation, local)


def test_a_wheel_is_round_and_rigid():
    x, y = jnp.array([[0.0, 1.0, 0.0]]), jnp.array([[0.0, 0.0, 1.0]])
    wheel = wheels(jnp.array([[1.0, 2.0, 3.0]]), x, y, jnp.array([0.7]), 0.4)
    np.testing.assert_allclose(wheel.rotation[0] @ wheel.rotation[0].T, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(np.linalg.det(wheel.rotation[0]), 1.0)
    away = np.linalg.norm(wheel.corners()[0] - jnp.array([1.0, 2.0, 3.0]), axis=-1)
    np.testing.assert_allclose(away[:, 0], 0.0, atol=1e-15)
    np.testing.assert_allclose(away[:, 1:], 0.4)


@pytest.mark.parametrize("kind", [PulleyExit, SwivelPulleyExit])
def test_pulleys_roll_on_their_cables(kind):
    """Where the cable comes to the pulley, the rim moves along the axis as fast as cable runs out.
    The pulleys do not swivel: the platform's points move in their planes."""
    d = np.array([[2.0, 0.0, 1.0], [-1.0, 1.0, 1.5], [0.0, -2.0, 1.0]])
    options = {"pulley_inertia": np.ones(3)} if kind is SwivelPulleyExit else {}
    exits = kind(d, np.array([0.1, 0.2, 0.15]), axis=AXIS, **options)
    b = np.array([[0.1, 0.2, 0.0], [0.2, -0.1, 0.1], [0.0, 0.1, -0.2]])
    axis = AXIS / np.linalg.norm(AXIS, axis=1, keepdims=True)
    across = (b - d) - axis * np.sum(axis * (b - d), axis=1, keepdims=True)
    way = np.array([[0.7], [-0.4], [0.2]]) * axis + np.array([[0.3], [0.5], [-0.6]]) * across
    moved = lambda s: b + s * way

    @jax.jit
    def look():
        start, _ = exits.start(0.0, jnp.asarray(b), jnp.zeros_like(b))
        length = lambda s: exits.length(0.0, moved(s), start)
        return (
            start,
            exits.path(0.0, jnp.asarray(b), start, 12)[:, 0],
            jax.jvp(length, (0.0,), (1.0,))[1],
        )

    start, rim, length_rate = look()
    found = rim_velocity(lambda s: exits.wheels(0.0, moved(s), start), 0.0, rim)
    np.testing.assert_allclose(found, np.asarray(length_rate)[:, None] * axis, atol=1e-12)


def test_drums_of_the_neck_pay_out():
    """At the side where the tendon leaves, the rim moves up as tendon is paid out."""
    neck = Neck.default(3)
    state_at = eqx.filter_jit(
        lambda neck: neck.state_at(np.array([0.3, -0.2, 0.4]), tension=np.full(4, 10.0))
    )
    q, turn = state_at(neck).q, np.array([1.0, 2.0, -1.0, 0.5])
    drums = lambda s: neck.geometry(0.0, q.at[3:].add(s * turn)).bodies
    rim = jax.jit(lambda q: neck.geometry(0.0, q).lines["tendon"][:, 0])(q)
    found = rim_velocity(lambda s: drums(s)["drum"], 0.0, rim)
    speed = np.asarray(neck.motors.travel) * turn
    np.testing.assert_allclose(found, np.stack([0 * speed, speed], axis=1), atol=1e-12)


@pytest.mark.parametrize("clockwise", [False, True])
def test_pulleys_of_mechanisms_roll_on_their_cables(clockwise):
    """A weight on a cable over a pulley to a drum at the ground, which pays out: the cable moves at
    the speed of the weight, and so does the rim of the pulley, in the direction of the cable."""
    side = -1.0 if clockwise else 1.0
    pulley = mech.Pulley(mech.WORLD, [0.0, 0, 2], 0.1, axis=[0.0, 1, 0], clockwise=clockwise)
    drum = mech.Pulley(
        mech.WORLD, [1.0, 0, 0], 0.2, axis=[0.0, 1, 0], zero=[1.0, 0, 0], clockwise=clockwise
    )
    end = mech.Eyelet("weight", [side * 0.1, 0.0, 0.0])
    cable = mech.RigidCable((drum, pulley, end), rest=3.0, windings=("drum",), radius=[0.2])
    bodies = [
        mech.Body("weight", mech.Prismatic("z"), solids=mech.cube(0.1, mass=1.0)),
        mech.Body("drum", mech.Revolute("y"), at=[5.0, 0, 0], solids=mech.cube(0.1, mass=1.0)),
    ]
    machine = mech.Mechanism(bodies, [cable])
    names = machine.coordinate_names
    q = jnp.asarray([0.5 * (name == "weight") for name in names])
    # the weight sinks by s and the drum pays out what that takes
    moved = lambda s: q.at[names.index("weight")].add(-s).at[names.index("drum")].add(s / 0.2)
    wheel = lambda s: machine.geometry(0.0, moved(s)).bodies["pulley"]
    # where the cable leaves each wheel: the drum first, then the pulley, straight down
    now = jax.jit(lambda q: machine.geometry(0.0, q))(q)
    line = np.asarray(now.lines["cable"][0])
    leaves = np.stack([line[8], line[17]])
    drum_way = (line[9] - line[8]) / np.linalg.norm(line[9] - line[8])
    found = rim_velocity(wheel, 0.0, leaves)
    np.testing.assert_allclose(found, np.stack([drum_way, [0.0, 0.0, -1.0]]), atol=1e-9)
    assert float(now.bodies["pulley"].position[1, 2]) == 2.0
