"""The rod at single states: basis, energies, forces, Hessians, stiffness by spans."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.math import bsplines
from cordax.mechanics import Structure
from cordax.systems import ContactLaw, End, LineContact, Plane, Sphere, SplineRod
from helpers.rod_reference import DATA, points_first, pull, rod_of

CASES = ["eval_shared0", "eval_shared1", "eval_shared2", "eval_shared3"]


def close(found, wanted, relative):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=relative * np.abs(wanted).max())


def state(case, rod):
    split = lambda name: rod.layout.split(jnp.asarray(DATA[f"{case}/{name}"].T))
    return split("q"), split("v"), jnp.asarray(float(DATA[f"{case}/t"]))


@eqx.filter_jit
def look(rod, t, q, v, u):
    P = rod.control(t, q)
    forces = rod.control_forces(t, q, v, u)
    return P, rod.elastic_energy(P), forces, rod.structure().acceleration(t, q, v, u)


@pytest.mark.parametrize("case", CASES)
def test_energies_forces_and_accelerations(case):
    for closed_form in (True, False):
        rod, p = rod_of(case, closed_form=closed_form)
        q, v, t = state(case, rod)
        u = pull(p)(t, None)
        P, energy, forces, acceleration = look(rod, t, q, v, u)
        parts = np.array([*energy, jnp.sum(rod.weight() * P[2]), rod.springs_energy(t, P)])
        np.testing.assert_allclose(parts, DATA[f"{case}/U_parts"], rtol=1e-12)
        np.testing.assert_allclose(rod.kinetic_energy(q, v), DATA[f"{case}/K"], rtol=1e-12)
        close(forces.T, DATA[f"{case}/force"], 1e-11)
        wanted = rod.layout.split(jnp.asarray(DATA[f"{case}/acc"].T))
        close(acceleration, np.asarray(wanted), 1e-9)


@pytest.mark.parametrize("case", CASES)
def test_basis_and_material(case):
    rod, _ = rod_of(case)
    h, n = float(rod.span), rod.control_points
    np.testing.assert_allclose(h * bsplines.gram(n), DATA[f"{case}/gram"], rtol=1e-13, atol=1e-18)
    np.testing.assert_allclose(h * bsplines.integrals(n), DATA[f"{case}/intb"], rtol=1e-13)
    centre = bsplines.basis(n, [(n - 3) / 2])[0][0]
    np.testing.assert_allclose(centre, DATA[f"{case}/bc"], rtol=1e-13, atol=1e-16)
    np.testing.assert_allclose(rod.elasticity[:3], DATA[f"{case}/H"], rtol=1e-13)
    wanted = [DATA[f"{case}/mu"], DATA[f"{case}/I"]]
    np.testing.assert_allclose(rod.line_density, wanted, rtol=1e-13)


@eqx.filter_jit
def differentiated(rod, q):
    """Minus the stiffness matrix, by differentiating the closed forces."""
    none = jnp.zeros(rod.n_u)
    return -Structure(rod).linearise(jnp.zeros(()), q, jnp.zeros_like(q), none).matrices()[1]


@pytest.mark.parametrize("case", [*CASES, "eval_straight"])
def test_hessian(case):
    rod, _ = rod_of(case)
    q = rod.layout.split(jnp.asarray(DATA[f"{case}/q"].T))
    order = points_first(rod)
    H = np.asarray(differentiated(rod, q))[np.ix_(order, order)]
    close(H, DATA[f"{case}/hess_free"], 1e-9)


def test_the_straight_rod_feels_its_weight_and_nothing_else():
    """The paper's torsion is 0/0 there."""
    rod, _ = rod_of("eval_straight")
    at, t = rod.default_state(), jnp.zeros(())
    forces = np.asarray(rod.control_forces(t, at.q, at.v, jnp.zeros(3)))
    np.testing.assert_allclose(forces[2], -np.asarray(rod.weight()), rtol=1e-12)
    # the fourth row and those across vanish; along it round-off of the axial force remains
    assert np.abs(forces[[1, 3]]).max() == 0.0
    assert np.abs(forces[0]).max() < 1e-12 * float(rod.elasticity.stretch)
    close(forces.T, DATA["eval_straight/force"], 1e-11)


