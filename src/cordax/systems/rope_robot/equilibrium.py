"""Equilibrium of ropes from a poor guess.

Newton's method alone fails for slack ropes: where weight hardly bends them, its steps can have any
size. So each step is one of implicit Euler without velocities, `(M - h^2 K) dq = h^2 (f - Phi_q^T
lambda)` on the constraints: short steps go downhill, long ones are Newton's. The step grows while
the resulting displacement is small."""

import jax
import jax.numpy as jnp
from jax import lax

from ..._base.checks import known_values, require
from ..._jax.compiled_errors import raise_compiled
from ..._jax.program_cache import kept_filter_jit

#: largest change of an angle [rad] or of the platform [m, rad] in one step
REACH = 0.3
#: first and last step [s^2]; at the last one the mass matrix is negligible
FIRST, LAST = 1e-4, 1e12


def _unbalanced(robot, t, q, pull, u):
    """Unbalanced forces, constraint violations and constraint Jacobian."""
    v = jnp.zeros_like(q)
    terms = robot.structure().constraint_terms(t, q, v)
    left = -robot.residual(t, q, v, u, v, pull)
    return left, terms.phi, terms.jacobian


def _step(robot, t, q, pull, u, h2):
    """Changes of the coordinates and pulls after one step."""
    v = jnp.zeros_like(q)
    left, phi, J = _unbalanced(robot, t, q, pull, u)
    motion = robot.structure().linearise(t, q, v, u, multipliers=pull)
    zero = jnp.zeros_like(h2)
    if not robot.n_constraints:
        return motion.implicit_solver(zero, h2)(h2 * left), pull
    dq, y = motion.constrained_solver(J, zero, h2)(h2 * left, -phi)
    return dq, y / h2


def _allowed(dtype) -> float:
    """Largest imbalance at rest: of forces relative to weight and inputs, of constraints [m]."""
    return max(1e-9, 100.0 * float(jnp.finfo(dtype).eps))


def settled(robot, t, q, u, max_steps: int):
    """Equilibrium configuration near `q`; raises if the imbalance exceeds the limit for the
    precision."""
    q, force, gap = _settle(robot, t, q, u, jnp.asarray(max_steps))
    allowed = _allowed(q.dtype)
    known = known_values(force), known_values(gap)
    if any(x is None for x in known):
        lost = ~((force < allowed) & (gap < allowed))
        message = "rest: no state at rest found; try another guess, or more max_steps"
        return raise_compiled(q, lost, 0, [message])
    force, gap = (float(x) for x in known)  # pyright: ignore[reportArgumentType]
    left = f"a guess from which {force:.3g} of the weight and gaps of {gap:.3g} m stay"
    ok = force < allowed and gap < allowed
    require(ok, "guess", left, "one nearer to a state at rest that ropes can reach")
    return q


@kept_filter_jit
def _settle(robot, t, q, u, max_steps):
    """Equilibrium configuration near `q`, and the remaining imbalance of forces, relative to weight
    and inputs, and of constraints [m]."""
    frozen = jax.tree.map(
        lambda x: lax.stop_gradient(x) if hasattr(x, "dtype") else x, (robot, t, u)
    )
    fixed, at, inputs = frozen

    def go(carry):
        q, pull, h2, _, i = carry
        dq, dpull = _step(fixed, at, q, pull, inputs, h2)
        size = jnp.max(jnp.abs(dq))
        share = jnp.minimum(1.0, REACH / size)
        # a shortened step keeps the pulls of the full step, because they depend on directions
        grow = jnp.where(share < 1.0, 0.5, jnp.where(size < 0.3 * REACH, 4.0, 1.5))
        return q + share * dq, pull + dpull, jnp.clip(h2 * grow, FIRST, LAST), size, i + 1

    def unfinished(carry):
        *_, h2, size, i = carry
        return ((size > 1e-11) | (h2 < LAST)) & (i < max_steps)

    pull = jnp.zeros(robot.n_constraints, q.dtype)
    big = jnp.asarray(jnp.inf, q.dtype)
    start = (lax.stop_gradient(q), pull, jnp.asarray(FIRST, q.dtype), big, jnp.asarray(0))
    q, pull, *_ = lax.while_loop(unfinished, go, start)
    q, pull = lax.stop_gradient((q, pull))
    # one more step carries the derivative of the state at rest
    dq, dpull = _step_of(robot, fixed, t, at, q, pull, u, inputs)
    q, pull = q + dq, pull + dpull
    left, phi, _ = _unbalanced(robot, t, q, pull, u)
    size = weight(robot) + jnp.sum(jnp.abs(u))
    force = jnp.max(jnp.abs(left)) / jnp.where(size > 0, size, 1.0)
    return q, force, jnp.max(jnp.abs(phi), initial=0.0)


def _step_of(robot, fixed, t, at, q, pull, u, inputs):
    """Newton's step with the matrix of `fixed` and the forces of `robot`."""
    left, phi, J = _unbalanced(robot, t, q, pull, u)
    motion = fixed.structure().linearise(at, q, jnp.zeros_like(q), inputs, multipliers=pull)
    zero, h2 = jnp.zeros((), q.dtype), jnp.asarray(LAST, q.dtype)
    if not robot.n_constraints:
        return motion.implicit_solver(zero, h2)(h2 * left), jnp.zeros_like(pull)
    dq, y = motion.constrained_solver(lax.stop_gradient(J), zero, h2)(h2 * left, -phi)
    return dq, y / h2


def weight(robot):
    """Total weight [N], the scale with which forces are compared."""
    ropes = jnp.sum(robot.line_density * robot.length * jnp.ones(robot.n_ropes))
    platform = 0.0 if robot.platform is None else robot.platform.mass
    return (ropes + platform) * jnp.abs(robot.gravity)
