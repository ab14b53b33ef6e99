"""`simulate`: what it stores, how it differentiates, phases, controllers, progress."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import State, simulate
from cordax.control import PID, Sinusoid
from cordax.simulation.defaults import _formulation
from cordax.systems import Oscillator, Pendulum
from helpers.hung_ball import Ball
from helpers.machines import Bead

START = State(np.array([0.7]), np.array([0.2]))
STEPS, DT = 24, 0.01


def same(a, b, **tolerance):
    for name in ("t", "q", "v", "u"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), **tolerance)


@pytest.fixture(scope="module")
def full():
    return simulate(Pendulum(), START, dt=DT, duration=STEPS * DT)


def test_what_comes_back(full):
    np.testing.assert_allclose(full.t, DT * np.arange(STEPS + 1), rtol=1e-14)
    assert full.q.shape == full.v.shape == full.u.shape == (STEPS + 1, 1)
    np.testing.assert_array_equal(full.q[0], START.q)
    assert bool(full.succeeded) and float(full.failure_time) == np.inf
    np.testing.assert_allclose(full["angle"], full.q[:, 0])
    np.testing.assert_allclose(full.energy()["total"], full.energy()["total"][0], rtol=1e-9)


def test_save_every_stores_a_subset(full):
    sparse = simulate(Pendulum(), START, dt=DT, duration=STEPS * DT, save_every=4)
    for name in ("t", "q", "v", "u"):
        np.testing.assert_allclose(getattr(sparse, name), getattr(full, name)[::4], rtol=1e-13)


def test_t0_shifts_time():
    push = lambda t, state: jnp.sin(t)[None]
    late = simulate(Pendulum(), START, dt=DT, duration=STEPS * DT, control=push, t0=2.0)
    np.testing.assert_allclose(late.t, 2.0 + DT * np.arange(STEPS + 1), rtol=1e-14)
    np.testing.assert_allclose(late["torque"], np.sin(late.t), rtol=1e-13)
    ahead = lambda t, state: jnp.sin(t + 2.0)[None]
    early = simulate(Pendulum(), START, dt=DT, duration=STEPS * DT, control=ahead)
    np.testing.assert_allclose(late.q, early.q, rtol=1e-12)


# --- derivatives ------------------------------------------------------------------------------


def last_angle(adjoint, integrator="symplectic_euler"):
    def f(length):
        run = simulate(
            Pendulum(length=length),
            START,
            dt=DT,
            duration=STEPS * DT,
            save_every=2,
            adjoint=adjoint,
            integrator=integrator,
            throw=False,
        )
        return run.q[-1, 0] + jnp.sum(run.v**2)

    return f


def test_adjoints_give_equal_gradients():
    expected = jax.jit(jax.jacfwd(last_angle("forward")))(1.1)
    assert abs(expected) > 0.1
    for adjoint in ("scan", "checkpointed"):
        np.testing.assert_allclose(
            jax.jit(jax.grad(last_angle(adjoint)))(1.1), expected, rtol=1e-10
        )
    with pytest.raises(ValueError, match=r"[Rr]everse-mode"):
        jax.grad(last_angle("forward"))(1.1)


# --- phases -----------------------------------------------------------------------------------


def test_phases_equal_two_calls():
    light, heavy = Pendulum(length=1.0), Pendulum(length=1.5)
    push = lambda t, state: jnp.cos(3.0 * t)[None] - 0.1 * state.v
    both = simulate([(light, 0.1), (heavy, 0.24)], START, dt=DT, control=push)
    first = simulate(light, START, dt=DT, duration=0.1, control=push)
    middle = State(first.q[-1], first.v[-1])
    second = simulate(heavy, middle, dt=DT, duration=0.14, t0=0.1, control=push)
    for name in ("t", "q", "v", "u"):
        two = np.concatenate([getattr(first, name)[:-1], getattr(second, name)])
        np.testing.assert_allclose(getattr(both, name), two, rtol=1e-13, atol=1e-15)


def test_memory_passes_from_phase_to_phase():
    control = pid(DT)
    once = simulate(Oscillator(), START, dt=DT, duration=0.2, control=control)
    twice = simulate([(Oscillator(), 0.1), (Oscillator(), 0.2)], START, dt=DT, control=control)
    same(once, twice, rtol=1e-12, atol=1e-14)


def test_phases_may_change_the_coordinates():
    """A pendulum of which the lower half is let go, and flies: from one angle to an angle and a
    point, energy kept. Each phase knows its machine."""

    class Flying(Pendulum):
        """The pendulum, and a second mass in free fall, x and z [m]."""

        coordinate_names = ("angle", "x", "z")

        def inertial_coordinates(self, q):
            return {"pendulum": super().inertial_coordinates(q[:1]), "ball": q[1:]}

        def inertial_weights(self):
            return {"pendulum": super().inertial_weights(), "ball": 2.0 * jnp.ones(2)}

        def potential_energy(self, t, q):
            return super().potential_energy(t, q[:1]) + 2.0 * 9.81 * q[2]

        def applied_force(self, t, q, v, u):
            return jnp.zeros_like(v)

    def let_go(state):
        q, v = state.q, state.v
        ball = jnp.stack([jnp.sin(q[0]), -jnp.cos(q[0])])
        rate = v[0] * jnp.stack([jnp.cos(q[0]), jnp.sin(q[0])])
        return Flying(), State(jnp.concatenate([q, ball]), jnp.concatenate([v, rate]))

    run = simulate([(Pendulum(), 0.1), (let_go, 0.3)], START, dt=DT)
    assert run.q.shape == (31, 3) and len(run.phases) == 2
    assert np.all(np.isnan(run.q[:10, 1:])) and np.all(np.isfinite(run.q[10:]))
    assert np.all(np.isnan(run["x"][:10])) and np.all(np.isfinite(run["angle"]))
    fall = run["z"][10] + run["d_z"][10] * 0.2 - 0.5 * 9.81 * 0.2**2
    np.testing.assert_allclose(run["z"][-1], fall, atol=1e-12)
    alone = simulate(Pendulum(), START, dt=DT, duration=0.3)
    np.testing.assert_allclose(run["angle"], alone["angle"], rtol=1e-10)
    total = run.energy()["total"]
    np.testing.assert_allclose(total[:10], total[0], rtol=1e-9)
    np.testing.assert_allclose(total[10:], total[10], rtol=1e-9)


# --- controllers ------------------------------------------------------------------------------


def pid(sample):
    reference = Sinusoid([0.5], frequency=4.0)
    return PID(reference, (0,), sample, K_p=20.0, K_i=30.0, K_d=2.0, bias=0.3)


@pytest.mark.parametrize("hold", [1, 4])
def test_sampled_pid_against_a_loop_in_numpy(hold):
    """A controller with memory, its output held for `hold` steps of symplectic Euler."""
    steps = 24
    run = simulate(
        Oscillator(mass=2.0, stiffness=5.0),
        START,
        dt=DT,
        duration=steps * DT,
        integrator="symplectic_euler",
        control=pid(hold * DT),
    )
    x, v, integral, u = 0.7, 0.2, 0.0, 0.0
    rows = []
    for i in range(steps + 1):
        t = i * DT
        if i % hold == 0:
            error = 0.5 * np.sin(4.0 * t) - x
            u = 0.3 + 20.0 * error + 30.0 * integral + 2.0 * (2.0 * np.cos(4.0 * t) - v)
            integral += hold * DT * error
        rows.append((x, v, u))
        x = x + DT * v
        v = v + DT * (u - 5.0 * x) / 2.0
    rows = np.array(rows)
    np.testing.assert_allclose(run.q[:, 0], rows[:, 0], rtol=1e-12)
    np.testing.assert_allclose(run.v[:, 0], rows[:, 1], rtol=1e-12)
    np.testing.assert_allclose(run.u[:, 0], rows[:, 2], rtol=1e-11, atol=1e-12)


def test_held_inputs_are_stored_as_they_acted():
    """With storing and sampling out of step, the stored input is still the one that was held."""
    options = {"dt": DT, "duration": 24 * DT, "control": pid(4 * DT)}
    full = simulate(Oscillator(), START, **options)
    sparse = simulate(Oscillator(), START, save_every=3, **options)
    np.testing.assert_allclose(sparse.u, full.u[::3], rtol=1e-12)
    assert np.all(full.u[4] == full.u[7]) and np.all(full.u[4] != full.u[8])


def test_continuous_controller_acts_in_every_stage():
    """Its feedback is part of the machine: same run as with a stiffer spring."""
    spring = lambda t, state: -3.0 * state.q
    by_control = simulate(Oscillator(), START, dt=0.1, duration=2.0, control=spring)
    by_machine = simulate(Oscillator(stiffness=4.0), START, dt=0.1, duration=2.0)
    np.testing.assert_allclose(by_control.q, by_machine.q, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(by_control.u, -3.0 * by_control.q)


@pytest.mark.parametrize("integrator", ["zhai", "rk4"])
def test_progress_changes_nothing(integrator, capsys):
    """Not even for a two-step method, or a period that does not divide the pieces of the bar."""
    options = {"dt": DT, "duration": 14 * 5 * DT, "integrator": integrator, "save_every": 5}
    silent = simulate(Oscillator(), START, control=pid(4 * DT), **options)
    shown = simulate(Oscillator(), START, control=pid(4 * DT), progress=True, **options)
    same(shown, silent, rtol=1e-13, atol=1e-15)
    assert "70.0/70.0" in capsys.readouterr().err


# --- defaults ----------------------------------------------------------------------------------


def test_default_dt_and_integrator_are_those_of_the_machine():
    class Slow(Bead):
        default_dt = 0.05
        default_integrator = "zhai"

    run = simulate(Slow(), duration=0.5)
    assert run.t.shape == (11,)
    same(run, simulate(Slow(), duration=0.5, dt=0.05, integrator=cordax.Zhai()), rtol=0, atol=0)


def test_jitted_functions_share_what_a_first_trace_made():
    """The formulation that `simulate` chooses is made once, here inside of the first trace."""
    _formulation.cache_clear()
    ball = Ball()
    start = ball.default_state()

    def end(scale):
        run = lambda s: simulate(ball, s, dt=1e-2, duration=0.02, integrator="rk4", throw=False)
        return jax.jit(lambda s: scale * run(s).q[-1])

    once, twice = end(1.0), end(2.0)
    for _ in range(3):
        np.testing.assert_array_equal(2.0 * once(start), twice(start))
