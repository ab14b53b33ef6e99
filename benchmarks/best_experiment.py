"""The excitation of the three-joint neck that shows tendon stiffness and damping best.

    python benchmarks/best_experiment.py [--sines 3] [--steps 25] [--weight 9] [--json best.json]

Joint and motor angles, 1 kHz, 1e-4 rad. Beside it: the raised cosine of the study under computed
torque, of equal duration, 6.3 s. The tensions of the sought excitation stay within those of the
raised cosine. Damping is shown a thousand times better by anything that shakes the tendons, so the
stiffness counts `weight` times as much. Reports standard errors of both and of the excitation that
the search began with.
"""

import argparse
import json
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import cordax
from cordax import Experiment, Parameter
from cordax.control import Multisine
from cordax.identification import best_experiment, expected_errors
from cordax.papers.neck.setup import DURATION, controlled

NAMES = ["tendon.stiffness", "tendon.damping"]
SIGMA = 1e-4  # [rad]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sines", type=int, default=3)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--weight", type=float, default=9.0)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    cordax.enable_x64()
    neck, control, _ = controlled(3, "elastic")
    observe = [n for n in neck.coordinate_names]
    method = {"dt": 1e-3, "integrator": "rosenbrock_2", "duration": DURATION}
    begin = lambda machine: type(control)(machine, control.reference).start()
    raised = Experiment(neck, begin, control, **method)
    tension = np.asarray(cordax.simulate(raised)["tension"])
    bounds = float(tension.min()), float(tension.max())
    before = expected_errors(raised, NAMES, observe=observe, noise=SIGMA)

    middle = jnp.full(4, 0.5 * sum(bounds))
    rest = lambda machine: machine.state_at(jnp.zeros(3), tension=middle)
    frequency = np.linspace(8.0, 22.0, options.sines)
    phase = 0.9 * np.arange(4.0 * options.sines).reshape(4, -1)
    shake = Multisine(
        -neck.motors.travel * middle, frequency, np.full((4, options.sines), 1e-3), phase
    )
    shaken = Experiment(neck, rest, shake, **method)
    clock = time.process_time()
    found = best_experiment(
        shaken,
        NAMES,
        [
            Parameter("control.amplitude", bounds=(-0.05, 0.05)),
            Parameter("control.frequency", bounds=(2.0, 40.0)),
        ],
        observe=observe,
        noise=SIGMA,
        limits={"tension": bounds},
        weights={"tendon.stiffness": options.weight},
        max_steps=options.steps,
        progress=True,
    )
    seconds = time.process_time() - clock
    reached = np.asarray(cordax.simulate(found.experiment)["tension"])
    errors = np.array(list(before.values()))
    report = {
        "benchmark": "best_experiment",
        "tension_bounds_N": bounds,
        "tension_reached_N": [float(reached.min()), float(reached.max())],
        "raised_cosine": before,
        "began_with": dict(zip(NAMES, found.before.tolist(), strict=True)),
        "best": dict(zip(NAMES, found.errors.tolist(), strict=True)),
        "intervals_smaller_by": dict(zip(NAMES, (errors / found.errors).tolist(), strict=True)),
        "frequency_Hz": np.asarray(found.experiment.control.frequency).tolist(),
        "amplitude_Nm": np.asarray(found.experiment.control.amplitude).tolist(),
        "iterations": found.iterations,
        "reason": found.reason,
        "cpu_seconds": seconds,
    }
    text = json.dumps(report, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
