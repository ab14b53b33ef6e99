"""Inverse dynamics of structures on nearly rigid cables, as a quadratic programme."""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import known_values, require, require_positive
from .._base.precision import float_field
from .._base.results import Result, code_unless
from .._jax.constant_gather import take
from .._jax.materialise import materialise
from .._jax.program_cache import kept_filter_jit
from ..formulations import Reduced, reduce
from ..math.linalg import gram, matmul, matvec
from ..math.qp import solve_qp
from ..mechanics import Controller, State
from .references import Reference

#: [s] distance from a knot at which reference accelerations before and after it are evaluated
_KNOT = 1e-9


@runtime_checkable
class CableTerms(Protocol):
    """Terms of c cables at a state.

    - `strain` (c,): strains of the cables.
    - `stiffness` E A (c,) [N]: axial stiffnesses.
    - `columns` (n_v, c): generalised force that resists a unit of tension.
    - `rows` (c, n_v) and `bias` (c,) [1/s^2]: strain accelerations are `rows` times the generalised
      accelerations plus `bias`. Both are None if strains are coordinates."""

    strain: Array
    stiffness: Array
    columns: Array
    rows: Array | None
    bias: Array | None


@runtime_checkable
class CableStructure(Protocol):
    """Members that the controller requires of its machine, in addition to those of a System."""

    independent: tuple[str, ...]

    @property
    def n_u(self) -> int: ...
    @property
    def n_constraints(self) -> int: ...
    @property
    def coordinate_names(self) -> tuple[str, ...]: ...
    @property
    def velocity_names(self) -> tuple[str, ...]: ...
    def prepare(self) -> Any: ...
    def rate(self, q, v) -> Array: ...
    def position(self, q, body, point) -> Array: ...
    def point_terms(self, q, v, body, point) -> tuple[Array, Array]: ...
    def strain_names(self) -> tuple[str, ...]: ...
    def cable_terms(self, t, q, v) -> CableTerms: ...
    def input_matrix(self, t, q, v) -> Array: ...


@kept_filter_jit
def _strain(machine: CableStructure, state: State):
    return machine.cable_terms(jnp.zeros(()), state.q, state.v).strain


def _as_point(point: Any) -> tuple[str, tuple[float, float, float]] | None:
    """Convert a body and one of its points to a hashable value."""
    if point is None:
        return None
    words = "a body and a point of it, ('ee', (0.0, 0.0, 0.0))"
    pair = isinstance(point, Sequence) and len(point) == 2 and isinstance(point[0], str)
    require(pair and np.shape(point[1]) == (3,), "point", point, words)
    x, y, z = (float(number) for number in point[1])
    return point[0], (x, y, z)


