"""Registry of the features that make cordax fast and depend on internals of JAX or XLA.

Each feature has a plain fallback and an environment variable as its switch. `CORDAX_FAST=0` turns
all features off; `cordax doctor` lists them. Results are the same without them, except that
reverse-mode gradients of failed runs are NaN without the gradient guard. Switches are read while a
function is traced."""

import os
import warnings
from typing import NamedTuple


class Feature(NamedTuple):
    """A feature: its switch (an environment variable), its effect, and the consequence of turning
    it off."""

    switch: str
    effect: str
    fallback: str


FEATURES = {
    "loop hoisting": Feature(
        "CORDAX_HOIST", "time loops are one function", "simulations are several times slower"
    ),
    "batch kernel": Feature(
        "CORDAX_BATCH_KERNEL", "batches are one vectorised loop", "batches are about 5 times slower"
    ),
    "materialise": Feature(
        "CORDAX_MATERIALISE", "shared terms are computed once", "steps are up to 3 times slower"
    ),
    "stored programs": Feature(
        "CORDAX_PROGRAMS",
        "programs are stored with the compilation cache",
        "machines are traced again in every process",
    ),
    "trace memo": Feature(
        "CORDAX_TRACE_MEMO",
        "what machine and controller share is traced once",
        "machines with controllers take longer to compile",
    ),
    "constant gather": Feature(
        "CORDAX_CONSTANT_GATHER",
        "constant indices stay constants in time loops",
        "steps of mechanisms are slower",
    ),
    "batch conditions": Feature(
        "CORDAX_BATCH_CONDITIONS",
        "a batch computes a costly branch only where a member needs it",
        "batches of machines with eliminated coordinates are slower",
    ),
    "gradient guard": Feature(
        "CORDAX_GRADIENT_GUARD",
        "failed steps send no NaN into reverse-mode gradients",
        "gradients of batches with failed members are NaN",
    ),
}
_warned: set[str] = set()


def reason_off(name: str) -> str | None:
    """Return the reason why a feature is off, such as `CORDAX_FAST=0`; None if it is on."""
    for switch in ("CORDAX_FAST", FEATURES[name].switch):
        if os.environ.get(switch, "1") == "0":
            return f"{switch}=0"
    if name == "batch kernel":
        from .xla_flags import compiler_is_known, compiler_version

        if not compiler_is_known():
            return "not tried with jaxlib {}.{}".format(*compiler_version())
    if name == "stored programs":
        from .program_cache import missing_interface

        return missing_interface()
    return None


def is_on(name: str) -> bool:
    """Return whether the feature is on."""
    return reason_off(name) is None


def warn_if_off(name: str) -> None:
    """Warn if a feature that would speed up this call is off, unless a switch turned it off."""
    reason = reason_off(name)
    if reason is not None and not reason.endswith("=0"):
        warn(name, reason)


def warn(name: str, reason: str) -> None:
    """Warn that the fallback of a feature is used, once per process and feature."""
    if name in _warned:
        return
    _warned.add(name)
    feature = FEATURES[name]
    warnings.warn(
        f"{name} is off ({reason}): {feature.fallback}. {feature.switch}=0 silences this.",
        stacklevel=3,
    )


def status() -> dict[str, str]:
    """Return one line per feature: on with its effect, or off with the reason."""
    lines = {}
    for name, feature in FEATURES.items():
        reason = reason_off(name)
        state = f"on: {feature.effect}" if reason is None else f"off ({reason}): {feature.fallback}"
        lines[name] = state
    return lines
