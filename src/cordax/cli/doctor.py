"""`cordax doctor`: what cordax runs on."""

import json as json_module
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jax

from .. import __version__
from .._jax.xla_flags import hoisting_active

#: what is looked up: needed first, then what brings something extra
_PACKAGES = ("jax", "jaxlib", "equinox", "diffrax", "optimistix", "numpy", "scipy", "matplotlib")
_EXTRAS = {
    "xarray": "tables with names (data)",
    "pandas": "tables (data)",
    "imageio_ffmpeg": "MP4 films (film)",
    "viser": "runs in the browser (view)",
    "mujoco": "benchmarks beside it (bench)",
    "pin": "a second opinion on trees (pin)",
}


def doctor(json: bool = False) -> int:
    """Say what cordax runs on: versions, devices, precision, loop hoisting, compile cache.

    Put what it prints into a report of a problem.

    Args:
        json: print it as JSON.
    """
    found = facts()
    if json:
        print(json_module.dumps(found, indent=2))
        return 0
    for name, value in found.items():
        print(f"  {name:20} {value}")
    if not found["loops hoisted"]:
        print(
            "\nTime loops are not compiled into one function, and runs several times slower. "
            "Import cordax\nbefore anything uses JAX, and do not set CORDAX_HOIST=0."
        )
    return 0


def facts() -> dict:
    """What cordax runs on, by name."""
    found: dict = {
        "cordax": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    found |= {name: _version(name) or "missing" for name in _PACKAGES}
    for name, what in _EXTRAS.items():
        found[name] = _version(name) or f"not installed: {what}"
    cache = jax.config.jax_compilation_cache_dir  # pyright: ignore
    stored = [x for x in Path(cache).rglob("*") if x.is_file()] if cache else []
    size = sum(path.stat().st_size for path in stored) / 1e6
    return found | {
        "devices": ", ".join(str(d) for d in jax.devices()),
        "precision": "float64" if jax.config.jax_enable_x64 else "float32",  # pyright: ignore
        "loops hoisted": hoisting_active(),
        "compile cache": f"{cache}, {len(stored)} files, {size:.0f} MB" if cache else "off",
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }


def _version(package: str) -> str | None:
    try:
        return version(package.replace("_", "-"))
    except PackageNotFoundError:
        return None
