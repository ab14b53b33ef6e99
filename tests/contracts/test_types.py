"""Annotated types and shapes are true."""

import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest

import cordax


def test_types_and_shapes_hold_in_representative_runs():
    """In a process of its own, a few steps each: checking every call of the whole suite would cost
    more than it tells."""
    script = [sys.executable, str(Path(__file__).parents[1] / "helpers" / "typed_runs.py")]
    # small programs are those of other tests
    cache = {
        "JAX_COMPILATION_CACHE_DIR": os.environ["CORDAX_TEST_CACHE"],
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_TRACEBACK_IN_LOCATIONS_LIMIT": "0",
    }
    done = subprocess.run(script, env=os.environ | cache, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == "oscillator neck rod rope_robot cable_robot strut".split()


def test_machines_and_controllers_without_a_required_member_are_not_constructed():
    class NoForce(cordax.System):
        @property
        def coordinate_names(self):
            return ("x",)

        def mass_matrix(self, q):
            return jnp.eye(1)

    class NoCall(cordax.Controller):
        pass

    for kind, missing in ((NoForce, "force"), (NoCall, "__call__")):
        with pytest.raises(TypeError, match=missing):
            kind()
