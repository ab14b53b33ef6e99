"""Small linear solves inside a loop: cordax's elimination against LAPACK; and above its size 64
matrices in one call of LAPACK against one after the other. Prints JSON, ns per solve."""

import json

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.math import linalg  # noqa: E402


def timed(solve, n: int, steps: int = 200) -> dict:
    rng = np.random.default_rng(0)
    A = jnp.asarray(0.3 * rng.normal(size=(n, n)) + 4.0 * np.eye(n))
    b = jnp.asarray(rng.normal(size=n))

    def run(A, b):
        # the matrix changes every time, as in a simulation
        one = lambda x, _: (solve(A + 1e-3 * x[:, None] * x, b + 0.1 * x), None)
        return jax.lax.scan(one, b, None, length=steps)[0]

    call, cost = measure.compiled(run, A, b)
    return {"ns": round(measure.best(call, budget=0.5) / steps * 1e9), **cost}


def plain(A, b):
    return linalg._eliminate(A, b, False)


def pivoted(A, b):
    return linalg._pivoted(A, b, largest=100)


def batch(solve, n: int, members: int = 64, steps: int = 20) -> dict:
    rng = np.random.default_rng(0)
    A = jnp.asarray(0.3 * rng.normal(size=(members, n, n)) + 4.0 * np.eye(n))
    b = jnp.asarray(rng.normal(size=(members, n)))

    def run(A, b):
        one = lambda x, _: (solve(A + 1e-3 * x[..., None], b + 0.1 * x), None)
        return jax.lax.scan(one, b, None, length=steps)[0]

    call, cost = measure.compiled(run, A, b)
    return {"ns": round(measure.best(call, budget=0.5) / steps / members * 1e9), **cost}


rows = {
    str(n): {
        "elimination": timed(plain, n),
        "pivoted": timed(pivoted, n),
        "lapack": timed(jnp.linalg.solve, n),
    }
    for n in (3, 7, 12, 17, 20, 24)
}
batches = {
    str(n): {
        "one call": batch(jax.vmap(jnp.linalg.solve), n),
        "in turn": batch(jax.vmap(linalg.solve), n),
    }
    for n in (21, 30, 40, 80)
}
print(json.dumps({"about": measure.about(), "unknowns": rows, "batches": batches}, indent=2))
