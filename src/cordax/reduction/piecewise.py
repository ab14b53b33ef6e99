"""Trajectory piecewise-linear forces (TPWL)."""

import warnings
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_positive
from .._base.precision import float_field
from .._jax.identity import filter_jit
from .._jax.tracing import is_traced
from ..math.safe import safe_norm
from ..mechanics import Linearisation, State, Structure, System
from ..mechanics.wrapper import Delegate


class PiecewiseLinear(Delegate):
    """A machine whose force is a weighted mean of linearisations about k states (Rewieński and
    White); mass matrix and constraints stay those of `inner`. Made by `piecewise_linear`.

    Weights fall with the distance of the states in (q, v times `velocity_scale` [s]) like
    `exp(-exponent d / d_min)`: at a point itself, its linearisation alone counts.

    `structured`: methods that need no exact derivative of the force (`Rosenbrock2`, linearly
    implicit Euler) solve with that of `inner`, which may have structure; blended matrices are
    full."""

    q: Float[Array, "k n"] = float_field()
    v: Float[Array, "k n"] = float_field()
    values: Float[Array, "k n"] = float_field()
    by_state: Float[Array, "k n 2*n"] = float_field()
    by_input: Float[Array, "k n n_u"] = float_field()
    exponent: Float[Array, ""] = float_field(default=25.0)
    velocity_scale: Float[Array, ""] = float_field(unit="s", default=0.0)
    structured: bool = eqx.field(static=True, default=False)

    def weights(self, q, v) -> Float[Array, " k"]:
        """Weights of the points at a state (k,); their sum is one."""
        near = jnp.concatenate([q - self.q, self.velocity_scale * (v - self.v)], axis=1)
        distance = safe_norm(near)
        return jax.nn.softmax(-self.exponent * distance / (jnp.min(distance) + 1e-9))

    def force(self, t, q, v, u):
        moved = jnp.concatenate([q - self.q, v - self.v], axis=1)
        linear = self.values + jnp.einsum("knm,km->kn", self.by_state, moved)
        linear = linear + jnp.einsum("knu,u->kn", self.by_input, u)
        return self.weights(q, v) @ linear

    def structure(self) -> "PiecewiseStructure":
        return PiecewiseStructure(self)


class PiecewiseStructure(Structure):
    """Structure of `PiecewiseLinear`: that of the machine inside, as far as the force does not
    matter."""

    system: PiecewiseLinear

    @property
    def _inner(self) -> Structure:
        return self.system.inner.structure()

    def momentum(self, q, v):
        return self._inner.momentum(q, v)

    def mass_solve(self, q, B):
        return self._inner.mass_solve(q, B)

    def constraint_terms(self, t, q, v):
        return self._inner.constraint_terms(t, q, v)

    def saddle(self, t, q, active=None, *, jacobian=None):
        return self._inner.saddle(t, q, active, jacobian=jacobian)

    def linearise(self, t, q, v, u, **about):
        if not self.system.structured:
            return super().linearise(t, q, v, u, **about)
        motion = self._inner.linearise(t, q, v, u, **about)
        return _Near(motion=motion, f=self.system.force(t, q, v, u))


class _Near(Linearisation):
    """Linearisation of a machine with nearly the same force, `motion`, with the exact force."""

    motion: Linearisation
    f: Float[Array, " n"]
    exact: bool = eqx.field(static=True, default=False)

    def stiffness(self, x):
        return self.motion.stiffness(x)

    def inertia(self, x):
        return self.motion.inertia(x)

    def factorise(self, h, h2):
        return self.motion.factorise(h, h2)

    def implicit_solve(self, factor, h, h2, b):
        return self.motion.implicit_solve(factor, h, h2, b)

    def constrained_solver(self, jacobian, h, h2=None, rows=None):
        return self.motion.constrained_solver(jacobian, h, h2, rows)

    def matrices(self):
        return self.motion.matrices()


def piecewise_linear(
    system: System,
    points: Sequence[State],
    *,
    t: float = 0.0,
    exponent: float = 25.0,
    velocity_scale: float = 0.0,
    structured: bool = False,
) -> PiecewiseLinear:
    """`system` with its force linearised about `points` at time `t` [s] and zero inputs. Other
    arguments: those of `PiecewiseLinear`.

    The model contains no dependence of the force on time, and only the linear dependence on inputs.
    A `UserWarning` names a machine whose force has more than that."""
    require(len(points) >= 1, "points", points, "one state or more")
    require_positive("exponent", exponent)
    require_positive("velocity_scale", velocity_scale, zero_allowed=True)
    require(system.n_q == system.n_v, "system", type(system).__name__, "as many q as v")
    q, v = (jnp.stack([jnp.asarray(getattr(p, x)) for p in points]) for x in "qv")
    x, time = jnp.concatenate([q, v], axis=1), jnp.asarray(t, q.dtype)
    linear = _linearised(system, time, x)
    neglected = _neglected(system, time, x, linear)
    reasons = "depends on time", "is not linear in its inputs"
    for error, missing in zip(neglected, reasons, strict=True):
        if not is_traced(error) and error > 1e-6:
            warnings.warn(
                f"piecewise_linear: the force of {type(system).__name__} {missing}, by "
                f"{float(error):.2g} of its size, which the linearised force does not contain",
                stacklevel=2,
            )
    return PiecewiseLinear(system, q, v, *linear, exponent, velocity_scale, structured)


@filter_jit
def _linearised(system: System, t, x: Float[Array, "k 2*n"]):
    """The force at k states (q, v) without inputs, and its derivatives by state and input."""
    n, rest = system.n_q, jnp.zeros(system.n_u, x.dtype)

    def force(x, u):
        return system.force(t, x[:n], x[n:], u)

    both = jax.jacfwd(force, argnums=(0, 1))
    return jax.vmap(lambda x: (force(x, rest), *both(x, rest)))(x)


@eqx.filter_jit
def _neglected(system: System, t, x: Float[Array, "k 2*n"], linear) -> tuple[Array, Array]:
    """Largest change of the force with time, and largest deviation from its linear dependence on
    inputs, at k states and a few times and inputs, relative to the largest force."""
    n = system.n_q
    values, _, by_input = linear
    force = lambda t, u: jax.vmap(lambda x: system.force(t, x[:n], x[n:], u))(x)
    rest = jnp.zeros(system.n_u, x.dtype)
    later = [force(t + ahead, rest) - values for ahead in (0.0137, 0.371, 1.93)]
    inputs = [rest + size * jnp.cos(jnp.arange(system.n_u)) for size in (1.0, -2.0)]
    bent = [force(t, u) - values - by_input @ u for u in inputs]
    size = lambda arrays: jnp.max(jnp.abs(jnp.stack(arrays)), initial=0.0)
    scale = lambda others: jnp.maximum(size([values]) + size(others), jnp.finfo(x.dtype).tiny)
    return size(later) / scale(later), size(bent) / scale([*bent, *(by_input @ u for u in inputs)])


def select_snapshots(states: State, count: int, velocity_scale: float = 0.0) -> list[State]:
    """`count` states of a trajectory (k, n), each the farthest from those chosen before in
    (q, v times `velocity_scale` [s]), beginning with the first."""
    q, v = np.asarray(states.q), np.asarray(states.v)
    require(1 <= count <= len(q), "count", count, f"1 to {len(q)}")
    x = np.concatenate([q, velocity_scale * v], axis=1)
    chosen = [0]
    distance = np.linalg.norm(x - x[0], axis=1)
    for _ in range(count - 1):
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(x - x[chosen[-1]], axis=1))
    return [State(q[i], v[i]) for i in chosen]
