"""The neck at random states against the stored reference: written out and from its energies."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from helpers.neck_reference import field, neck_of, relative

CASES = {3: ("p3", "p3_cumulative"), 4: ("p4",)}
STATE = ("alpha", "alphad", "theta", "thetad", "Gamma_m")
DERIVATIVES = ("K_aa", "K_at", "K_ta", "K_tt", "D_aa", "D_at", "D_ta", "D_tt", "rigid_K", "rigid_D")
TIME, STEP = 0.0, 2e-3


def _written_out_only(elastic, rigid, alpha, rate, theta, theta_rate, torque):
    """Further methods that have their own formulas: forces and mass matrices outside of the
    linearisation, inverse dynamics, tensions of rigid tendons."""
    n, q, v = alpha.size, jnp.concatenate([alpha, theta]), jnp.concatenate([rate, theta_rate])
    f = elastic.total_force(TIME, q, v, torque)
    J, H = elastic.length_derivatives(alpha)
    at_rest = elastic.joint_torque(alpha, 0 * rate, 0 * rate)
    moving = elastic.joint_torque(alpha, rate, 0 * rate)
    stored = {
        "M_s": elastic.mass_matrix(q)[:n, :n],
        "rigid_M": rigid.mass_matrix(alpha),
        "elastic_force_alpha": f[:n],
        "elastic_force_theta": f[n:],
        "rigid_force": rigid.total_force(TIME, alpha, rate, torque),
        "J_l": J,
        "ddl": H,
        "g": at_rest,
    }
    a = rigid.structure().acceleration(TIME, alpha, rate, torque)
    derived = {
        "velocity_terms": moving - at_rest,
        "inertial": elastic.joint_torque(alpha, rate, rate) - moving,
        "rigid_pull": -J.T @ rigid.tension(TIME, alpha, rate, torque),
        "rigid_need": rigid.joint_torque(alpha, rate, a),
    }
    return stored, derived


@eqx.filter_jit
def equations(elastic, rigid, alpha, rate, theta, theta_rate, torque):
    """Everything stored, by both routes to it where there are two: out of the linearisation, and
    by direct calls. One function, since what they share is then compiled once."""
    n, q, v = alpha.size, jnp.concatenate([alpha, theta]), jnp.concatenate([rate, theta_rate])
    motion = elastic.structure().linearise(TIME, q, v, torque)
    M, K, D = motion.matrices()
    rigid_motion = rigid.structure().linearise(TIME, alpha, rate, torque)
    rigid_M, rigid_K, rigid_D = rigid_motion.matrices()
    linearised = {
        "M_s": M[:n, :n],
        "elastic_force_alpha": motion.f[:n],
        "elastic_force_theta": motion.f[n:],
        "rigid_M": rigid_M,
        "rigid_force": rigid_motion.f,
        "rigid_K": rigid_K,
        "rigid_D": rigid_D,
    }
    for name, X in (("K", K), ("D", D)):
        linearised |= {f"{name}_aa": X[:n, :n], f"{name}_at": X[:n, n:]}
        linearised |= {f"{name}_ta": X[n:, :n], f"{name}_tt": X[n:, n:]}
    a = elastic.structure().acceleration(TIME, q, v, torque)
    direct = {
        "elastic_accel_alpha": a[:n],
        "elastic_accel_theta": a[n:],
        "rigid_accel": rigid.structure().acceleration(TIME, alpha, rate, torque),
        "length": elastic.tendon_length(alpha),
        "elongation": elastic.elongation(q),
        "tension": elastic.tension(TIME, q, v, torque),
    }
    b = jnp.arange(1.0, motion.f.size + 1.0)
    products = motion.implicit_solver(STEP)(b), motion.stiffness(b), motion.inertia(b)
    further = (
        _written_out_only(elastic, rigid, alpha, rate, theta, theta_rate, torque)
        if elastic.closed_form
        else None
    )
    return linearised, direct, (b, (M, K, D), products), further


def _points(case):
    states = [field(case, name) for name in STATE]
    return [tuple(jnp.asarray(x[i]) for x in states) for i in range(len(states[0]))]


def _agree(values, case, i):
    for name, value in values.items():
        expected = field(case, name)[i]
        assert value.shape == expected.shape, name
        assert relative(value, expected) < (1e-9 if name in DERIVATIVES else 1e-10), name


def _agree_further(stored, derived, case, i):
    _agree(stored, case, i)
    velocity_terms = field(case, "c_s")[i] + field(case, "Gamma_r_alpha")[i]
    assert relative(derived["velocity_terms"], velocity_terms) < 1e-10
    inertial = field(case, "M_s")[i] @ field(case, "alphad")[i]
    assert relative(derived["inertial"], inertial) < 1e-10
    # the joints feel the tensions that the equations of the motors give
    assert relative(derived["rigid_pull"], derived["rigid_need"]) < 1e-10


def _assert_structure_is_consistent(b, matrices, products):
    """Products and solves of a structured linearisation against its dense matrices."""
    (M, K, D), (solved, Kb, Mb) = (np.asarray(x) for x in matrices), products
    assert relative(solved, np.linalg.solve(M - STEP * D - STEP**2 * K, b)) < 1e-10
    assert relative(Kb, K @ b) < 1e-12
    assert relative(Mb, M @ b) < 1e-12


# four joints from the energies: equal to the written-out ones, test_neck_energies
@pytest.mark.parametrize(
    ("joints", "closed_form"),
    [(3, True), (4, True), (3, False)],
    ids=["3-written_out", "4-written_out", "3-energies"],
)
def test_equations(joints, closed_form):
    for case in CASES[joints]:
        elastic = neck_of(case, elastic=True, closed_form=closed_form)
        rigid = neck_of(case, elastic=False, closed_form=closed_form)
        for i, state in enumerate(_points(case)):
            linearised, direct, structure, further = equations(elastic, rigid, *state)
            _agree(linearised, case, i)
            _agree(direct, case, i)
            _assert_structure_is_consistent(*structure)
            if further:
                _agree_further(*further, case, i)
