"""Model-predictive control: inputs are optimised over a horizon and the first ones applied."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._base.checks import require, require_number, require_positive, require_shape
from .._base.fields import count_field, names_field, part_field, setting_field
from .._base.precision import float_field
from .._base.results import Result, code_unless
from .._jax.materialise import materialise
from ..formulations import IndependentCoordinates, Minimal
from ..formulations.independent import columns
from ..math.linalg import gram, matmul, matvec, solve, vecmat
from ..math.qp import solve_qp
from ..mechanics import Controller, State
from ..mechanics.reference_motion import reference_field
from .inverse_dynamics import Driven, freely_moving
from .references import Reference


class ModelPredictive(Controller):
    """Model-predictive controller that follows a reference by inputs held for one `period` [s].

    Once per period it computes the inputs of the next `horizon` periods that minimise

        sum_k tracking |y_k - P(t_k)|^2 + tracking_rate |y'_k - P'(t_k)|^2 + effort |u_k|^2

    subject to `least <= z_k` for the coordinates z named in `bounded`, and applies the inputs of
    the first period. y are the `followed` coordinates and P is their `reference`. The machine is
    linearised at its present state and inputs to predict its motion.

    The controller works for any machine whose freely moving coordinates have velocities of the same
    names; a machine with loops must name its `independent` coordinates. `start` (n_u,): inputs
    before the first period, at which the first prediction is linearised. Weights [1/unit^2]. If the
    quadratic programme is infeasible, the run stops with `qp_infeasible`."""

    machine: Driven = part_field()
    reference: Reference = reference_field()
    followed: tuple[str, ...] = names_field()
    start: Float[Array, " n_u"] = float_field()
    bounded: tuple[str, ...] = names_field(default=())
    least: Float[Array, "..."] = float_field(default=0.0)
    tracking: Float[Array, ""] = float_field(default=1.0)
    tracking_rate: Float[Array, ""] = float_field(default=0.0)
    effort: Float[Array, ""] = float_field(default=1e-6)
    period: float = setting_field(default=0.01)  # pyright: ignore[reportIncompatibleVariableOverride]
    horizon: int = count_field(default=10)
    may_fail = True

    def __check_init__(self):
        require_number("period", self.period)
        for name in ("tracking", "effort"):
            require_positive(name, getattr(self, name))
        require_positive("tracking_rate", self.tracking_rate, zero_allowed=True)
        require_shape("start", self.start, (self.machine.n_u,))
        require_shape("least", self.least, (), (len(self.bounded),))
        free = freely_moving(self.machine)
        require(len(free) > 0, "machine", "loops alone", "one that names `independent` coordinates")
        for field in ("followed", "bounded"):
            for name in getattr(self, field):
                require(name in free, field, repr(name), "some of " + ", ".join(free))
        require(len(self.followed) > 0, "followed", "none", "some of " + ", ".join(free))

    def prepare(self):
        return eqx.tree_at(lambda c: c.machine, self, self.machine.prepare())

    def init(self, state):
        return self.start

    def __call__(self, t, state, memory):
        u, solved = self.solve(t, state, memory)
        return u, u, code_unless(solved, Result.QP_INFEASIBLE)

    def solve(self, t, state: State, before):
        """Return the inputs (n_u,) for the next period, and whether the quadratic programme was
        solved. `before` (n_u,): inputs of the last period."""
        free = freely_moving(self.machine)
        d, m, N = len(free), self.machine.n_u, self.horizon
        now, change, A, B = materialise(self._period(t, state, before))
        U = jnp.eye(N * m, dtype=now.dtype).reshape(N, m, N * m)

        def ahead(carry, block):
            e, G = carry
            e, G = change + matvec(A, e) - matvec(B, before), matmul(A, G) + matmul(B, block)
            return (e, G), (e, G)

        none = jnp.zeros(2 * d, now.dtype), jnp.zeros((2 * d, N * m), now.dtype)
        _, (e, G) = lax.scan(ahead, none, U)  # changes (N, 2d) without inputs, and their Jacobian
        rows = np.array([free.index(name) for name in self.followed])
        times = t + self.period * jnp.arange(1, N + 1)
        place, rate, _ = jax.vmap(self.reference)(times)
        P = self.effort * jnp.eye(N * m, dtype=now.dtype)
        q = jnp.zeros(N * m, now.dtype)
        for weight, index, wanted in (
            (self.tracking, rows, place),
            (self.tracking_rate, d + rows, rate),
        ):
            off = (now[index] + e[:, index] - wanted).reshape(-1)
            by = G[:, index].reshape(-1, N * m)
            P, q = P + weight * gram(by, by), q + weight * vecmat(off, by)
        if not self.bounded:
            return -solve(P, q, spd=True)[:m], jnp.array(True)
        held = np.array([free.index(name) for name in self.bounded])
        room = (self.least - now[held] - e[:, held]).reshape(-1)
        found = solve_qp(P, q, lower=room, C=G[:, held].reshape(-1, N * m))
        return found.x[:m], found.solved

    def _period(self, t, state: State, u):
        """Linearised motion over one period.

        Returns the present freely moving coordinates and rates (2d,), their change in one period
        with inputs `u`, and the derivatives of their values after the period with respect to their
        present values (2d, 2d) and to the inputs (2d, n_u)."""
        machine = self.machine
        free = freely_moving(machine)
        d, m = len(free), len(u)
        in_q = np.array([machine.coordinate_names.index(name) for name in free])
        in_v, _ = columns(machine, free)  # pyright: ignore
        E_q, E_v = np.eye(len(machine.coordinate_names))[in_q], np.eye(len(state.v))[in_v]
        # if the loops are closed at this state, one iteration gives the correct derivative
        formulation = IndependentCoordinates(iterations=1) if machine.n_constraints else Minimal()

        def slope(x, u):
            q, v = state.q + vecmat(x[:d], E_q), state.v + vecmat(x[d:], E_v)
            a, _ = formulation.acceleration(machine, t, q, v, u)  # pyright: ignore
            return jnp.concatenate([v[in_v], a[in_v]])

        origin = jnp.zeros(2 * d, state.q.dtype)
        value, along = jax.linearize(slope, origin, u)
        by = jax.vmap(lambda e: along(e[: 2 * d], e[2 * d :]), out_axes=1)(jnp.eye(2 * d + m))
        now = jnp.concatenate([state.q[in_q], state.v[in_v]])
        # x' = value + by (x, u) with constant u: one matrix exponential gives all three results
        rows = jnp.concatenate([by, value[:, None]], axis=1)
        whole = jnp.concatenate([rows, jnp.zeros((m + 1, 2 * d + m + 1), rows.dtype)])
        E = jax.scipy.linalg.expm(self.period * whole)[: 2 * d]
        return now, E[:, -1], E[:, : 2 * d], E[:, 2 * d : -1]
