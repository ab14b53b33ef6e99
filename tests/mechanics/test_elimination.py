"""The saddle point by a selection of velocities: blocks, dead centres, batches, derivatives."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.formulations import IndependentCoordinates
from cordax.mechanics.elimination import Eliminated, selection
from cordax.systems import single_strut, tensegrity_manipulator

# 8 velocities, 6 constraints: blocks of 1, 2 and 3 dependent velocities, and 2 independent ones
BLOCKS = {(0,): [2], (1, 2): [3, 4], (3, 4, 5): [5, 6, 7]}
N, M_ROWS, CHOSEN = 8, 6, (0, 1)


def patterns():
    constraints = np.zeros((M_ROWS, N), bool)
    constraints[:, CHOSEN] = True
    for rows, columns in BLOCKS.items():
        constraints[np.ix_(rows, columns)] = True
    mass = np.eye(N, dtype=bool)
    mass[np.ix_([2, 5], [2, 5])] = mass[np.ix_([0, 1], [0, 1])] = True
    return constraints, mass


def numbers(seed, dead_centre=False):
    """A singular mass matrix and a Jacobian; at a dead centre the first dependent column
    vanishes."""
    rng = np.random.default_rng(seed)
    constraints, mass = patterns()
    J = rng.normal(size=(M_ROWS, N)) * constraints
    M = rng.normal(size=(N, N)) * mass
    M = (M @ M.T) * mass + 0.5 * np.eye(N)
    M[6:] = M[:, 6:] = 0.0
    if dead_centre:
        J[0, 2] = 0.0
    return M, J, rng.normal(size=N), rng.normal(size=M_ROWS)


@pytest.fixture(scope="module")
def chosen():
    constraints, mass = patterns()
    return selection(SimpleNamespace(constraint_pattern=constraints, mass_pattern=mass), CHOSEN)


def _chosen(machine):
    rows = machine.tree.speeds(machine.independent, "independent")
    return selection(machine.structure(), rows)


@pytest.fixture(scope="module")
def solved(chosen):
    return jax.jit(jax.vmap(lambda M, J, f, b: Eliminated(M, J, chosen).solve(f, b)))


def exact(M, J, f, b):
    whole = np.block([[M, J.T], [J, np.zeros((M_ROWS, M_ROWS))]])
    x = np.linalg.solve(whole, np.concatenate([f, b]))
    return x[:N], x[N:]


def test_blocks(chosen):
    assert [g.rows.shape for g in chosen.groups] == [(1, 1), (1, 2), (1, 3)]
    assert chosen.partners.shape == (N, 2)
    strut, manipulator = single_strut(), tensegrity_manipulator()
    # each cable closes on its block, its pulley and its unwound angle
    assert [g.rows.shape for g in _chosen(strut).groups] == [(3, 3)]
    # six cables, and the end effector with its three links
    groups = _chosen(manipulator).groups
    assert [g.rows.shape for g in groups] == [(6, 3), (1, 9)]


def test_nothing_to_eliminate():
    """A machine without constraints whose velocities are all independent."""
    none = SimpleNamespace(constraint_pattern=np.zeros((0, 2)), mass_pattern=np.ones((2, 2)))
    M, J = jnp.array([[2.0, 0.5], [0.5, 1.0]]), jnp.zeros((0, 2))
    x, lam = Eliminated(M, J, selection(none, (0, 1))).solve(jnp.ones(2), jnp.zeros(0))
    np.testing.assert_allclose(x, np.linalg.solve(M, np.ones(2)), rtol=1e-14)
    assert lam.shape == (0,)


@pytest.mark.parametrize("dead", [(), (1,)])
def test_solutions_and_dead_centres(solved, dead):
    """With one member at a dead centre of the selection all of them are still solved."""
    cases = [numbers(i, i in dead) for i in range(3)]
    x, lam = solved(*(np.stack(c) for c in zip(*cases, strict=True)))
    for i, case in enumerate(cases):
        mine, theirs = np.concatenate([x[i], lam[i]]), np.concatenate(exact(*case))
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-10 * np.abs(theirs).max())


def test_singular_saddle_points_are_not_numbers(solved):
    M, J, f, b = numbers(0)
    J = J.copy()
    J[2] = J[1]
    x, _ = solved(*(a[None] for a in (M, J, f, b)))
    assert not np.all(np.isfinite(x))


@pytest.mark.parametrize("dead", [False, True])
def test_derivatives(chosen, dead):
    case = numbers(4, dead)
    rng = np.random.default_rng(5)
    constraints, mass = patterns()
    change = [rng.normal(size=a.shape) for a in case]
    change[0] = (change[0] + change[0].T) * mass
    change[1] = change[1] * constraints
    weights = [rng.normal(size=n) for n in (N, M_ROWS)]

    def value(M, J, f, b):
        found = Eliminated(M, J, chosen).solve(f, b)
        return sum(jnp.sum(w * y) for w, y in zip(weights, found, strict=True))

    forward = jax.jit(lambda a: jax.jvp(value, a, tuple(change))[1])(tuple(case))
    back = jax.jit(jax.grad(value, argnums=(0, 1, 2, 3)))(*case)
    reverse = sum(np.sum(a * b) for a, b in zip(back, change, strict=True))
    at = lambda h: np.dot(
        np.concatenate(exact(*(a + h * c for a, c in zip(case, change, strict=True)))),
        np.concatenate(weights),
    )
    central = (at(1e-6) - at(-1e-6)) / 2e-6
    np.testing.assert_allclose([forward, reverse], central, rtol=1e-6)
    np.testing.assert_allclose(forward, reverse, rtol=1e-10)


def test_independent_coordinates_say_that_they_project():
    """So `Diffrax`, which has no place for that, refuses them."""
    assert IndependentCoordinates.projects
    with pytest.raises(ValueError, match=r"IndependentCoordinates.*without projection after steps"):
        cordax.simulate(
            single_strut(), duration=0.01, dt=1e-3, integrator=cordax.Diffrax(),
            formulation=IndependentCoordinates(),
        )  # fmt: skip
