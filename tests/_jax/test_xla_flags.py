"""The XLA option behind fast time loops: on, off, and too late."""

import json
import os
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax._jax.xla_flags import compiler_version, unhoisted_loops
from cordax.systems import CableRobot, NaturalBody, PointExit, ProgrammedLengths, box_inertia


def python(code, **environment):
    """Run `code` in a fresh interpreter without XLA options of its own."""
    kept = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "CORDAX_HOIST")}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


def test_loops_are_hoisted_here():
    assert cordax.hoisting_active()


#: without cordax, the limit up to which XLA compiles a loop into one function: none since 0.12
LIMITED = compiler_version() < (0, 11)


def test_opt_out():
    code = "import os, cordax; print(cordax.hoisting_active(), 'XLA_FLAGS' in os.environ, sep=',')"
    done = python(code, CORDAX_HOIST="0")
    assert done.stdout.strip() == f"{not LIMITED},False"


def test_too_late_is_said():
    code = (
        "import jax.numpy as jnp; jnp.ones(1) + 1; import cordax; print(cordax.hoisting_active())"
    )
    done = python(code)
    assert done.stdout.strip() == str(not LIMITED)
    assert "Import cordax first" in done.stderr and "CORDAX_HOIST=0" in done.stderr


def test_opting_out_silences_the_warning(monkeypatch, recwarn):
    from cordax._jax import xla_flags

    monkeypatch.setenv("CORDAX_HOIST", "0")
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(xla_flags, "backend_is_up", lambda: True)
    xla_flags.request_hoisting()
    assert len(recwarn) == 0 and os.environ["XLA_FLAGS"] == ""
    monkeypatch.setenv("CORDAX_HOIST", "1")
    with pytest.warns(UserWarning, match="too late"):
        xla_flags.request_hoisting()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", "--xla_backend_extra_options={option}"),
        ("--xla_dump_to=x", "--xla_dump_to=x --xla_backend_extra_options={option}"),
        ("--xla_backend_extra_options=a=1", "--xla_backend_extra_options=a=1,{option}"),
        (
            "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=7",
            "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=7",
        ),
    ],
)
def test_options_of_the_user_are_kept(given, expected, monkeypatch):
    from cordax._jax import xla_flags

    monkeypatch.setenv("XLA_FLAGS", given)
    monkeypatch.delenv("CORDAX_HOIST", raising=False)
    monkeypatch.setattr(xla_flags, "backend_is_up", lambda: False)
    xla_flags.request_hoisting()
    option = "xla_cpu_small_while_loop_byte_threshold=1000000000"
    option += ",-vectorize-memory-check-threshold=100000"
    assert os.environ["XLA_FLAGS"] == expected.format(option=option)


def test_cache_makes_its_folder(tmp_path):
    folder = tmp_path / "deep" / "cache"
    code = f"import cordax; print(cordax.enable_cache({str(folder)!r}))"
    assert python(code).stdout.strip() == str(folder)
    assert folder.is_dir()


def test_a_program_with_a_loop_that_is_not_one_function_is_noticed():
    """LAPACK keeps a loop apart; without it there is none left."""

    def loop(turn):
        return jax.jit(lambda x: jax.lax.fori_loop(0, 9, lambda i, x: turn(x), x))

    text = lambda f: f.lower(jnp.eye(3) + 1.0).compile().as_text()
    assert unhoisted_loops(text(loop(jnp.sin))) == 0
    assert unhoisted_loops(text(loop(jnp.linalg.inv))) > 0


def test_forward_mode_of_a_cable_robot_is_one_function():
    """Products `A @ x` of small matrices become batched dots under `jacfwd`: loops fall apart and
    the gradient by two parameters takes 18 times the run in place of 3."""
    body = NaturalBody(6.0, box_inertia(6.0, (0.2, 0.4, 0.1)))
    points = np.array([[-3.0, -2.0, 2.0], [-3.0, 2.5, 2.0], [3.0, 2.5, 2.0], [3.0, -2.0, 2.0]])

    def end(x):
        robot = CableRobot(
            eqx.tree_at(lambda b: b.mass, body, x[0]),
            points / 20.0,
            PointExit(points + x[1] * jnp.array([0.0, 0.0, 1.0])),
            ProgrammedLengths(np.full(4, 3.0)),
        )
        options = {"dt": 1e-2, "duration": 0.2, "save_every": 4, "throw": False}
        return cordax.simulate(robot, robot.default_state(), **options).q[-1]

    text = jax.jit(jax.jacfwd(end)).lower(jnp.array([6.0, 0.0])).compile().as_text()
    assert unhoisted_loops(text) == 0
    assert " dot(" not in text


SIDE_EFFECTS = """
import gc, json, logging, os, signal, sys, threading, warnings
import equinox, jax, jaxtyping, numpy  # and their own side effects

def state():
    return {
        "environment": dict(os.environ),
        "garbage collector": [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()],
        "finders": [repr(x) for x in sys.meta_path + sys.path_hooks],
        "path": list(sys.path),
        "jax": {name: str(value) for name, value in jax.config.values.items()},
        "filters": [str(x) for x in warnings.filters],
        "handlers": [str(x) for x in logging.getLogger().handlers],
        "interrupt": str(signal.getsignal(signal.SIGINT)),
        "threads": threading.active_count(),
        "errors": numpy.geterr(),
        "recursion": sys.getrecursionlimit(),
    }

before = state()
import cordax, cordax.simulation, cordax.systems
after = state()
changed = {name for name in before if before[name] != after[name]}
variables = {k for k, v in after["environment"].items() if before["environment"].get(k) != v}
print(json.dumps([sorted(changed), sorted(variables)]))
"""


def test_importing_sets_compiler_flags_and_nothing_else():
    """As docs/faq.md says."""
    assert json.loads(python(SIDE_EFFECTS).stdout) == [["environment"], ["XLA_FLAGS"]]
