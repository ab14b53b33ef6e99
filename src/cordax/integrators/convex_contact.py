"""Contact at large time steps: one convex problem per step for the velocities at its end."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._base.fields import count_field, setting_field
from .._base.results import Result, code_unless
from .._jax.materialise import materialise
from ..formulations import Dynamics
from ..math.linalg import matmul, matvec
from ..mechanics import State
from ..mechanics.contacts import Contacts
from ..mechanics.linearisation import SaddleSolver
from ..mechanics.parts.contact_law import ContactLaw
from .base import Integrator, Report, Step, Traits
from .rk4 import RK4

#: the line search ends when the slope falls to this fraction of the initial slope,
_FLAT = 0.1
#: or after this many cuts of the interval that contains the minimum
_CUTS = 40


class _Problem(NamedTuple):
    """Convex problem of a step: minimise `1/2 (x - v)^T A (x - v) - drive^T x` plus the potentials
    of contacts and one-sided constraints over velocities x (n,), subject to `rows x = values` (m,).

    `press` (k,) [N]: normal forces that limit friction; `coefficient` (k,) of friction; `cables`
    (c, n), `slack` (c,), `softness` (c,): one-sided constraints with the impulses
    `max(cables x - slack, 0) / softness` along `-cables`."""

    A: Float[Array, "n n"]
    v: Float[Array, " n"]
    drive: Float[Array, " n"]
    rows: Float[Array, "m n"]
    values: Float[Array, " m"]
    contacts: Contacts
    press: Float[Array, " k"]
    coefficient: Float[Array, " k"]
    cables: Float[Array, "c n"]
    slack: Float[Array, " c"]
    softness: Float[Array, " c"]
    h: Float[Array, ""]

    def relative(self, x):
        """Relative velocities (k, 3) at the contacts, and relative angular velocities, None
        without rolling resistance."""
        c = self.contacts
        spin = None if c.spin is None else jnp.sum(c.spin * x, axis=2)
        return jnp.sum(c.jacobian * x, axis=2), spin

    def _given(self):
        c = self.contacts
        return c.gap, c.normal, c.law, c.viscosity, self.press, self.coefficient

    def impulses(self, w, spin):
        """Gradients of the contact potentials with respect to the `relative` velocities: the
        negative impulses."""
        one = lambda w, spin, *given: _impulse(self.h, w, spin, *given)
        return jax.vmap(one)(w, spin, *self._given())

    def pulls(self, taut):
        """Impulses of the one-sided constraints at rates `taut` (c,)."""
        return jnp.maximum(taut - self.slack, 0.0) / self.softness

    def gradient(self, x) -> Float[Array, " n"]:
        c = self.contacts
        p, turn = self.impulses(*self.relative(x))
        total = matvec(self.A, x - self.v) - self.drive
        total = total + jnp.sum(c.jacobian * p[:, :, None], axis=(0, 1))
        if turn is not None:
            total = total + jnp.sum(c.spin * turn[:, :, None], axis=(0, 1))
        if self.cables.shape[0]:
            total = total + matvec(self.cables.T, self.pulls(matvec(self.cables, x)))
        return total

    def hessian(self, x) -> Float[Array, "n n"]:
        c, n = self.contacts, x.shape[0]

        def blocks(w, spin, *given):
            impulse = lambda w, spin: _impulse(self.h, w, spin, *given)
            if spin is None:
                return jax.jacfwd(lambda w: impulse(w, None)[0])(w), None
            by_w, by_spin = jax.jacfwd(impulse, 0)(w, spin)[0], jax.jacfwd(impulse, 1)(w, spin)[1]
            return by_w, by_spin

        flat = lambda J: J.reshape(-1, n)
        times = lambda B, J: flat(jnp.sum(B[:, :, :, None] * J[:, None, :, :], axis=2))
        by_w, by_spin = jax.vmap(blocks)(*self.relative(x), *self._given())
        total = self.A + matmul(flat(c.jacobian).T, times(by_w, c.jacobian))
        if by_spin is not None:
            total = total + matmul(flat(c.spin).T, times(by_spin, c.spin))
        if self.cables.shape[0]:
            taut = (matvec(self.cables, x) > self.slack) / self.softness
            total = total + matmul(self.cables.T, taut[:, None] * self.cables)
        return materialise(total)

    def slope(self, x, dx):
        """Derivative of the objective along `x + part dx`, as a function of `part`."""
        w, spin = self.relative(x)
        dw, dspin = self.relative(dx)
        taut, dtaut = matvec(self.cables, x), matvec(self.cables, dx)
        curved = matvec(self.A, dx)
        level = jnp.sum(dx * (matvec(self.A, x - self.v) - self.drive))
        growth = jnp.sum(dx * curved)

        def at(part):
            turned = None if spin is None else spin + part * dspin
            p, turn = self.impulses(w + part * dw, turned)
            total = level + part * growth + jnp.sum(dw * p)
            if turn is not None:
                total = total + jnp.sum(dspin * turn)
            return total + jnp.sum(dtaut * self.pulls(taut + part * dtaut))

        return at

    def residual(self, z) -> Float[Array, " n+m"]:
        """Optimality conditions, zero at the solution `z` (n + m,): velocities and multipliers."""
        x, y = jnp.split(z, [self.v.shape[0]])
        forces = self.gradient(x) + matvec(self.rows.T, y)
        return jnp.concatenate([forces, matvec(self.rows, x) - self.values])


@jax.custom_jvp
def _implicit(z, problem: _Problem):
    """Solution `z` (n + m,) of a problem, with derivatives by the implicit function theorem."""
    return z


@_implicit.defjvp
def _implicit_jvp(primals, tangents):
    z, problem = _implicit(*primals), primals[1]
    pushed = jax.jvp(lambda problem: problem.residual(z), (problem,), (tangents[1],))[1]
    n = problem.v.shape[0]
    dx, dy = _saddle(problem.hessian(z[:n]), problem.rows)(pushed[:n], pushed[n:])
    return z, -jnp.concatenate([dx, dy])


def _pressures(c: Contacts, w, h) -> Float[Array, " k"]:
    """Normal forces [N] at the end of a step with relative velocities w (k, 3)."""
    speed = jnp.sum(c.normal * w, axis=1)
    return c.law.pressure(-(c.gap + h * speed), speed)


def _impulse(h, w, spin, gap, normal, law, viscosity, press, coefficient):
    """Negative impulse of a contact, (3,) [N s], at a relative velocity w (3,) at the end of the
    step, and negative angular impulse, (3,) [N m s] or None.

    The normal force decreases as w grows, so its potential is convex. The potential of friction is
    convex too, because the friction limit does not depend on w."""
    speed = jnp.sum(normal * w)
    along = w - normal * speed
    slip = along / jnp.sqrt(jnp.sum(along * along) + law.slip_speed**2)
    pushed = law.pressure(-(gap + h * speed), speed)
    pushed = pushed if viscosity is None else pushed - viscosity * speed
    turn = None if spin is None else -h * law.moment(press, normal, spin)
    return h * (coefficient * press * slip - pushed * normal), turn


class _Search(NamedTuple):
    x: Array
    y: Array
    iterations: Array
    done: Array


class ConvexContact(Integrator):
    """Contact method that solves one convex problem per step for the velocities at its end, after
    Castro, Permenter and Han (2023), with the forces of `ContactLaw`:

        A (v+ - v) = dt (f + dt K v) + impulses of contacts at v+

    with A = M - dt D - dt^2 K for all other forces f, symmetric K and D, and gaps linearised over
    the step. With the new velocities the machine then moves through the step without forces.

    Normal forces, dissipation and friction are those at the end of the step. The friction limit
    uses the normal forces at the start of the step first. Each further one of the `passes` uses the
    normal forces of the previous solution. Constraints, one-sided constraints (rigid cables that
    can go slack) and joint stops are part of the same problem. Newton's method with a line search
    finds the minimum from any initial guess, for any stiffness and slip speed. Derivatives follow
    from the implicit function theorem.

    Order 1. A bounce shorter than a few steps loses its energy. If static and sliding friction
    differ, the coefficient at the start of the step is used.

    `softness`: compliance of one-sided constraints, relative to the velocity change per impulse;
    `tolerance`: relative, on momenta."""

    traits = Traits(
        order=1,
        explicit=False,
        solves_constraints="needed",
        allows_open_constraints=True,
        counts=("newton_iterations",),
    )
    passes: int = count_field(default=2)
    max_iterations: int = count_field(default=100)
    tolerance: float = setting_field(default=1e-10)
    softness: float = setting_field(default=1e-4)

    def violation(self, dynamics, record, t, q):
        phi = dynamics.system.constraint(t, q)
        slack = jnp.asarray(dynamics.system.one_sided, bool) & (phi < 0.0)
        return jnp.where(slack, 0.0, phi)

    def step(self, dynamics: Dynamics, t, dt, state: State, u, carry):
        problem = self._problem(dynamics.system, t, dt, state, u)
        # velocities of bodies in contact hardly change, so the initial guess is the velocity at
        # the start of the step, corrected to satisfy the constraints
        z = state.v
        if problem.rows.shape[0]:
            error = problem.values - matvec(problem.rows, state.v)
            x, y = _saddle(problem.A, problem.rows)(jnp.zeros_like(state.v), error)
            z = jnp.concatenate([state.v + x, y])

        def solve(now, _):
            z, press, ok, iterations = now
            fixed = problem._replace(press=press)
            z, solved, more = self._minimise(fixed, z)
            press = _pressures(problem.contacts, problem.relative(z[: len(state.v)])[0], problem.h)
            return (z, press, ok & solved, iterations + more), None

        start = z, problem.press, jnp.array(True), jnp.int32(0)
        (z, _, ok, iterations), _ = lax.scan(solve, start, length=self.passes)
        code = code_unless(ok, Result.NEWTON_NOT_CONVERGED)
        report = Report(counts={"newton_iterations": iterations})
        end = State(state.q, z[: len(state.v)])
        return Step(_drift(dynamics, t, dt, end), carry, code, report)

    def _problem(self, system, t, h, state: State, u) -> _Problem:
        q, v = state.q, state.v
        terms, M = system.structure().constraint_terms(t + h, q, v), system.mass_matrix(q)
        one_sided = system.one_sided
        rows, cables = terms.jacobian[~one_sided], terms.jacobian[one_sided]
        f, K, D = _applied_forces(system, M, rows, t, q, v, u(t, q, v))
        A = materialise(M - h * D - h * h * K)
        # Phi + dt (dPhi/dt at v+) is zero, and at most zero for one-sided constraints
        ahead = matvec(terms.jacobian, v) - terms.rate - terms.phi / h
        inverse = lambda row: _saddle(A, rows)(row, jnp.zeros(rows.shape[0], v.dtype))[0]
        yields = lambda row: jnp.sum(row * inverse(row))
        softness = self.softness * (jax.vmap(yields)(cables) if cables.shape[0] else cables[:, 0])
        contacts = system.contacts(t, q)
        contacts = _none(v) if contacts is None else contacts
        w = jnp.sum(contacts.jacobian * v, axis=2)
        along = w - contacts.normal * jnp.sum(contacts.normal * w, axis=1, keepdims=True)
        coefficient = contacts.law.coefficient(jnp.sum(along * along, axis=1))
        drive = h * (f + h * matvec(K, v))
        press = _pressures(contacts, w, jnp.zeros_like(h))
        limits = cables, ahead[one_sided], softness
        problem = (A, v, drive, rows, ahead[~one_sided], contacts, press, coefficient, *limits, h)
        return _Problem(*problem)

    def _minimise(self, problem: _Problem, z):
        """Solve the problem. Returns velocities and multipliers (n + m,), whether the iteration
        converged, and the number of iterations."""
        n = problem.v.shape[0]
        fixed, z = lax.stop_gradient((problem, z))
        end = self._search(fixed, z[:n], z[n:])
        z = lax.stop_gradient(jnp.concatenate([end.x, end.y]))
        return _implicit(z, problem), end.done, end.iterations

    def _search(self, problem: _Problem, x, y) -> _Search:
        none = jnp.zeros(problem.rows.shape[0], x.dtype)
        diagonal = jnp.diagonal(problem.A)
        weight = jnp.where(diagonal > 0, 1.0 / jnp.where(diagonal > 0, diagonal, 1.0), 0.0)
        size = lambda p: jnp.sqrt(jnp.sum(weight * p * p))
        tolerance = self.tolerance if x.dtype == jnp.float64 else 1e-5

        def improve(now: _Search) -> _Search:
            gradient, H = problem.gradient(now.x), problem.hessian(now.x)
            dx, y = _saddle(H, problem.rows, repeated=True)(-gradient, none)
            left = matvec(H, dx)  # minus the gradient after projection onto the constraints
            inertia = matvec(problem.A, now.x - problem.v)
            scale = size(inertia) + size(problem.drive) + size(inertia - problem.drive - gradient)
            scale = scale + size(matvec(problem.A, problem.v))
            done = size(left) <= tolerance * scale
            part = _line_search(problem.slope(now.x, dx))
            return _Search(now.x + part * dx, y, now.iterations + 1, done)

        going = lambda now: ~now.done & (now.iterations < self.max_iterations)
        start = _Search(x, y, jnp.int32(0), jnp.array(False))
        return lax.while_loop(going, improve, start)

    def growth(self, eigenvalue_dt):
        return 1 / abs(1 - eigenvalue_dt)


def _applied_forces(system, M, rows, t, q, v, u):
    """Forces (n,) without contacts and velocity terms, and the symmetric parts (n, n) of their
    derivatives with respect to displacements and velocities.

    Displacements follow the motion without forces. Along it a force with a fixed direction in space
    has no derivative. The displacements of `retract` differ from these if the axes turn with the
    bodies: to second order by half of the acceleration of that motion."""
    smooth, inertial, n = system.without_contacts(), system.without_forces(), v.shape[0]
    none = jnp.zeros(0, v.dtype)

    force = lambda q, v: smooth.active_force(t, q, v, u)
    unit, still = jnp.eye(n, dtype=v.dtype), jnp.zeros((n, n), v.dtype)
    moves = jax.vmap(lambda dv: system.rate(q, dv))(unit)
    ways = jnp.concatenate([moves, jnp.zeros_like(moves)]), jnp.concatenate([still, unit])
    along = jax.vmap(lambda dq, dv: jax.jvp(force, (q, v), (dq, dv)), out_axes=(None, 1))
    f, J = materialise(along(*ways))
    K, D = (0.5 * (B + B.T) for B in (J[:, :n], J[:, n:]))
    if inertial is not None:
        a, _ = _saddle(M, rows)(f, jnp.zeros(rows.shape[0], v.dtype))
        bent = lambda z: 0.5 * jnp.sum(a * inertial.force(t, q, z, none))
        # quadratic in z: the gradients at unit vectors are the rows of its Hessian
        K = K + jax.vmap(jax.grad(bent))(unit)
    return f, K, D


def _drift(dynamics: Dynamics, t, dt, state: State) -> State:
    """Move the machine through a step without forces: at constant velocity, or by an RK4 step if
    the axes of the velocities turn with the bodies."""
    inertial = dynamics.system.without_forces()
    if inertial is None:
        return State(dynamics.retract(state.q, dt * state.v), state.v)
    free = Dynamics(inertial, dynamics.formulation)
    none = jnp.zeros(0, state.v.dtype)
    return RK4().step(free, t, dt, state, lambda *_: none, ()).state


def _saddle(A, rows, repeated: bool = False) -> SaddleSolver:
    """Solver of the saddle-point matrix of A and the constraint rows. Pivoted elimination compiles
    faster; elimination without pivots runs faster, which matters if solves are `repeated`."""
    return SaddleSolver(A, rows, rows, pivoted=rows.shape[0] > 0 or not repeated)


def _line_search(slope):
    """Step length, at most 1, at which an increasing slope is zero, by the Illinois variant of the
    false position method."""
    start, end = slope(jnp.zeros(())), slope(jnp.ones(()))
    flat = _FLAT * jnp.abs(start)

    def cut(now):
        low, high, below, above, part, level, count = now
        rise = above - below
        part = low - below * (high - low) / jnp.where(rise > 0, rise, 1.0)
        level = slope(part)
        up = level > 0
        # halve the slope at the end that stays, so that both ends move
        return (
            jnp.where(up, low, part),
            jnp.where(up, part, high),
            jnp.where(up, 0.5 * below, level),
            jnp.where(up, level, 0.5 * above),
            part,
            level,
            count + 1,
        )

    going = lambda now: (jnp.abs(now[5]) > flat) & (now[6] < _CUTS)
    low, high = jnp.zeros_like(start), jnp.ones_like(start)
    level = jnp.where(
        (start < 0) & (end > flat), end, 0.0
    )  # the full step if the slope is not positive at its end
    return lax.while_loop(going, cut, (low, high, start, end, high, level, jnp.int32(0)))[4]


def _none(v) -> Contacts:
    """Empty contacts, for a machine without any."""
    law = jax.tree.map(lambda x: jnp.zeros(0, v.dtype), ContactLaw())
    vectors = jnp.zeros((0, 3), v.dtype)
    return Contacts(vectors[:, 0], vectors, jnp.zeros((0, 3, v.shape[0]), v.dtype), None, law)