LOADED = {
    "viscous": True,
    "damping": 2e-3,
    "plastic": True,
    "quadrature": ("gauss", 3),
    "contact": (
        LineContact(Plane(), ContactLaw(friction=0.3, damping=0.5, width=0.02)),
        LineContact(
            Sphere(centre=[1.0, 0.0, 0.1], radius=0.2),
            ContactLaw(friction=0.2, width=0.02),
            name="ball",
        ),
    ),
}


@pytest.mark.parametrize("options", [{}, {"control_points": 14}, LOADED], ids=["9", "14", "loaded"])
def test_linearisation_by_spans(options):
    """Equal to the differentiated force, and solved along the chain, forwards and transposed."""
    ends = {"left": End.sliding(40.0), "right": End.clamped(point=[1.9, 0.1, 0.0])}
    rod = SplineRod(young=2.5e6, rest_strain=(0.01, 0.2, 0.3), **(ends | options))
    rng = np.random.default_rng(3)
    q = rod.default_state().q + 0.02 * rng.standard_normal(rod.n_q)
    v, u = 0.1 * rng.standard_normal(rod.n_q), 0.1 * rng.random(rod.n_u)
    at = (jnp.zeros(()), q, jnp.asarray(v), jnp.asarray(u))
    h, h2 = 1e-3, 4e-6
    x, y = rng.standard_normal((2, rod.n_q))

    @eqx.filter_jit
    def look(rod):
        linear = rod.structure().linearise(*at)
        solve = linear.implicit_solver(h, h2)
        transposed = jax.grad(lambda x: jnp.dot(y, solve(x)))(x)
        applied = linear.stiffness(x), linear.inertia(x), solve(x), transposed
        return linear, linear.matrices(), applied, Structure(rod).linearise(*at)

    linear, (M, K, D), (stiffness, inertia, solved, transposed), expected = look(rod)
    close(linear.f, expected.f, 1e-12)
    close(K, expected.K, 1e-12)
    close(D, expected.D, 1e-12) if options is LOADED else np.testing.assert_array_equal(D, 0.0)
    np.testing.assert_allclose(M, expected.M, rtol=1e-13, atol=1e-20)
    close(stiffness, np.asarray(K) @ x, 1e-12)
    close(inertia, np.asarray(M) @ x, 1e-12)
    A = np.asarray(M) - h * np.asarray(D) - h2 * np.asarray(K)
    close(solved, np.linalg.solve(A, x), 1e-9)
    close(transposed, np.linalg.solve(A.T, y), 1e-9)


def test_mass_solve():
    rod, _ = rod_of("eval_shared1")
    B = np.random.default_rng(0).standard_normal((rod.n_q, 3))
    found = rod.structure().mass_solve(rod.default_state().q, jnp.asarray(B))
    np.testing.assert_allclose(rod.mass_matrix(None) @ found, B, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("field", "given", "message"),
    [
        ("control_points", 4, "control_points: got 4, expected a whole number >= 5"),
        ("diameter", 0.0, "diameter: got 0.0"),
        ("poisson", 0.5, "poisson: got 0.5, expected a number between -1 and 0.5"),
        ("poisson", -1.0, "poisson"),
        ("young", -1.0, "young"),
        ("damping", 0.1, "damping: got 0.1, expected 0.0 for a rod without viscous=True"),
        ("quadrature", ("simpson", 3), "quadrature"),
        ("loads", (1.2,), "loads"),
        ("rest_strain", (0.0, 0.0), "rest_strain"),
    ],
)
def test_bad_input(field, given, message):
    with pytest.raises(ValueError, match=message):
        SplineRod(**{field: given})


def test_an_explicit_step_above_the_limit_is_announced():
    """Real aluminium: 14.9 microseconds for Forest-Ruth."""
    rod = SplineRod(left=End.sliding(1e4), right=End.sliding(1e4))
    assert rod.structure().fastest_frequency() == pytest.approx(1.0589e5, rel=1e-3)
    options = {"dt": 2e-3, "duration": 4e-3, "throw": False}
    with pytest.warns(UserWarning, match=r"about 1\.49e-05 s"):
        cordax.simulate(rod, integrator="forest_ruth_4", **options)
