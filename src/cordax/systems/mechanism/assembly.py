"""Assembly of a mechanism (closure of its loops) and its degrees of freedom."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..._jax.program_cache import kept_filter_jit

#: singular values of the scaled constraint Jacobian below this fraction of the largest are zero
RANK_TOLERANCE = 1e-9


class Mobility(NamedTuple):
    """Degrees of freedom of a mechanism.

    `dof`: number of velocities minus the rank of the constraints; `redundant`: constraint rows that
    depend on earlier rows; `massless`: velocities that neither mass nor constraints determine."""

    dof: int
    rank: int
    redundant: tuple[str, ...]
    massless: tuple[str, ...]


@kept_filter_jit
def _phi_and_jacobian(machine, q):
    terms = machine.structure().constraint_terms(jnp.zeros(()), q, jnp.zeros(machine.n_v, q.dtype))
    return terms.phi, terms.jacobian


@kept_filter_jit
def _jacobian_and_mass(machine, q):
    v, u = jnp.zeros(machine.n_v, q.dtype), jnp.zeros(machine.n_u, q.dtype)
    M, _, terms = machine.structure().equations(jnp.zeros(()), q, v, u)
    return terms.jacobian, M


@kept_filter_jit
def _moved(machine, q, dq):
    return machine.normalise(machine.retract(q, dq))


def assemble(machine, q, kept=(), *, tolerance: float = 1e-12, iterations: int = 100):
    """Find coordinates (n_q,) near the guess `q` at which all loops are closed, to `tolerance` [m]
    or rounding error.

    The method is damped least squares. Coordinates whose velocities are named in `kept` do not
    change. Raises `ValueError` if the loops cannot close."""
    q = jnp.asarray(q, float)
    tolerance = max(tolerance, float(jnp.finfo(q.dtype).eps))
    held = machine.tree.speeds(kept, "kept")
    free = np.setdiff1d(np.arange(machine.n_v), held)
    damping = 1e-3
    phi, J = (np.asarray(x) for x in _phi_and_jacobian(machine, q))
    for _ in range(iterations):
        size = np.max(np.abs(phi), initial=0.0)
        if size <= tolerance:
            return q
        A = J[:, free]
        # Levenberg: the damping is proportional to the error, so the last steps are Newton steps
        shift = damping * min(1.0, size) * np.linalg.norm(A) ** 2 / max(A.shape)
        step = A.T @ np.linalg.lstsq(A @ A.T + shift * np.eye(len(phi)), -phi, rcond=1e-13)[0]
        dq = np.zeros(machine.n_v)
        dq[free] = step
        trial = _moved(machine, q, jnp.asarray(dq, q.dtype))
        trial_phi, trial_J = (np.asarray(x) for x in _phi_and_jacobian(machine, trial))
        if np.linalg.norm(trial_phi) < np.linalg.norm(phi):
            q, phi, J, damping = trial, trial_phi, trial_J, max(damping / 10.0, 1e-12)
        elif size < 1e3 * tolerance:  # round-off
            break
        else:
            damping *= 10.0
            if damping > 1e12:
                break
    size = np.max(np.abs(phi), initial=0.0)
    if size <= 1e3 * tolerance:
        return q
    worst = machine.constraint_names[int(np.argmax(np.abs(phi)))]
    raise ValueError(
        f"loops: cannot close from the given coordinates, {worst} stays open by {size:.3g}; "
        "check lengths and placements, or start nearer"
    )


def mobility(machine, q) -> Mobility:
    """Degrees of freedom at coordinates `q` (n_q,), redundant constraints and massless
    velocities."""
    q = jnp.asarray(q, float)
    J, M = (np.asarray(x) for x in _jacobian_and_mass(machine, q))
    size = np.linalg.norm(J, axis=1)
    scaled = J / np.where(size > 0, size, 1.0)[:, None]
    rank, redundant = _independent_rows(scaled)
    names = machine.constraint_names
    massless = _massless(machine, M, scaled)
    return Mobility(machine.n_v - rank, rank, tuple(names[i] for i in redundant), massless)


def _independent_rows(A):
    """Rank of `A`, and indices of the rows that are combinations of earlier rows, by Gram-Schmidt
    with reorthogonalisation."""
    basis, redundant = np.zeros((0, A.shape[1])), []
    for i, row in enumerate(A):
        left = row - basis.T @ (basis @ row)
        left = left - basis.T @ (basis @ left)
        size = np.linalg.norm(left)
        if size > RANK_TOLERANCE**0.5:
            basis = np.concatenate([basis, left[None] / size])
        else:
            redundant.append(i)
    return len(basis), redundant


def _massless(machine, M, J) -> tuple[str, ...]:
    """Velocities in the common null space of mass matrix and constraints."""
    own = np.sqrt(np.diagonal(M).max(initial=0.0)) or 1.0
    eigenvalues, vectors = np.linalg.eigh(M / own**2)
    root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    _, s, Vt = np.linalg.svd(np.concatenate([root.T, J]), full_matrices=True)
    null = Vt[np.sum(s > 1e-7 * s[0]) :]
    moving = np.max(np.abs(null), axis=0, initial=0.0) > 1e-6
    return tuple(name for name, bad in zip(machine.velocity_names, moving, strict=True) if bad)
