"""Random points that are spread evenly over a box."""

import numpy as np


def latin_hypercube(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Random points of the unit cube, shape (count, dimensions). Each axis is divided into `count`
    equal parts, and each part contains one point."""
    random = np.random.default_rng(seed)
    columns = [random.permutation(count) + random.random(count) for _ in range(dimensions)]
    return np.stack(columns, axis=1) / max(count, 1)
