"""A rope robot without axial waves."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._base.checks import require
from ..._base.fields import part_field
from ..._jax.materialise import materialise
from ...mechanics import Presentation, State
from ...mechanics.constraints import ConstraintTerms
from ...mechanics.residual_linearisation import ResidualStructure, ResidualSystem
from . import axial_elimination, ends
from .robot import RopeRobot


class AxialRopes(ResidualSystem):
    """`ropes` whose elongations are constant plus linear along each rope, by Galerkin's method.
    This removes axial waves, and with them the stiffness that rules out explicit steps.

    The equations are the same as those of `cordax.reduction.Subspace(ropes, axial_basis(ropes),
    0)`, coordinate for coordinate: angles of all segments, platform, then for each rope its mean
    elongation and half of the difference of the last to the first [m]. Here accelerations cost
    O(s)."""

    ropes: RopeRobot = part_field()

    default_integrator = "rk4"
    default_dt = 2.5e-4

    def __check_init__(self):
        n = self.ropes.count
        require(n > 1, "ropes.count", n, "2 or more: one segment has one elongation, not two")

    @property
    def coordinate_names(self):
        own = [name for name in self.ropes.coordinate_names if not name.startswith("stretch_")]
        kinds = ("stretch", "slope")
        more = [f"{kind}_{j + 1}" for j in range(self.ropes.n_ropes) for kind in kinds]
        return (*own, *more)

    @property
    def input_names(self):
        return self.ropes.input_names

    def presentation(self):
        shown = self.ropes.presentation()
        units = {**shown.units, "slope": "m"}
        return Presentation(units=units, plots=shown.plots, geometry=self.geometry)

    @property
    def n_constraints(self):
        return self.ropes.n_constraints

    # --- conversion between both machines
    @property
    def _shapes(self) -> Float[Array, "s 2"]:
        return jnp.asarray(axial_elimination.shapes(self.ropes.count), self.ropes.roots.dtype)

    def _whole(self, x) -> Float[Array, " n"]:
        ropes, (s, m) = self.ropes, (self.ropes.count, self.ropes.n_ropes)
        angles, c = x[: s * m].reshape(m, s).T, x[x.shape[0] - 2 * m :].reshape(m, 2).T
        stretch = jnp.sum(self._shapes[:, :, None] * c, axis=1)
        platform = None if ropes.platform is None else x[s * m : s * m + 3]
        return ropes.join(jnp.stack([stretch, angles]), platform)

    def _projected(self, f) -> Float[Array, " r"]:
        rows, platform = self.ropes.split(f)
        c = jnp.sum(self._shapes[:, :, None] * rows[0][:, None], axis=0)
        return jnp.concatenate([rows[1].T.reshape(-1), platform, c.T.reshape(-1)])

    def lift(self, state: State) -> State:
        """State of the whole robot for a state of this machine."""
        return State(self._whole(state.q), self._whole(state.v))

    def project(self, state: State) -> State:
        """Nearest state of this machine, by least squares of elongations."""
        B = self._shapes
        size = jnp.sum(B**2, axis=0)

        def fit(x):
            y = self._projected(x)
            m = self.ropes.n_ropes
            c = y[-2 * m :].reshape(m, 2) / jnp.where(size > 0, size, 1.0)
            return jnp.concatenate([y[: -2 * m], c.reshape(-1)])

        return State(fit(state.q), fit(state.v))

    # --- equations
    def momentum(self, q, v):
        return self._projected(self.ropes.momentum(self._whole(q), self._whole(v)))

    def residual(self, t, q, v, u, a, multipliers):
        q, v, a = (self._whole(x) for x in (q, v, a))
        return self._projected(self.ropes.residual(t, q, v, u, a, multipliers))

    def constraint(self, t, q):
        return self.ropes.constraint(t, self._whole(q))

    def structure(self) -> "AxialStructure":
        return AxialStructure(self)

    # --- energies, states and outputs: those of the whole robot
    def potential_energy(self, t, q):
        return self.ropes.potential_energy(t, self._whole(q))

    def dissipation(self, q, v):
        """Power [W] dissipated by damping."""
        return self.ropes.dissipation(self._whole(q), self._whole(v))

    def default_state(self):
        return self.project(self.ropes.default_state())

    def outputs(self, t, q, v, u, multipliers):
        return self.ropes.outputs(t, self._whole(q), self._whole(v), u, multipliers)

    def geometry(self, t, q):
        """Scene at time `t` [s] and coordinates `q`."""
        return self.ropes.geometry(t, self._whole(q))


class AxialStructure(ResidualStructure):
    """Structure of `AxialRopes`."""

    system: AxialRopes

    def constraint_terms(self, t, q, v):
        machine = self.system
        if not machine.n_constraints:
            return super().constraint_terms(t, q, v)
        of_ropes = machine.ropes.structure().constraint_terms
        phi, J, rate, bias = of_ropes(t, machine._whole(q), machine._whole(v))
        return ConstraintTerms(phi, jax.vmap(machine._projected)(J), rate, bias)

    def acceleration(self, t, q, v, u):
        return self._accelerations(t, q, v, u, None)[0]

    def constrained_acceleration(self, t, q, v, u, stabilisation):
        if stabilisation.active is not None:
            return super().constrained_acceleration(t, q, v, u, stabilisation)
        return self._accelerations(t, q, v, u, stabilisation)

    def _accelerations(self, t, q, v, u, stabilisation):
        ropes, q, v = self.system.ropes, self.system._whole(q), self.system._whole(v)
        seg, x = ropes.motion(q, v)
        x = materialise(x)
        c, swept = axial_elimination.sweep(seg, x, ropes.elastic_rows(seg, x), ropes.gravity)
        platform = jnp.zeros(0, q.dtype)
        if not ropes.n_constraints:
            pull = ropes.tip(u)
        else:
            push = ropes.platform_push(u)
            held = ropes.holding(t, q, v)
            _, platform, pull = ends.close(ropes.roots, x, c, held, stabilisation, push)
            platform = jnp.zeros(0, q.dtype) if platform is None else platform
        angles, stretch = axial_elimination.substitute(swept, pull)
        a = jnp.concatenate([angles.T.reshape(-1), platform, stretch.T.reshape(-1)])
        return a, pull.T.reshape(-1) if ropes.n_constraints else jnp.zeros(0, q.dtype)
