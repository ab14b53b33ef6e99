"""Form-finding: exact self-stresses of prisms and of the expanded octahedron."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.systems import mechanism as parts


def test_three_prism():
    """Force densities horizontal : upright : bar = 1 : sqrt 3 : -sqrt 3."""
    found = parts.self_stress(parts.prism(3))
    expected = [*[1.0] * 6, *[np.sqrt(3.0)] * 3, *[-np.sqrt(3.0)] * 3]
    np.testing.assert_allclose(found.densities, expected, rtol=1e-12)
    assert (found.mechanisms, found.stable) == (1, True)


@pytest.mark.parametrize("n", [4, 5, 6])
def test_prisms_have_a_self_stress_at_one_twist_only(n):
    found = parts.self_stress(parts.prism(n))
    assert found.densities is not None and found.stable
    # the twist of a stable prism balances upright cables against bars: 2 sin(pi/n)
    np.testing.assert_allclose(found.densities[2 * n], 2 * np.sin(np.pi / n), rtol=1e-12)
    assert len(parts.self_stress(parts.prism(n, twist=1.7)).states) == 0


def test_expanded_octahedron():
    structure = parts.expanded_octahedron()
    assert (len(structure.cables), len(structure.bars)) == (24, 6)
    found = parts.self_stress(structure)
    np.testing.assert_allclose(found.densities[:24], 1.0, rtol=1e-12)
    np.testing.assert_allclose(found.densities[24:], -1.5, rtol=1e-12)
    assert (found.mechanisms, found.stable) == (1, True)
    # forces: bar over cable is -sqrt 6
    np.testing.assert_allclose(-1.5 / (np.sqrt(6.0) / 4.0), -np.sqrt(6.0), rtol=1e-15)


def test_form_finding_from_a_wrong_twist():
    rough = parts.prism(3, twist=np.radians(140.0))
    assert len(parts.self_stress(rough).states) == 0
    found = parts.self_stress(parts.find_form(rough))
    assert found.densities is not None and found.stable
    np.testing.assert_allclose(found.densities[6:9], -found.densities[9:], rtol=1e-6)


def test_prestressed_prism_is_at_rest():
    """The machine cut for its self-stress does not accelerate, and its first cable carries the
    prestress."""
    machine = parts.as_mechanism(parts.prism(3), prestress=50.0)
    state = machine.default_state()
    f = eqx.filter_jit(lambda m, s: m.force(0.0, s.q, s.v, jnp.zeros(0)))(machine, state)
    assert np.abs(f).max() < 1e-11 * 50.0
    tension = machine.outputs(0.0, state.q, state.v, jnp.zeros(0), jnp.zeros(0))["cable_tension"]
    np.testing.assert_allclose(tension[0], 50.0, rtol=1e-9)
