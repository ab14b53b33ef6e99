"""The machine as the rest of cordax sees it."""

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
    """A machine: `M(q) a = f(t, q, v, u)`, with constraints `Phi(t, q) = 0` where it has any.

    A subclass says what the machine is and nothing about time stepping. Necessary are
    `coordinate_names`, `mass_matrix`, `force` and `default_state`; everything else has a default.
    Numbers are array fields (`float_field`), so that they carry gradients and batch without
    recompilation."""

    default_integrator: ClassVar[str] = "rk4"
    default_dt: ClassVar[float] = 1e-3
    #: how constraints are treated where the user does not say: a name of `formulations.BY_NAME`, a
    #: name and its numbers, `("baumgarte", {"alpha": 5.0, "beta": 5.0})`, or None: see `simulate`
    default_formulation: ClassVar[Any] = None

    # --- names
    @property
    @abc.abstractmethod
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the n_q coordinates."""

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Names of the n_v velocities: those of the coordinates unless quaternions appear."""
        return self.coordinate_names

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs `u` (motor torques, winch lengths, external forces)."""
        return ()

    @property
    def mass_is_regular(self) -> bool:
        """Whether the mass matrix can be inverted. A machine with massless parts says False: then
        constraints must hold them, and nothing inverts M alone."""
        return True

    @property
    def flat(self) -> bool:
        """Whether dq/dt = v, and `retract` adds. A machine with as many velocities as coordinates
        that are not their rates (body-fixed angular velocity and Euler angles) says False and
        overrides `retract`."""
        return self.n_q == self.n_v

    # --- equations
    @abc.abstractmethod
    def mass_matrix(self, q) -> Float[Array, "n n"]:
        """M(q), symmetric positive definite (semidefinite where `mass_is_regular` is False), shape
        (n_v, n_v)."""

    @abc.abstractmethod
    def force(self, t, q, v, u) -> Float[Array, " n"]:
        """All generalised forces but constraint and held forces, velocity terms included, shape
        (n_v,)."""

    def held(self, t, q, v):
        """What a linearly implicit step freezes at its start (dry friction torques), or None."""
        return None

    def held_force(self, t, q, held) -> Float[Array, " n"]:
        """The generalised force of frozen effects `held` at configuration `q`, shape (n_v,)."""
        raise NotImplementedError(f"{type(self).__name__} defines held and must define held_force")

    def constraint(self, t, q) -> Float[Array, " m"]:
        """Holonomic constraints Phi(t, q), zero when satisfied, shape (m,); none by default."""
        return jnp.zeros(0, q.dtype)

    @property
    def one_sided(self) -> np.ndarray:
        """Rows of the constraint that can only pull, bool, shape (m,): physically Phi <= 0 and
        lambda >= 0. `Unilateral` lets them go; everything else keeps them as equations."""
        return np.zeros(self.n_constraints, bool)

    def multiplier_forces(self, t, q, multipliers) -> Float[Array, " m"]:
        """Multipliers (or impulses) in physical units, tensions [N] for cables, shape (m,)."""
        return multipliers

    # --- contact
    def contacts(self, t, q) -> Contacts | None:
        """Points at which the machine may touch, for a velocity-level solve; None for none."""
        return None

    def without_contacts(self) -> "System":
        """The machine without the forces of its `contacts`."""
        return self

    def without_forces(self) -> "System | None":
        """The machine without inputs and applied forces, gravity included: its `force` are velocity
        terms (Coriolis, gyroscopic) alone. None where these are not known apart; a method then
        treats them as applied forces, which suits coordinates that are flat."""
        return None

    def active_force(self, t, q, v, u) -> Float[Array, " n"]:
        """Applied forces, `total_force` without the velocity terms, shape (n_v,)."""
        inertial, f = self.without_forces(), self.total_force(t, q, v, u)
        return f if inertial is None else f - inertial.force(t, q, v, jnp.zeros(0, v.dtype))

    # --- configurations
    def retract(self, q, dq) -> Float[Array, " n_q"]:
        """The configuration that a motion from `q` at constant velocity `dq` (n_v,) reaches after
        one second. Overridden where quaternions appear. Exact to second order in `dq`, else
        methods of second order become methods of first order."""
        return q + dq

    def difference(self, start, end) -> Float[Array, " n_v"]:
        """The tangent vector that leads from `start` to `end`, shape (n_v,): `retract(start,
        difference(start, end))` is `end`. Overridden together with `retract`."""
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
        """The configuration nearest to numbers `q` that a step has left a little off (unit
        quaternions)."""
        return q if self.flat else self.retract(q, jnp.zeros(self.n_v, q.dtype))

    # --- parts
    def structure(self) -> Structure:
        """Accelerations, solves and linearisation that follow from the equations; a machine whose
        matrices have structure returns a subclass with faster methods."""
        return Structure(self)

    def presentation(self) -> Presentation:
        """Units, default plots, drawing, summary, warnings and error texts of the machine."""
        return Presentation()

    def outputs(self, t, q, v, u, multipliers) -> dict[str, Float[Array, "..."]]:
        """Named quantities of interest at one instant: tensions, elongations, poses."""
        return {}

    def kinetic_energy(self, q, v):
        """[J]"""
        return 0.5 * jnp.dot(v, self.structure().momentum(q, v))

    def potential_energy(self, t, q):
        """[J] at time `t` [s], which matters to moving supports and wound lengths; zero unless the
        machine defines one."""
        return jnp.zeros((), q.dtype)

    def energies(self, t, q, v):
        """Kinetic and potential energy [J] at time `t` [s]. A machine with parts that supports move
        as time says adds what these parts have: `kinetic_energy` is that of `v` alone."""
        return self.kinetic_energy(q, v), self.potential_energy(t, q)

    def valid(self, t, q, v):
        """Whether the state lies where the model holds; a run that leaves it stops with
        `runaway_state`."""
        return True

    def default_state(self) -> State:
        """A natural start."""
        name = type(self).__name__
        raise NotImplementedError(
            f"{name} has no default_state: define it, or give a state to start from"
        )

    def prepare(self) -> "System":
        """An equal machine that has computed once what does not change along a run; called inside
        of the compiled function, before the time loop."""
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
        """`force` plus the held forces evaluated at this very state, shape (n_v,)."""
        held = self.held(t, q, v)
        f = self.force(t, q, v, u)
        return f if held is None else f + self.held_force(t, q, held)

    @property
    def n_constraints(self) -> int:
        """Number m of constraints."""
        # the same for all machines of one structure, whatever their numbers
        leaves, structure = jax.tree.flatten(self)
        key = structure, tuple(jnp.shape(x) for x in leaves)
        if key not in _rows:
            t, q = (jax.ShapeDtypeStruct(s, float) for s in ((), (self.n_q,)))
            _rows[key] = jax.eval_shape(self.constraint, t, q).shape[0]
        return _rows[key]


#: numbers of constraints by the structure of the machine: to trace them takes a thousand steps
_rows: dict[Any, int] = {}
