"""Motions of the tensegrity manipulator, loops closed at every evaluation as in the reference. As a
script: how far the end effector is from its path in the whole of `man_z20`, every 0.05 s."""

import json
from pathlib import Path

import cordax

if __name__ == "__main__":
    cordax.enable_x64()

import jax
import numpy as np

from cordax.control import Hermite, NearRigidQP
from cordax.systems import mechanism as parts

EFFECTOR = ("ee", (0.0, 0.0, 0.0))


def moved(data, case: str, duration: float):
    """Of a stored case, every 0.05 s: the end effector (k, 3) [m], how far it is from its path, and
    the independent coordinates (k, 12)."""
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
    return place, place - wanted, np.array(run.outputs["coordinates"])


if __name__ == "__main__":
    with np.load(Path(__file__).parents[1] / "data" / "tensegrity.npz") as file:
        stored = {name: file[name] for name in file.files}
    print(json.dumps(moved(stored, "man_z20", 20.0)[1].tolist()))
