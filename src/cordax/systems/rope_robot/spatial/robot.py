"""Ropes of rigid finite elements in space: alone, with held ends, or carrying a platform."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...._base.checks import require_rotation, require_shape
from ...._base.precision import as_float_array
from ...._jax.materialise import materialise
from ....math import rotations
from ....math.linalg import inverse3, matmul
from ....mechanics import Presentation, Scene, State
from ....mechanics.parts.line_contact import Line, LineContacts, line
from ...cable_robot import drawing
from ...cable_robot.block_solve import at_points
from ...cable_robot.natural import PAIRS, axes, place, point_force
from ..equilibrium import settled
from . import chain
from .initial_arcs import hanging_arcs
from .layout import RopesInSpace
from .linearisation import Factor
from .segments import Ropes, direction, dissipated_power, elastic_energy, forces, tension, turning
from .structure import SpatialRopeStructure


class SpatialRopeRobot(RopesInSpace):
    """m ropes of `count` segments each in space, z up; motion in a plane is that of `RopeRobot`.

    - `roots` (m, 3) [m]: points from which the ropes hang;
    - `length` [m], `line_density` [kg/m], `EA` [N], `EI` [N m^2]: one value for all or one per
      rope;
    - `axial_time`, `bending_time` [s]: damping times; tension and moments resist strain rates with
      these times their stiffness;
    - `root_stiffness` [-]: relative stiffness of the joint at the root, 0 a hinge, 1 like any other
      joint, 2 a clamp, towards the unit vector `root_direction` (3,) or (m, 3);
    - `platform`: the body that all ropes carry, at `attachments` (m, 3) [m] in its axes, initially
      at a `position` (3,) [m] with axes `rotation` (3, 3); or `end_point`: where the ends are held,
      (m, 3) [m]; neither: free ends;
    - `linear_damping` [N s/m], `angular_damping` [N m s]: of the platform;
    - `law`: resistance to stretch and bending (`LinearRope`, `ProgressiveRope`);
    - `contact`: one or several `LineContact`s with obstacles and of ropes with each other;
    - `gravity` [m/s^2] along -z.

    Coordinates: x, y, z [m] of the nodes of one rope after the other, from root to end, then the
    natural coordinates of the platform (12), which determine the ends of the ropes; constraints:
    its rigidity (6). The only singular states are a segment of zero length and one folded back onto
    the previous one. Inputs: force [N] at the centre of mass of the platform and torque [N m], or a
    force on each free end.

    Ropes neither twist nor spin about their axes. They can also push: a slack rope has buckled."""

    default_integrator = "linearly_implicit_euler"
    default_dt = 1e-3

    # --- equations
    def structure(self) -> SpatialRopeStructure:
        return SpatialRopeStructure(self)

    def residual(self, t, q, v, u, a, multipliers) -> Float[Array, " n"]:
        """Compute `M a + Phi_q^T lambda - f`, shape (n_v,), in O(s)."""
        left = self._residual(q, v, u, a, multipliers)
        if not self.contact:
            return left
        push = LineContacts(self.contact).forces(self._line(q, v))
        nodes, back = jax.vjp(self.nodes, q)
        return left - back(push.reshape(nodes.shape))[0]

    def _line(self, q, v) -> Line:
        x, rate = jax.jvp(self.nodes, (q,), (v,))
        length = self.length / self.count
        return line(x.reshape(-1, 3), rate.reshape(-1, 3), length, self.n_ropes)

    def _residual(self, q, v, u, a, multipliers):
        """The same without contact."""
        r = self.ropes()
        on_before, on = forces(r, materialise(self.segments(q, v, a)))
        rows = self._at_nodes(r, on_before, on, self.rates(a), self.gravity)
        if self.platform is None:
            if self.end_point is None:
                rows = rows.at[:, -1].add(-u.reshape(self.n_ropes, 3).T)
            return self.join(rows)
        (_, q), (_, v), (_, w) = (self.split(x) for x in (q, v, a))
        body = self.body_residual(q, v, w, u, multipliers)
        return self.join(rows, body + at_points(self.weights(), rows[:, -1].T))

    def _at_nodes(self, r: Ropes, on_before, on, a, gravity):
        """Forces (3, s, m) that nodes need, from those that act on segments, for accelerations `a`
        of nodes against gravity."""
        below = lambda x: jnp.concatenate([x[:, 1:], jnp.zeros_like(x[:, :1])], axis=1)
        on = on + below(on_before)
        shares = np.full((self.count, 1), 2.0)
        shares[-1] = 1.0
        up = jnp.stack([0.0 * gravity, 0.0 * gravity, gravity])[:, None, None]
        return on - below(on) + shares.astype(a.dtype) * r.mass * (a + up)

    def body_residual(self, q, v, a, u, multipliers) -> Float[Array, " 12"]:
        """Residual of the platform alone."""
        body = self.platform
        assert body is not None
        centre = body.weights(body.centre)
        zero = 0.0 * self.gravity
        weight = body.mass * jnp.stack([zero, zero, -self.gravity])
        pull = weight + u[:3] - self.linear_damping * place(centre, v)
        rows = materialise(inverse3(axes(q)))  # y_k of `NaturalBody.angular_velocity`
        spin = 0.5 * jnp.sum(jnp.cross(rows, axes(v).T), axis=0)
        turned = 0.5 * jnp.cross(u[3:] - self.angular_damping * spin, rows)
        on_axes = rigidity_force(axes(q), multipliers).T - turned
        rest = self._body_momentum(a) - point_force(centre, pull)
        return rest + jnp.concatenate([-on_axes[:1], on_axes]).reshape(12)

    def _body_momentum(self, v):
        assert self.platform is not None
        K = self.platform.mass_weights
        return jnp.sum(K[:, :, None] * v.reshape(4, 3)[None], axis=1).reshape(12)

    def momentum(self, q, v):
        r, rest = self.ropes(), jnp.zeros_like(v)
        x = self.segments(q, rest, v)
        on = turning(r, direction(x.below, x.below_rate), x.second)
        weightless = jnp.zeros((), q.dtype)
        rows = self._at_nodes(r, jnp.zeros_like(on), on, self.rates(v), weightless)
        if self.platform is None:
            return self.join(rows)
        body = self._body_momentum(self.split(v)[1])
        return self.join(rows, body + at_points(self.weights(), rows[:, -1].T))

    def mass_factor(self, q) -> Factor:
        """Factor of the mass matrix, with ropes condensed to their ends."""
        rest = jnp.zeros_like(q)
        elements = chain.mass_elements(self.ropes(), self.segments(q, rest, rest).below)
        held = self.end_point is not None
        if self.platform is None:
            return Factor.of(elements, None, None, held)
        alone = jnp.kron(self.platform.mass_weights, jnp.eye(3, dtype=q.dtype))
        return Factor.of(elements, self.weights(), alone, held)

    def constraint(self, t, q):
        if self.platform is None:
            return jnp.zeros(0, q.dtype)
        return self.platform.constraint(q[-12:])

    # --- energies
    def potential_energy(self, t, q):
        r, rest = self.ropes(), jnp.zeros_like(q)
        x = self.segments(q, rest, rest)
        nodes = self.places(q)[2]
        # the common centre of the two rods of a segment is in its middle
        heights = jnp.sum(2.0 * r.mass * (nodes - 0.5 * x.below[2]))
        energy = self.gravity * heights + elastic_energy(r, x)
        if self.platform is not None:
            centre = self.platform.weights(self.platform.centre)
            energy = energy + self.platform.mass * self.gravity * place(centre, q[-12:])[2]
        if self.contact:
            energy = energy + LineContacts(self.contact).energy(self._line(q, rest))
        return energy

    def dissipation(self, q, v):
        """Power [W] dissipated by damping."""
        power = dissipated_power(self.ropes(), self.segments(q, v, jnp.zeros_like(v)))
        if self.platform is None:
            return power
        body, q, v = self.platform, q[-12:], v[-12:]
        speed, spin = place(body.weights(body.centre), v), body.angular_velocity(q, v)
        linear, angular = self.linear_damping, self.angular_damping
        return power + linear * jnp.sum(speed**2) + angular * jnp.sum(spin**2)

    # --- states
    def hanging(self, position=None, rotation=None) -> State:
        """State at rest, not in equilibrium, with ropes as circular arcs in vertical planes. They
        reach from their roots to the platform at a position (3,) [m] with axes (3, 3), by default
        those of the machine, or to the points that hold them; free ropes are straight along
        `root_direction`."""
        if self.n_nodes == self.count:
            root = jnp.broadcast_to(self.root_direction, (self.n_ropes, 3)).T
            share = jnp.arange(1, self.count + 1)[:, None] / self.count * self.length
            q = self.join(self.roots.T[:, None] + root[:, None] * share)
            return State(q, jnp.zeros_like(q))
        platform, there = None, self._there()
        if self.platform is not None:
            position = self.position if position is None else as_float_array(position, "position")
            rotation = self.rotation if rotation is None else as_float_array(rotation, "rotation")
            require_shape("position", position, (3,))
            require_rotation("rotation", rotation)
            platform = self.platform.coordinates(position, rotation)[0]
            there = place(self.weights(), platform).T
        length = jnp.broadcast_to(self.length, (self.n_ropes,))
        nodes = self.roots.T[:, None] + hanging_arcs(there - self.roots.T, length, self.count)
        q = self.join(nodes, platform)
        return State(q, jnp.zeros_like(q))

    def rest(self, u=None, guess: State | None = None, max_steps: int = 300) -> State:
        """Equilibrium under constant inputs `u` (n_u,). It is computed from a `guess`, by default
        `hanging()`, with limited steps, and is differentiable. Raises if the remaining force
        exceeds 1e-9 of weight and inputs, or a constraint violation 1e-9."""
        start = self.hanging() if guess is None else guess
        u = jnp.zeros(self.n_u, start.q.dtype) if u is None else as_float_array(u, "u")
        require_shape("u", u, (self.n_u,))
        require_shape("guess.q", start.q, (self.n_q,))
        q = settled(self, jnp.zeros((), start.q.dtype), start.q, u, max_steps)
        return State(q, jnp.zeros_like(q))

    def default_state(self):
        """The equilibrium without inputs."""
        return self.rest()

    # --- outputs and drawing
    def nodes(self, q) -> Float[Array, "m k 3"]:
        """Positions [m] of the k = count + 1 nodes of each rope, roots first."""
        points = jnp.concatenate([self.roots.T[:, None], self.places(q)], axis=1)
        return points.transpose(2, 1, 0)

    def outputs(self, t, q, v, u, multipliers):
        x = self.segments(q, v, jnp.zeros_like(v))
        pull = tension(self.ropes(), direction(x.below, x.below_rate))
        out = {"node": self.nodes(q), "root_tension": pull[0], "tension": pull[-1]}
        if self.platform is not None:
            R = self.platform.rotation(q[-12:])
            out["position"] = place(self.platform.weights(self.platform.centre), q[-12:])
            out["quaternion"] = rotations.from_matrix(R)
            out["euler"] = rotations.euler_zyx(R)
        if self.contact:
            out |= LineContacts(self.contact).outputs(self._line(q, v))
        return out

    def presentation(self):
        plots = ("node", "tension") if self.platform is None else ("position", "euler", "tension")
        newtons, metres = ("root_tension", "tension"), ("node", "position")
        return Presentation(
            units=dict.fromkeys(newtons, "N")
            | dict.fromkeys(metres, "m")
            | {"euler": "rad"}
            | LineContacts(self.contact).units(),
            warnings=LineContacts(self.contact).warnings,
            components={"position": ("x", "y", "z"), "euler": ("roll", "pitch", "yaw")},
            plots=plots,
            geometry=self.geometry,
        )

    def geometry(self, t, q):
        """Scene at time `t` [s] and coordinates `q`."""
        points, bodies = {"exit": self.roots}, {}
        if self.platform is not None:
            faces = drawing.solid(self.platform, self.attachments)
            bodies["body"] = drawing.posed(self.platform, q[-12:], faces)
            points["joint"] = self.nodes(q)[:, -1]
        return Scene({"cable": self.nodes(q)}, points, bodies)


def rigidity_force(X, multipliers) -> Float[Array, "3 3"]:
    """Compute `Phi_q^T lambda` of the rigidity of a body, on the columns of X."""
    L = jnp.zeros((3, 3), X.dtype)
    for (a, b), pull in zip(PAIRS, multipliers, strict=True):
        L = L.at[a, b].add(pull).at[b, a].add(pull)
    return matmul(X, L)
