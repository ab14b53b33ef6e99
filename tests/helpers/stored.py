"""Reference data under `tests/data`."""

from functools import cache
from pathlib import Path

import numpy as np


@cache
def stored(name: str) -> dict[str, np.ndarray]:
    """Arrays of `tests/data/NAME.npz` by name."""
    with np.load(Path(__file__).parents[1] / "data" / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}
