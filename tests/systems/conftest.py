"""Reference data shared by files of tests."""

import pytest

from helpers.stored import stored


@pytest.fixture(scope="session")
def tensegrity_data():
    return stored("tensegrity")
