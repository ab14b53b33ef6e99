"""Motions of the tensegrity manipulator with loops closed at every evaluation, as in the reference.

`python manipulator_run.py STORED.npz MOTIONS.npz` runs with the compiler flags of users."""

import sys

import cordax

if __name__ == "__main__":
    cordax.enable_x64()

import jax
import numpy as np

from cordax.control import Hermite, NearRigidQP
from cordax.systems import mechanism as parts

EFFECTOR = ("ee", (0.0, 0.0, 0.0))
#: durations [s] of stored cases; all share one compiled program
CASES = {"man_z20": 20.0, "man_z5": 5.0, "man_stab": 3.0}


def moved(data, case: str, duration: float):
    """Of a stored case, every 0.05 s: the `place` of the end effector (k, 3) [m], how far `off` its
    path it is, and the independent coordinates `y` (k, 12)."""
    get = lambda name: data[f"{case}/{name}"]
    machine = parts.tensegrity_manipulator(modulus=get("E"), viscosity=get("mu"), friction=get("b"))
    path = Hermite(get("tk"), get("P"), get("Pd"))
    run = cordax.simulate(
        machine,
        machine.state_at(get("ang0"), get("eps0")),
        duration=duration,
        dt=2.5e-3,
        save_every=20,
        control=NearRigidQP(machine, path, get("emin"), point=EFFECTOR),
        formulation=cordax.formulations.IndependentCoordinates(),
    )
    place = np.array(run.outputs["end_effector"])
    wanted = np.array(jax.vmap(path.position)(run.t))
    y = np.array(run.outputs["coordinates"])
    return {f"{case}/place": place, f"{case}/off": place - wanted, f"{case}/y": y}


if __name__ == "__main__":
    with np.load(sys.argv[1]) as file:
        data = {name: file[name] for name in file.files}
    found = [moved(data, *case) for case in CASES.items()]
    np.savez(sys.argv[2], **{name: x for run in found for name, x in run.items()})
