"""Runs that fail: code, time, advice, and what they leave alone. And input that is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Result, SimulationError, State, simulate
from cordax.control import PID, Sinusoid
from cordax.simulation import executor
from cordax.systems import Neck, Oscillator, Pendulum
from helpers.hung_ball import Ball
from helpers.machines import Bead, DoublePendulum


class Fenced(Oscillator):
    """Valid for |x| < 2 only."""

    def valid(self, t, q, v):
        return jnp.abs(q[0]) < 2.0


class Pole(Bead):
    """The force is NaN beyond x = 1."""

    def applied_force(self, t, q, v, u):
        return u + jnp.where(q > 1.0, jnp.nan, 0.0)


def growing(q, dt, limit):
    """The step at which forward Euler on x'' = -x leaves |x| < limit, and the states before."""
    x, v, rows = q, 0.0, [q]
    while abs(x) < limit:
        x, v = x + dt * v, v - dt * x
        rows.append(x)
    return len(rows) - 1, np.array(rows[:-1])


def test_runaway_state():
    steps, rows = growing(1.0, 0.1, 2.0)
    options = {"dt": 0.1, "duration": 20.0, "integrator": "explicit_euler"}
    run = simulate(Fenced(), throw=False, **options)
    assert run.result == Result.RUNAWAY_STATE
    assert float(run.failure_time) == pytest.approx(0.1 * steps)
    np.testing.assert_allclose(run.q[:steps, 0], rows, rtol=1e-12)
    assert np.all(run.q[steps:] == run.q[steps - 1])  # the last good one, repeated
    with pytest.raises(SimulationError) as error:
        simulate(Fenced(), **options)
    message = str(error.value)
    for part in ("Fenced", "ExplicitEuler", "dt = 0.1 s", f"t = {0.1 * steps:g} s", "smaller dt"):
        assert part in message


def test_a_short_run_that_grows_in_every_step_is_not_called_finished():
    """A step just above the limit of stability; one just below is finished."""
    start = State(np.array([0.1]), np.array([0.0]))
    run = lambda dt: simulate(
        Oscillator(1.0, 100.0, 0.0), start, dt=dt, duration=100 * dt, integrator="rk4", throw=False
    )
    assert run(0.29).result == Result.RUNAWAY_STATE
    assert bool(run(0.28).succeeded) and np.max(np.abs(run(0.28).q)) <= 0.1


def test_nonfinite_state():
    start = State(np.array([0.0]), np.array([1.0]))
    options = {"dt": 0.01, "duration": 2.0, "integrator": "explicit_euler"}
    pole = Pole(gravity=0.0, damping=0.0)
    good = simulate(Bead(gravity=0.0, damping=0.0), start, **options)
    passed = int(np.argmax(good.q[:, 0] > 1.0))  # first state whose force is NaN
    run = simulate(pole, start, throw=False, **options)
    assert run.result == Result.NONFINITE_STATE
    assert float(run.failure_time) == pytest.approx(0.01 * (passed + 1))
    np.testing.assert_allclose(run.q[: passed + 1], good.q[: passed + 1], rtol=1e-12)
    assert np.all(np.isfinite(run.q)) and np.all(np.isfinite(run.v))
    text = rf"t = {0.01 * (passed + 1):g} s.*infinite or NaN.*smaller dt.*LinearlyImplicitEuler"
    with pytest.raises(SimulationError, match=text):
        simulate(pole, start, **options)
    assert "failed at t =" in run.summary() and "infinite or NaN" in run.summary()


def test_failure_is_raised_from_compiled_code():
    run = lambda dt: simulate(Fenced(), dt=0.1, duration=20.0, integrator="explicit_euler")
    with pytest.raises(RuntimeError, match="left the range"):
        jax.block_until_ready(jax.jit(lambda x: run(x).q * x)(1.0))


@pytest.mark.parametrize("transformed", [lambda f: f, jax.grad, jax.jacfwd, jax.vmap])
def test_inside_of_jit_why_it_failed_is_said_first(transformed, caplog):
    """Before the lines that JAX and XLA put around an error of compiled code."""

    def end(stiffness):
        options = {"dt": 0.01, "duration": 0.05, "integrator": "explicit_euler"}
        return simulate(Oscillator(stiffness=stiffness), **options).q[-1, 0]

    go = jax.jit(transformed(end))
    batch = transformed is jax.vmap
    good, bad = (jnp.array([1.0, k]) if batch else jnp.array(k) for k in (2.0, 1e12))
    jax.block_until_ready(go(good))
    assert not caplog.records
    with pytest.raises((RuntimeError, ValueError), match="left the range"):
        jax.block_until_ready(go(bad))
    first = caplog.records[0]
    said = "Oscillator with ExplicitEuler at dt = 0.01 s failed at t = 0.0"
    assert first.name == "cordax" and first.getMessage().startswith(said)


def test_newton_not_converged():
    stuck = cordax.ImplicitEuler(max_iterations=1)
    run = simulate(Pendulum(), dt=0.5, duration=1.0, integrator=stuck, throw=False)
    assert run.result == Result.NEWTON_NOT_CONVERGED
    assert float(run.failure_time) == 0.5


def test_one_bad_member_leaves_the_others_alone():
    stiffness = jnp.array([1.0, 30.0, 2.0])  # explicit stability ends at stiffness 4

    def one(k):
        return simulate(
            Fenced(stiffness=k), dt=1.0, duration=10.0, integrator="symplectic_euler", throw=False
        )

    runs = eqx.filter_vmap(one)(stiffness)
    np.testing.assert_array_equal(runs.succeeded, [True, False, True])
    np.testing.assert_array_equal(np.isfinite(runs.failure_time), [False, True, False])
    for i in (0, 2):
        np.testing.assert_allclose(runs.q[i], one(stiffness[i]).q, rtol=1e-13, atol=1e-14)


def test_a_later_phase_does_not_revive_a_failed_run():
    phases = [(Fenced(), 20.0), (Fenced(), 21.0)]
    run = simulate(phases, dt=0.1, integrator="explicit_euler", throw=False)
    steps, _ = growing(1.0, 0.1, 2.0)
    assert run.result == Result.RUNAWAY_STATE
    assert float(run.failure_time) == pytest.approx(0.1 * steps)
    assert run.t.shape == (211,)
    assert np.all(run.q[steps:] == run.q[steps - 1])


# --- input that is refused ------------------------------------------------------------------


OK = {"dt": 0.01, "duration": 0.1}
PAIR = State(np.zeros(2), np.zeros(2))
BAD_Q = State(np.array([np.nan]), np.zeros(1))
BAD_V = State(np.zeros(1), np.array([np.inf]))


class OneMemory(cordax.Controller):
    def init(self, state):
        return jnp.zeros(1)

    def __call__(self, t, state, memory):
        return memory, memory + 1.0


SLOW_PID = PID(Sinusoid([0.5]), (0,), 0.025, K_p=1.0)

REFUSED = {
    "negative dt": ({"dt": -0.1}, r"dt: got -0\.1, expected .*> 0"),
    "zero dt": ({"dt": 0.0}, r"dt: got 0\.0, expected .*> 0"),
    "nan dt": ({"dt": np.nan}, r"dt: got nan, expected a finite step"),
    "no duration": ({"duration": None}, r"duration: got None, expected the simulated time"),
    "negative duration": ({"duration": -1.0}, r"duration: got -1\.0, expected .*> 0"),
    "part of a step": (
        {"duration": 0.105},
        r"duration: got 0\.105 s at dt = 0\.01 s.*whole number",
    ),
    "save_every 0": ({"save_every": 0}, r"save_every: got 0, expected a whole number >= 1"),
    "save_every 3": ({"save_every": 3}, r"save_every: got 3, expected a divisor of the 10 steps"),
    "integrator name": ({"integrator": "rk5"}, r"integrator: got 'rk5', expected one of .*rk4"),
    "integrator class": ({"integrator": cordax.RK4}, r"integrator: got .*expected an Integrator"),
    "adjoint": ({"adjoint": "backward"}, r"adjoint: got 'backward', expected one of scan"),
    "state type": ({"state0": np.zeros(1)}, r"state0: got ndarray, expected a cordax\.State"),
    "q shape": ({"state0": PAIR}, r"state0\.q: got shape \(2,\), expected shape \(1,\)"),
    "v shape": (
        {"state0": State(np.zeros(1), np.zeros(2))},
        r"state0\.v: got shape \(2,\), expected shape \(1,\)",
    ),
    "q not finite": ({"state0": BAD_Q}, r"state0\.q: got \[nan\], expected finite"),
    "v not finite": ({"state0": BAD_V}, r"state0\.v: got \[inf\], expected finite"),
    "control shape": (
        {"control": np.zeros(3)},
        r"control: got shape \(3,\), expected shape \(1,\)",
    ),
    "control function": (
        {"control": lambda t, state: jnp.zeros(2)},
        r"control: got shape \(2,\), expected shape \(1,\)",
    ),
    "control type": ({"control": 3.0}, r"control: got 3\.0, expected a Controller"),
    "period": ({"control": SLOW_PID}, r"control\.period: got 0\.025, expected .*dt = 0\.01 s"),
    "memory in diffrax": (
        {"control": OneMemory(), "integrator": cordax.Diffrax()},
        r"control: got OneMemory, expected a controller without memory",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_wrong_input_names_field_value_and_expectation(what):
    change, message = REFUSED[what]
    with pytest.raises(ValueError, match=message):
        simulate(Pendulum(), **{**OK, **change})


def test_wrong_phases():
    pendulum = Pendulum()
    with pytest.raises(ValueError, match=r"system: got .*increase"):
        simulate([(pendulum, 0.2), (pendulum, 0.1)], dt=0.01)
    with pytest.raises(ValueError, match=r"system: got .*function of State, end time"):
        simulate([pendulum, pendulum], dt=0.01)
    with pytest.raises(ValueError, match=r"duration: got 1\.0, expected None"):
        simulate([(pendulum, 0.2)], dt=0.01, duration=1.0)


def test_wrong_pairing_names_both():
    with pytest.raises(ValueError, match=r"StormerVerlet.*Neck.*use RK4"):
        simulate(Neck.default(3), duration=0.1, dt=0.01, integrator="stormer_verlet")


def test_constrained_machine_needs_a_formulation():
    class Tied(DoublePendulum):
        def constraint(self, t, q):
            return q[:1] - q[1:]

    with pytest.raises(ValueError, match=r"formulation: Minimal .*Tied has 1"):
        start = cordax.State([0.1, 0.1], [0.0, 0.0])
        simulate(Tied(), start, duration=0.1, dt=0.01, formulation=cordax.Minimal())


def test_wrong_parameters_of_a_machine():
    with pytest.raises(ValueError, match=r"mass: got -1\.0, expected finite values > 0"):
        Pendulum(mass=-1.0)
    with pytest.raises(ValueError, match=r"stiffness: got nan, expected finite values"):
        Oscillator(stiffness=np.nan)


# --- codes of controllers, projections and steps ----------------------------------------------


class Refuses(cordax.Controller):
    """No input after `until` [s]; sampled with a `period` [s], or evaluated in every stage."""

    until: float = eqx.field(static=True, default=0.045)
    every: float | None = eqx.field(static=True, default=None)
    may_fail = True

    @property
    def period(self):
        return self.every

    def __call__(self, t, state, memory):
        code = jnp.where(t < self.until, 0, int(Result.QP_INFEASIBLE))
        return jnp.zeros(1), memory, code


@pytest.mark.parametrize(("every", "failure"), [(None, 0.05), (0.01, 0.06), (0.02, 0.07)])
def test_a_controller_ends_a_run_with_its_own_code(every, failure):
    """At the end of the first step whose inputs it refuses: of a stage, or of the sample."""
    run = simulate(Pendulum(), control=Refuses(every=every), throw=False, **OK)
    assert run.result == Result.QP_INFEASIBLE
    assert float(run.failure_time) == pytest.approx(failure)
    good = round(failure / 0.01)
    assert np.all(run.q[good:] == run.q[good - 1])


def test_a_controller_ends_a_run_of_steps_that_adapt_with_its_own_code():
    """After few parts: smaller ones do not help."""
    options = OK | {"accuracy": 1e-4}
    run = simulate(Pendulum(), control=Refuses(), throw=False, **options)
    assert run.result == Result.QP_INFEASIBLE
    assert float(run.failure_time) == pytest.approx(0.05)
    assert int(run.statistics["refused"]) < 50


class TooFast(Refuses):
    """No inputs above a speed of 1 m/s."""

    def __call__(self, t, state, memory):
        code = jnp.where(state.v[0] < 1.0, 0, int(Result.QP_INFEASIBLE))
        return jnp.ones(1), memory, code


def test_a_controller_that_fails_by_the_speed_within_a_step_explains_it():
    """Stages of the step from 0.99 s on are faster than the last good state."""
    mass, start = Oscillator(1.0, 1e-9, 0.0), State(np.zeros(1), np.zeros(1))
    run = simulate(
        mass, start, control=TooFast(), dt=0.03, duration=1.5, integrator="rk4", throw=False
    )
    assert run.result == Result.QP_INFEASIBLE
    assert float(run.failure_time) == pytest.approx(1.02)


def test_what_a_controller_must_return():
    class Forgets(Refuses):
        may_fail = False

    with pytest.raises(ValueError, match=r"control: got Forgets.*\(u, memory\), or may_fail"):
        simulate(Pendulum(), control=Forgets(), **OK)


def test_a_projection_that_finds_no_solution_says_why():
    """A ball hung on two equal cables: the second row is redundant from the start."""

    class Twice(Ball):
        def constraint(self, t, q):
            return jnp.repeat(super().constraint(t, q), 2)

    formulation = cordax.Projected(cordax.UdwadiaKalaba())
    run = simulate(
        Twice(), dt=1e-2, duration=0.02, integrator="rk4", formulation=formulation, throw=False
    )
    assert run.result == Result.SINGULAR_CONSTRAINTS
    assert float(run.failure_time) == pytest.approx(0.01)


class Prepared(cordax.Controller):
    push: jax.Array
    ready: bool = eqx.field(static=True, default=False)

    def prepare(self):
        return Prepared(2.0 * self.push, True)

    def __call__(self, t, state, memory):
        return (self.push if self.ready else jnp.nan * self.push), memory


def test_controllers_prepare_once():
    run = simulate(Pendulum(), control=Prepared(jnp.array([0.1])), **OK)
    np.testing.assert_allclose(run.u, 0.2)


# --- warnings -----------------------------------------------------------------------------------


class Watched(Oscillator):
    """Warns above x = 0.9."""

    def outputs(self, t, q, v, u, multipliers):
        return {"height": q[0]}

    def presentation(self):
        return cordax.Presentation(warnings=lambda outputs: {"high": outputs["height"] > 0.9})


def test_warnings_are_seen_between_stored_states():
    """sin t passes 0.9 at 1.1198 and is below it again at 2.02: stored are 0 and pi only."""
    start = State(np.zeros(1), np.ones(1))
    options = {"dt": np.pi / 300, "duration": np.pi}
    run = simulate(Watched(), start, save_every=300, **options)
    assert abs(float(run.warnings["high"]) - np.arcsin(0.9)) < np.pi / 300
    every = simulate(Watched(), start, **options)
    assert float(run.warnings["high"]) == float(every.warnings["high"])


# --- runs that grow beyond any bound -------------------------------------------------------------


class Winch(cordax.LagrangianSystem):
    """The load on an elastic cable of docs/your-own-machine.md."""

    coordinate_names = ("depth", "drum")

    def inertial_coordinates(self, q):
        return q

    def inertial_weights(self):
        return jnp.array([5.0, 0.01])

    def potential_energy(self, t, q):
        return 0.5 * 2e4 * (q[0] - 0.05 * q[1]) ** 2 - 9.81 * 5.0 * q[0]

    def dissipation(self, q, v):
        return 0.5 * 50.0 * (v[0] - 0.05 * v[1]) ** 2

    def default_state(self):
        return State(np.zeros(2), np.zeros(2))


def test_a_step_too_large_does_not_finish():
    """Without `valid`: growth by some factor in every step, to 1e45 after 40 of them."""
    run = simulate(Winch(), dt=0.05, duration=2.0, integrator="rk4", throw=False)
    assert run.result == Result.RUNAWAY_STATE
    assert np.max(np.abs(run.v)) < 1e11


def test_slow_growth_is_noticed_before_it_is_absurd():
    """Forward Euler on x'' = -x, factor sqrt(1 + dt^2) per step: 5.5 % for dt = 1/3."""
    dt = 1.0 / 3.0
    options = {"dt": dt, "duration": 900 * dt, "integrator": "explicit_euler", "throw": False}
    run = simulate(Oscillator(), **options)
    assert run.result == Result.RUNAWAY_STATE
    assert np.max(np.abs(run.q)) < 1e7


def test_the_default_of_machines_by_energies_is_stable():
    """Against the load and the drum as one falling mass, which the stiff cable only shakes."""
    run = simulate(Winch(), dt=0.05, duration=2.0)
    assert bool(run.succeeded)
    fall = 0.5 * 9.81 * 5.0 / (5.0 + 0.01 / 0.05**2) * 2.0**2
    assert float(run["depth"][-1]) == pytest.approx(fall, rel=1e-2)


class Falling(cordax.LagrangianSystem):
    """A mass in free fall with a drum that a motor spins up: no bound in sight."""

    coordinate_names = ("height", "drum")

    def inertial_coordinates(self, q):
        return q

    def inertial_weights(self):
        return jnp.ones(2)

    def potential_energy(self, t, q):
        return 9.81 * q[0]

    def applied_force(self, t, q, v, u):
        return jnp.stack([jnp.zeros(()), 500.0 * t**3])

    def default_state(self):
        return State(np.zeros(2), np.zeros(2))


@pytest.mark.parametrize(("dt", "duration"), [(1e-3, 4.0), (1.0, 4000.0)])
def test_legitimate_motions_raise_no_alarm(dt, duration):
    """From rest to 1.6e4, and to 3e16 rad/s: the second is beyond any machine, and is stopped."""
    run = simulate(Falling(), dt=dt, duration=duration, integrator="rk4", throw=False)
    last = np.flatnonzero(run.t < float(run.failure_time))[-1]
    np.testing.assert_allclose(run["d_drum"][: last + 1], 125.0 * run.t[: last + 1] ** 4, rtol=1e-9)
    assert bool(run.succeeded) == (duration == 4.0)
    assert bool(run.succeeded) or float(run["d_drum"][-1]) > 0.9e10


# --- derivatives of the others -------------------------------------------------------------------


@pytest.mark.parametrize("adjoint", ["scan", "checkpointed", "in pieces"])
def test_a_failed_member_leaves_the_gradients_of_others_alone(adjoint, monkeypatch):
    """Two oscillators, one of stiffness 1e12; derivative by the mass they share. Without `jit` the
    run goes in pieces."""
    monkeypatch.setattr(executor, "REVERSE_STEPS", 16)
    stiffness = jnp.array([1.0, 1e12])

    def loss(mass, which, adjoint):
        def one(k):
            machine = Oscillator(mass=mass, stiffness=k)
            start = State(jnp.ones(1), jnp.zeros(1))
            options = {"dt": 0.1, "duration": 6.0, "integrator": "explicit_euler"}
            return simulate(machine, start, adjoint=adjoint, throw=False, **options)

        runs = eqx.filter_vmap(one)(stiffness[which])
        return jnp.sum(jnp.where(runs.succeeded[:, None, None], runs.q, 0.0)), runs.succeeded

    both, alone = np.array([0, 1]), np.array([0])
    slope_of = jax.grad(loss, has_aux=True)
    if adjoint == "in pieces":
        slope, good = slope_of(1.3, both, "scan")
    else:
        slope, good = jax.jit(slope_of, static_argnums=2)(1.3, both, adjoint)
    np.testing.assert_array_equal(good, [True, False])
    expected = jax.jit(jax.jacfwd(lambda m: loss(m, alone, "forward")[0]))(1.3)
    np.testing.assert_allclose(slope, expected, rtol=1e-9)


# --- precision -----------------------------------------------------------------------------------


def test_one_precision():
    mixed = State(jnp.zeros(1, jnp.float32), jnp.zeros(1))
    with pytest.raises(
        ValueError, match=r"Pendulum: got numbers or a state in float32, expected f"
    ):
        simulate(Pendulum(), mixed, **OK)
    with jax.enable_x64(False):
        early = Pendulum()
    with pytest.raises(ValueError, match=r"float32, expected float64.*enable_x64\(\) before"):
        simulate(early, **OK)


# --- constraints that drift ----------------------------------------------------------------------


def test_after_a_drift_nothing_moves():
    """Constraints that are only differentiated, by forward Euler: off by 1e-3 within a second.
    Neither stored states nor a later phase go on."""
    bare = cordax.Baumgarte(0.0, 0.0)
    options = {"dt": 1e-2, "integrator": "explicit_euler", "formulation": bare, "throw": False}
    run = simulate([(Ball(), 1.0), (Ball(), 1.5)], **options)
    assert run.result == Result.CONSTRAINT_DRIFT
    good = int(np.sum(run.t < float(run.failure_time)))
    assert 1 < good < 100
    assert np.all(run.violation <= 1e-3)
    for x in (run.q, run.v, run["tension"]):
        assert np.all(x[good:] == x[good - 1]) and np.any(x[good - 1] != x[good - 2])
