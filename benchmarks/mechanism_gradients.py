"""Derivatives of mechanisms: `python benchmarks/mechanism_gradients.py [part ...]`.

Prints one JSON object. Parts: motion (a load that a drum lifts over a post with capstan friction,
by stiffness, damping, masses, geometry, friction and values of the spline of the torque), programme
(the torques of `NearRigidQP` on the strut by modulus, viscosity, density, diameter, least strain
and a value of the spline): forward and reverse mode against central differences, relative."""

import argparse
import json

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.control import Hermite, NearRigidQP  # noqa: E402
from cordax.formulations import Dynamics  # noqa: E402
from cordax.mechanics.cables import ElasticCables  # noqa: E402
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


NUMBERS = {
    "stiffness": 2e4, "damping": 60.0, "mass": 1.5, "inertia": 0.02, "pulley_radius": 0.1,
    "place": 1.2, "drum_radius": 0.05, "friction": 0.3, "torque": -1.2, "later_torque": -0.5,
}  # fmt: skip


def lifted(p):
    """Position and speed of a load that a drum lifts over a post with capstan friction, after
    20 ms; the torque of the drum follows a spline."""
    n = dict(zip(NUMBERS, p, strict=True))
    r = n["pulley_radius"]
    post = parts.Pulley("world", jnp.stack([0.0, 0.0, n["place"]]), r, axis=(0, 1, 0))
    load = parts.Body("load", parts.Prismatic("z"), solids=parts.point_mass(n["mass"]))
    drum = parts.Body(
        "drum", parts.Revolute("y"), solids=parts.Solid(1.0, np.zeros(3), n["inertia"] * np.eye(3))
    )
    way = [parts.Eyelet("world", (-0.1, 0, 0)), post, parts.Eyelet("load", (0.1, 0, 0))]
    cables = parts.CableSet(
        [way], ElasticCables(n["stiffness"][None], n["damping"][None]), [2.7],
        [("drum",)], n["drum_radius"][None, None], friction=n["friction"], slip_width=1e-2,
    )  # fmt: skip
    machine = parts.Mechanism([load, drum], elements=[cables, parts.JointMotors("drum")])
    torque = Hermite([0.0, 0.02], jnp.stack([p[8:9], p[9:10]]), np.zeros((2, 1)))
    dynamics = Dynamics(machine.prepare(), cordax.formulations.Minimal())
    u = lambda t, q, v: torque(t)[0]

    def step(state, i):
        return cordax.RK4().step(dynamics, 1e-3 * i, 1e-3, state, u, ()).state, None

    start = cordax.State(jnp.zeros(2), jnp.zeros(2))
    end = jax.lax.scan(step, start, jnp.arange(20.0))[0]
    return 100.0 * end.q[0] + end.v[0] + 0.3 * end.v[1]


def motion() -> dict:
    return {"numbers": list(NUMBERS)} | compared(lifted, list(NUMBERS.values()))


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


PARTS = {"motion": motion, "programme": programme}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=", ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    print(json.dumps({"about": measure.about()} | {name: PARTS[name]() for name in chosen}))