class NearRigidQP(Controller):
    """Controller that computes torques u, tension changes d and free accelerations y_f'' for the
    desired accelerations y_d'' by a quadratic programme:

        minimise |u|^2    subject to    B~ u - A~ d - M~_f y_f'' = M~_d y_d'' + c~ - p~,
                                        strain + d/EA >= least_strain

    in independent coordinates. Strain accelerations are zero, because cables are nearly rigid.
    d = EA (change of strain) [N] are the tension changes that the torques would cause immediately.

    - `machine`: a `Mechanism` with elastic cables, wound on involute joints or over guides and
      drums (`CableSet`s without friction), that names its `independent` coordinates where it has
      loops;
    - `reference`: the desired motion (k,) of the `followed` coordinates (names of independent
      coordinates), or, with `point` (a body and one of its points), of that point [m];
    - `least_strain`: lower bound of the strains;
    - `K_p` [1/s^2], `K_d` [1/s]: feedback gains, `y_d'' = P'' + K_p (P - y) + K_d (P' - y')`;
    - `period` [s]: time between samples; None for control in every stage of the integrator.

    At a knot where the reference acceleration jumps, a controller in every stage uses the mean of
    both sides. An integrator evaluates such a knot at the end of one step and at the start of the
    next, so the two means together act like the jump."""

    machine: CableStructure
    reference: Reference
    least_strain: Float[Array, "..."] = float_field()
    followed: tuple[str, ...] = eqx.field(static=True, converter=tuple, default=())
    point: tuple[str, tuple[float, float, float]] | None = eqx.field(
        static=True, converter=_as_point, default=None
    )
    K_p: Float[Array, "..."] = float_field(unit="1/s^2", default=0.0)
    K_d: Float[Array, "..."] = float_field(unit="1/s", default=0.0)
    period: float | None = eqx.field(static=True, default=None)  # pyright: ignore[reportIncompatibleVariableOverride]
    may_fail: ClassVar[bool] = True

    def __check_init__(self):
        words = "one that names `independent` coordinates"
        require(len(self._free()) > 0, "machine", "loops alone", words)
        one = (len(self.followed) > 0) != (self.point is not None)
        require(one, "followed, point", (self.followed, self.point), "exactly one of them")
        for name in self.followed:
            names = self._moving()
            require(name in names, "followed", repr(name), "some of " + ", ".join(names))
            plain = name in self.machine.coordinate_names
            require(plain, "followed", repr(name), "a coordinate, or `point` for a floating body")
        require_positive("least_strain", self.least_strain, zero_allowed=True)
        require_positive("K_p", self.K_p, zero_allowed=True)
        require_positive("K_d", self.K_d, zero_allowed=True)

    def prepare(self):
        return eqx.tree_at(lambda c: c.machine, self, self.machine.prepare())

    def init(self, state):
        strain = known_values(_strain(self.machine, state))
        if strain is not None:
            numbered = tuple(f"strain of cable {i + 1}" for i in range(len(strain)))
            names = zip(self.machine.strain_names() or numbered, strain, strict=True)
            slack = ", ".join(f"{name} = {x:.4g}" for name, x in names if not x > 0)
            words = "strains above 0, as torques act through taut cables alone"
            require(not slack, "state0", slack, words)
        return ()

    def _free(self) -> tuple[str, ...]:
        """Return the names of the independent velocities: all velocities if there are no loops."""
        machine = self.machine
        return machine.independent if machine.n_constraints else machine.velocity_names

    def _moving(self) -> tuple[str, ...]:
        """Return the names of the independent velocities that are not strain rates."""
        strains = set(self.machine.strain_names())
        return tuple(name for name in self._free() if name not in strains)

    def __call__(self, t, state, memory):
        u, _, solved = self.solve(t, state)
        return u, memory, code_unless(solved, Result.QP_INFEASIBLE)

    @property
    def tracking_unit(self) -> str:
        """Unit of the tracking error."""
        return "rad" if self.point is None else "m"

    def tracking_error(self, trajectory) -> Float[Array, "k n"]:
        """Tracking error of a run: followed coordinates or point minus the reference."""
        if self.point is None:
            actual = jnp.stack([trajectory[name] for name in self.followed], axis=-1)
        else:
            body, point = self.point
            actual = jax.vmap(lambda q: self.machine.position(q, body, point))(trajectory.q)
        return actual - jax.vmap(self.reference.position)(trajectory.t)

    def solve(self, t, state: State):
        """Return torques (n_u,) [N m], tension changes d (c,) [N], and whether the quadratic
        programme was solved."""
        machine, q, v = self.machine, state.q, state.v
        n_u = machine.n_u
        at = reduce(machine, t, q, v, jnp.zeros(n_u, q.dtype), self._free())
        B = gram(at.G, machine.input_matrix(t, q, v))
        cables = machine.cable_terms(t, q, v)
        A = gram(at.G, cables.columns)
        moving = np.array([self._free().index(name) for name in self._moving()])
        M = take(at.mass, moving, axis=1)
        wanted = self._wanted(t, at, q, v)
        n_c = A.shape[1]
        none = lambda rows: jnp.zeros((rows.shape[0], n_u + n_c), q.dtype)
        below = lambda *rows: jnp.concatenate(rows)
        if self.point is None:
            followed = np.array([self._moving().index(name) for name in self.followed])
            free = np.setdiff1d(np.arange(len(moving)), followed)
            rows = jnp.concatenate([B, -A, -take(M, free, axis=1)], axis=1)
            right = matvec(take(M, followed, axis=1), wanted) - at.force
        else:
            H, left = self._point_rows(at, q, v)
            H, free, followed = take(H, moving, axis=1), np.arange(len(moving)), None
            rows = jnp.concatenate([B, -A, -M], axis=1)
            rows = below(rows, jnp.concatenate([none(H), H], axis=1))
            right = below(-at.force, wanted - left)
        if cables.rows is not None and cables.bias is not None:
            # zero strain accelerations are equations for the other coordinates
            E = take(matmul(cables.rows, at.G), moving, axis=1)
            left = -matvec(cables.rows, at.g) - cables.bias
            if followed is not None:
                left = left - matvec(take(E, followed, axis=1), wanted)
            rows = below(rows, jnp.concatenate([none(E), take(E, free, axis=1)], axis=1))
            right = below(right, left)
        n_f = len(free)
        cost = jnp.diag(jnp.concatenate([jnp.ones(n_u), jnp.zeros(n_c + n_f)])).astype(q.dtype)
        room = cables.stiffness * (self.least_strain - cables.strain)
        select = jnp.eye(n_u + n_c + n_f, dtype=q.dtype)[n_u : n_u + n_c]
        zero = jnp.zeros(cost.shape[0], q.dtype)
        rows, right = materialise((rows, right))
        found = solve_qp(cost, zero, rows, right, room, jnp.inf, select)
        return found.x[:n_u], found.x[n_u : n_u + n_c], found.solved

    def _wanted(self, t, at: Reduced, q, v):
        after = self.reference(t + _KNOT)[2]
        if self.period is None:
            before = self.reference(jnp.maximum(t - _KNOT, 0.0))[2]
            after = 0.5 * (after + before)
        position, rate, _ = self.reference(t)
        if self.point is None:
            where = lambda names: np.array([names.index(name) for name in self.followed])
            y = take(q, where(self.machine.coordinate_names))
            y_rate = take(v, where(self.machine.velocity_names))
        else:
            y, y_rate = self._point(q, v)
        return after + self.K_p * (position - y) + self.K_d * (rate - y_rate)

    def _point(self, q, v):
        assert self.point is not None
        body, point = self.point
        place = lambda q: self.machine.position(q, body, point)
        return jax.jvp(place, (q,), (self.machine.rate(q, v),))

    def _point_rows(self, at: Reduced, q, v):
        """Return H and the remainder of the point's acceleration (3,), `H y'' + remainder`."""
        assert self.point is not None
        body, point = self.point
        J, bias = self.machine.point_terms(q, v, body, point)
        return matmul(J, at.G), matvec(J, at.g) + bias
