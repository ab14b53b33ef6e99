"""Steps that adapt beside fixed ones: `python benchmarks/accuracy.py [machine ...]`.

Prints one JSON object: for each machine (neck, cable_robot, an undamped aluminium wire as rod)
error against seconds of computing for fixed steps and for accuracies. Errors are the largest of any
coordinate at equal instants, against a run with a step eight times smaller than the smallest
listed. Runs with fixed steps store them all: one program serves all of them."""

import argparse
import json

import cordax

cordax.enable_x64()

import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402
from cable_robot import plate  # noqa: E402
from rod import wire  # noqa: E402

from cordax.systems import Neck  # noqa: E402

ACCURACIES = (1e-3, 1e-4, 1e-5, 1e-6)


def neck():
    machine = Neck.default(3)
    options = {"duration": 0.1, "integrator": "rosenbrock_2"}
    return machine, machine.default_state(), options, 0.02, (4e-3, 2e-3, 1e-3, 5e-4)


def cable_robot():
    machine = plate("model_1")
    force = jnp.array([50.0, 100.0, 0.0, 0.0, 0.0, 0.0])
    push = lambda t, state: jnp.exp(-(((t - 0.5) / 0.01) ** 2)) * force
    options = {"control": push, "duration": 2.0, "integrator": "rk4"}
    return machine, machine.default_state(), options, 0.1, (2e-2, 1e-2, 5e-3, 2.5e-3)


def rod():
    options = {"duration": 0.2, "integrator": "generalised_alpha"}
    return *wire(19), options, 0.02, (4e-3, 2e-3, 1e-3, 5e-4)


MACHINES = {"neck": neck, "cable_robot": cable_robot, "rod": rod}


def work_precision(name: str) -> dict:
    machine, state, options, every, steps = MACHINES[name]()

    def fixed(dt):
        return cordax.simulate(machine, state, dt=dt, throw=False, **options)

    def adapted(accuracy):
        return cordax.simulate(machine, state, dt=every, accuracy=accuracy, throw=False, **options)

    rows_of = lambda run: np.asarray(run.q)[
        :: (len(run.t) - 1) // round(options["duration"] / every)
    ]
    reference = rows_of(fixed(steps[-1] / 8))
    rows = {"fixed": [], "accuracy": []}
    for kind, run, values in (("fixed", fixed, steps), ("accuracy", adapted, ACCURACIES)):
        for value in values:
            found = run(value)
            good = bool(found.succeeded)
            row = {
                "value": value,
                "error": float(np.max(np.abs(rows_of(found) - reference))) if good else None,
                "ms": 1e3 * measure.best(lambda run=run, value=value: run(value).q, budget=0.5),
            }
            row |= {n: int(x) for n, x in found.statistics.items()}
            rows[kind].append(row)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("machines", nargs="*", choices=[*MACHINES, []])
    chosen = parser.parse_args().machines or MACHINES
    print(json.dumps({name: work_precision(name) for name in chosen}))
