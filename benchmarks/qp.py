"""Speed of small quadratic programmes: `python benchmarks/qp.py`.

Prints one JSON object: microseconds per solve inside a compiled loop whose programmes change from
turn to turn, and seconds to compile it, by sweeps of the active set and by the interior-point
method; sizes are those of a neck of three joints (3 equations, 4 tensions), a strut on three cables
(5, 6), a platform on eight cables (6, 8), a tensegrity manipulator (12, 15), and larger ones."""

import json

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.math.qp import solve_qp  # noqa: E402

SIZES = {"neck": (3, 4), "strut": (5, 6), "platform": (6, 8), "manipulator": (12, 15)}
SIZES |= {"16": (8, 16), "24": (12, 24), "40": (20, 40)}


def programme(m: int, n: int):
    rng = np.random.default_rng(5)
    A, inside = rng.normal(size=(m, n)), rng.exponential(size=n)
    return tuple(jnp.asarray(x) for x in (A, A @ inside, rng.normal(size=n), inside))


def loop(method: str, m: int, n: int, turns: int) -> dict:
    """Tensions between bounds, nearest to wanted ones that wander."""
    A, b, wish, inside = programme(m, n)

    def go(A, b, wish):
        def turn(i, x):
            wanted = jnp.roll(wish, 1) * jnp.cos(0.1 * i) + 1e-3 * x
            found = solve_qp(jnp.eye(n), -wanted, A, b, 0.0, inside + 1.0, method=method)
            return found.x

        return jax.lax.fori_loop(0, turns, turn, jnp.zeros(n))

    call, cost = measure.compiled(go, A, b, wish)
    return {"us": round(measure.best(call, repeats=10) / turns * 1e6, 2), **cost}


def one(m: int, n: int) -> dict:
    out = {name: loop(name, m, n, 200) for name in ("sweeps", "interior")}
    return {**out, "ratio": round(out["interior"]["us"] / out["sweeps"]["us"], 1)}


if __name__ == "__main__":
    rows = {name: one(*size) for name, size in SIZES.items()}
    print(json.dumps({"about": measure.about(), **rows}, indent=2))
