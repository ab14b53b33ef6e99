"""Selection of the pairs of bounding spheres that are close, with a fixed capacity."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int

#: up to this number of pairs, all pairs are evaluated
ALL_PAIRS = 300


class ClosePairs(NamedTuple):
    """Pairs of spheres: indices `first` and `second` (c,), whether each entry is a pair that may
    touch, and whether there were more than c such pairs."""

    first: Int[Array, " c"] | np.ndarray
    second: Int[Array, " c"] | np.ndarray
    present: Bool[Array, " c"]
    overflow: Bool[Array, ""]


def close_pairs(centre, reach, allowed, capacity: int) -> ClosePairs:
    """Pairs of spheres that overlap, the deepest first.

    - `centre` (n, 3) and `reach` (n,) [m]: centres and radii of the spheres;
    - `allowed` (n, n): pairs that may touch; those with second > first count;
    - `capacity`: number of pairs to return. Further ones are left out and reported as `overflow`.

    All distances are computed, which is cheap; only the later work is limited to the capacity. If
    there are at most `ALL_PAIRS` pairs, all are returned."""
    n = centre.shape[0]
    first, second = np.triu_indices(n, 1)
    if len(first) <= max(ALL_PAIRS, capacity):
        return ClosePairs(first, second, allowed[first, second], jnp.array(False))
    between = centre[:, None] - centre[None]
    square = jnp.sum(between * between, axis=2)
    together = reach[:, None] + reach[None]
    above = np.triu(np.ones((n, n), bool), 1)
    # squared distances over squared reaches sort the pairs without a square root
    closeness = jnp.where(above & allowed, 1.0 - square / together**2, -1.0)
    closeness, index = lax.top_k(lax.stop_gradient(closeness).reshape(-1), capacity)
    count = jnp.sum(above & allowed & (square < together**2))
    return ClosePairs(index // n, index % n, closeness > 0, count > capacity)
