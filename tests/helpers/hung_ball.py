"""A ball on strings, for tests of constrained dynamics: small, and solvable by hand."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cordax import State, System, float_field


class Ball(System):
    """A point mass in a vertical plane (x, z) on k strings of `lengths` (k,) [m] from `anchors`
    (k, 2) [m], which shake sideways with `amplitude` [m] and angular `frequency` [rad/s].

    `mass` [kg], `damping` [N s/m]; inputs: a force [N]. `one_way`: strings cannot push."""

    anchors: jax.Array = float_field(default=((0.0, 0.0),))
    lengths: jax.Array = float_field(default=(1.0,))
    mass: jax.Array = float_field(default=0.7)
    damping: jax.Array = float_field(default=0.0)
    amplitude: jax.Array = float_field(default=0.0)
    frequency: jax.Array = float_field(default=5.0)
    gravity: jax.Array = float_field(default=9.81)
    one_way: bool = eqx.field(static=True, default=False)

    coordinate_names = ("x", "z")
    input_names = ("force_x", "force_z")

    def mass_matrix(self, q):
        return self.mass * jnp.eye(2)

    def force(self, t, q, v, u):
        return u - self.damping * v - self.mass * self.gravity * jnp.array([0.0, 1.0])

    def constraint(self, t, q):
        shake = self.amplitude * jnp.sin(self.frequency * t) * jnp.array([1.0, 0.0])
        return jnp.sum((q - self.anchors - shake) ** 2, axis=1) - self.lengths**2

    @property
    def one_sided(self):
        return np.full(self.lengths.shape[0], self.one_way)

    def multiplier_forces(self, t, q, multipliers):
        return 2.0 * self.lengths * multipliers

    def outputs(self, t, q, v, u, multipliers):
        return {"tension": 2.0 * self.lengths * multipliers}

    def potential_energy(self, t, q):
        return self.mass * self.gravity * q[1]

    def at_angle(self, angle, rate=0.0):
        """On the first string, `angle` [rad] from hanging, swinging at `rate` [rad/s]."""
        l, (x, z) = self.lengths[0], self.anchors[0]
        s, c = np.sin(angle), np.cos(angle)
        q = jnp.stack([x + l * s, z - l * c])
        return State(q, rate * l * jnp.array([c, s]))

    def default_state(self):
        return self.at_angle(1.1, 0.5)


def swing(ball: Ball, angle, rate, t_end):
    """Angle [rad], its rate and the tension [N] of the one-string ball at `t_end`, by SciPy in the
    angle alone; the anchor shakes."""
    from scipy.integrate import solve_ivp

    l, m, g, c = (float(x) for x in (ball.lengths[0], ball.mass, ball.gravity, ball.damping))
    A, w = float(ball.amplitude), float(ball.frequency)

    def motion(t, y):
        # damping acts on the absolute velocity
        support, support_rate = -A * w**2 * np.sin(w * t), A * w * np.cos(w * t)
        drag = c / m * (y[1] * l + support_rate * np.cos(y[0]))
        return [y[1], (-g * np.sin(y[0]) - support * np.cos(y[0]) - drag) / l]

    y = solve_ivp(motion, (0, t_end), [angle, rate], method="DOP853", rtol=1e-13, atol=1e-14).y
    angle, rate = y[:, -1]
    support, support_rate = -A * w**2 * np.sin(w * t_end), A * w * np.cos(w * t_end)
    tension = m * (g * np.cos(angle) + l * rate**2 - support * np.sin(angle))
    return angle, rate, tension - c * support_rate * np.sin(angle)
