"""Environments: the same motion as a run, in batches, and as Gymnasium expects them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.systems import Oscillator

CART = cordax.Experiment(
    Oscillator(mass=2.0, stiffness=50.0, damping=0.1),
    cordax.State(jnp.array([0.3]), jnp.zeros(1)),
    duration=0.5,
    dt=0.01,
    integrator="rk4",
)


def reward(run):
    return -(run["x"][-1] ** 2)


def far(run):
    return jnp.abs(run["x"][-1]) > 1.0


def around(key, machine, state):
    return cordax.State(state.q + 0.01 * jax.random.normal(key, state.q.shape), state.v)


def seen(run):
    return jnp.stack([run["x"][-1], run["d_x"][-1]])


TASK = cordax.Environment(CART, every=5, observe=seen, reward=reward, done=far, spread=around)


@pytest.fixture(scope="module")
def calm():
    return cordax.Environment(CART, every=5)


def test_methods_with_memory_keep_their_order():
    """Inputs that change from step to step: `generalised_alpha` is of second order, as in a run."""
    exact = None
    errors = []
    for dt, integrator in ((1e-3, "rk4"), (0.01, "generalised_alpha"), (5e-3, "generalised_alpha")):
        every = round(0.1 / dt)
        task = cordax.Environment(CART.replace(dt=dt, integrator=integrator), every=every)
        pushes = jnp.array([[5.0], [-10.0], [20.0], [0.0], [7.0]])
        run = jax.jit(lambda m, u, task=task: jax.lax.scan(lambda m, x: task.step(m, x), m, u)[0])
        end = run(task.reset(jax.random.key(0))[0], pushes).state.q
        exact = end if exact is None else exact
        errors.append(float(jnp.abs(end - exact)[0]))
    assert errors[1] / errors[2] == pytest.approx(4.0, abs=0.4)  # half the step, a quarter of it


def test_steps_are_the_run(calm):
    """Inputs held over five steps, as in one simulation with the same inputs."""
    pushes = np.random.default_rng(0).normal(scale=5.0, size=(10, 1))
    held = cordax.control.RecordedInput(0.05 * np.arange(10), pushes, "hold")
    whole = cordax.simulate(CART.replace(control=held, save_every=5))
    moment, first = calm.reset(jax.random.key(0))
    np.testing.assert_array_equal(first, [0.3, 0.0])

    def one(moment, u):
        moment, outcome = calm.step(moment, u)
        return moment, (outcome, moment.state)

    end, (outcomes, states) = jax.jit(lambda m, u: jax.lax.scan(one, m, u))(moment, pushes)
    np.testing.assert_allclose(states.q, whole.q[1:], atol=1e-14)
    np.testing.assert_allclose(outcomes.observation[:, 1], whole.v[1:, 0], atol=1e-13)
    assert outcomes.truncated.tolist() == [False] * 9 + [True] and not outcomes.terminated.any()
    assert int(end.count) == calm.length == 10 and calm.period == pytest.approx(0.05)


def test_gradients_by_actions(calm):
    """Of the end by ten actions, beside central differences."""
    moment, _ = calm.reset(jax.random.key(0))

    @jax.jit
    def last(actions):
        end, _ = jax.lax.scan(lambda m, u: (calm.step(m, u)[0], None), moment, actions[:, None])
        return end.state.q[0]

    at = jnp.linspace(-1.0, 1.0, 10)
    slope = jax.grad(last)(at)
    h = 1e-5 * jnp.eye(10)
    numeric = [(last(at + d) - last(at - d)) / 2e-5 for d in h]
    np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-10)


def test_one_machine_in_gymnasium():
    from gymnasium.utils.env_checker import check_env

    from cordax.simulation.gymnasium import MachineEnv

    env = MachineEnv(TASK, -10.0, 10.0)
    with pytest.warns(UserWarning):  # the checker advises against unbounded observations
        check_env(env, skip_render_check=True)
    first, _ = env.reset(seed=3)
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(first, again)
    assert first[0] != 0.3
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(10)]
    assert ends[:-1] == [(False, False)] * 9 and ends[-1] == (False, True)


def test_a_batch_is_its_members_and_begins_anew():
    from cordax.simulation.gymnasium import MachineVectorEnv

    env = MachineVectorEnv(TASK, 3, -1e3, 1e3)
    first, _ = env.reset(seed=1)
    assert first.shape == (3, 2) and len(set(first[:, 0])) == 3
    pushes = np.array([[0.0], [500.0], [1.0]], np.float32)
    seen, rewards, terminated, _, info = env.step(pushes)
    np.testing.assert_allclose(rewards, -(seen[:, 0] ** 2))
    step = jax.jit(lambda m, u: TASK.step(m, u))
    moment, _ = TASK.reset(jax.random.key(0))
    for i in range(3):  # each as if it were alone, from its own start
        state = cordax.State(jnp.asarray(first[i, :1]), jnp.asarray(first[i, 1:]))
        alone = moment._replace(carry=moment.carry._replace(state=state))
        np.testing.assert_allclose(step(alone, pushes[i])[1].observation, seen[i], atol=1e-12)
    while not terminated[1]:
        seen, rewards, terminated, _, info = env.step(pushes)
    assert terminated.tolist() == [False, True, False] and not info["failed"].any()
    seen, rewards, terminated, *_ = env.step(pushes)
    assert not terminated.any() and rewards[1] == 0.0 and abs(seen[1, 0] - 0.3) < 0.1


def test_a_simulation_that_fails_is_over():
    stiff = CART.replace(system=Oscillator(mass=1e-6, stiffness=1e6), duration=None)
    task = cordax.Environment(stiff, every=100)
    moment, _ = task.reset(jax.random.key(0))
    moment, outcome = jax.jit(lambda m, u: task.step(m, u))(moment, jnp.zeros(1))
    assert outcome.failed and outcome.terminated and not outcome.truncated
    assert np.isfinite(outcome.observation).all()


def test_bad_input_is_named(calm):
    moment, _ = calm.reset(jax.random.key(0))
    with pytest.raises(ValueError, match="action"):
        calm.step(moment, jnp.zeros(2))
    with pytest.raises(ValueError, match="every"):
        cordax.Environment(CART, every=0)
    with pytest.raises(ValueError, match="experiment"):
        cordax.Environment(CART.system)
    from cordax.simulation.gymnasium import MachineEnv

    with pytest.raises(ValueError, match="low < high"):
        MachineEnv(calm, 1.0, -1.0)
