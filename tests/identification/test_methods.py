"""Starts from which an ordinary search over the whole is lost: a pendulum that a torque tumbles."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Experiment, Recording, State, identify
from cordax.identification._identify import problem_of
from cordax.identification.shooting import shooting
from cordax.systems import Pendulum

TRUTH, START = Pendulum(1.0, 1.0), Pendulum(1.6, 0.7)
NAMES = ["mass", "length"]
SIGMA = 1e-2
OPTIONS = {"noise": SIGMA, "check_step": False}


def torque(t, state):
    return jnp.array([8.0 * jnp.cos(2.0 * t)])


def experiment(machine=START, **settings):
    start = State(jnp.array([1.0]), jnp.array([0.0]))
    return Experiment(machine, start, torque, dt=0.025, integrator="rk4", **settings)


@pytest.fixture(scope="module")
def recording():
    run = cordax.simulate(experiment(TRUTH, duration=15.0))
    noise = SIGMA * jax.random.normal(jax.random.key(0), run.t.shape)
    return Recording(run.t, {"angle": run["angle"] + noise})


def test_an_ordinary_search_is_lost_and_says_so(recording):
    with pytest.warns(UserWarning) as caught:
        lost = identify(experiment(), recording, NAMES, **OPTIONS)
    assert not bool(lost.succeeded)
    assert any("a local minimum" in str(w.message) for w in caught)


WAYS = [{"horizons": 6}, {"segments": 20}, {"starts": 50, "horizons": 6}]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_ways_to_a_good_start(recording, way):
    found = identify(experiment(), recording, NAMES, **way, **OPTIONS)
    assert bool(found.succeeded), found.reason
    error = (found.values - 1.0) / found.standard_errors
    assert np.all(np.abs(error) < 3.5), error


def test_the_jacobian_of_segments_is_the_derivative_of_their_residuals(recording):
    """Also at instants of no step, and with an unknown start."""
    rows = np.sort(np.random.default_rng(1).choice(100, 30, replace=False))
    some = Recording(recording.t[rows] + 0.003, {"angle": recording.values["angle"][rows]})
    problem = problem_of([experiment()], [some], [*NAMES, "state0.v"], noise=SIGMA)
    cut = shooting(problem, problem.parameters.origin, 3)
    z = 0.05 * jax.random.normal(jax.random.key(3), cut.origin.shape)
    jacobian = eqx.filter_jit(cut.jacobian)
    J, (r, _) = jacobian(z)
    assert np.sum(np.asarray(r) != 0.0) == 30 + 2 * 2  # samples, and two cuts
    for i in range(z.size):
        h = jnp.zeros_like(z).at[i].set(1e-6)
        slope = (jacobian(z + h)[1][0] - jacobian(z - h)[1][0]) / 2e-6
        assert np.allclose(J[:, i], slope, rtol=1e-5, atol=1e-6 * float(jnp.max(jnp.abs(J)))), i


def test_progress_is_shown_and_what_cannot_be_cut_is_named(recording, capsys):
    first = Recording(recording.t[:30], {"angle": recording.values["angle"][:30]})
    identify(experiment(), first, NAMES, progress=True, **OPTIONS)
    jax.effects_barrier()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3 and all(line.startswith("RMS residual ") for line in lines)
    with pytest.raises(ValueError, match=r"segments.*at most the 29 stored"):
        identify(experiment(), first, NAMES, segments=30, **OPTIONS)
