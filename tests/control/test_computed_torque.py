"""Computed-torque control of the neck."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import State
from cordax.control import ComputedTorque, MinimumTension, RaisedCosine, Sinusoid
from cordax.systems import Neck
from cordax.systems.neck.tendons import RigidTendon
from helpers.neck_reference import AMPLITUDE, control_of, field, neck_of, relative

# distribution and friction, which add up: each distribution, and all friction modes with one
CODES = [(0, 0), (0, 1), (0, 2), (1, 1)]


@eqx.filter_jit
def torques_and_tensions(controllers, t, state):
    """Torques of all; tensions, which do not depend on friction, of one for each distribution."""
    torques = [c(t, state, ())[0] for c in controllers]
    return torques, [c.tension(t, state) for c in (controllers[0], controllers[-1])]


@pytest.mark.parametrize("cases", [("p3", "p3_cumulative"), ("p4",)], ids=["3", "4"])
def test_stored_outputs(cases):
    for case in cases:
        neck = neck_of(case, elastic=True)
        controllers = [control_of(case, neck, distribution=d, friction=f) for d, f in CODES]
        for i, t in enumerate(field(case, "time")):
            alpha, rate, theta, theta_rate = (
                field(case, name)[i] for name in ("alpha", "alphad", "theta", "thetad")
            )
            state = State(np.concatenate([alpha, theta]), np.concatenate([rate, theta_rate]))
            torques, tensions = torques_and_tensions(controllers, jnp.asarray(t), state)
            for (d, f), torque in zip(CODES, torques, strict=True):
                expected = field(case, f"control_Gm_dist{d}_fric{f}")[i]
                assert relative(torque, expected) < 1e-10, (case, d, f)
            for d, tension in enumerate(tensions):
                assert relative(tension, field(case, f"control_T_dist{d}")[i]) < 1e-10, (case, d)


def test_rigid_neck_obeys_the_error_equation():
    """With rigid tendons and friction fed forward at measured rates, e'' + K_d e' + K_p e = 0."""
    neck = Neck.default(3, tendon=RigidTendon())
    motion = Sinusoid([0.3, 0.2, -0.4], frequency=[2.0, 3.0, 1.0], phase=0.3)
    control = ComputedTorque(
        neck, motion, K_p=50.0, K_d=11.0, distribution=MinimumTension(8.0), friction="measured"
    )
    t, alpha, rate = 0.7, jnp.asarray([0.4, -0.2, 0.6]), jnp.asarray([0.5, -1.0, 2.0])

    @jax.jit
    def closed_loop(t, alpha, rate):
        torque, _ = control(t, State(alpha, rate), ())
        tension = neck.tension(t, alpha, rate, torque), control.tension(t, State(alpha, rate))
        return neck.structure().acceleration(t, alpha, rate, torque), motion(t), tension

    a, (wanted, wanted_rate, wanted_a), (felt, asked) = closed_loop(t, alpha, rate)
    e, e_rate, e_a = wanted - alpha, wanted_rate - rate, wanted_a - a
    np.testing.assert_allclose(e_a + 11.0 * e_rate + 50.0 * e, 0.0, atol=1e-9)
    # and the tendons carry what the controller asked for
    np.testing.assert_allclose(felt, asked, rtol=1e-9)


def test_start_is_at_rest():
    """On the reference, tendons stretched so that the joints hold the posture."""
    neck, joints = Neck.default(3), 3
    motion = RaisedCosine(AMPLITUDE[joints], offset=0.3)
    control = ComputedTorque(neck, motion)
    state = control.start()
    np.testing.assert_allclose(state.q[:joints], 0.3)
    np.testing.assert_allclose(state.v, 0.0, atol=1e-12)
    held = jnp.zeros(joints + 1)
    acceleration = eqx.filter_jit(neck.structure().acceleration)
    a = acceleration(0.0, state.q, state.v, held)
    np.testing.assert_allclose(a[:joints], 0.0, atol=1e-8)
    # motors balance their tendons: torque = -B T
    torque = -neck.motors.travel * neck.tension(0.0, state.q, state.v, held)
    balanced = acceleration(0.0, state.q, state.v, torque)
    np.testing.assert_allclose(balanced, 0.0, atol=1e-8)


def test_tracking_error_and_sampling():
    """A sampled controller holds its torques over the sampling period."""
    neck = Neck.default(3, tendon=RigidTendon())
    control = ComputedTorque(neck, RaisedCosine(AMPLITUDE[3]), period=0.02)
    run = cordax.simulate(neck, control.start(), dt=2e-3, duration=0.1, control=control)
    u = np.asarray(run.u)
    for start in range(0, 50, 10):
        assert np.ptp(u[start : start + 10], axis=0) == pytest.approx(0.0, abs=1e-15)
    assert np.all(np.abs(u[10] - u[9]) > 0.0)
    error = control.tracking_error(run)
    assert error.shape == (51, 3)
    wanted = 0.5 * np.asarray(AMPLITUDE[3]) * (1 - np.cos(np.asarray(run.t)[:, None]))
    np.testing.assert_allclose(error, run.q - wanted, atol=1e-14)


def test_bad_input():
    neck, motion = Neck.default(3), RaisedCosine(AMPLITUDE[3])
    with pytest.raises(ValueError, match="friction: got 'static', expected one of none, desired"):
        ComputedTorque(neck, motion, friction="static")
    with pytest.raises(ValueError, match=r"K_p: got -1.0, expected finite values >= 0"):
        ComputedTorque(neck, motion, K_p=-1.0)
    with pytest.raises(ValueError, match="K_d: got nan, expected finite values >= 0"):
        ComputedTorque(neck, motion, K_d=np.nan)
