"""A sweep in a process of its own: `python sweep_elsewhere.py FOLDER [PORT PROCESS]`."""

import sys

import numpy as np

import cordax

cordax.enable_x64()

import jax  # noqa: E402

from cordax.sweeps import grid  # noqa: E402
from cordax.systems import Oscillator  # noqa: E402

if __name__ == "__main__" and len(sys.argv) > 2:  # before anything is computed
    port, process = sys.argv[2:]
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, int(process))

BASE = cordax.Experiment(Oscillator(), duration=0.5, dt=0.01, integrator="rk4")
TABLE = grid({"stiffness": np.geomspace(10.0, 1000.0, 8), "mass": [1.0, 2.0, 3.0]})


def swept(folder, **options):
    return cordax.sweep(
        BASE, TABLE, ["final x", "rms x"], folder=folder, shard=4, chunk=2, **options
    )


if __name__ == "__main__":
    swept(sys.argv[1])
    print(jax.local_device_count(), jax.process_count())
