"""Programs that outlive the process: found by what they are made from, and by nothing less."""

import dataclasses
import hashlib
import os
import pickle
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax._jax import features, identity, library_code, program_cache, xla_flags
from cordax.mechanics.consistent_state import look
from cordax.systems import Pendulum
from cordax.systems import mechanism as mech
from helpers.hung_ball import Ball


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(xla_flags, "_programs", tmp_path)
    return tmp_path


@pytest.fixture
def made(monkeypatch):
    """Names of what was compiled rather than read."""
    names = []
    make = program_cache.Kept._make

    def counted(self, *given):
        names.append(self.function.__name__)
        return make(self, *given)

    monkeypatch.setattr(program_cache.Kept, "_make", counted)
    return names


def looked(machine, angle=0.3):
    """As a process of its own would: nothing is remembered."""
    state = cordax.State(jnp.array([angle]), jnp.array([0.1]))
    return program_cache.kept_filter_jit(look)(machine, state, jnp.array(0.0), False)


def test_a_program_is_made_once_for_all_numbers(folder, made):
    first = looked(Pendulum(length=0.5))
    again = looked(Pendulum(length=0.7), angle=2.0)
    assert made == ["look"] and len(list(folder.iterdir())) == 1
    assert type(again) is type(first) and bool(first.valid) and bool(again.valid)
    expected = look(Pendulum(length=0.7), cordax.State(jnp.array([2.0]), jnp.zeros(1)), 0.0, False)
    np.testing.assert_array_equal(again.phi, expected.phi)


def test_other_structure_source_flags_or_versions_are_another_program(folder, made, monkeypatch):
    looked(Pendulum())
    state = cordax.State(jnp.array([0.3]), jnp.array([0.1]))
    program_cache.kept_filter_jit(look)(Pendulum(), state, jnp.array(0.0), True)  # one-sided
    monkeypatch.setattr(library_code, "code", lambda: "changed")
    looked(Pendulum())
    monkeypatch.setenv("XLA_FLAGS", os.environ["XLA_FLAGS"] + " --xla_cpu_enable_fast_math=true")
    looked(Pendulum())
    monkeypatch.setattr(library_code, "versions", lambda: "jax=0")
    looked(Pendulum())
    assert len(made) == 5 and len(list(folder.iterdir())) == 5


def test_other_precision_settings_or_devices_are_another_program(folder, made, monkeypatch):
    """Of one function too, whose programs of this process are looked up first."""
    compiled, state = program_cache.kept_filter_jit(look), Pendulum().default_state()
    run = lambda: compiled(Pendulum(), state, jnp.array(0.0), False)
    run()
    with jax.numpy_rank_promotion("raise"):
        run()
    assert len(made) == 2
    with jax.enable_x64(False):
        assert looked(Pendulum()).phi.dtype == jnp.float32
    run()
    assert len(made) == 3 and len(list(folder.iterdir())) == 3
    monkeypatch.setattr(jax, "default_backend", lambda: "another device")
    looked(Pendulum())
    monkeypatch.setattr(program_cache, "_processor", lambda: "another processor")
    looked(Pendulum())
    monkeypatch.setenv("CORDAX_MATERIALISE", "0")
    looked(Pendulum())
    assert len(made) == 6 and len(list(folder.iterdir())) == 6


def test_a_class_that_is_edited_is_traced(folder, made, monkeypatch):
    assert bool(looked(Pendulum()).valid)
    monkeypatch.setattr(Pendulum, "valid", lambda self, t, q, v: jnp.asarray(False))
    assert not bool(looked(Pendulum()).valid)
    monkeypatch.undo()
    monkeypatch.setattr(xla_flags, "_programs", folder)
    assert bool(looked(Pendulum()).valid) and len(list(folder.iterdir())) == 1


def test_programs_are_not_stored_for_several_devices(folder, made, monkeypatch):
    monkeypatch.setattr(features, "_warned", set())
    monkeypatch.setattr(jax, "device_count", lambda: 2)
    with pytest.warns(UserWarning, match="stored programs is off .2 devices.: machines are traced"):
        assert bool(looked(Pendulum()).valid)
    assert bool(looked(Pendulum()).valid) and made == []  # without a second warning


def test_a_release_of_jax_without_its_settings_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setattr(features, "_warned", set())
    monkeypatch.setattr(program_cache, "trace_context", None)
    monkeypatch.delenv("CORDAX_PROGRAMS")
    folders = xla_flags._programs, jax.config.jax_compilation_cache_dir
    with pytest.warns(UserWarning, match="stored programs is off .trace_context is missing"):
        cordax.enable_cache(tmp_path)
    assert xla_flags.programs_folder() is None
    cordax.enable_cache(folders[1])
    monkeypatch.setattr(xla_flags, "_programs", folders[0])


