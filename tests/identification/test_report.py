"""What a fit says beside its estimates: other intervals, bands, files, and what would help."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Experiment, Fit, Parameter, Recording, State, identify
from cordax.systems import Oscillator

TRUTH = Oscillator(2.0, 50.0, 0.8)
SIGMA = 1e-2
NAMES = ["stiffness", "damping"]


def experiment(machine, **settings):
    start = State(jnp.array([0.3]), jnp.array([0.0]))
    return Experiment(machine, start, dt=0.05, integrator="rk4", **settings)


@pytest.fixture(scope="module")
def draws():
    """The motion, and 100 recordings of it."""
    run = cordax.simulate(experiment(TRUTH, duration=3.0))
    return run, run["x"] + SIGMA * jax.random.normal(jax.random.key(2), (100, *run.t.shape))


@pytest.fixture(scope="module")
def fits(draws):
    """Fits of all recordings, as one batch."""
    run, x = draws

    def fitted(x):
        recording = Recording(np.asarray(run.t), {"x": x})
        return identify(experiment(TRUTH), recording, NAMES, noise=SIGMA, check_step=False)

    return jax.jit(jax.vmap(fitted))(x)


@pytest.fixture(scope="module")
def fit(draws):
    run, x = draws
    recording = Recording(run.t, {"x": x[0]})
    return identify(experiment(TRUTH), recording, NAMES, noise=SIGMA, check_step=False)


def test_other_intervals_agree_with_the_linear_ones_where_the_model_is_nearly_linear(fit):
    linear = np.asarray(fit.interval())
    width = linear[:, 1] - linear[:, 0]
    profile = np.asarray(fit.interval(method="profile"))
    assert np.all(np.abs(profile - linear) < 0.12 * width[:, None]), (profile, linear)
    dealt = np.asarray(fit.interval(method="bootstrap", draws=96))
    # ends from 96 draws scatter by about a tenth of the width
    assert np.all(np.abs(dealt - linear) < 0.35 * width[:, None]), (dealt, linear)


def test_the_profile_rises_where_the_misfit_refitted_by_hand_does(fits):
    """At the ends of the profile interval of the stiffness, the best misfit over the damping, found
    by trying, is above the least by the square of the quantile. If the model of the errors is not
    white (here by chance), the rise is larger by the ratio of the variances with it and without."""
    from scipy.optimize import minimize_scalar
    from scipy.stats import t as student

    @jax.jit
    def misfit(k, d, recorded):
        run = cordax.simulate(experiment(Oscillator(2.0, k, d), duration=3.0), throw=False)
        return jnp.sum(((recorded - run["x"]) / SIGMA) ** 2)

    orders = np.asarray(fits.about.errors.order)[:, 0]
    for i in (np.flatnonzero(orders == 0)[0], np.flatnonzero(orders > 0)[0]):
        fit = jax.tree.map(lambda leaf, i=i: leaf[i], fits)
        freedom, wider = int(fit.freedom), 1.0
        if orders[i]:
            freedom = float(fit.about.freedom[0])
            wider = float(fit.about.covariance[0, 0] / fit.about.independent[0, 0])
        rise = wider * float(fit.noise_scale) ** 2 * student.ppf(0.975, freedom) ** 2
        recorded = fit.recording.values["x"]
        for end in np.asarray(fit.interval(method="profile"))[0]:
            best = minimize_scalar(
                lambda d, end=end, recorded=recorded: float(misfit(end, d, recorded)),
                bounds=(0.1, 3.0),
            )
            assert np.isclose(best.fun - float(fit.cost), rise, rtol=0.05)


def test_bands_hold_what_they_promise(fits, fit):
    """The 95 % bands of a motion from another initial state contain the truth at every instant in
    that share of 100 fits of other noise, and are as wide as the predictions scatter."""
    other = experiment(TRUTH, duration=3.0).replace(
        state0=State(jnp.array([0.0]), jnp.array([2.0]))
    )
    truth = np.asarray(cordax.simulate(other)["d_x"])
    middle, bands = fit.predict(other, ["d_x"])
    assert bands["d_x"].shape == (2, *truth.shape)
    assert np.allclose(np.mean(bands["d_x"], axis=0), middle["d_x"])

    each = [jax.tree.map(lambda leaf, i=i: leaf[i], fits) for i in range(len(fits.y))]
    low, high = np.moveaxis([fit.predict(other, ["d_x"])[1]["d_x"] for fit in each], 1, 0)
    scatter = np.std((low + high) / 2, axis=0)
    seen = scatter > 0.2 * scatter.max()
    contained = np.mean((low <= truth) & (truth <= high), axis=0)[seen]
    # one instant: 95 of 100 with a standard deviation of 2.2
    assert np.all(contained >= 0.87) and abs(np.mean(contained) - 0.95) < 0.04, contained
    # most fits take the errors for white: t quantile of 59 degrees of freedom is 2.00
    half = np.median(high - low, axis=0) / 2 / 2.0
    assert np.allclose(half[seen] / scatter[seen], 1.0, atol=0.25)


def test_units_and_residuals_in_tables(fit):
    said = fit.summary()
    assert "stiffness [N/m]" in said and "damping [N s/m]" in said
    table = fit.residual_summary()
    assert "x " in table and " 61 " in table and "independent" in table


def test_residuals_are_drawn(fit):
    import matplotlib.pyplot as plt

    from cordax.plot import plot_residuals

    figure = plot_residuals(fit)
    correlation = figure.axes[0].lines[0].get_ydata()
    assert correlation[0] == 1.0 and np.max(np.abs(correlation[1:])) < 0.5
    with pytest.raises(ValueError, match="a number from 0 to 0"):
        plot_residuals(fit, 1)
    plt.close(figure)
    plt.close(fit.plot())


def test_a_fit_is_saved_and_read_back(fit, tmp_path):
    path = fit.save(tmp_path / "fit")
    again = Fit.load(path)
    assert again.summary() == fit.summary()
    assert np.array_equal(again.interval(), fit.interval())
    assert np.array_equal(again.trajectory["x"], fit.trajectory["x"])
    assert again.parameters.kinds == fit.parameters.kinds
    assert np.allclose(again.predict()[1]["x"], fit.predict()[1]["x"])
    assert again.residual_summary() == fit.residual_summary()
    broken = tmp_path / "broken.npz"
    broken.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"broken.npz.*written by Fit.save"):
        Fit.load(broken)


def test_functions_are_given_again(draws, tmp_path):
    run, x = draws
    pulled = lambda machine: State(jnp.array([15.0]) / machine.stiffness, jnp.zeros(1))
    one = Experiment(TRUTH, pulled, dt=0.05, integrator="rk4")
    found = identify(one, Recording(run.t, {"x": x[0]}), NAMES, noise=SIGMA, check_step=False)
    path = found.save(tmp_path / "fit.npz")
    with pytest.raises(ValueError, match=r"functions of yours.*Fit.load\(path, experiment\)"):
        Fit.load(path)
    again = Fit.load(path, one)
    assert np.allclose(again.experiment.start.q, found.experiment.start.q)


def test_what_would_tell_is_named(draws):
    """Free vibration shows ratios alone. The force of a spring, were it recorded, would settle the
    size; without such an output nothing of this motion does."""
    run, x = draws

    class Weighed(Oscillator):
        def outputs(self, t, q, v, u, multipliers):
            return {"spring_force": self.stiffness * q[0]}

    recording = Recording(run.t, {"x": x[0]})
    for kind, words in ((Oscillator, "excite the machine otherwise"), (Weighed, "spring_force")):
        machine = kind(2.0, 50.0, 0.8)
        with pytest.warns(UserWarning, match=rf"does not determine.*(recording )?{words}"):
            found = identify(
                experiment(machine), recording, ["mass", *NAMES], noise=SIGMA, check_step=False
            )
        (said,) = found.unidentifiable()
        assert words in said
    settled = Parameter("mass", prior=(2.0, 0.1))
    known = identify(experiment(TRUTH), recording, [settled, *NAMES], noise=SIGMA, check_step=False)
    assert known.unidentifiable() == []
