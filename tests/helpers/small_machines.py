"""Machines at the edge of what the core allows: a singular mass matrix, quaternions under
constraints, and each of them solved by hand in one angle."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

from cordax import LagrangianSystem, State, System, float_field
from cordax.math import rotations
from cordax.math.safe import safe_norm


class SprungPendulum(System):
    """A pendulum, mass m at `centre` [m], whose massless end at `length` [m] is a node with
    coordinates of its own. A spring of `stiffness` [N/m] leads from the node to the `anchor` (2,)
    [m], a damper of `damping` [N s/m] acts on it, and, with `stop` [m], a string that cannot push.

    The mass matrix has rank 1 of 3."""

    mass: jax.Array = float_field(default=1.3)
    centre: jax.Array = float_field(default=0.6)
    length: jax.Array = float_field(default=1.0)
    stiffness: jax.Array = float_field(default=10.0)
    relaxed: jax.Array = float_field(default=0.4)
    damping: jax.Array = float_field(default=0.2)
    anchor: jax.Array = float_field(default=(1.4, -0.3))
    stop: jax.Array | None = None
    gravity: jax.Array = float_field(default=9.81)

    coordinate_names = ("angle", "x", "z")
    mass_is_regular = False

    def mass_matrix(self, q):
        return jnp.diag(jnp.array([1.0, 0.0, 0.0])) * self.mass * self.centre**2

    def pull(self, node, rate):
        """Force (2,) on the node."""
        along = self.anchor - node
        size = safe_norm(along)
        return self.stiffness * (size - self.relaxed) / size * along - self.damping * rate

    def force(self, t, q, v, u):
        weight = -self.mass * self.gravity * self.centre * jnp.sin(q[0])
        return jnp.concatenate([weight[None], self.pull(q[1:], v[1:])])

    def tip(self, angle):
        return self.length * jnp.stack([jnp.sin(angle), -jnp.cos(angle)])

    def constraint(self, t, q):
        rows = q[1:] - self.tip(q[0])
        if self.stop is None:
            return rows
        return jnp.append(rows, jnp.sum((q[1:] - self.anchor) ** 2) - self.stop**2)

    @property
    def one_sided(self):
        return np.arange(2 if self.stop is None else 3) == 2

    def potential_energy(self, t, q):
        stretch = safe_norm(self.anchor - q[1:]) - self.relaxed
        height = -self.centre * jnp.cos(q[0])
        return self.mass * self.gravity * height + 0.5 * self.stiffness * stretch**2

    def at(self, angle, rate):
        node, node_rate = jax.jvp(self.tip, (angle,), (rate,))
        return State(jnp.append(angle, node), jnp.append(rate, node_rate))

    def default_state(self):
        return self.at(jnp.asarray(0.5), jnp.asarray(-0.8))

    def angle(self, q):
        return q[0]


class OneAngle(System):
    """The same in its angle alone, for comparison; the string's row too."""

    whole: SprungPendulum

    coordinate_names = ("angle",)

    def mass_matrix(self, q):
        return jnp.eye(1) * self.whole.mass * self.whole.centre**2

    def force(self, t, q, v, u):
        w = self.whole
        node, rate = jax.jvp(w.tip, (q[0],), (v[0],))
        lever = jax.jvp(w.tip, (q[0],), (jnp.ones_like(q[0]),))[1]
        weight = -w.mass * w.gravity * w.centre * jnp.sin(q[0])
        return (weight + jnp.sum(lever * w.pull(node, rate)))[None]

    def constraint(self, t, q):
        if self.whole.stop is None:
            return jnp.zeros(0)
        return (jnp.sum((self.whole.tip(q[0]) - self.whole.anchor) ** 2) - self.whole.stop**2)[None]

    @property
    def one_sided(self):
        return np.ones(self.n_constraints, bool)

    def default_state(self):
        start = self.whole.default_state()
        return State(start.q[:1], start.v[:1])


