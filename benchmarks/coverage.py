"""Coverage of 95 % intervals: the share of noise realisations whose interval contains the truth.

Errors of measurement keep a share 0, 0.3, 0.6 or 0.9 of themselves from sample to sample (AR(1)).
Recordings are simulated with fine steps, fits use coarser ones. Each case is one batch.

    python benchmarks/coverage.py                       # 200 realisations of every case
    python benchmarks/coverage.py --draws 500 --cases free
    python benchmarks/coverage.py --cases free --methods linear profile bootstrap --draws 50
    python benchmarks/coverage.py --outliers 0.05 --loss huber  # 5 % outliers
"""

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np

import cordax
from cordax import Experiment, Recording, State, identify
from cordax.identification.loss import LossName
from cordax.systems import Oscillator

cordax.enable_x64()

SHARES = (0.0, 0.3, 0.6, 0.9)


def push(t, state):
    return jnp.array([4.0 * jnp.sin(3.0 * t) + 3.0 * jnp.sin(7.0 * t)])


#: by name: machine, initial position, input, recorded names with noise, sampling interval [s],
#: samples, step of the fit [s] and integrator, parameters
CASES = {
    # free decay, few samples, the initial state unknown
    "free": (
        Oscillator(2.0, 50.0, 0.8), 0.3, None, {"x": 5e-3}, 0.05, 81, 0.0125, "rk4",
        ["stiffness", "damping", "state0.q", "state0.v"],
    ),
    # forced, two channels
    "forced": (
        Oscillator(2.0, 50.0, 0.8), 0.1, push, {"x": 5e-3, "d_x": 5e-2}, 0.02, 201, 0.01, "rk4",
        ["mass", "stiffness", "damping"],
    ),
    # a motion that is slow beside the sampling: correlated errors matter most
    "slow": (
        Oscillator(2.0, 2.0, 1.0), 0.3, None, {"x": 5e-3}, 0.05, 201, 0.05, "rk4",
        ["stiffness", "damping", "state0.q"],
    ),
    # steps so coarse that they bias the estimates by about a standard error
    "coarse": (
        Oscillator(2.0, 50.0, 0.8), 0.3, push, {"x": 2e-3}, 0.05, 121, 0.025, "rosenbrock_2",
        ["stiffness", "damping"],
    ),
}  # fmt: skip


def errors(key, share: float, draws: int, count: int):
    """Stationary AR(1) processes of unit variance, shape (draws, count)."""
    white = jax.random.normal(key, (draws, count))
    step = lambda y, e: ((z := share * y + jnp.sqrt(1.0 - share**2) * e), z)
    return jax.vmap(lambda e: jax.lax.scan(step, e[0], e[1:])[1])(
        jnp.concatenate([white[:, :1], white], axis=1)
    )


def with_outliers(key, x, share: float):
    """Errors of which a `share` has a further error of 10 standard deviations."""
    which, size = jax.random.split(key)
    is_outlier = jax.random.uniform(which, x.shape) < share
    return x + jnp.where(is_outlier, 10.0 * jax.random.normal(size, x.shape), 0.0)


def experiment(case, dt: float, **more):
    machine, x, control, *_ = case
    return Experiment(
        machine, State(jnp.array([x]), jnp.zeros(1)), control, dt=dt, integrator=case[7], **more
    )


def recorded(case, share: float, draws: int, seed: int, outliers: float = 0.0):
    """Instants, and the values of each realisation by name."""
    *_, noise, interval, count, _, _, _ = case
    fine = 64
    truth = experiment(case, interval / fine, duration=(count - 1) * interval, save_every=fine)
    run = cordax.simulate(truth)
    keys = jax.random.split(jax.random.key(seed), len(noise))
    values = {
        name: run[name]
        + sigma
        * with_outliers(jax.random.fold_in(key, 1), errors(key, share, draws, count), outliers)
        for key, (name, sigma) in zip(keys, noise.items(), strict=True)
    }
    return np.asarray(run.t), values


def truths(case, names) -> np.ndarray:
    machine, x = case[:2]
    known = {"state0.q[0]": x, "state0.v[0]": 0.0, "state0.q": x, "state0.v": 0.0}
    return np.array([known[n] if n in known else float(getattr(machine, n)) for n in names])


def batch(
    case, share: float, draws: int, seed: int = 0, outliers: float = 0.0, loss: LossName = "linear"
):
    """Fits of all realisations, as one batch."""
    t, values = recorded(case, share, draws, seed, outliers)
    guess = experiment(case, case[6])

    @jax.jit
    def every(values):
        one = lambda values: identify(
            guess, Recording(t, values), case[8], noise=case[3], loss=loss
        )
        return jax.vmap(one)(values)

    return every(values)


def covered(interval, truth) -> np.ndarray:
    low, high = np.moveaxis(np.asarray(interval), -1, 0)
    return (low <= truth) & (truth <= high)


def one_by_one(
    case, share: float, draws: int, methods, seed: int = 0, outliers=0.0, loss: LossName = "linear"
):
    """Coverage by method, one fit after the other."""
    import warnings

    t, values = recorded(case, share, draws, seed, outliers)
    guess, hits = experiment(case, case[6]), {method: [] for method in methods}
    for i in range(draws):
        recording = Recording(t, {name: x[i] for name, x in values.items()})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fit = identify(guess, recording, case[8], noise=case[3], loss=loss)
        for method in methods:
            interval = fit.interval(method=method)
            hits[method].append(covered(interval, truths(case, fit.names)))
    return {method: np.mean(rows, axis=0) for method, rows in hits.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--methods", nargs="*", default=["linear"])
    parser.add_argument("--outliers", type=float, default=0.0)
    parser.add_argument("--loss", default="linear")
    parser.add_argument("--json")
    given = parser.parse_args()
    table = {}
    for name in given.cases:
        case = CASES[name]
        for share in SHARES:
            if given.methods == ["linear"]:
                fits = batch(case, share, given.draws, outliers=given.outliers, loss=given.loss)
                found = {"linear": np.mean(covered(fits.interval(), truths(case, fits.names)), 0)}
                bias = np.median(np.abs(fits.step_shift) / fits.independent_errors, axis=0)
                more = f"  step moves by {np.max(bias):.2f} standard errors"
            else:
                found, more = (
                    one_by_one(
                        case,
                        share,
                        given.draws,
                        given.methods,
                        outliers=given.outliers,
                        loss=given.loss,
                    ),
                    "",
                )
            for method, shares in found.items():
                table[f"{name} {share} {method}"] = [float(x) for x in shares]
                listed = " ".join(f"{100 * x:5.1f}" for x in shares)
                print(f"{name:<8} AR(1) {share:.1f}  {method:<9} {listed} %{more}", flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump({"draws": given.draws, "coverage": table}, file, indent=1)


if __name__ == "__main__":
    main()
