"""Several recordings, sampled anyhow, with numbers of their own and knowledge from before."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Experiment, Parameter, Recording, State, identify
from cordax.identification.initial_guess import with_recorded_start
from cordax.systems import Oscillator

TRUTH = Oscillator(2.0, 50.0, 0.8)
START = Oscillator(2.0, 70.0, 0.5)
NAMES = ["stiffness", "damping"]
SIGMA = 1e-3
STARTS = [(0.3, 0.0), (-0.1, 1.5), (0.0, -2.0)]


def state(x, v) -> State:
    return State(jnp.array([x]), jnp.array([v]))


def free(t, x, v):
    """The damped oscillator by its formula."""
    m, k, d = 2.0, 50.0, 0.8
    a = d / (2 * m)
    w = np.sqrt(k / m - a**2)
    return np.exp(-a * t) * (x * np.cos(w * t) + (v + a * x) / w * np.sin(w * t))


def experiment(machine, x, v, **settings) -> Experiment:
    return Experiment(machine, state(x, v), dt=0.02, integrator="rk4", **settings)


def recorded(t, x, v, key) -> Recording:
    noise = SIGMA * jax.random.normal(jax.random.key(key), np.shape(t))
    return Recording(t, {"x": free(np.asarray(t), x, v) + noise})


EVEN = np.arange(101) * 0.02
UNEVEN = np.sort(np.random.default_rng(4).uniform(0.0, 2.0, 101))


@pytest.mark.parametrize("t", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_shared_and_own_numbers(t):
    """Stiffness and damping of all, a start for each; sampled on steps or anywhere between."""
    recordings = [recorded(t, x, v, i) for i, (x, v) in enumerate(STARTS)]
    guesses = [experiment(START, x + 0.1, v - 0.2) for x, v in STARTS]
    fit = identify(
        guesses, recordings, [*NAMES, "state0.q", "state0.v"], noise=SIGMA, check_step=False
    )
    assert bool(fit.succeeded), fit.reason
    own = [f"state0.{s}[0]@{i}" for s in "qv" for i in range(3)]
    assert fit.names == (*NAMES, *own)
    truth = [50.0, 0.8, *(x for x, _ in STARTS), *(v for _, v in STARTS)]
    assert np.all(np.abs(fit.values - jnp.array(truth)) < 4.0 * fit.standard_errors)
    assert np.isclose(float(fit.noise_scale), 1.0, atol=0.1)
    assert np.isclose(fit.experiments[1].state0.v[0], fit["state0.v[0]@1"])
    alone = identify(
        guesses[0], recordings[0], [*NAMES, "state0.q", "state0.v"], noise=SIGMA, check_step=False
    )
    assert np.all(fit.standard_errors[:2] < 0.8 * alone.standard_errors[:2])
    with pytest.raises(ValueError, match=r"3 recordings.*see `trajectories`"):
        _ = fit.trajectory


def test_values_between_steps_have_the_order_of_the_integrator():
    """Coordinates, velocities and outputs at instants of no step, against the formula: halving the
    step divides their error by sixteen, as that of RK4."""
    from cordax.identification.resample import values_at
    from cordax.identification.time_grid import grid

    names, errors = ("x", "d_x"), []
    exact = {"x": free(UNEVEN, 0.3, 0.0)}
    h = 1e-5
    exact["d_x"] = (free(UNEVEN + h, 0.3, 0.0) - free(UNEVEN - h, 0.3, 0.0)) / (2 * h)
    for dt in (0.04, 0.02, 0.01):
        place = grid(UNEVEN, dt, 0.0, 1.0)
        one = experiment(TRUTH, 0.3, 0.0).replace(dt=dt, duration=place.steps * dt)
        found = values_at(cordax.simulate(one), one, place, names)
        errors.append([np.max(np.abs(found[n] - exact[n])) for n in names])
    orders = np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
    assert np.all(orders > 3.7), orders


def test_sensors_of_different_rates_and_noise():
    """Position at 50 Hz, velocity at odd instants and ten times the noise: the estimates are those
    of weighted least squares, found here from the same data by differences."""
    t_v = np.array([0.013, 0.4021, 0.777, 1.3, 1.9])
    position = recorded(EVEN, 0.3, 0.0, 5)
    h = 1e-6
    v = (free(t_v + h, 0.3, 0.0) - free(t_v - h, 0.3, 0.0)) / (2 * h)
    noise = {"x": SIGMA, "d_x": 1e-2}
    speed = Recording(t_v, {"d_x": v + 1e-2 * jax.random.normal(jax.random.key(6), t_v.shape)})
    fit = identify(
        experiment(START, 0.3, 0.0), Recording.join(position, speed), NAMES, noise=noise,
        check_step=False,
    )  # fmt: skip
    assert bool(fit.succeeded) and int(fit.freedom) == 101 + 5 - 2

    def misfit(k, d):
        one = experiment(Oscillator(2.0, k, d), 0.3, 0.0, duration=2.0).replace(dt=1e-3)
        run = cordax.simulate(one)
        x, w = (np.interp(s, run.t, run[n]) for s, n in ((EVEN, "x"), (t_v, "d_x")))
        a = (np.asarray(position.values["x"]) - x) / SIGMA
        b = (np.asarray(speed.values["d_x"]) - w) / 1e-2
        return np.sum(a**2) + np.sum(b**2)

    k, d = map(float, fit.values)
    assert np.isclose(misfit(k, d), float(fit.cost), rtol=1e-3)
    for i, (more, e) in enumerate(zip(((1, 0), (0, 1)), fit.standard_errors, strict=True)):
        step = 0.5 * float(e)
        up, down = (misfit(k + s * more[0] * step, d + s * more[1] * step) for s in (1, -1))
        # the minimum of the parabola through three points, in steps
        off = 0.5 * (down - up) / (up - 2 * float(fit.cost) + down)
        assert abs(off) < 0.1, (i, off)


def test_knowledge_from_before_counts_as_a_measurement():
    """A prior on the mass settles what free vibration does not show; of what it does show it moves
    the estimate as the product of two normal distributions does."""
    recording = recorded(EVEN, 0.3, 0.0, 7)
    one = experiment(Oscillator(2.2, 70.0, 0.5), 0.3, 0.0)
    fit = identify(
        one, recording, [Parameter("mass", prior=(2.0, 0.01)), *NAMES], noise=SIGMA,
        check_step=False,
    )  # fmt: skip
    assert bool(fit.succeeded) and fit.unidentifiable() == []
    assert np.isclose(fit["mass"], 2.0, atol=1e-5)
    assert np.isclose(fit.standard_errors[0], 0.01, rtol=1e-3)
    start = experiment(START, 0.3, 0.0)
    plain = identify(start, recording, NAMES, noise=SIGMA, check_step=False)
    known = Parameter("stiffness", prior=(50.5, 0.05))
    moved = identify(start, recording, [known, "damping"], noise=SIGMA, check_step=False)
    # the data's own variance of stiffness at the stated noise
    variance = float(plain.covariance[0, 0] / plain.noise_scale**2)
    share = variance / (variance + 0.05**2)
    expected = plain["stiffness"] + share * (50.5 - plain["stiffness"])
    assert np.isclose(moved["stiffness"], expected, rtol=1e-4)
    with pytest.raises(ValueError, match=r"noise.*priors are weighted against the data"):
        identify(start, recording, [known], check_step=False)


def test_a_start_that_is_a_module_has_numbers_of_its_own():
    import equinox as eqx

    class Pulled(eqx.Module):
        """At rest under a `force` [N]."""

        force: jax.Array = cordax.float_field()

        def __call__(self, machine):
            return state(self.force / machine.stiffness, 0.0)

    recordings = [recorded(EVEN, f / 50.0, 0.0, i) for i, f in enumerate((10.0, -20.0))]
    guess = [Experiment(START, Pulled(f), dt=0.02, integrator="rk4") for f in (12.0, -15.0)]
    fit = identify(guess, recordings, [*NAMES, "state0.force"], noise=SIGMA, check_step=False)
    truth = jnp.array([50.0, 0.8, 10.0, -20.0])
    assert fit.names[2:] == ("state0.force@0", "state0.force@1")
    assert np.all(np.abs(fit.values - truth) < 4.0 * fit.standard_errors)


def test_bad_words_are_named():
    recording = recorded(EVEN, 0.3, 0.0, 0)
    one = experiment(START, 0.3, 0.0)
    bad = [
        (([one], [recording] * 2, NAMES, {}), "1 experiments, expected one for each of the 2"),
        ((one, [recording, 3], NAMES, {}), "a Recording, or a list of them"),
        ((one, [recording] * 2, NAMES, {"noise": [1.0]}), "noise.*one for each of the 2"),
        ((one, recording, NAMES, {"dt": 0.1}), "dt.*nothing: the experiment has them"),
    ]
    for (system, recordings, names, options), message in bad:
        with pytest.raises(ValueError, match=message):
            identify(system, recordings, names, **options)
    with pytest.raises(ValueError, match="deviation > 0"):
        Parameter("mass", prior=(1.0, 0.0))


def test_initial_states_begin_at_the_recording():
    """A recording cut out of a motion, and a machine that is at rest far away."""
    cut = recorded(EVEN, -0.1, 1.5, 7)
    names = ["state0.q[0]", Parameter("state0.v", bounds=(0.0, 3.0))]
    velocity = {"d_x": np.concatenate([[np.nan, 1.4], np.full(99, 1.2)])}
    both = Recording(EVEN, {"x": cut.values["x"]} | velocity)
    base = Experiment(START, state(5.0, 1.0), dt=0.02)
    found = with_recorded_start(base, names, both).state0
    assert float(found.q[0]) == float(cut.values["x"][0]) and float(found.v[0]) == 1.4
    assert float(with_recorded_start(base, names, both, {"state0.q[0]"}).state0.q[0]) == 5.0
    outside = Recording(EVEN, {"x": cut.values["x"], "d_x": np.full(101, 9.0)})
    assert float(with_recorded_start(base, names, outside).state0.v[0]) == 1.0
    fit = identify(START, cut, [*NAMES, "state0.q", "state0.v"], noise=SIGMA, check_step=False)
    assert float(fit.start[2]) == float(cut.values["x"][0])
    assert bool(fit.succeeded), fit.reason
