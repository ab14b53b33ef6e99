"""The law of plastic bending at given curvatures; wires that yield in motion are in
test_spline_rod_theory.py."""

import jax.numpy as jnp
import numpy as np
import pytest

from cordax.systems import End, PlasticFlow, SplineRod

RULES = [("gauss", 3), ("trap", 81)]
LIMIT, HARDENING = 2.0, 0.25


def wire(rule=("gauss", 3)):
    ends = {"left": End.clamped(), "right": End.free()}
    return SplineRod(length=0.5, control_points=33, quadrature=rule, plastic=True, **ends)


def arc(rod, curvature):
    """State of a rod along a circle; its curvature is that of the circle to 1e-3."""
    angle = lambda u: curvature * u
    z = lambda u: -0.5 * curvature * u**2 * jnp.sinc(angle(u) / 2 / jnp.pi) ** 2
    return rod.state_of(lambda u: jnp.stack([u * jnp.sinc(angle(u) / jnp.pi), 0 * u, z(u)], axis=1))


def bent(flow, curvatures, memory=None):
    """Plastic curvature (k,) and memory after a wire was bent to one curvature after the other."""
    memory = flow.init(flow.rod.default_state()) if memory is None else memory
    plastic = memory[0]
    for curvature in curvatures:
        plastic, memory = flow(jnp.zeros(()), arc(flow.rod, curvature), memory)
    return np.asarray(plastic), memory


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("hardening", [0.0, HARDENING])
def test_springback_of_a_circle(rule, hardening):
    """Nothing yields below the limit; beyond it the share 1 - h stays, however it got there, and
    letting go takes nothing of it."""
    flow = PlasticFlow(wire(rule), LIMIT, hardening=hardening)
    np.testing.assert_array_equal(bent(flow, [1.9])[0], 0.0)
    stays = (1.0 - hardening) * (3.5 - LIMIT)
    once, memory = bent(flow, [3.5])
    np.testing.assert_allclose(once, stays, rtol=2e-3)
    np.testing.assert_allclose(bent(flow, [2.2, 3.0, 2.5, 3.5])[0], once, rtol=2e-3)
    np.testing.assert_array_equal(bent(flow, [stays, 3.0], memory)[0], once)


def test_bending_back():
    """A wire that has flowed by p yields at LIMIT + p h/(1 - h), either way."""
    flow = PlasticFlow(wire(), 0.5, hardening=HARDENING)
    plastic, memory = bent(flow, [3.7])
    np.testing.assert_allclose(plastic, 2.4, rtol=2e-3)
    limit = 0.5 + 2.4 / 3.0
    np.testing.assert_array_equal(bent(flow, [2.4 - 0.98 * limit], memory)[0], plastic)
    straight = 2.4 - 0.75 * (2.4 - limit)
    np.testing.assert_allclose(bent(flow, [0.0], memory)[0], straight, rtol=2e-3)


@pytest.mark.parametrize("rule", RULES)
def test_curvatures_are_in_order_from_end_to_end(rule):
    """A spiral, tighter towards its right end."""
    rod = wire(rule)
    spiral = rod.state_of(lambda u: jnp.stack([u, 0 * u, -0.6 * u**3], axis=1))
    plastic = PlasticFlow(rod, 0.1)(jnp.zeros(()), spiral, bent(PlasticFlow(rod, 0.1), [])[1])[0]
    assert plastic.shape == (rod.n_u,)
    assert np.all(np.diff(np.asarray(plastic))[15:] > 0.0) and float(plastic[-1]) > 0.9


def test_start_continues_an_earlier_bend():
    rod = wire()
    flow = PlasticFlow(rod, LIMIT, hardening=HARDENING)
    half, memory = bent(flow, [3.0])
    later = PlasticFlow(rod, LIMIT, hardening=HARDENING, start=half)
    for next_one in (3.5, 1.0):
        np.testing.assert_array_equal(bent(later, [next_one])[0], bent(flow, [next_one], memory)[0])
    assert np.abs(bent(later, [3.5])[0] - bent(flow, [3.5])[0]).max() < 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": np.zeros(3)}, r"start: got shape \(3,\), expected shape \(90,\)"),
        ({"start": np.full(90, -0.1)}, "start: got"),
        ({"hardening": 1.0}, "hardening: got 1.0, expected a share"),
        ({"yield_curvature": 0.0}, "yield_curvature: got 0.0"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        PlasticFlow(wire(), **({"yield_curvature": 1.0} | options))
    with pytest.raises(ValueError, match="a rod made with plastic=True"):
        PlasticFlow(SplineRod(), 1.0)