def test_a_broken_file_is_ignored_with_a_warning_and_replaced(folder, made):
    looked(Pendulum())
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    summed = lambda text: hashlib.sha256(text).digest() + text
    parts = list(pickle.loads(whole[32:]))
    parts[1] = parts[1][:-100]  # the program that XLA is to read
    damaged = [b"", whole[:1000], whole[:-1] + b"x", bytes(64)]
    for text in (*damaged, summed(b"no pickle"), summed(pickle.dumps(parts))):
        file.write_bytes(text)
        reason = "incomplete or damaged" if text in damaged else "Error: "
        with pytest.warns(UserWarning, match=f"stored program is ignored .*{reason}"):
            assert bool(looked(Pendulum()).valid)
        assert file.read_bytes() != text
    assert len(made) == 7


def test_a_folder_that_cannot_be_written_is_warned_of(folder, made):
    folder.rmdir()
    folder.write_text("a file")
    with pytest.warns(UserWarning, match="(ignored|cannot be stored) .*Errno"):
        assert bool(looked(Pendulum()).valid)
    assert made == ["look"]


def test_what_nobody_knows_all_of_is_traced_as_ever(folder, made):
    """Machines of the user, functions of the user, numbers of a transformation."""
    ball, hanging = Ball(), cordax.State(jnp.array([0.0, -1.0]), jnp.zeros(2))
    program_cache.kept_filter_jit(look)(ball, hanging, jnp.array(0.0), False)
    assert identity.library_digest(lambda t, state: t) is None
    through = jax.vmap(lambda angle: looked(Pendulum(), angle).valid)(jnp.array([0.1, 0.2]))
    assert through.shape == (2,) and made == [] and list(folder.iterdir()) == []


def test_a_run_from_disk_is_the_run(folder, made):
    """Also where the cache of JAX has the program already."""
    arguments = {"dt": 0.01, "duration": 0.2}
    runs, files = [], []
    for _ in range(3):
        if len(runs) == 2:
            files = list(folder.iterdir())
            for file in files:
                file.unlink()
        for function in (
            cordax.simulation.executor._compiled_start,
            cordax.simulation.executor._compiled_blocks,
        ):
            function._programs.clear()
        runs.append(cordax.simulate(Pendulum(), **arguments))
    assert sorted(made) == 2 * ["_compiled_blocks"] + 2 * ["_compiled_start"] and len(files) == 2
    for function in (
        cordax.simulation.executor._compiled_start,
        cordax.simulation.executor._compiled_blocks,
    ):
        function._programs.clear()
    runs.append(cordax.simulate(Pendulum(), **arguments))  # read again
    for field in dataclasses.fields(runs[0]):
        a, *others = (
            jax.tree.leaves(eqx.filter(getattr(r, field.name), eqx.is_array)) for r in runs
        )
        for b in others:
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y)
    assert runs[1].succeeded and runs[1].system is not None


LAPACK = """
import sys, cordax
cordax.enable_x64(); cordax.enable_cache(sys.argv[1])
import jax.numpy as jnp
from cordax._jax import program_cache
if sys.argv[2] == "read":
    def never(*given): raise SystemExit("made anew")
    program_cache.Kept._make = never
print(program_cache.kept_filter_jit(jnp.linalg.eigvalsh)(jnp.array([[2.0, 1.0], [1.0, 2.0]])))
"""


def test_programs_that_call_lapack(tmp_path):
    """A program that is read finds LAPACK, which JAX looks for only when it lowers one."""
    for how in ("make", "read"):
        words = [sys.executable, "-c", LAPACK, str(tmp_path), how]
        own = os.environ | {"CORDAX_PROGRAMS": "1"}
        done = subprocess.run(words, capture_output=True, text=True, timeout=300, env=own)
        assert done.returncode == 0 and "[1. 3.]" in done.stdout, done.stderr


def test_methods_are_bound_as_those_of_modules_are():
    """A method that is handed on takes the numbers of its machine with it."""
    robot = mech.single_strut()
    bound = robot.state_at
    leaves = jax.tree.leaves(eqx.filter(bound, eqx.is_array))
    assert len(leaves) == len(jax.tree.leaves(eqx.filter(robot, eqx.is_array)))
    jax.tree.flatten(jax.tree.map(lambda x: x, bound))
