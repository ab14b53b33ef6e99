"""What a rod refuses, and that its numbers are numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.systems import SplineRod


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"torsion_width": 0.0}, "torsion_width: got 0.0, expected finite values > 0"),
        ({"torsion_width": -1.0}, "torsion_width"),
        ({"shear": -1.0}, "shear"),
        ({"shear": "stiff"}, "shear: got 'stiff', expected a number"),
        ({"length": [1.0, 2.0]}, r"length: got shape \(2,\), expected a scalar"),
        ({"young": np.nan}, "young: got nan, expected finite values"),
        ({"rest_strain": (0.0, 0.0)}, r"rest_strain: got shape \(2,\), expected shape \(3,\)"),
        ({"quadrature": ("gauss", 1)}, "quadrature.*more points"),
        ({"quadrature": ("trap", 3)}, "quadrature.*more points"),
    ],
)
def test_refused(numbers, message):
    with pytest.raises(ValueError, match=message):
        SplineRod(**numbers)


@pytest.mark.parametrize("name", ["shear", "torsion_width"])
def test_optional_numbers_are_arrays(name):
    """A Python float would recompile for every value and carry no gradient."""
    rod = SplineRod(**{name: 3.0})
    assert isinstance(getattr(rod, name), jax.Array)
    P = jnp.asarray(np.random.default_rng(0).normal(size=(4, rod.control_points)))
    energy = lambda x: SplineRod(**{name: x}, diameter=1.0).elastic_energy(P).torsion
    slope = jax.grad(energy)(3.0)
    np.testing.assert_allclose(slope, (energy(3.001) - energy(2.999)) / 2e-3, rtol=1e-5)


@pytest.mark.parametrize("rule", [("gauss", 2), ("gauss", 4), ("trap", 41)])
def test_fastest_frequency_is_that_of_the_rule(rule):
    """Against the stiffness of the straight rod differentiated from the energy."""
    rod = SplineRod(quadrature=rule)
    q = rod.default_state().q
    K = jax.hessian(lambda q: rod.potential_energy(0.0, q))(q)
    values = np.linalg.eigvals(np.linalg.solve(rod.mass_matrix(q), K))
    fastest = rod.structure().fastest_frequency()
    np.testing.assert_allclose(fastest, np.sqrt(np.max(np.real(values))), rtol=1e-6)
