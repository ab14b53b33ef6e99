"""The equations of ropes at stored states, on the constraints and off them, and against their
textbook form."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.mechanics import Structure, constraints
from cordax.mechanics.constraints import Stabilisation
from cordax.systems import ProgressiveRope
from helpers.rope_robot_reference import fields, inputs_of, relative, robot_of, textbook

GROUPS = ("p_free", "p_end", "p_robot2", "p_paper")


@eqx.filter_jit
def everything(robot, alpha, beta, t, q, v, u):
    rest = jnp.zeros_like(v)
    stabilisation = Stabilisation(alpha, beta)
    out = {
        "M": robot.mass_matrix(q),
        "f": robot.force(t, q, v, u),
        "at rest": robot.force(t, q, rest, u),
        "terms": robot.structure().constraint_terms(t, q, v),
        "differentiated": constraints.constraint_terms(robot, t, q, v),
        "energies": jnp.stack(
            [robot.kinetic_energy(q, v), robot.potential_energy(t, q), robot.dissipation(q, v)]
        ),
        "by energy": -jax.grad(lambda q: robot.potential_energy(t, q))(q),
    }
    if robot.n_constraints:
        out["fast"] = robot.structure().constrained_acceleration(t, q, v, u, stabilisation)
        out["dense"] = Structure(robot).constrained_acceleration(t, q, v, u, stabilisation)
    else:
        out["fast"] = robot.structure().acceleration(t, q, v, u), jnp.zeros(0)
        out["dense"] = jnp.linalg.solve(out["M"], out["f"]), jnp.zeros(0)
    return out


@pytest.fixture(scope="module", params=GROUPS)
def group(request):
    """Stored values and those found, by state."""
    s, robot = fields(request.param), robot_of(request.param)
    at = lambda k: [jnp.asarray(x[k]) for x in (s.t, s.q, s.v)]
    gains = jnp.asarray(s.alpha_beta)
    inputs = inputs_of(request.param)
    found = [everything(robot, *gains, *at(k), inputs(s.t[k])) for k in range(len(s.t))]
    return s, robot, found


def test_mass_matrix_and_forces(group):
    s, robot, found = group
    for k, x in enumerate(found):
        assert relative(x["M"], s.M[k]) < 1e-12
        assert relative(x["f"], s.f[k] + s.BF[k]) < 1e-12
        M, weight, elastic, gyroscopic = textbook(
            robot, *(jnp.asarray(y[k]) for y in (s.t, s.q, s.v))
        )
        assert relative(M, s.M[k]) < 1e-12
        assert relative(weight, s.f_grav[k]) < 1e-12
        assert relative(elastic, s.f_elastic_damp[k]) < 1e-12
        assert relative(gyroscopic, s.f_gyro[k]) < 1e-12


def test_parts_of_the_force(group):
    """Weight and velocity terms are a millionth of the elastic forces: apart, by machines without
    the other."""
    s, robot, _ = group
    limp = eqx.tree_at(lambda r: (r.EA, r.EI), robot, (0 * robot.EA, 0 * robot.EI))
    floating = eqx.tree_at(lambda r: r.gravity, limp, jnp.zeros(()))
    force = eqx.filter_jit(lambda r, t, q, v: r.force(t, q, v, jnp.zeros(r.n_u)))
    for k in range(len(s.t)):
        t, q, v = (jnp.asarray(x[k]) for x in (s.t, s.q, s.v))
        assert relative(force(limp, t, q, 0 * v), s.f_grav[k]) < 1e-12
        assert relative(force(floating, t, q, v), s.f_gyro[k]) < 1e-12


@pytest.mark.parametrize("terms", ["terms", "differentiated"])
def test_constraints_and_their_derivatives(group, terms):
    s, robot, found = group
    if robot.n_constraints == 0:
        assert found[0][terms].phi.shape == (0,)
        return
    for k, x in enumerate(found):
        x = x[terms]
        assert relative(x.jacobian, s.Phiq[k]) < 1e-12
        assert relative(-x.bias, s.gamma[k]) < 1e-12
        # on the constraints values and rates are round-off of terms of order 1 to 10
        np.testing.assert_allclose(x.phi, s.Phi[k], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(x.rate, s.Phid[k], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("path", ["fast", "dense"])
def test_accelerations_and_multipliers(group, path):
    s, robot, found = group
    for k, x in enumerate(found):
        a, multipliers = x[path]
        assert relative(a, s.qdd[k]) < 1e-9
        if robot.n_constraints:
            assert relative(multipliers, s.lam[k]) < 1e-9


def test_elimination_against_dense(group):
    for x in group[2]:
        for fast, dense in zip(x["fast"], x["dense"], strict=True):
            assert relative(fast, dense) < 1e-10


def test_energies(group):
    s, _, found = group
    for k, x in enumerate(found):
        np.testing.assert_allclose(x["energies"], s.T_U_2P[k], rtol=1e-12)
        np.testing.assert_allclose(x["by energy"] + s.BF[k], x["at rest"], rtol=1e-11, atol=1e-9)


def test_a_rope_of_one_segment_is_a_pendulum():
    """And a progressive law's force is minus the gradient of its energy."""
    robot = robot_of("p_free", count=1, law=ProgressiveRope(50.0, 0.3))
    q, v, u = jnp.array([0.02, 0.7]), jnp.array([0.3, -1.2]), jnp.zeros(2)
    found = everything(robot, jnp.zeros(()), jnp.zeros(()), jnp.zeros(()), q, v, u)
    assert relative(*(found[k][0] for k in ("fast", "dense"))) < 1e-12
    np.testing.assert_allclose(found["by energy"], found["at rest"], rtol=1e-12)
    # stiffer than the linear law by 1 + 50 strain^2
    L, EA = float(robot.length[0]), float(robot.EA[0])
    weight = float(robot.line_density[0]) * L * 9.81
    strain = 0.02 / L
    pull = 0.5 * weight * np.cos(0.7) - EA * strain * (1.0 + 50.0 * strain**2)
    assert float(found["at rest"][0]) == pytest.approx(pull, rel=1e-12)
