"""Rods under their default method where Newton's method is hard pressed."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

from cordax import GeneralisedAlpha, Result, simulate
from cordax.systems import ContactLaw, End, LineContact, Plane, SplineRod


@pytest.fixture(scope="module")
def wire():
    """2 m of aluminium wire, 2 mm thick, released from a circular arc between supports 1.6 m
    apart: axial waves at 1e5 rad/s, no damping."""
    right = End.pinned(point=[1.6, 0.0, 0.0])
    rod = SplineRod(young=70e9, control_points=19, quadrature=("gauss", 3), right=right)
    half = brentq(lambda a: np.sin(a) / a - 0.8, 0.1, 3.0)

    def arc(u):
        angle = (u - 1.0) * half
        drop = (jnp.cos(angle) - np.cos(half)) / half
        return jnp.stack([0.8 + jnp.sin(angle) / half, 0.0 * u, -drop], axis=1)

    return rod, rod.state_of(arc)


@pytest.mark.parametrize("dt", [2e-3, 5e-3, 1e-2])
def test_an_undamped_metal_wire(wire, dt):
    """The run ends, and the method gives no energy to what it does not resolve: total energy never
    exceeds that of the start (a converged run keeps it)."""
    rod, start = wire
    run = simulate(rod, start, dt=dt, duration=1.0)
    total = np.asarray(run.energy()["total"])
    assert np.max(total) <= total[0] + 1e-6 * np.abs(total[0])


def test_an_accuracy_instead_of_a_step(wire):
    """Axial waves of the undamped wire are not resolved, and need not be: errors of the motion go
    down with the accuracy. At 1e-4 s the reference itself would be off by half a millimetre."""
    fine = {"dt": 2.5e-5, "save_every": 800, "integrator": GeneralisedAlpha(0.8)}
    exact = simulate(*wire, duration=0.06, **fine).q
    errors, steps = [], []
    for accuracy in (1e-3, 1e-4, 1e-5):
        run = simulate(*wire, dt=0.02, duration=0.06, accuracy=accuracy)
        errors.append(float(np.max(np.abs(run.q - exact))))
        steps.append(int(run.statistics["steps"]))
    assert errors[0] > 2.0 * errors[1] > 4.0 * errors[2] and steps[2] > 2 * steps[1] > 2 * steps[0]


def test_an_accuracy_helps_where_newton_fails(wire):
    """As the message says. The method keeps all energy of vibrations and at 2 ms gains more, until
    no step has a solution; with an accuracy the motion goes on, and energy stays."""
    options = {"integrator": "implicit_midpoint", "duration": 0.32, "throw": False}
    run = simulate(*wire, dt=2e-3, **options)
    assert run.result == Result.NEWTON_NOT_CONVERGED and "accuracy" in run.summary()
    run = simulate(*wire, dt=0.02, accuracy=1e-4, **options)
    assert run.result == Result.SUCCESSFUL and int(run.statistics["refused"]) > 0
    total = np.asarray(run.energy()["total"])
    assert np.max(np.abs(total - total[0])) < 1e-3  # [J]; 52 J more before the failure


def test_a_rod_falls_on_a_rough_floor():
    """Contact, stick and slip: it reaches the floor, does not go through it, and energy is only
    lost."""
    law = ContactLaw(friction=0.3, damping=0.5)
    floor = LineContact(Plane(point=(0, 0, -0.05)), law)
    ends = {"left": End.clamped(), "right": End.clamped()}
    rod = SplineRod(young=2.5e6, control_points=7, contact=floor, **ends)
    run = simulate(rod, dt=2e-3, duration=1.0)
    # an impact at 1 m/s sinks in by v sqrt(mu/k) = 1 mm
    assert 0.048 < float(np.max(run["sag"])) < 0.053
    total = np.asarray(run.energy()["total"])
    assert total[-1] < total[100] < total[20] < 1e-9


def test_a_wire_fed_until_it_runs_away_is_not_called_finished(wire):
    """The warning comes true: at 1 ms the wire gains energy by powers of ten within 10 ms."""
    rod, start = wire
    options = {"dt": 1e-3, "duration": 0.05, "integrator": "rosenbrock_2", "throw": False}
    with pytest.warns(UserWarning, match="Rosenbrock2 feeds energy"):
        run = simulate(rod, start, **options)
    assert run.result == Result.RUNAWAY_STATE and float(run.failure_time) < 0.05
    assert "finished" not in run.summary() and "grew beyond any bound" in run.summary()
    assert np.all(np.isfinite(run.q))


def test_a_method_that_feeds_undamped_rods_says_so_before_it_starts():
    options = {"integrator": "rosenbrock_2", "throw": False}
    stiff = SplineRod(control_points=5, quadrature=("gauss", 3))
    with pytest.warns(UserWarning, match=r"Rosenbrock2 feeds energy.*dt = 0.002 s.*Generalised"):
        simulate(stiff, dt=2e-3, duration=2e-3, **options)
    # at a step that resolves everything there is nothing to say (warnings are errors here)
    simulate(stiff, dt=1e-6, duration=1e-6, **options)
