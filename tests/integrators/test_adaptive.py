"""Steps that adapt: errors follow the wanted accuracy, for every kind of method."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Result, State, simulate
from cordax.control import Hermite, InputPath, Pulses, RecordedInput
from cordax.systems import Oscillator
from helpers.hung_ball import Ball, swing

START = State(np.array([1.0]), np.array([0.0]))


@pytest.mark.parametrize(
    "integrator", ["rk4", "suzuki_4", "rosenbrock_2", "implicit_midpoint", "generalised_alpha"]
)
def test_error_follows_the_accuracy(integrator):
    """cos t over 4 s. The error of a run is that of its steps added up: n of them, at most."""
    options = {"dt": 1.0, "duration": 4.0, "integrator": integrator}
    errors, steps = [], []
    for accuracy in (1e-4, 1e-8):
        run = simulate(Oscillator(), START, accuracy=accuracy, **options)
        np.testing.assert_allclose(run.t, np.arange(5.0))
        errors.append(float(np.max(np.abs(run.q[:, 0] - np.cos(run.t)))))
        steps.append(int(run.statistics["steps"]))
        assert errors[-1] < 2.0 * accuracy * steps[-1]
    assert errors[1] < 0.01 * errors[0] and steps[1] > steps[0] > 4


def test_constraints_and_controllers():
    """A ball on a string by index-1 and index-3 methods, against SciPy in the angle."""
    ball = Ball()
    angle, rate, _ = swing(ball, 1.1, 0.5, 1.0)
    exact = ball.at_angle(angle, rate)
    for integrator in ("rk4", "generalised_alpha"):
        run = simulate(ball, dt=0.1, duration=1.0, accuracy=1e-7, integrator=integrator)
        np.testing.assert_allclose(run.q[-1], exact.q, atol=2e-5)
        np.testing.assert_allclose(run.v[-1], exact.v, atol=1e-4)


def test_steps_shorten_where_something_happens():
    """A motion that is slow, then hit by a short pulse: few steps but in the pulse."""
    pulse = lambda t, state: jnp.exp(-(((t - 5.0) / 0.01) ** 2))[None] * 50.0
    options = {"control": pulse, "duration": 10.0, "accuracy": 1e-7}
    run = simulate(Oscillator(stiffness=0.01), START, dt=0.1, **options)
    fine = simulate(Oscillator(stiffness=0.01), START, dt=1e-3, duration=10.0, control=pulse)
    np.testing.assert_allclose(run.q[-1], fine.q[-1], atol=1e-5)
    assert int(run.statistics["refused"]) > 0
    assert int(run.statistics["steps"]) < 250


def test_a_step_without_solution_is_repeated_smaller():
    """One Newton iteration does not solve a step of half a second; it does solve small ones."""
    method = cordax.ImplicitMidpoint(max_iterations=3)
    options = {"dt": 0.5, "duration": 1.0, "integrator": method, "throw": False}
    machine = cordax.systems.Pendulum(length=0.3)
    assert simulate(machine, START, **options).result == Result.NEWTON_NOT_CONVERGED
    run = simulate(machine, START, accuracy=1e-2, **options)
    assert bool(run.succeeded) and int(run.statistics["refused"]) > 0
    # two or three per solved step, and all of those that were not solved; three steps per part
    parts = int(run.statistics["steps"]) + int(run.statistics["refused"])
    assert 3 * parts < int(run.statistics["newton_iterations"]) <= 9 * parts


@pytest.mark.parametrize("integrator", ["implicit_midpoint", "generalised_alpha"])
def test_newton_iterations_of_fixed_steps(integrator):
    """A linear machine: Newton is there after one, and sees it by the second."""
    options = {"dt": 0.01, "duration": 0.2, "integrator": integrator}
    run = simulate(Oscillator(), START, **options)
    assert 20 <= int(run.statistics["newton_iterations"]) <= 40
    longer = simulate(Oscillator(), START, **options | {"duration": 0.4})
    assert int(longer.statistics["newton_iterations"]) > int(run.statistics["newton_iterations"])


def test_too_many_steps_have_their_own_code():
    few = cordax.Adaptive(cordax.RK4(), 1e-10, tries=5)
    run = simulate(Oscillator(), START, dt=1.0, duration=2.0, integrator=few, throw=False)
    assert run.result == Result.ACCURACY_NOT_REACHED and float(run.failure_time) == 1.0
    # the work of the step that failed is counted, that of the motion that did not go on is not
    assert sum(int(x) for x in run.statistics.values()) == 5


def test_work_of_a_step_that_failed_is_counted():
    stuck = cordax.ImplicitMidpoint(max_iterations=2)
    options = {"dt": 0.5, "duration": 2.0, "integrator": stuck, "throw": False}
    run = simulate(cordax.systems.Pendulum(length=0.3), START, **options)
    assert run.result == Result.NEWTON_NOT_CONVERGED and float(run.failure_time) == 0.5
    assert int(run.statistics["newton_iterations"]) == 2


def test_a_step_is_compiled_once():
    """Two halves and a whole are one loop: the machine's force is traced a few times, not
    thrice."""

    class Counted(Oscillator):
        def force(self, t, q, v, u):
            seen.append(1)
            return super().force(t, q, v, u)

    counts = []
    for accuracy in (None, 1e-4):
        seen = []
        simulate(Counted(), START, dt=0.1, duration=0.2, integrator="rk4", accuracy=accuracy)
        counts.append(len(seen))
    assert 0 < counts[1] <= counts[0] + 4


class Stiff(cordax.LagrangianSystem):
    """A slow oscillator (1 rad/s) and, beside it, one of `fast` rad/s, undamped."""

    fast: jnp.ndarray = cordax.float_field(default=1e5)
    coordinate_names = ("slow", "fast")

    kinetic_form = "energy"

    def kinetic_energy(self, q, v):
        return 0.5 * jnp.sum(v**2)

    def potential_energy(self, t, q):
        return 0.5 * (q[0] ** 2 + (self.fast * q[1]) ** 2)


@pytest.mark.parametrize("integrator", ["implicit_midpoint", "generalised_alpha", "rosenbrock_2"])
def test_vibrations_that_nobody_sees_do_not_decide_the_step(integrator):
    """1e-6 m at 1e5 rad/s, so 0.1 m/s: far below an accuracy of 1e-4 in coordinates, far above in
    velocities. As many steps as without it, and the slow motion as good."""
    start = State(np.array([1.0, 1e-6]), np.zeros(2))
    still = State(np.array([1.0, 0.0]), np.zeros(2))
    options = {"dt": 0.5, "duration": 2.0, "accuracy": 1e-4, "integrator": integrator}
    run, calm = (simulate(Stiff(), state, **options) for state in (start, still))
    steps = [int(x.statistics["steps"]) for x in (run, calm)]
    assert steps[0] <= 1.1 * steps[1] + 2
    np.testing.assert_allclose(run.q[:, 0], np.cos(run.t), atol=2e-4 * steps[0])
    # what is slow for the step counts in full: 10 rad/s asks for more steps than 1 rad/s
    quick = State(np.array([1.0, 0.1]), np.zeros(2))
    seen = simulate(Stiff(fast=10.0), quick, **options)
    assert int(seen.statistics["steps"]) > 2 * steps[1]
    np.testing.assert_allclose(seen.q[:, 1], 0.1 * np.cos(10.0 * seen.t), atol=1e-2)


def end(k, adjoint):
    machine = Oscillator(stiffness=k)
    options = {"dt": 0.5, "duration": 2.0, "accuracy": 1e-8, "throw": False}
    return simulate(machine, START, adjoint=adjoint, integrator="rk4", **options).q[-1, 0]


def test_derivatives_in_both_modes_and_in_batches():
    """cos(2 sqrt(k)) by k; a batch in which members take different steps."""
    ks = jnp.array([1.0, 30.0])
    exact = -np.sin(2.0 * np.sqrt(ks)) / np.sqrt(ks)
    forward = jax.jit(jax.vmap(jax.jacfwd(lambda k: end(k, "forward"))))(ks)
    np.testing.assert_allclose(forward, exact, atol=3e-6)
    small = lambda k: end(k, "scan")
    reverse = jax.jit(jax.vmap(jax.grad(small)))(ks)  # members that wait for each other
    np.testing.assert_allclose(reverse, forward, rtol=1e-9)


def test_methods_with_a_memory_of_their_step_are_refused():
    with pytest.raises(ValueError, match=r"accuracy: got Zhai, expected a method whose steps"):
        simulate(Oscillator(), START, dt=0.1, duration=1.0, accuracy=1e-6, integrator="zhai")
    with pytest.raises(ValueError, match=r"accuracy: got -1"):
        simulate(Oscillator(), START, dt=0.1, duration=1.0, accuracy=-1.0)


def _oscillator_after(pieces):
    """Position and velocity of an oscillator from START under constant forces until each time."""
    t, x, v = 0.0, 1.0, 0.0
    for end, force in pieces:
        c, s = np.cos(end - t), np.sin(end - t)
        x, v, t = force + c * (x - force) + s * v, c * v - s * (x - force), end
    return x, v


def test_a_jump_of_the_input_between_the_stages_is_seen():
    """The midpoint of a step and those of its halves leave out its first and last quarter."""
    options = {"dt": 0.1, "duration": 1.0, "integrator": "implicit_midpoint", "accuracy": 1e-8}

    @jax.jit
    def end(jump):
        force = lambda t, state: jnp.where(t < jump, 0.0, 10.0)[None]
        run = simulate(Oscillator(), START, control=force, adjoint="forward", **options)
        return run.q[-1, 0], run.v[-1, 0]

    for jump in (0.113, 0.39, 0.47, 0.74, 0.8123):
        exact = _oscillator_after([(jump, 0.0), (1.0, 10.0)])
        np.testing.assert_allclose(end(jump), exact, atol=1e-5)


@pytest.mark.parametrize("integrator", ["rk4", "implicit_midpoint", "generalised_alpha"])
def test_short_inputs_with_known_instants_are_not_stepped_over(integrator):
    pulses = Pulses([[0.512, 0.513]], [[3000.0]], period=0.25)
    kicks = np.zeros((21, 1))
    kicks[7] = 50.0
    held = RecordedInput(0.04137 * np.arange(21), kicks, "hold")
    spike = Hermite([0.5, 0.505, 0.51], [[0.0], [600.0], [0.0]], np.zeros((3, 1)))
    for accuracy in (1e-4, 1e-8):
        options = {"dt": 0.25, "duration": 1.0, "integrator": integrator, "accuracy": accuracy}
        for control, pieces in (
            (pulses, [(0.512, 0.0), (0.513, 3000.0), (1.0, 0.0)]),
            (held, [(7 * 0.04137, 0.0), (8 * 0.04137, 50.0), (1.0, 0.0)]),
        ):
            run = simulate(Oscillator(), START, control=control, **options)
            allowed = 2.0 * accuracy * (int(run.statistics["steps"]) + 10)
            exact = _oscillator_after(pieces)
            np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0]], exact, atol=allowed)
    run = simulate(Oscillator(), START, control=InputPath(spike), **options)
    x, v = _oscillator_after([(0.505, 0.0)])
    v, c, s = v + 3.0, np.cos(0.495), np.sin(0.495)  # its impulse, 600 N * 0.005 s, at its middle
    exact = c * x + s * v, c * v - s * x
    np.testing.assert_allclose([run.q[-1, 0], run.v[-1, 0]], exact, atol=1e-3)
