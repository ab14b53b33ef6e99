"""The equations of the cable robot at stored states, on the constraints and off them."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Baumgarte, Penalty, UdwadiaKalaba
from cordax.mechanics import Structure, constraints
from cordax.mechanics.constraints import Stabilisation
from helpers.cable_robot_reference import fields, inputs_at, machine_at, points, relative

BARE, STABILISED = (0.0, 0.0), (1e3, 1e3)


def everything(robot, alpha, beta, t, q, v, u):
    """Terms by structure and by differentiation, accelerations of each formulation."""
    index1 = Baumgarte(alpha, beta).acceleration(robot, t, q, v, u)
    bounds = Stabilisation(alpha, beta)
    return {
        "M": robot.mass_matrix(q),
        "M^-1 M": robot.structure().mass_solve(q, robot.mass_matrix(q)),
        "structured terms": robot.structure().constraint_terms(t, q, v),
        "differentiated terms": constraints.constraint_terms(robot, t, q, v),
        "structured": index1,
        "dense": Structure(robot).constrained_acceleration(t, q, v, u, bounds),
        "udwadia": UdwadiaKalaba(alpha, beta).acceleration(robot, t, q, v, u),
        "penalty": Penalty().acceleration(robot, t, q, v, u),
        "outputs": robot.outputs(t, q, v, u, index1[1]),
        "forces": robot.multiplier_forces(t, q, index1[1]),
    }


@cache
def compiled(tree, static):
    """One function for all points of equal structure."""

    def f(arrays, *args):
        return everything(eqx.combine(arrays, jax.tree.unflatten(tree, static)), *args)

    return jax.jit(f, compiler_options={"xla_backend_optimization_level": 0})


@pytest.fixture(scope="module", params=points())
def point(request):
    """What is stored, and what is found without and with stabilisation."""
    s, robot = fields(request.param), machine_at(request.param)
    arrays, static = eqx.partition(robot, eqx.is_array)
    leaves, tree = jax.tree.flatten(static)
    at = [jnp.asarray(x) for x in (s.t, s.q, s.qd, inputs_at(request.param))]
    f = compiled(tree, tuple(leaves))
    return s, f(arrays, *BARE, *at), f(arrays, *STABILISED, *at)


def test_mass_matrix(point):
    s, found, _ = point
    assert relative(found["M"], s.M) < 1e-11
    np.testing.assert_allclose(found["M^-1 M"], np.eye(len(s.q)), atol=1e-11)


@pytest.mark.parametrize("terms", ["structured terms", "differentiated terms"])
def test_constraints_and_their_derivatives(point, terms):
    s, found, _ = point
    terms = found[terms]
    assert relative(terms.jacobian, s.Phi_q) < 1e-11
    assert relative(terms.bias, s.bias) < 1e-11
    # on the constraints values and rates are round-off of terms of order 1 to 10
    np.testing.assert_allclose(terms.phi, s.Phi, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(terms.rate, s.Phid, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("path", ["structured", "dense", "udwadia"])
def test_index_1_accelerations_and_multipliers(point, path):
    s, found, _ = point
    a, multipliers = found[path]
    assert relative(a, s.qdd) < 1e-8
    assert relative(multipliers, s.lam) < 1e-8


def test_tensions_and_lengths(point):
    s, found, _ = point
    assert relative(found["outputs"]["tension"], s.tension) < 1e-8
    assert relative(found["outputs"]["length"], s.L) < 1e-11
    n = len(s.L)
    np.testing.assert_allclose(found["forces"][:n], found["outputs"]["tension"], rtol=1e-12)


@pytest.mark.parametrize("path", ["structured", "dense", "udwadia"])
def test_stabilised_accelerations(point, path):
    s, _, found = point
    assert relative(found[path][0], s.qdd_baum) < 1e-8
    assert relative(found[path][1], found["structured"][1]) < 1e-8


def test_penalty(point):
    s, found, _ = point
    assert relative(found["penalty"][0], s.qdd_pen) < 1e-5
    # alpha = 1e8 times a sum that cancels: of the multipliers four digits less than of the rest
    assert relative(found["penalty"][1], s.lam_pen) < 1e-4
