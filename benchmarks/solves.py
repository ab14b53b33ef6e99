"""Small linear solves inside a loop: cordax's elimination against LAPACK. Prints JSON, ns per
solve."""

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


rows = {
    str(n): {
        "elimination": timed(plain, n),
        "pivoted": timed(pivoted, n),
        "lapack": timed(jnp.linalg.solve, n),
    }
    for n in (3, 7, 12, 17, 20, 24)
}
print(json.dumps({"about": measure.about(), "unknowns": rows}, indent=2))
