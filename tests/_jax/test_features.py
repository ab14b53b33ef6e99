"""Features that depend on internals of JAX: switches, warnings, and the same results without."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from cordax._jax import batch_kernel, features, xla_flags
from cordax.cli.doctor import facts

CODE = """
import json
import cordax
cordax.enable_x64()
import jax, jax.numpy as jnp
from cordax._jax.materialise import materialise
from cordax.systems import Neck
import equinox as eqx
neck = Neck.default(2)
build = lambda k: (eqx.tree_at(lambda n: n.tendon.stiffness, neck, k), neck.default_state())
pull = jnp.array([-0.03, -0.01, -0.02])
options = {"dt": 2e-3, "duration": 0.02, "save_every": 5, "control": pull}
seen = []
from cordax.simulation import time_loop
kernel = time_loop.in_lanes
time_loop.in_lanes = lambda *xs: seen.append(kernel(*xs)) or seen[-1]
run = cordax.simulate_batch(build, jnp.array([3e4, 2e5]), **options)
stored = "materialise" in str(jax.make_jaxpr(materialise)(jnp.ones(2)))
print(json.dumps([run.q.tolist(), any(x is not None for x in seen), stored]))
"""


def batch(fast):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XLA_FLAGS", "CORDAX_"))}
    arguments = [sys.executable, "-W", "error::UserWarning", "-c", CODE]
    environment = {**kept, "CORDAX_FAST": fast}
    done = subprocess.run(
        arguments, env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_a_batch_without_the_features_has_the_same_results():
    q, kernel, stored = batch("1")
    assert kernel and stored
    plain, kernel, stored = batch("0")
    assert not kernel and not stored
    np.testing.assert_allclose(q, plain, rtol=1e-10, atol=1e-12)


def test_the_doctor_names_each_feature(monkeypatch):
    for feature in features.FEATURES.values():
        monkeypatch.delenv(feature.switch, raising=False)
    monkeypatch.delenv("CORDAX_FAST", raising=False)
    monkeypatch.setenv("CORDAX_MATERIALISE", "0")
    report = facts()
    assert report["materialise"].startswith("off (CORDAX_MATERIALISE=0)")
    assert report["batch kernel"].startswith("on")
    monkeypatch.setenv("CORDAX_FAST", "0")
    assert all(line.startswith("off (CORDAX_FAST=0)") for line in features.status().values())


def test_a_compiler_that_was_not_tried_is_warned_of_once(monkeypatch, recwarn):
    monkeypatch.delenv("CORDAX_FAST", raising=False)
    monkeypatch.delenv("CORDAX_BATCH_KERNEL", raising=False)
    monkeypatch.setattr(features, "_warned", set())
    features.warn_if_off("batch kernel")
    assert not recwarn.list
    monkeypatch.setattr(xla_flags, "compiler_version", lambda: (9, 1))
    for _ in range(2):
        features.warn_if_off("batch kernel")
    assert [str(w.message) for w in recwarn.list] == [
        "batch kernel is off (not tried with jaxlib 9.1): batches are about 5 times slower. "
        "CORDAX_BATCH_KERNEL=0 silences this."
    ]


def test_a_parameter_that_jax_has_renamed_is_warned_of(monkeypatch):
    def renamed(*_):
        raise KeyError("num_consts")

    monkeypatch.setattr(features, "_warned", set())
    monkeypatch.setattr(batch_kernel, "evaluate", renamed)
    with pytest.warns(UserWarning, match="KeyError: 'num_consts'"):
        assert batch_kernel.in_lanes(lambda x, i: 2.0 * x, np.ones(2), 0) is None


def test_batches_in_single_precision_are_warned_of(monkeypatch):
    monkeypatch.setattr(features, "_warned", set())
    with pytest.warns(UserWarning, match="batch kernel is off .single precision; call cordax.enab"):
        assert batch_kernel.in_lanes(lambda x, i: 2.0 * x, np.ones(2, np.float32), 0) is None
