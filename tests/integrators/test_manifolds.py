"""Orders of the methods where coordinates are quaternions or angles of crossed hinges."""

import jax
import numpy as np
import pytest

import cordax
from cordax.math import rotations
from cordax.systems import mechanism as parts

SOLID = parts.Solid(2.0, [0.1, 0.05, -0.02], np.diag([0.03, 0.02, 0.025]))
JOINTS = {
    "floating": (parts.Floating(), [5.0, 0.1, 0.05, 0.3, 0.0, 0.0]),
    "spherical": (parts.Spherical(), [5.0, 0.1, 0.05]),
    "universal": (parts.Universal(), [2.0, 1.5]),
}
METHODS = {
    "explicit_euler": 1,
    "symplectic_euler": 1,
    "implicit_euler": 1,
    "linearly_implicit_euler": 1,
    "zhai": 2,
    "rosenbrock_2": 2,
    "implicit_midpoint": 2,
    "generalised_alpha": 2,
    "rk4": 4,
}
STEPS, DURATION = (4e-3, 2e-3), 0.4


def machine(joint):
    """One body, its centre of mass off the joint, under gravity unless it floats."""
    kind, rate = JOINTS[joint]
    gravity = (0.0, 0.0, 0.0 if joint == "floating" else -9.81)
    return parts.Mechanism([parts.Body("a", kind, solids=SOLID, start_rate=rate)], gravity=gravity)


@pytest.fixture(scope="module", params=JOINTS)
def exact(request):
    """A machine and its state at the end, by RK4 with steps 16 times smaller."""
    found = machine(request.param)
    run = cordax.simulate(found, dt=2.5e-4, duration=DURATION, integrator="rk4", save_every=1600)
    return request.param, found, np.concatenate([run.q[-1], run.v[-1]])


def momenta(run):
    """Linear and angular momentum about the origin of the world, shape (k, 6)."""
    inertia = np.array(SOLID.inertia)

    def at(q, v):
        omega, centre = v[:3], SOLID.centre
        turn = lambda x: rotations.rotate(q[:4], x)
        linear = SOLID.mass * turn(v[3:] + jax.numpy.cross(omega, centre))
        angular = jax.numpy.cross(q[4:] + turn(centre), linear) + turn(inertia @ omega)
        return jax.numpy.concatenate([linear, angular])

    return np.asarray(jax.jit(jax.vmap(at))(run.q, run.v))


@pytest.mark.parametrize("method", METHODS)
def test_orders(exact, method):
    """States, and momenta of the free body, converge with the order of the method."""
    joint, found, end = exact
    errors, drifts = [], []
    for dt in STEPS:
        count = round(DURATION / dt)
        run = cordax.simulate(
            found, dt=dt, duration=DURATION, integrator=method, save_every=count // 4
        )
        errors.append(np.abs(np.concatenate([run.q[-1], run.v[-1]]) - end).max())
        if joint == "floating":
            drifts.append(np.abs(np.diff(momenta(run)[[0, -1]], axis=0)).max())
    order = METHODS[method]
    least = 2.0**order * (0.9 if order < 4 else 0.75)
    assert errors[0] / errors[1] > least, errors
    if joint == "floating":
        assert drifts[0] / drifts[1] > least, drifts
        assert order == 1 or drifts[1] < 2e-3, drifts  # of momenta of 1 N s


def test_accuracy_is_reached_by_a_floating_body():
    found = machine("floating")
    ends = [
        cordax.simulate(found, dt=0.1, duration=DURATION, integrator=method, accuracy=accuracy)
        for method, accuracy in (("implicit_midpoint", 1e-7), ("rk4", 1e-10))
    ]
    np.testing.assert_allclose(ends[0].q[-1], ends[1].q[-1], atol=3e-6)
