"""Derivatives of mechanisms: `python benchmarks/mechanism_gradients.py [part ...]`.

Prints one JSON object. Parts: programme (the torques of `NearRigidQP` on the strut by modulus,
viscosity, density, diameter, least strain and a value of the spline): forward and reverse mode
against central differences, relative."""

import argparse
import json

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.control import Hermite, NearRigidQP  # noqa: E402
from cordax.systems import mechanism as parts  # noqa: E402


def compared(function, p, h: float = 1e-4) -> dict:
    """Of a number, with relative steps `h`."""
    p = jnp.asarray(p)
    value, along = jax.jit(function), jax.jit(lambda p, e: jax.jvp(function, (p,), (e,))[1])
    directions = np.diag(np.array(p))
    differences = np.array([(value(p + h * e) - value(p - h * e)) / (2 * h) for e in directions])
    forward = np.array([along(p, e) for e in directions])
    reverse = np.array(jax.jit(jax.grad(function))(p)) * np.array(p)
    # entries far below the largest are round-off in the differences
    apart = lambda a, b: float(
        np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-6 * np.abs(b).max()))
    )
    found = {"forward": apart(forward, differences), "reverse_to_forward": apart(reverse, forward)}
    good = found["forward"] < 1e-4 and found["reverse_to_forward"] < 1e-8
    return {"by": differences.tolist(), **found, "good": good}


def programme() -> dict:
    state = parts.single_strut().state_at((0.1, -0.05), 0.011, (0.2, 0.1), 0.02)
    state = jax.tree.map(np.array, state)

    def torques(p):
        machine = parts.single_strut(
            modulus=2e9 * p[0], viscosity=1e6 * p[1], density=2700.0 * p[2], diameter=0.04 * p[3]
        )
        values = jnp.stack([jnp.zeros(2), jnp.stack([0.3 * p[5], 0.1 * p[5]])])
        path = Hermite([0.0, 1.0], values, np.zeros((2, 2)))
        control = NearRigidQP(machine, path, 0.01 * p[4], followed=("cross", "strut"))
        u, _, _ = control.solve(0.3, cordax.State(state.q, state.v))
        return jnp.sum(u * jnp.array([1.0, -2.0, 0.5]))

    names = ["modulus", "viscosity", "density", "diameter", "least_strain", "spline"]
    return {"numbers": names} | compared(torques, np.ones(6))


PARTS = {"programme": programme}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=", ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    print(json.dumps({"about": measure.about()} | {name: PARTS[name]() for name in chosen}))
