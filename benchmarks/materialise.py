"""What `cordax._jax.materialise` gains: the neck's implicit step with and without it.

Prints JSON: ns per step and compile seconds for one trajectory and for a batch of 64 (per
trajectory)."""

import json

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402

import cordax._jax.materialise as module  # noqa: E402
from cordax.systems import Neck  # noqa: E402

STEPS = 1000


def implicit_steps(neck, state, stiffness, steps=STEPS):
    neck = eqx.tree_at(lambda n: n.tendon.stiffness, neck, stiffness)
    dynamics = cordax.Dynamics(neck, cordax.Minimal())
    method, u, dt = cordax.LinearlyImplicitEuler(), jnp.full(4, -0.03), jnp.asarray(2e-3)

    def one(state, i):
        return method.step(dynamics, i * dt, dt, state, lambda t, q, v: u, ()).state, None

    return jax.lax.scan(one, state, jnp.arange(steps))[0]


def measured() -> dict:
    neck = Neck.default(3)
    state = neck.default_state()
    single, one = measure.compiled(implicit_steps, neck, state, jnp.asarray(1e5))
    batched = jax.vmap(lambda k: implicit_steps(neck, state, k))
    many, all = measure.compiled(batched, jnp.linspace(5e4, 2e5, 64))
    return {
        "single": {"ns": round(measure.best(single) / STEPS * 1e9), **one},
        "batch_64": {"ns": round(measure.best(many) / STEPS / 64 * 1e9), **all},
    }


with_it = measured()
module._materialise_p.bind = lambda *xs: list(xs)  # the identity XLA fuses through
print(json.dumps({"about": measure.about(), "with": with_it, "without": measured()}, indent=2))
