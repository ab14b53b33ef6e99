"""Plugin: marks of long tests, the order of tests, and which tests a worker runs together."""

from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[1]
#: files and single tests that take longest: a worker that starts one late finishes late
_LONGEST_FIRST = tuple((_TESTS / "longest_first.txt").read_text().split())
#: tests of seven seconds or more, marked `long`
_LONG = tuple((_TESTS / "long.txt").read_text().split())
#: files whose tests share nothing: each test is a unit
_SPLIT = ("tests/test_docs.py",)


def unit(nodeid: str) -> str:
    """Tests that one worker runs together: those of a file, which share compiled programs."""
    file = nodeid.split("::")[0]
    return nodeid if file in _SPLIT else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Send units to workers as wholes.

    xdist has marks of groups for this, but pytest 9.2 does not let those of xdist 3.8 through."""
    from xdist.scheduler import LoadFileScheduling

    class Units(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return unit(nodeid)

    return Units(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark long tests and put those that take longest first."""
    rank = {name: i for i, name in enumerate(_LONGEST_FIRST)}

    def place(item) -> int:
        name = item.nodeid.removeprefix("tests/")
        return min(rank.get(name, len(rank)), rank.get(name.split("::")[0], len(rank)))

    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(_LONG):
            item.add_marker(pytest.mark.long)
    items.sort(key=place)
