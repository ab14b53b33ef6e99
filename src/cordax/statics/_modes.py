"""Vibration modes about a state."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._base.checks import require, require_instance, require_number
from .._base.precision import as_float_array
from .._base.revalidate import recheck
from .._jax.program_cache import kept_filter_jit
from ..mechanics import State, System, as_controller
from ..mechanics.constraints import constraint_force
from ..mechanics.state import require_state


class Modes(NamedTuple):
    """Small motions about a state: exp(lambda t).

    `eigenvalues` lambda [1/s], shape (k,), fastest last, k = 2 d for d degrees of freedom; a
    massless one counts once if it is damped and not at all otherwise; `shapes` the
    configuration parts, shape (k, n_v); `frequency` |Im lambda|/2 pi [Hz]; `damping` ratio -Re
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
    """Compute the modes of the machine linearised about a state (default: its initial state), for
    motions that its constraints allow. A constrained machine must be in static equilibrium.

    `u`: constant inputs, or a memoryless controller, whose feedback is then part of the
    linearisation. `held=False` leaves out dry friction and other held forces.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Pendulum

    hanging = cordax.equilibrium(Pendulum())
    print(cordax.modes(Pendulum(), hanging).frequency)  # 0.5 Hz for one metre
    ```
    """
    M, K, D, N = reduced_equations(system, state, u, t=t, held=held)
    values, shapes = spectrum(M, K, D)
    return Modes(values, (N @ shapes).T)


def reduced_equations(
    system: System, state: State | None = None, u=None, *, t: float = 0.0, held: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """M, K and D of `M a = K x + D v` about a state, shape (d, d), and the basis N (n_v, d) of
    motions that constraints allow: velocities are N v. Arguments as in `modes`."""
    require_instance("system", system, System)
    state = system.default_state() if state is None else state
    require_state("state", state, system)
    require_number("t", t, positive=False)
    require(isinstance(held, bool), "held", held, "True or False")
    controller = as_controller(u, system, state.q.dtype)
    recheck(system, controller)
    matrices = _linear_equations(system, state, controller, as_float_array(t), held)
    M, K, D, J = (np.asarray(x) for x in matrices)
    N = _allowed_directions(J)
    return N.T @ M @ N, N.T @ K @ N, N.T @ D @ N, N


def spectrum(M, K, D) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of `M a = K x + D v`, shape (k,), fastest last, and the positions x of their
    modes, shape (d, k)."""
    A, shape = _first_order(M, K, D)
    values, vectors = np.linalg.eig(A)
    order = np.lexsort((np.imag(values), np.abs(values)))
    return values[order], shape @ vectors[:, order]


def _first_order(M, K, D) -> tuple[np.ndarray, np.ndarray]:
    """`M a = K q + D v` as dx/dt = A x, and the matrix that gives q from x."""
    n = M.shape[0]
    size = np.sqrt(np.where(np.diagonal(M) > 0, np.diagonal(M), 1.0))
    inertia, V = np.linalg.eigh(M / size[:, None] / size)
    light = inertia < 1e-11
    if not light.any():
        lower = np.linalg.solve(M, np.hstack([K, D]))
        A = np.block([[np.zeros((n, n)), np.eye(n)], [lower]])
        return A, np.eye(n, 2 * n)
    # Massless parts without damping follow the others at once; those with damping creep.
    T = V / size[:, None]
    Z = T[:, light]
    drag, W = np.linalg.eigh(-0.5 * Z.T @ (D + D.T) @ Z)
    creeps = drag > 1e-11 * max(np.abs(drag).max(), np.abs(T.T @ D @ T).max(), 1e-300)
    follow, kept = Z @ W[:, ~creeps], np.hstack([T[:, ~light], Z @ W[:, creeps]])
    if follow.shape[1] > 0:
        kept = kept - follow @ np.linalg.solve(follow.T @ K @ follow, follow.T @ K @ kept)
    M, K, D = (kept.T @ X @ kept for X in (M, K, D))
    h, k = int((~light).sum()), kept.shape[1]
    speed = -np.linalg.solve(D[h:, h:], np.hstack([K[h:], D[h:, :h]]))  # of damped massless parts
    rate = np.vstack([np.eye(h, k + h, k), speed])
    push = np.hstack([K[:h], D[:h, :h]]) + D[:h, h:] @ speed
    A = np.vstack([rate, np.linalg.solve(M[:h, :h], push)])
    return A, np.hstack([kept, np.zeros((n, h))])


def _allowed_directions(J) -> np.ndarray:
    """An orthonormal basis (n_v, d) of the motions that constraints (m, n_v) allow."""
    if J.shape[0] == 0:
        return np.eye(J.shape[1])
    _, sizes, directions = np.linalg.svd(J)
    return directions[np.sum(sizes > 1e-9 * sizes[0]) :].T


@kept_filter_jit  # one compilation for all states of a machine
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
    if multipliers.size == 0 and system.mass_is_regular:
        # away from rest the mass matrix changes along with the forces
        change = lambda dq: system.mass_matrix(system.retract(state.q, dq))
        a = jnp.linalg.solve(M, force(jnp.zeros(2 * n, state.q.dtype)))
        K = F[:, :n] - jax.jacfwd(lambda dq: change(dq) @ a)(jnp.zeros_like(state.v))
        return M, K, F[:, n:], jnp.zeros((0, n), M.dtype)
    J = jnp.zeros((0, n), M.dtype)
    if multipliers.size:
        J = system.structure().constraint_terms(t, state.q, 0.0 * state.v).jacobian
    return M, F[:, :n], F[:, n:], J


def _static_multipliers(system: System, u, q, t, rest) -> Float[Array, " m"]:
    """Multipliers that balance the forces best (least squares) at zero velocity."""
    if system.n_constraints == 0:
        return jnp.zeros(0, rest.dtype)
    J = system.structure().constraint_terms(t, q, rest).jacobian
    return jnp.linalg.lstsq(J.T, system.total_force(t, q, rest, u))[0]
