"""Rest positions, vibration modes and stable steps."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
from jax import lax
from jaxtyping import Array, Float

from ._checks import require, require_known, require_shape
from ._precision import as_float_array
from .integrators import BY_NAME, Integrator
from .math.newton import newton
from .mechanics import State, System, as_controller
from .mechanics.constraints import constraint_force


def equilibrium(
    system: System,
    u=None,
    *,
    guess: State | None = None,
    t: float = 0.0,
    tolerance: float = 1e-10,
    max_steps: int = 200,
) -> State:
    """A configuration at rest in which all forces balance under constant inputs `u`, shape (n_u,),
    those of constraints included.

    Starts from `guess` (the machine's default state) and solves `force(q, v = 0) - Phi_q^T lambda =
    0`, `Phi = 0` by a dogleg method; differentiable with respect to the machine and the inputs.
    Raises if none is found."""
    ok = u is None or hasattr(u, "shape") or hasattr(u, "__len__")
    require(ok and not isinstance(u, State), "u", type(u).__name__, "inputs, shape (n_u,), or None")
    require(guess is None or isinstance(guess, State), "guess", type(guess).__name__, "a State")
    start = system.default_state() if guess is None else guess
    u = jnp.zeros(system.n_u, start.q.dtype) if u is None else as_float_array(u)
    require_shape("u", u, (system.n_u,))
    x, found = _at_rest(system, u, start, as_float_array(t), tolerance, max_steps)
    x = eqx.error_if(
        x, ~found, "equilibrium: no state at rest found; try another guess or other inputs"
    )
    return State(system.retract(start.q, x), jnp.zeros_like(start.v))


@eqx.filter_jit
def _at_rest(system: System, u, start: State, t, tolerance, max_steps):
    """The tangent vector from `start` to a state at rest, and whether it is one."""
    rest, n, m = jnp.zeros_like(start.v), start.v.shape[0], system.n_constraints

    def unbalanced(x, args):
        system, u, q = args
        moved = system.retract(q, x[:n])
        if m == 0:
            # accelerations weigh the rows of differently scaled coordinates sensibly
            return system.acceleration(t, moved, rest, u)
        f = system.total_force(t, moved, rest, u) + constraint_force(system, t, moved, x[n:])
        return jnp.concatenate([f, system.constraint(t, moved)])

    args = (system, u, start.q)
    frozen = jax.tree.map(lambda x: lax.stop_gradient(x) if eqx.is_array(x) else x, args)
    guess = jnp.concatenate([rest, _static_multipliers(frozen[0], frozen[1], frozen[2], t, rest)])
    solver = optx.Dogleg(rtol=tolerance, atol=tolerance)
    near = optx.root_find(unbalanced, solver, guess, frozen, max_steps=max_steps, throw=False)
    # The dogleg method gets near from anywhere, but cannot tell arrival at round-off from being
    # stuck; Newton can, and carries the derivative.
    x, found = newton(unbalanced, near.value, args, tolerance=tolerance, max_iterations=20)
    return x[:n], found


def _static_multipliers(system: System, u, q, t, rest) -> Float[Array, " m"]:
    """What balances the forces best with everything at rest."""
    if system.n_constraints == 0:
        return jnp.zeros(0, rest.dtype)
    J = system.constraint_terms(t, q, rest).jacobian
    return jnp.linalg.lstsq(J.T, system.total_force(t, q, rest, u))[0]


class Modes(NamedTuple):
    """Small motions about a state: exp(lambda t).

    `eigenvalues` lambda [1/s], shape (2 d,) for d degrees of freedom, fastest last; `shapes` the
    configuration parts, shape (2 d, n_v); `frequency` |Im lambda|/2 pi [Hz]; `damping` ratio -Re
    lambda/|lambda|, negative for growing modes."""

    eigenvalues: np.ndarray
    shapes: np.ndarray

    @property
    def frequency(self) -> np.ndarray:
        return np.abs(np.imag(self.eigenvalues)) / (2 * np.pi)

    @property
    def damping(self) -> np.ndarray:
        size = np.abs(self.eigenvalues)
        return np.where(size > 0, -np.real(self.eigenvalues) / np.where(size > 0, size, 1.0), 0.0)


def modes(
    system: System, state: State | None = None, u=None, *, t: float = 0.0, held: bool = True
) -> Modes:
    """Modes of the machine linearised about a state (default: its start), of motions that its
    constraints allow; about a state at rest in equilibrium, if it has constraints.

    `u`: constant inputs, or a memoryless controller, whose feedback is then part of the
    linearisation. `held=False` leaves out dry friction and other held forces."""
    state = system.default_state() if state is None else state
    controller = as_controller(u, system, state.q.dtype)
    matrices = _linear_equations(system, state, controller, as_float_array(t), held)
    M, K, D, J = (np.asarray(x) for x in matrices)
    N = _allowed_directions(J)
    M, K, D = N.T @ M @ N, N.T @ K @ N, N.T @ D @ N
    n = M.shape[0]
    lower = np.linalg.solve(M, np.hstack([K, D]))
    A = np.block([[np.zeros((n, n)), np.eye(n)], [lower]])
    values, vectors = np.linalg.eig(A)
    order = np.lexsort((np.imag(values), np.abs(values)))
    return Modes(values[order], (N @ vectors[:n, order]).T)


def _allowed_directions(J) -> np.ndarray:
    """An orthonormal basis (n_v, d) of the motions that constraints (m, n_v) leave."""
    if J.shape[0] == 0:
        return np.eye(J.shape[1])
    _, sizes, directions = np.linalg.svd(J)
    return directions[np.sum(sizes > 1e-9 * sizes[0]) :].T


@eqx.filter_jit  # one compilation for all states of a machine
def _linear_equations(system: System, state: State, controller, t, held: bool):
    """M, K, D and Phi_q about a state; K with the stiffness of the constraint forces that balance
    it."""
    n = state.v.shape[0]
    u = controller(t, state, controller.init(state))[0]
    multipliers = _static_multipliers(system, u, state.q, t, jnp.zeros_like(state.v))

    def force(z):
        q, v = system.retract(state.q, z[:n]), state.v + z[n:]
        u = controller(t, State(q, v), controller.init(state))[0]
        f = system.total_force(t, q, v, u) if held else system.force(t, q, v, u)
        return f if multipliers.size == 0 else f + constraint_force(system, t, q, multipliers)

    F = jax.jacfwd(force)(jnp.zeros(2 * n, state.q.dtype))
    M = system.mass_matrix(state.q)
    if multipliers.size == 0:
        # away from rest the mass matrix changes along with the forces
        change = lambda dq: system.mass_matrix(system.retract(state.q, dq))
        a = jnp.linalg.solve(M, force(jnp.zeros(2 * n, state.q.dtype)))
        K = F[:, :n] - jax.jacfwd(lambda dq: change(dq) @ a)(jnp.zeros_like(state.v))
        return M, K, F[:, n:], jnp.zeros((0, n), M.dtype)
    J = system.constraint_terms(t, state.q, jnp.zeros_like(state.v)).jacobian
    return M, F[:, :n], F[:, n:], J


class StepLimit(NamedTuple):
    """The largest stable step of a method about a state.

    `dt` [s]: the smallest of `per_mode`, inf if no mode limits it; `eigenvalue` the mode that
    limits; `eigenvalues` and `per_mode` [s] all modes and their limits (0 for a mode of the machine
    that grows by itself); `growing`: modes no step can stabilise, Re lambda > 0."""

    dt: float
    eigenvalue: complex
    eigenvalues: np.ndarray
    per_mode: np.ndarray
    growing: np.ndarray


def step_limit(
    system: System,
    state: State | None = None,
    integrator: Integrator | str = "rk4",
    u=None,
    *,
    t: float = 0.0,
    held: bool = True,
) -> StepLimit:
    """Predict the largest stable step [s] of `integrator` from the spectrum of the machine
    linearised about `state`.

    Exact for linear machines; for others it holds near the state, and a run can survive above it
    while growth has not had time to build up. Arguments as in `modes`."""
    if isinstance(integrator, str):
        require_known("integrator", integrator, BY_NAME)
        integrator = BY_NAME[integrator]()
    values = modes(system, state, u, t=t, held=held).eigenvalues
    size = np.abs(values)
    negligible = size < 1e-9 * max(size.max(initial=0.0), 1e-300)
    grows = (np.real(values) > 1e-9 * size) & ~negligible
    limits = np.array(
        [
            np.inf if skip else 0.0 if grow else _mode_limit(integrator, complex(value))
            for value, skip, grow in zip(values, negligible, grows, strict=True)
        ]
    )
    stable = np.where(grows, np.inf, limits)
    worst = int(np.argmin(stable))
    return StepLimit(float(stable[worst]), complex(values[worst]), values, limits, values[grows])


def _mode_limit(integrator: Integrator, eigenvalue: complex) -> float:
    """The first step at which the method amplifies the mode, by search over a geometric grid and
    bisection."""
    size = abs(eigenvalue)
    growth = type(integrator).growth  # unbound: binding a method of a module costs 20 calls of it
    amplifies = lambda dt: growth(integrator, eigenvalue * dt) > 1.0 + 1e-12
    grid = np.geomspace(1e-4, 1e4, 4001) / size
    bad = next((i for i, dt in enumerate(grid) if amplifies(dt)), None)
    if bad is None:
        return np.inf
    if bad == 0:
        return 0.0
    low, high = grid[bad - 1], grid[bad]
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if amplifies(middle) else (middle, high)
    return float(low)
