"""Linearised equations of motion, for implicit steps.

For the residual of the equations of motion,

    r = M(q) a + Phi_q^T lambda - f(t, q, v, u),

the matrices are `K = -dr/dq` at fixed a and lambda, and `D = df/dv`, both in the tangent space.
Implicit integrators use only the methods of `Linearisation`. A machine whose matrices have
structure (diagonal motor inertias, chains of a rope) can therefore exploit it, with constraints
too."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .._jax.materialise import materialise
from ..math.linalg import matmul, matvec, solve

Vector = Float[Array, " n"]
Rows = Float[Array, " m"]


class Linearisation(eqx.Module):
    """`M`, `f`, `K` and `D` of a machine at a state.

    `f`, shape (n,), is the force without constraint forces. `exact`: whether K and D contain all
    derivatives requested from `Structure.linearise`. Newton's method and its derivative require
    this, a linearly implicit step does not."""

    f: eqx.AbstractVar[Vector]
    exact: eqx.AbstractVar[bool]

    def stiffness(self, x) -> Vector:
        """`K x`, shape (n,)."""
        raise NotImplementedError

    def inertia(self, x) -> Vector:
        """`M x`, shape (n,)."""
        raise NotImplementedError

    def implicit_solver(self, h, h2=None) -> "ImplicitSolver":
        """Solver with `(M - h D - h2 K)^-1` for a step h [s], as a function; h2 [s^2] is h^2 unless
        given."""
        h2 = h * h if h2 is None else h2
        return ImplicitSolver(self, h, h2, self.factorise(h, h2))

    def constrained_solver(
        self, jacobian, h, h2=None, rows=None
    ) -> Callable[[Any, Any], tuple[Vector, Rows]]:
        """Solver with the same matrix A and constraints: a function `(b, c) -> (x, y)` that solves

            [A, J^T; G, 0] [x; y] = [b; c],        J: `jacobian` (m, n), G: `rows` (m, n) or J.

        By default the columns of J^T are solved with A, and a matrix of m rows remains: for
        machines with a structured, regular A. Overridden if A may be singular."""
        return ComplementSolver(self.implicit_solver(h, h2), jacobian, rows)

    def factorise(self, h, h2):
        """Factorisation that solves with one matrix share, as a pytree; None by default."""
        return None

    def implicit_solve(self, factor, h, h2, b) -> Vector:
        """`(M - h D - h2 K)^-1 b`, shape (n,), with the `factor` from `factorise`."""
        raise NotImplementedError

    def resolved(self, factor, h, h2, x) -> Vector:
        """Part of a velocity change x that a step resolves, `(M - h D - h2 K)^-1 M x`: slow motions
        remain, and vibrations that are fast compared with the step are almost removed."""
        return self.implicit_solve(factor, h, h2, self.inertia(x))

    def initial_multipliers(self) -> Rows | None:
        """Multipliers (m,) of the constraints at the state, or None if the linearisation does not
        contain them."""
        return None

    def bare(self) -> "Linearisation":
        """The linearisation reduced to the data for solves with a factor that are not
        differentiated; by default unchanged."""
        return self

    def matrices(self) -> tuple[Float[Array, "n n"], Float[Array, "n n"], Float[Array, "n n"]]:
        """M, K and D as dense matrices."""
        raise NotImplementedError


def bare(solver):
    """Solver without the data that only derivatives of its solutions need."""
    has_more = lambda x: hasattr(x, "bare")
    return jax.tree.map(lambda x: x.bare() if has_more(x) else x, solver, is_leaf=has_more)


class ImplicitSolver(eqx.Module):
    """Linear solver of an implicit step, for any number of right-hand sides."""

    motion: Linearisation
    h: Float[Array, ""]
    h2: Float[Array, ""]
    factor: Any

    def __call__(self, b) -> Vector:
        return self.motion.implicit_solve(self.factor, self.h, self.h2, b)

    def resolved(self, x) -> Vector:
        """`Linearisation.resolved`."""
        return self.motion.resolved(self.factor, self.h, self.h2, x)


class ComplementSolver(eqx.Module):
    """Solver with constraints by the Schur complement of a structured matrix A: with W = A^-1 J^T,

        x = A^-1 b - W y,        (G W) y = G A^-1 b - c.

    It takes m + 1 solves with A and one with a small matrix, without pivoting; the result is NaN if
    that matrix is singular."""

    solve: ImplicitSolver
    rows: Float[Array, "m n"]
    columns: Float[Array, "n m"]
    complement: Float[Array, "m m"]

    def __init__(self, solver: ImplicitSolver, jacobian, rows=None):
        self.solve = solver
        self.rows = jacobian if rows is None else rows
        none = jacobian.shape[0] == 0
        columns = jacobian.T if none else jax.vmap(solver, out_axes=1)(jacobian)
        self.columns = materialise(columns)
        self.complement = materialise(matmul(self.rows, self.columns))

    def __call__(self, b, c) -> tuple[Vector, Rows]:
        free = materialise(self.solve(b))
        if c.shape[0] == 0:
            return free, c
        y = materialise(solve(self.complement, materialise(matvec(self.rows, free) - c)))
        return free - matvec(self.columns, y), y


class DenseLinearisation(Linearisation):
    """Linearisation with dense matrices."""

    M: Float[Array, "n n"]
    f: Vector
    K: Float[Array, "n n"]
    D: Float[Array, "n n"]
    exact: bool = eqx.field(static=True, default=True)
    #: whether M can be inverted; otherwise elimination uses pivoting
    regular: bool = eqx.field(static=True, default=True)

    def stiffness(self, x):
        return matvec(self.K, x)

    def inertia(self, x):
        return matvec(self.M, x)

    def factorise(self, h, h2):
        return materialise(self.M - h * self.D - h2 * self.K)

    def implicit_solve(self, factor, h, h2, b):
        return solve(factor, materialise(b))

    def constrained_solver(self, jacobian, h, h2=None, rows=None):
        """Solver of the whole matrix at once, because A alone may be singular (massless parts)."""
        A = self.factorise(h, h * h if h2 is None else h2)
        rows = jacobian if rows is None else rows
        return SaddleSolver(A, jacobian, rows, pivoted=not self.regular)

    def matrices(self):
        return self.M, self.K, self.D


class SaddleSolver(eqx.Module):
    """Solver of `[A, J^T; G, 0] [x; y] = [b; c]` by elimination of the whole matrix."""

    matrix: Float[Array, "k k"]
    pivoted: bool = eqx.field(static=True)

    def __init__(self, A, jacobian, rows, pivoted: bool = False):
        self.pivoted = pivoted
        m = jacobian.shape[0]
        zero = jnp.zeros((m, m), A.dtype)
        self.matrix = materialise(jnp.block([[A, jacobian.T], [rows, zero]]))

    def __call__(self, b, c) -> tuple[Vector, Rows]:
        x = solve(self.matrix, materialise(jnp.concatenate([b, c])), pivoted=self.pivoted)
        return x[: b.shape[0]], x[b.shape[0] :]


class SaddleLinearisation(Linearisation):
    """Linearisation for a linearly implicit step with constraints. `implicit_solve` returns the
    velocity change that also brings the linearised constraints to zero at the end of the step.

    `motion`: linearisation of the machine without constraints; `phi`, `rate` (m,) and `jacobian`
    (m, n) of its constraints, with the `multipliers` (m,)."""

    motion: Linearisation
    phi: Rows
    jacobian: Float[Array, "m n"]
    rate: Rows
    multipliers: Rows

    @property
    def f(self):
        return self.motion.f

    @property
    def exact(self):
        return self.motion.exact

    def stiffness(self, x):
        return self.motion.stiffness(x)

    def inertia(self, x):
        return self.motion.inertia(x)

    def initial_multipliers(self):
        return self.multipliers

    def factorise(self, h, h2):
        return self.motion.constrained_solver(self.jacobian, h, h2)

    def implicit_solve(self, factor, h, h2, b):
        # Phi + h (dPhi/dt + Phi_q dv) = 0 at the end of the step; the multiplier is an impulse
        return factor(b, -self.rate - self.phi / h)[0]

    def resolved(self, factor, h, h2, x):
        return factor(self.inertia(x), jnp.zeros_like(self.phi))[0]

    def matrices(self):
        return self.motion.matrices()


class StabilisedLinearisation(Linearisation):
    """Linearisation for a linearly implicit step of the index-1 equations

        M a + J^T lambda = f,        J a = wanted - 2 decay J v - stiffening J q

    `f` and the results of `stiffness` and `inertia` are vectors of forces followed by constraint
    rows, shape (n + m,). `implicit_solve` takes such a vector and returns a velocity, shape (n,).

    `motion`: linearisation of the machine without constraints; `wanted` (m,): the accelerations J a
    at the state, `jacobian` (m, n), `decay` [1/s] and `stiffening` [1/s^2]: Baumgarte's alpha and
    beta^2. The derivative of J is omitted, so the linearisation is not exact; linearly implicit
    methods do not require that."""

    motion: Linearisation
    wanted: Rows
    jacobian: Float[Array, "m n"]
    decay: Float[Array, ""]
    stiffening: Float[Array, ""]
    exact: bool = eqx.field(static=True, default=False)

    @property
    def f(self):
        return jnp.concatenate([self.motion.f, self.wanted])

    def stiffness(self, x):
        rows = -self.stiffening * matvec(self.jacobian, x)
        return jnp.concatenate([self.motion.stiffness(x), rows])

    def inertia(self, x):
        return jnp.concatenate([self.motion.inertia(x), matvec(self.jacobian, x)])

    def factorise(self, h, h2):
        return self.motion.constrained_solver(self.jacobian, h, h2)

    def implicit_solve(self, factor, h, h2, b):
        n = self.jacobian.shape[1]
        return factor(b[:n], b[n:] / (1.0 + 2.0 * h * self.decay + h2 * self.stiffening))[0]

    def matrices(self):
        return self.motion.matrices()


def linearise_densely(
    structure, t, q, v, u, *, acceleration=None, multipliers=None, hold=True
) -> DenseLinearisation:
    """`Structure.linearise` for a machine without special structure: the residual is differentiated
    in 2 n_v directions, with value and Jacobian in one evaluation."""
    system = structure.system
    held = system.held(t, q, v) if hold else None
    n = system.n_v
    rest = jnp.zeros(n, v.dtype)

    def residual(z):
        moved = system.retract(q, z[:n])
        f = system.force(t, moved, v + z[n:], u)
        now = held if hold else system.held(t, moved, v + z[n:])
        f = f if now is None else f + system.held_force(t, moved, now)
        total = f
        if acceleration is not None:
            total = total - structure.momentum(moved, acceleration)
        if multipliers is not None:
            constraint = lambda dq: system.constraint(t, system.retract(moved, dq))
            total = total - jax.vjp(constraint, rest)[1](multipliers)[0]
        return total, f

    J, f = jax.jacfwd(residual, has_aux=True)(jnp.zeros(2 * n, v.dtype))
    J, f = materialise((J, f))
    M = system.mass_matrix(q)
    regular = system.mass_is_regular
    return DenseLinearisation(M=M, f=f, K=J[:, :n], D=J[:, n:], regular=regular)
