"""Identification of tendon stiffness and damping of the three-joint neck: coverage and time.

    python benchmarks/identification.py [--draws 100] [--seed 2] [--json identification.json]
    python benchmarks/identification.py --draws 0: beside SciPy only

2 s at 1 kHz, joint and motor angles with 1e-4 rad of noise, recorded with Zhai's method at 0.1 ms,
fitted with Rosenbrock2 at 0.5 ms from a factor of five off in both parameters. All noise draws are
fitted as one batch. Reports how many 95 % confidence intervals contain the truth, the bias in
standard errors, and the time per fit after compilation, in the batch and alone; and beside it
SciPy's `least_squares` (MINPACK's Levenberg-Marquardt, finite differences) on the same compiled
residuals from the same starts: estimates, processor seconds, how many simulations it asks for.
"""

import argparse
import json
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

import cordax
from cordax import Experiment, Recording, identify
from cordax.identification._identify import problem_of
from cordax.systems import Neck

SIGMA = 1e-4  # [rad]
TENSION = 50.0  # [N]
NAMES = ["tendon.stiffness", "tendon.damping"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    cordax.enable_x64()
    neck = Neck.default(3)
    truth = np.array([1e5, 100.0])
    frequency = 2 * jnp.pi * jnp.array([[10 + i + 4 * k for k in range(4)] for i in range(4)])
    holding = -neck.motors.travel * TENSION

    def torque(t, state):
        return holding + 3e-3 * jnp.sum(jnp.sin(frequency * t), axis=1)

    def at_rest(machine):
        return machine.state_at(jnp.zeros(3), tension=jnp.full(4, TENSION))

    run = cordax.simulate(
        neck, at_rest(neck), dt=1e-4, duration=2.0, integrator="zhai", control=torque, save_every=10
    )
    t = np.asarray(run.t)
    where = lambda n: (n.tendon.stiffness, n.tendon.damping)

    def fit(q, start):
        machine = eqx.tree_at(where, neck, (start[0], start[1]))
        recording = Recording(t, dict(zip(neck.coordinate_names, q.T, strict=True)))
        return identify(
            machine,
            recording,
            NAMES,
            state0=at_rest,
            control=torque,
            dt=5e-4,
            noise=SIGMA,
            check_step=False,
        )

    shape = (max(options.draws, 4), *run.q.shape)
    draws = run.q + SIGMA * jax.random.normal(jax.random.key(options.seed), shape)
    # every corner of a factor five, in turn
    corners = jnp.array([[5e5, 500.0], [2e4, 20.0], [5e5, 20.0], [2e4, 500.0]])
    starts = corners[jnp.arange(len(draws)) % 4]
    report = {"benchmark": "identification", "seed": options.seed, "draws": options.draws}
    if options.draws:
        report |= _coverage(fit, draws, starts, truth)
    compared = [_beside_scipy(neck, at_rest, torque, t, draws[i], starts[i], fit) for i in range(4)]
    report["beside_scipy"] = {
        "largest_relative_difference": max(c["difference"] for c in compared),
        "cpu_s": [c["cpu_s"] for c in compared],
        "scipy_cpu_s": [c["scipy_cpu_s"] for c in compared],
        "ratio": float(np.median([c["scipy_cpu_s"] / c["cpu_s"] for c in compared])),
        "scipy_simulations": [c["simulations"] for c in compared],
        "iterations": [c["iterations"] for c in compared],
    }
    text = json.dumps(report, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


def _coverage(fit, draws, starts, truth) -> dict:
    """How often intervals hold, and times."""
    all_fits = eqx.filter_jit(jax.vmap(fit))
    compiling = _seconds(lambda: all_fits(draws, starts))
    batch = _seconds(lambda: all_fits(draws, starts))
    fits = all_fits(draws, starts)
    values, iterations = np.asarray(fits.values), np.asarray(fits.iterations)
    interval = np.asarray(fits.interval())
    inside = (interval[..., 0] < truth) & (truth < interval[..., 1])
    errors = np.asarray(fits.standard_errors)
    alone = [_seconds(lambda i=i: fit(draws[i], starts[i])) for i in range(min(9, len(draws)))]
    return {
        "converged": int(np.sum(fits.succeeded)),
        "covered_95": dict(zip(NAMES, inside.sum(axis=0).tolist(), strict=True)),
        "within_1_percent": dict(
            zip(NAMES, np.sum(np.abs(values / truth - 1) < 0.01, axis=0).tolist(), strict=True)
        ),
        "largest_relative_error": np.max(np.abs(values / truth - 1), axis=0).tolist(),
        "bias_in_standard_errors": np.mean((values - truth) / errors, axis=0).tolist(),
        "scatter_in_standard_errors": np.std((values - truth) / errors, axis=0).tolist(),
        "relative_standard_error": np.mean(errors / truth, axis=0).tolist(),
        "iterations": {"median": int(np.median(iterations)), "most": int(np.max(iterations))},
        "batch": {
            "first_call_s": compiling,
            "run_s": batch,
            "per_fit_s": batch / len(draws),
        },
        "alone": {
            "first_call_s": alone[0],
            "per_fit_s": float(np.median(alone[1:])),
            "slowest_s": float(np.max(alone[1:])),
        },
    }


def _beside_scipy(neck, at_rest, torque, t, q, start, fit) -> dict:
    """Both from the same start, after compilation, in processor seconds."""
    where = lambda n: (n.tendon.stiffness, n.tendon.damping)
    machine = eqx.tree_at(where, neck, (start[0], start[1]))
    recording = Recording(t, dict(zip(neck.coordinate_names, q.T, strict=True)))
    one = Experiment(machine, at_rest, torque, dt=5e-4, integrator="rosenbrock_2")
    problem = problem_of([one], [recording], NAMES, noise=SIGMA)
    residuals = eqx.filter_jit(lambda problem, y: problem.residuals(y)[0])
    asked = [0]

    def ask(y):
        asked[0] += 1
        return np.asarray(residuals(problem, jnp.asarray(y)))

    ask(np.zeros(2))  # compiled
    asked[0] = 0
    clock = time.process_time()
    found = least_squares(ask, np.zeros(2), method="lm", xtol=1e-8, ftol=1e-8)
    theirs = time.process_time() - clock
    values = np.asarray(problem.parameters.values(jnp.asarray(found.x)))
    fit(q, start)
    clock = time.process_time()
    ours = jax.block_until_ready(fit(q, start).values)
    seconds = time.process_time() - clock
    return {
        "difference": float(np.max(np.abs(values / np.asarray(ours) - 1))),
        "cpu_s": seconds,
        "scipy_cpu_s": theirs,
        "simulations": asked[0],
        "iterations": int(fit(q, start).iterations),
    }


def _seconds(call) -> float:
    begin = time.perf_counter()
    jax.block_until_ready(jax.tree.leaves(eqx.filter(call(), eqx.is_array)))
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
