"""Interface of a machine."""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .contacts import Contacts
from .presentation import Presentation
from .state import State
from .structure import Structure


class System(eqx.Module):
    """A machine: `M(q) a = f(t, q, v, u)`, with optional constraints `Phi(t, q) = 0`.

    A subclass defines the machine, independent of time stepping. It must define
    `coordinate_names`, `mass_matrix`, `force` and `default_state`; all other members have defaults.
    Parameters are array fields (`float_field`), so that they carry gradients and can be batched
    without recompilation."""

    default_integrator: ClassVar[str] = "rk4"
    default_dt: ClassVar[float] = 1e-3
    #: default formulation of constraints: a name of `formulations.BY_NAME`, a name with parameters,
    #: `("baumgarte", {"alpha": 5.0, "beta": 5.0})`, or None: see `simulate`
    default_formulation: ClassVar[Any] = None

    # --- names
    @property
    @abc.abstractmethod
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the n_q coordinates."""

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the n_v velocities: those of the coordinates, except with quaternions."""
        return self.coordinate_names

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs `u` (motor torques, winch lengths, external forces)."""
        return ()

    @property
    def mass_is_regular(self) -> bool:
        """Whether the mass matrix can be inverted. False for a machine with massless parts, which
        constraints must hold; M alone is then never inverted."""
        return True

    @property
    def flat(self) -> bool:
        """Whether dq/dt = v, and `retract` is an addition. A machine with as many velocities as
        coordinates, but velocities that are not their rates (body-fixed angular velocity and Euler
        angles), returns False and overrides `retract`."""
        return self.n_q == self.n_v

    # --- equations
    @abc.abstractmethod
    def mass_matrix(self, q) -> Float[Array, "n n"]:
        """Mass matrix M(q), shape (n_v, n_v), symmetric positive definite (semidefinite if
        `mass_is_regular` is False)."""

    @abc.abstractmethod
    def force(self, t, q, v, u) -> Float[Array, " n"]:
        """Sum of all generalised forces except constraint and held forces, velocity terms included,
        shape (n_v,)."""

    def held(self, t, q, v):
        """Effects that a linearly implicit step freezes at its start (dry friction torques), or
        None."""
        return None

    def held_force(self, t, q, held) -> Float[Array, " n"]:
        """Generalised force of the frozen effects `held` at configuration `q`, shape (n_v,)."""
        raise NotImplementedError(f"{type(self).__name__} defines held and must define held_force")

    def constraint(self, t, q) -> Float[Array, " m"]:
        """Holonomic constraints Phi(t, q), zero when satisfied, shape (m,); none by default."""
        return jnp.zeros(0, q.dtype)

    @property
    def one_sided(self) -> np.ndarray:
        """Constraints that can only pull, bool, shape (m,): physically Phi <= 0 and lambda >= 0.
        `Unilateral` and `ConvexContact` let them open; other integrators treat them as
        equations."""
        return np.zeros(self.n_constraints, bool)

    def multiplier_forces(self, t, q, multipliers) -> Float[Array, " m"]:
        """Multipliers (or impulses) converted to physical units, tensions [N] for cables, shape
        (m,)."""
        return multipliers

    # --- contact
    def contacts(self, t, q) -> Contacts | None:
        """Possible contact points of the machine, for a velocity-level solver; None for none."""
        return None

    def without_contacts(self) -> "System":
        """The machine without the forces of its `contacts`."""
        return self

    def without_forces(self) -> "System | None":
        """The machine without inputs and applied forces, also without gravity: its `force` contains
        only velocity terms (Coriolis, gyroscopic). None if these are not available separately; an
        integrator then treats them as applied forces, which suits `flat` coordinates."""
        return None

    def active_force(self, t, q, v, u) -> Float[Array, " n"]:
        """Applied forces, `total_force` without the velocity terms, shape (n_v,)."""
        inertial, f = self.without_forces(), self.total_force(t, q, v, u)
        return f if inertial is None else f - inertial.force(t, q, v, jnp.zeros(0, v.dtype))

    # --- configurations
    def retract(self, q, dq) -> Float[Array, " n_q"]:
        """Configuration that a motion from `q` at constant velocity `dq` (n_v,) reaches after one
        second. Overridden for quaternions. It must be exact to second order in `dq`, otherwise
        integrators of second order become first order."""
        return q + dq

    def difference(self, start, end) -> Float[Array, " n_v"]:
        """Tangent vector from `start` to `end`, shape (n_v,): `retract(start, difference(start,
        end))` is `end`. Overridden together with `retract`."""
        if not self.flat:
            raise NotImplementedError(f"{type(self).__name__} must define difference")
        return end - start

    def rate(self, q, v) -> Float[Array, " n_q"]:
        """dq/dt = N(q) v for velocity `v`: the derivative of `retract`."""
        if self.flat:
            return v
        zero, one = jnp.zeros((), q.dtype), jnp.ones((), q.dtype)
        return jax.jvp(lambda s: self.retract(q, s * v), (zero,), (one,))[1]

    def normalise(self, q) -> Float[Array, " n_q"]:
        """Valid configuration nearest to `q`, which a step may have left slightly invalid (unit
        quaternions)."""
        return q if self.flat else self.retract(q, jnp.zeros(self.n_v, q.dtype))

    # --- parts
    def structure(self) -> Structure:
        """Accelerations, solves and linearisation that follow from the equations. A machine whose
        matrices have structure returns a subclass with faster methods."""
        return Structure(self)

    def presentation(self) -> Presentation:
        """Units, default plots, drawing, summary, warnings and error texts of the machine."""
        return Presentation()

    def outputs(self, t, q, v, u, multipliers) -> dict[str, Float[Array, "..."]]:
        """Named quantities of interest at one instant: tensions, elongations, poses."""
        return {}

    def kinetic_energy(self, q, v):
        """Kinetic energy [J]."""
        return 0.5 * jnp.dot(v, self.structure().momentum(q, v))

    def potential_energy(self, t, q):
        """Potential energy [J] at time `t` [s], which matters for moving supports and wound
        lengths; zero by default."""
        return jnp.zeros((), q.dtype)

    def energies(self, t, q, v):
        """Kinetic and potential energy [J] at time `t` [s]. A machine with parts on supports that
        move as functions of time adds the energy of these parts: `kinetic_energy` depends on `v`
        alone."""
        return self.kinetic_energy(q, v), self.potential_energy(t, q)

    def valid(self, t, q, v):
        """Whether the model is valid at the state; otherwise the run stops with
        `runaway_state`."""
        return True

    def default_state(self) -> State:
        """Default initial state."""
        name = type(self).__name__
        raise NotImplementedError(
            f"{name} has no default_state: define it, or give a state to start from"
        )

    def prepare(self) -> "System":
        """Equivalent machine with all quantities precomputed that are constant during a run. Called
        inside the compiled function, before the time loop."""
        return self

    # --- derived
    @property
    def n_q(self) -> int:
        return len(self.coordinate_names)

    @property
    def n_v(self) -> int:
        return len(self.velocity_names)

    @property
    def n_u(self) -> int:
        return len(self.input_names)

    def total_force(self, t, q, v, u) -> Float[Array, " n"]:
        """Sum of `force` and the held forces evaluated at this state, shape (n_v,)."""
        held = self.held(t, q, v)
        f = self.force(t, q, v, u)
        return f if held is None else f + self.held_force(t, q, held)

    @property
    def n_constraints(self) -> int:
        """Number m of constraints."""
        # the same for all machines of one structure, whatever their parameters
        leaves, structure = jax.tree.flatten(self)
        key = structure, tuple(jnp.shape(x) for x in leaves)
        if key not in _rows:
            t, q = (jax.ShapeDtypeStruct(s, float) for s in ((), (self.n_q,)))
            _rows[key] = jax.eval_shape(self.constraint, t, q).shape[0]
        return _rows[key]


#: number of constraints by the structure of the machine: tracing it takes as long as 1000 steps
_rows: dict[Any, int] = {}