class Door(LagrangianSystem):
    """A rigid body on two points of a horizontal axis, a loop of five rows: unit quaternion and
    position of the centre of mass; angular velocity in body axes and velocity in world axes.

    `inertia` (3,) [kg m^2] principal moments; `axis` (3,) and `arm` (3,) [m], perpendicular: the
    axis in body axes, and from the centre of mass to it."""

    mass: jax.Array = float_field(default=2.0)
    inertia: jax.Array = float_field(default=(0.3, 0.5, 0.15))
    axis: jax.Array = float_field(default=(0.6, 0.48, 0.64))
    arm: jax.Array = float_field(default=(-0.32, 0.4, 0.0))
    gravity: jax.Array = float_field(default=9.81)

    coordinate_names = ("w", "i", "j", "k", "x", "y", "z")
    velocity_names = ("omega_x", "omega_y", "omega_z", "v_x", "v_y", "v_z")

    def retract(self, q, dq):
        return jnp.concatenate([rotations.retract(q[:4], dq[:3]), q[4:] + dq[3:]])

    def rate(self, q, v):
        return jnp.concatenate([rotations.rate(q[:4], v[:3]), v[3:]])

    def difference(self, start, end):
        return jnp.concatenate([rotations.difference(start[:4], end[:4]), end[4:] - start[4:]])

    kinetic_form = "velocities"

    def inertial_velocities(self, q, v):
        return v

    def inertial_weights(self):
        return jnp.concatenate([self.inertia, jnp.full(3, self.mass)])

    def potential_energy(self, t, q):
        return self.mass * self.gravity * q[6]

    def constraint(self, t, q):
        on_axis = lambda s: q[4:] + rotations.rotate(q[:4], self.arm + s * self.axis)
        return jnp.concatenate([on_axis(-0.3) + jnp.array([0.3, 0.0, 0.0]), on_axis(0.3)[1:]])

    def frame(self):
        """Rotation body to world with the axis along x and the centre of mass hanging down."""
        up = self.arm / safe_norm(self.arm)
        return jnp.stack([self.axis, jnp.cross(up, self.axis), up])

    def at(self, angle, rate):
        turn = rotations.exponential(angle * jnp.array([1.0, 0.0, 0.0]))
        q = rotations.multiply(turn, rotations.from_matrix(self.frame()))
        spin = rate * jnp.array([1.0, 0.0, 0.0])
        r = -rotations.rotate(q, self.arm)
        v = jnp.concatenate([rate * self.axis, jnp.cross(spin, r)])
        return State(jnp.concatenate([q, r]), v)

    def default_state(self):
        return self.at(jnp.asarray(0.7), jnp.asarray(-0.9))

    def angle(self, q):
        """From hanging, by where the centre of mass is."""
        return jnp.arctan2(q[5], -q[6])

    def pendulum(self):
        """Moment of inertia about the axis [kg m^2], and its distance to the centre of mass."""
        about = np.sum(np.asarray(self.inertia * self.axis**2))
        d = np.linalg.norm(self.arm)
        return about + float(self.mass) * d**2, d


def exact_angle(machine, end: float) -> float:
    """At `end` [s], by SciPy."""
    if isinstance(machine, Door):
        I, d = machine.pendulum()
        slope = lambda t, y: [y[1], -float(machine.mass * machine.gravity) * d / I * np.sin(y[0])]
        start = [0.7, -0.9]
    else:
        small = OneAngle(machine)
        both = eqx.filter_jit(lambda q, v: small.structure().acceleration(0.0, q, v, jnp.zeros(0)))
        slope = lambda t, y: [y[1], float(both(jnp.asarray(y[:1]), jnp.asarray(y[1:]))[0])]
        start = [0.5, -0.8]
    return solve_ivp(slope, (0, end), start, method="DOP853", rtol=1e-12, atol=1e-13).y[0, -1]
