"""Sweeps that are killed, spread over devices, and shared by processes find the same."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cordax.sweeps import Sweep
from helpers.sweep_elsewhere import TABLE, swept

SCRIPT = Path(__file__).parents[1] / "helpers" / "sweep_elsewhere.py"


@pytest.fixture(scope="module")
def here():
    return swept(None)


def start(folder, *more, **environment):
    command = [sys.executable, str(SCRIPT), str(folder), *map(str, more)]
    return subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, text=True
    )


def same(folder, here):
    found = Sweep.load(folder)
    assert found.finished.all() and found.size == len(TABLE["mass"])
    for name, x in here.measures.items():
        np.testing.assert_allclose(found.measures[name], x, rtol=0, atol=1e-13)


def test_killed_at_any_moment_it_goes_on(here, tmp_path):
    """Killed as soon as one more shard is there than before, and at moments in between."""
    kept: dict[str, int] = {}
    random = np.random.default_rng(0)
    finished = lambda: {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("shard-*.npz")}
    for _ in range(4):
        process = start(tmp_path)
        while len(finished()) <= len(kept) and process.poll() is None:
            time.sleep(0.001)
        time.sleep(0.02 * random.random())  # while the next one is computed or written
        process.send_signal(signal.SIGKILL)
        process.communicate()
        now = finished()
        assert {name: now[name] for name in kept} == kept  # nothing was computed twice
        half = Sweep.load(tmp_path)  # and whatever is there can be read
        assert half.finished.sum() == 4 * len(now)
        kept = now
    assert start(tmp_path).communicate()[0].split() == ["1", "1"]
    now = finished()
    assert {name: now[name] for name in kept} == kept
    assert not list(tmp_path.glob(".*part*"))
    same(tmp_path, here)


def test_eight_devices(here, tmp_path):
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    said, _ = start(tmp_path, XLA_FLAGS=flags).communicate()
    assert said.split() == ["8", "1"]
    same(tmp_path, here)


def test_two_processes(here, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    both = [start(tmp_path, port, i) for i in range(2)]
    assert [p.communicate()[0].split()[1] for p in both] == ["2", "2"]
    same(tmp_path, here)
