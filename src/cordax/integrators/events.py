"""Events of a run: cables that go slack or become taut between two steps."""

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int


class Events(eqx.Module):
    """Events in order of time at which cables (or other one-sided constraints) go slack or become
    taut.

    `time` [s] (inf: no further event), `row` of the constraint, `kind` -1 for slack or +1 for taut,
    and `impulse` of the impact [N s for cables], each of shape (k,). `lost`, shape (1,), one per
    phase: number of events beyond the k that a run can store."""

    time: Float[Array, " k"]
    row: Int[Array, " k"]
    kind: Int[Array, " k"]
    impulse: Float[Array, " k"]
    lost: Int[Array, " p"] = eqx.field(default_factory=lambda: np.zeros(1, np.int32))

    def sentences(self) -> list[str]:
        """Text of the events, one line each."""
        lines = []
        for t, row, kind, impulse in zip(
            *(np.asarray(x) for x in (self.time, self.row, self.kind, self.impulse)), strict=True
        ):
            if np.isfinite(t):
                what = f"caught, impulse {impulse:.4g} N s" if kind > 0 else "slack"
                lines.append(f"cable {row + 1} {what} at t = {t:.5f} s")
        lost = int(np.sum(np.asarray(self.lost)))
        if lost:
            lines.append(
                f"warning: {lost} more events are not listed; raise the capacity of Unilateral"
            )
        return lines
