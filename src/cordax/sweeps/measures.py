"""Measures and envelopes: quantities that a sweep stores for its variants.

They are computed together with the simulation, so that no trajectories are stored."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from .._base.checks import require, require_known
from ..recordings.recording import observe
from ..simulation.trajectory import Trajectory

_KINDS = {
    "final": lambda x: x[-1],
    "largest": lambda x: jnp.max(x, axis=0),
    "smallest": lambda x: jnp.min(x, axis=0),
    "span": lambda x: jnp.max(x, axis=0) - jnp.min(x, axis=0),
    "rms": lambda x: jnp.sqrt(jnp.mean(x * x, axis=0)),
}


class Measure(eqx.Module):
    """A number computed from a quantity of a trajectory over the stored instants.

    `quantity` is its name in the trajectory. `kind` is "final" (last value), "largest", "smallest",
    "span" (largest less smallest) or "rms" (root mean square). The result has the unit of the
    quantity. A quantity with components gives one number for each of them."""

    kind: str = eqx.field(static=True)
    quantity: str = eqx.field(static=True)

    def __check_init__(self):
        require_known("measure", self.kind, _KINDS)

    @property
    def name(self) -> str:
        return f"{self.kind} {self.quantity}"

    def __call__(self, run: Trajectory):
        return _KINDS[self.kind](observe(run, self.quantity, "measure"))

    @staticmethod
    def read(text: str) -> "Measure":
        """Parse a text such as "largest tension"."""
        words = text.split() if isinstance(text, str) else []
        kinds = ", ".join(_KINDS)
        require(len(words) == 2, "measure", repr(text), f"'KIND NAME' with a kind of {kinds}")
        return Measure(*words)


class Envelope(NamedTuple):
    """Statistics over time of a quantity over all successful variants: `t` (k,) [s], and `mean`,
    standard `deviation`, `low` (smallest) and `high` (largest), (k, ...)."""

    t: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray


def sums(t, x, good) -> dict[str, Any]:
    """Sums over one batch from which an `Envelope` is computed.

    `t` (n, k); `x` (n, k, ...); `good` (n,): which batch members are included."""
    t, x, good = np.asarray(t)[0], np.asarray(x), np.asarray(good)
    x = x[good]
    # relative to the first member, so that a small variance of large numbers is not cancelled
    pivot = x[0] if len(x) else np.zeros(x.shape[1:])
    away = x - pivot
    return {
        "t": t,
        "count": len(x),
        "pivot": pivot,
        "sum": away.sum(axis=0),
        "square": (away**2).sum(axis=0),
        "low": x.min(axis=0, initial=np.inf),
        "high": x.max(axis=0, initial=-np.inf),
    }


def joined(parts: list[dict[str, Any]]) -> Envelope | None:
    """Envelope over several batches; None if no batch member succeeded."""
    parts = [p for p in parts if int(p["count"]) > 0]
    if not parts:
        return None
    count = sum(int(p["count"]) for p in parts)
    pivot = parts[0]["pivot"]
    # convert all sums to one pivot: sum (x - a) = sum (x - b) + n (b - a)
    total, square = 0.0, 0.0
    for p in parts:
        n, shift = int(p["count"]), p["pivot"] - pivot
        total = total + p["sum"] + n * shift
        square = square + p["square"] + 2.0 * shift * p["sum"] + n * shift**2
    mean = total / count
    variance = np.maximum(square / count - mean**2, 0.0) * (count / max(count - 1, 1))
    low = np.min([p["low"] for p in parts], axis=0)
    high = np.max([p["high"] for p in parts], axis=0)
    return Envelope(parts[0]["t"], pivot + mean, np.sqrt(variance), low, high)


def as_measures(measures) -> tuple[Any, ...]:
    """Convert texts to `Measure`s and check that all names differ; `Measure`s and other named
    functions of a trajectory are unchanged."""
    found = [Measure.read(m) if isinstance(m, str) else m for m in measures]
    for m in found:
        named = callable(m) and isinstance(name_of(m), str)
        require(named, "measures", m, "'largest tension', a Measure, or a named function")
    names = [name_of(m) for m in found]
    require(len(set(names)) == len(names), "measures", names, "different names")
    return tuple(found)


def name_of(measure) -> str:
    return getattr(measure, "name", None) or getattr(measure, "__name__", "")
