"""Rest states: neutral directions, saddles, constraints, rotations, failures, derivatives."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import LagrangianSystem, State, System, equilibrium, float_field
from cordax.math import rotations
from cordax.systems import Pendulum
from cordax.systems import mechanism as parts
from helpers.hung_ball import Ball


class Winch(LagrangianSystem):
    """The load on an elastic cable of docs/your-own-machine.md."""

    load: jax.Array = float_field(default=5.0)
    stiffness: jax.Array = float_field(default=2e4)
    radius: jax.Array = float_field(default=0.05)
    coordinate_names = ("depth", "drum")
    input_names = ("torque",)

    def inertial_coordinates(self, q):
        return q

    def inertial_weights(self):
        return jnp.stack([self.load, 0.01 + 0.0 * self.load])

    def potential_energy(self, t, q):
        stretch = q[0] - self.radius * q[1]
        return 0.5 * self.stiffness * stretch**2 - 9.81 * self.load * q[0]

    def applied_force(self, t, q, v, u):
        return jnp.stack([jnp.zeros(()), u[0]])

    def default_state(self):
        return State(jnp.zeros(2), jnp.zeros(2))


HOLD = np.array([-0.05 * 9.81 * 5.0])


def test_a_winch_that_holds_may_stand_anywhere():
    """The stretch is m g/k; the rest is neutral, and what does not matter stays: momentum of the
    pair about the drum, 5 kg depth/0.05 m and 0.01 kg m^2 drum/0.05 m in opposite senses."""
    rest = equilibrium(Winch(), HOLD, full=True)
    depth, drum = np.asarray(rest.state.q)
    assert depth - 0.05 * drum == pytest.approx(9.81 * 5.0 / 2e4, rel=1e-12)
    assert 5.0 * depth * 0.05 + 0.01 * drum == pytest.approx(0.0, abs=1e-12)
    assert (int(rest.neutral), int(rest.unstable)) == (1, 0)
    # started there, it stays
    again = equilibrium(Winch(), HOLD, guess=rest.state)
    np.testing.assert_allclose(again.q, rest.state.q, atol=1e-12)


@pytest.mark.parametrize("mode", [jax.jacfwd, jax.jacrev])
def test_derivative_with_a_neutral_direction(mode):
    """Of the stretch m g/k by k, and of the sum that stays."""

    def found(k):
        q = equilibrium(Winch(stiffness=k), HOLD).q
        return jnp.stack([q[0] - 0.05 * q[1], 0.25 * q[0] + 0.01 * q[1]])

    slope = jax.jit(mode(found))(jnp.asarray(2e4))
    np.testing.assert_allclose(slope, [-9.81 * 5.0 / 4e8, 0.0], rtol=1e-9, atol=1e-18)


def test_pushed_where_nothing_holds():
    with pytest.raises(RuntimeError, match=r"forces push where nothing holds.*on depth"):
        equilibrium(Winch(), max_steps=60)


class Crane(LagrangianSystem):
    """A free trolley [m] and a load on two elastic, hinged links, angles [rad] from hanging."""

    coordinate_names = ("trolley", "upper", "lower")

    def inertial_coordinates(self, q):
        x = q[0] + jnp.cumsum(jnp.sin(q[1:]))
        return jnp.concatenate([q[:1], x, jnp.cumsum(jnp.cos(q[1:]))])

    def inertial_weights(self):
        return jnp.array([3.0, 1.0, 1.0, 1.0, 1.0])

    def potential_energy(self, t, q):
        return -9.81 * jnp.sum(jnp.cumsum(jnp.cos(q[1:])))

    def default_state(self):
        return State(jnp.array([0.7, 2.0, -1.0]), jnp.zeros(3))


def test_a_crane_with_a_free_trolley():
    rest = equilibrium(Crane(), full=True)
    np.testing.assert_allclose(np.sin(rest.state.q[1:]), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.cos(rest.state.q[1:]), 1.0, atol=1e-9)
    assert (int(rest.neutral), int(rest.unstable)) == (1, 0)
    # hanging already, it is left where it is
    there = State(jnp.array([0.3, 0.0, 0.0]), jnp.zeros(3))
    np.testing.assert_array_equal(equilibrium(Crane(), guess=there).q, there.q)


def test_saddles_are_left_unless_wanted():
    for angle in (3.0, np.pi):
        rest = equilibrium(Pendulum(), guess=State(np.array([angle]), np.zeros(1)), full=True)
        assert np.cos(float(rest.state.q[0])) == pytest.approx(1.0, abs=1e-12)
        assert bool(rest.stable)
    guess = State(np.array([3.0]), np.zeros(1))
    upright = equilibrium(Pendulum(), guess=guess, stable=False, full=True)
    assert float(upright.state.q[0]) == pytest.approx(np.pi, rel=1e-12)
    assert int(upright.unstable) == 1 and not bool(upright.stable)


def test_a_ball_on_a_string_from_far_away():
    """Constraints are met and the ball is let down, from a guess off the circle."""
    guess = State(np.array([0.9, 1.4]), np.zeros(2))
    rest = equilibrium(Ball(), guess=guess, full=True)
    np.testing.assert_allclose(rest.state.q, [0.0, -1.0], atol=1e-9)
    assert np.abs(rest.residual).max() < 1e-9
    terms = Ball().structure().constraint_terms(jnp.zeros(()), rest.state.q, rest.state.v)
    held = Ball().force(jnp.zeros(()), rest.state.q, rest.state.v, jnp.zeros(Ball().n_u))
    np.testing.assert_allclose(terms.jacobian.T @ rest.multipliers, held, atol=1e-9)


def test_constraints_that_cannot_be_met():
    apart = Ball(anchors=[[0.0, 0.0], [5.0, 0.0]], lengths=[1.0, 1.0])
    with pytest.raises(RuntimeError, match=r"no configuration.*\|Phi\| = .* stays in row"):
        equilibrium(apart, guess=State(np.array([0.9, 1.4]), np.zeros(2)))


class Compass(System):
    """A body on a ball joint in a field [N m]: quaternion, angular velocity [rad/s] in its axes."""

    field: jax.Array = float_field(default=(0.0, 3.0, -4.0))
    coordinate_names = ("w", "x", "y", "z")
    velocity_names = ("omega_x", "omega_y", "omega_z")

    def mass_matrix(self, q):
        return jnp.diag(jnp.array([1.0, 2.0, 3.5]))

    def force(self, t, q, v, u):
        needle = jnp.array([1.0, 0.0, 0.0])
        inward = rotations.rotate(q * jnp.array([1.0, -1.0, -1.0, -1.0]), self.field)
        return jnp.cross(needle, inward)

    def retract(self, q, dq):
        return rotations.retract(q, dq)

    def default_state(self):
        return State(np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3))


def test_rotations():
    """A needle turns into the field; about itself it is neutral."""
    rest = equilibrium(Compass(), full=True)
    needle = rotations.rotate(rest.state.q, jnp.array([1.0, 0.0, 0.0]))
    np.testing.assert_allclose(needle, [0.0, 0.6, -0.8], atol=1e-9)
    assert rest.state.v.shape == (3,)
    assert (int(rest.neutral), int(rest.unstable)) == (1, 0)


class Follower(LagrangianSystem):
    """Two springs and a force that turns with the second angle: no energy. Angles [rad]."""

    push: jax.Array = float_field(default=1.5)
    coordinate_names = ("first", "second")

    def inertial_coordinates(self, q):
        return q

    def inertial_weights(self):
        return jnp.array([2.0, 1.0])

    def potential_energy(self, t, q):
        return 2.0 * q[0] ** 2 + 2.0 * (q[1] - q[0]) ** 2

    def applied_force(self, t, q, v, u):
        return self.push * jnp.stack([jnp.cos(q[1] - q[0]), jnp.ones(())])

    def default_state(self):
        return State(jnp.zeros(2), jnp.zeros(2))


def test_forces_without_an_energy():
    """4 (q2 - q1) = p, 4 q1 = p + p cos(q2 - q1)."""
    rest = equilibrium(Follower(), full=True)
    difference = 1.5 / 4.0
    first = 1.5 * (1.0 + np.cos(difference)) / 4.0
    np.testing.assert_allclose(rest.state.q, [first, first + difference], rtol=1e-9)
    assert bool(rest.stable)
    slope = jax.jacfwd(lambda p: equilibrium(Follower(push=p)).q)(jnp.asarray(1.5))
    bend = (1.0 + np.cos(difference) - difference * np.sin(difference)) / 4.0
    np.testing.assert_allclose(slope, [bend, bend + 0.25], rtol=1e-9)


def test_inside_of_jit_a_failure_says_why():
    with pytest.raises(Exception, match=r"no state at rest found"):
        jax.jit(lambda u: equilibrium(Pendulum(), u, max_steps=50).q)(jnp.array([20.0]))
    assert not bool(equilibrium(Pendulum(), np.array([20.0]), max_steps=50, full=True).found)


def test_many_at_once():
    torques = jnp.linspace(-5.0, 5.0, 4)
    angles = jax.vmap(lambda u: equilibrium(Pendulum(), u[None], full=True).state.q[0])(torques)
    np.testing.assert_allclose(angles, np.arcsin(torques / 9.81), rtol=1e-9)


def test_the_result_is_exported():
    assert isinstance(equilibrium(Winch(), HOLD, full=True), cordax.Equilibrium)


def test_a_rigid_cable_that_would_push_is_named():
    bob = parts.Body("bob", parts.Revolute("y"), solids=parts.point_mass(1.0, (1.0, 0, 0)))
    for height, warned in ((1.0, 0), (-1.0, 1)):
        cable = [parts.Eyelet("world", (1.0, 0, height)), parts.Eyelet("bob", (1.0, 0, 0))]
        machine = parts.Mechanism([bob], loops=[parts.RigidCable(cable, 1.0)])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cordax.equilibrium(machine)
        messages = [str(x.message) for x in caught if "can only pull" in str(x.message)]
        assert len(messages) == warned
        assert all("(world-bob length) with 9.81 N to push" in x for x in messages)
