"""The XLA option behind fast time loops: on, off, and too late."""

import os
import subprocess
import sys

import pytest

import cordax


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


def test_opt_out():
    done = python("import cordax; print(cordax.hoisting_active())", CORDAX_HOIST="0")
    assert done.stdout.strip() == "False"


def test_too_late_is_said():
    code = (
        "import jax.numpy as jnp; jnp.ones(1) + 1; import cordax; print(cordax.hoisting_active())"
    )
    done = python(code)
    assert done.stdout.strip() == "False"
    assert "Import cordax first" in done.stderr and "CORDAX_HOIST=0" in done.stderr


def test_opting_out_silences_the_warning(monkeypatch, recwarn):
    from cordax import _xla

    monkeypatch.setenv("CORDAX_HOIST", "0")
    monkeypatch.setenv("XLA_FLAGS", "")
    monkeypatch.setattr(_xla, "_backend_is_up", lambda: True)
    _xla.request_hoisting()
    assert len(recwarn) == 0 and os.environ["XLA_FLAGS"] == ""
    monkeypatch.setenv("CORDAX_HOIST", "1")
    with pytest.warns(UserWarning, match="too late"):
        _xla.request_hoisting()


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
    from cordax import _xla

    monkeypatch.setenv("XLA_FLAGS", given)
    monkeypatch.delenv("CORDAX_HOIST", raising=False)
    monkeypatch.setattr(_xla, "_backend_is_up", lambda: False)
    _xla.request_hoisting()
    option = "xla_cpu_small_while_loop_byte_threshold=1000000000"
    assert os.environ["XLA_FLAGS"] == expected.format(option=option)


def test_cache_makes_its_folder(tmp_path):
    folder = tmp_path / "deep" / "cache"
    code = f"import cordax; print(cordax.enable_cache({str(folder)!r}))"
    assert python(code).stdout.strip() == str(folder)
    assert folder.is_dir()
