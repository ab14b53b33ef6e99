"""`cordax doctor`: versions, devices and caches for a bug report."""

import json as json_module
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import jax

from .. import __version__
from .._jax import features
from .._jax.xla_flags import hoisting_active

_PACKAGES = ("jax", "jaxlib", "equinox", "diffrax", "optimistix", "numpy", "scipy", "matplotlib")
#: optional packages: what they are for (name of the extra)
_EXTRAS = {
    "xarray": "labelled arrays (data)",
    "pandas": "tables (data)",
    "imageio_ffmpeg": "MP4 films (film)",
    "viser": "viewer in the browser (view)",
    "mujoco": "comparison in benchmarks (bench)",
    "pin": "reference for tests of mechanisms (pin)",
}


def doctor(json: bool = False) -> int:
    """Print versions, devices, precision, loop hoisting and the compilation cache.

    Include the output in a bug report.

    Args:
        json: print the facts as JSON.
    """
    report = facts()
    if json:
        print(json_module.dumps(report, indent=2))
        return 0
    for name, value in report.items():
        print(f"  {name:20} {value}")
    if not report["loops hoisted"]:
        print(
            "\nTime loops are not compiled into one function: simulations run several times "
            "slower. Import\ncordax before any other code uses JAX, and set neither "
            "CORDAX_HOIST=0 nor CORDAX_FAST=0."
        )
    return 0


def facts() -> dict:
    """Versions, devices and settings by name."""
    report: dict = {
        "cordax": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
    report |= {name: _version(name) or "missing" for name in _PACKAGES}
    for name, purpose in _EXTRAS.items():
        report[name] = _version(name) or f"not installed: {purpose}"
    cache = jax.config.jax_compilation_cache_dir  # pyright: ignore
    files = [x for x in Path(cache).rglob("*") if x.is_file()] if cache else []
    size = sum(path.stat().st_size for path in files) / 1e6
    hoisted, lines = hoisting_active(), features.status()
    if not hoisted and features.is_on("loop hoisting"):
        lines["loop hoisting"] = "off: JAX was used before cordax was imported, or XLA_FLAGS"
    return report | {
        "devices": ", ".join(str(d) for d in jax.devices()),
        "precision": "float64" if jax.config.jax_enable_x64 else "float32",  # pyright: ignore
        "loops hoisted": hoisted,
        **lines,
        "compile cache": f"{cache}, {len(files)} files, {size:.0f} MB" if cache else "off",
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }


def _version(package: str) -> str | None:
    try:
        return version(package.replace("_", "-"))
    except PackageNotFoundError:
        return None
