"""Reference data shared by files of tests."""

from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def tensegrity_data():
    with np.load(Path(__file__).parents[1] / "data" / "tensegrity.npz") as file:
        return {name: file[name] for name in file.files}
