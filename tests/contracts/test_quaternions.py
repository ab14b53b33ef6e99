"""What is done with machines works where coordinates are not as many as velocities: a door on a
tilted axis, in a quaternion and a position, 7 coordinates and 6 velocities under 5 constraints."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cordax
from cordax import Parameter, Recording
from cordax.control import PID, Constant
from cordax.io import read_csv
from helpers.small_machines import Door

STEP, STEPS, WANTED = 5e-3, 40, 0.1
GAINS = {"K_p": 20.0, "K_i": 5.0, "K_d": 6.0}


class Driven(Door):
    """With a motor at the hinges; input: its torque [N m]."""

    input_names = ("torque",)

    def applied_force(self, t, q, v, u):
        return jnp.concatenate([u[0] * self.axis, jnp.zeros(3)])


HOLD = PID(Constant([WANTED]), coordinates=(5,), velocities=(4,), period=STEP, **GAINS)


@pytest.fixture(scope="module")
def run():
    """The centre of mass is brought to y = `WANTED`."""
    options = {"dt": STEP, "duration": STEPS * STEP, "integrator": "rk4"}
    return cordax.simulate(Driven(), control=HOLD, **options)


def test_pid_in_the_loop(run):
    """Against the same door in one angle, from sample to sample by SciPy."""
    inertia, d = Driven().pendulum()
    weight = float(Driven().mass * Driven().gravity) * d
    state, integral, angles = np.array([0.7, -0.9]), 0.0, [0.7]
    for _ in range(STEPS):
        error, rate = WANTED - d * np.sin(state[0]), -d * np.cos(state[0]) * state[1]
        u = GAINS["K_p"] * error + GAINS["K_i"] * integral + GAINS["K_d"] * rate
        integral += STEP * error
        slope = lambda t, y, u=u: [y[1], (u - weight * np.sin(y[0])) / inertia]
        state = solve_ivp(slope, (0, STEP), state, rtol=1e-10, atol=1e-12).y[:, -1]
        angles.append(state[0])
    found = np.asarray(jax.vmap(Driven().angle)(run.q))
    np.testing.assert_allclose(found, angles, atol=1e-6)


def test_tables_have_both_kinds_of_names(run, tmp_path):
    data = run.to_xarray()
    assert (data.sizes["coordinate"], data.sizes["velocity"]) == (7, 6)
    np.testing.assert_array_equal(data["q"].sel(coordinate="k"), run["k"])
    np.testing.assert_array_equal(data["v"].sel(velocity="omega_z"), run["d_omega_z"])
    run.to_csv(tmp_path / "door.csv")
    read = read_csv(tmp_path / "door.csv")
    np.testing.assert_array_equal(read.values["d_v_z"], run["d_v_z"])


def test_modes():
    """A pendulum about its axis, and nothing else."""
    inertia, d = Door().pendulum()
    hanging = Door().at(jnp.zeros(()), jnp.zeros(()))
    found = cordax.modes(Door(), hanging)
    assert found.shapes.shape == (2, 6)
    expected = np.sqrt(float(Door().mass * Door().gravity) * d / inertia) / (2 * np.pi)
    np.testing.assert_allclose(found.frequency, expected, rtol=1e-7)


def test_equilibrium():
    rest = cordax.equilibrium(Door(), guess=Door().at(jnp.asarray(0.6), jnp.zeros(())))
    np.testing.assert_allclose(Door().angle(rest.q), 0.0, atol=1e-8)
    assert (rest.q.shape, rest.v.shape) == ((7,), (6,))


def test_identify(run):
    """The mass from the quaternion, a position and an angular velocity."""
    names = ("w", "j", "y", "d_omega_x")
    recorded = Recording(run.t, {name: run[name] for name in names})
    start = Driven(mass=1.6)
    options = {"dt": STEP, "integrator": "rk4", "noise": 1e-6, "check_step": False}
    fit = cordax.identify(start, recorded, [Parameter("mass")], control=HOLD, **options)
    np.testing.assert_allclose(fit.values, [2.0], rtol=1e-6)
