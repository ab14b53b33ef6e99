"""Layout of the unknowns of a spline rod: control-point components that are not held."""

from dataclasses import dataclass
from functools import lru_cache

import jax.numpy as jnp
import numpy as np

from ...math import bsplines

Held = tuple[tuple[bool, bool, bool, bool], tuple[bool, bool, bool, bool]]


@dataclass(frozen=True, eq=False)
class Layout:
    """Unknowns of a rod, component by component. `free[c]`: control points whose component c
    (x, y, z or theta) is unknown; `gram_blocks[c]`: Gram matrix of these control points, in units
    of h; `gram_inverses[c]`: its inverse."""

    n: int
    left: Held
    right: Held
    free: tuple[tuple[int, ...], ...]
    gram_blocks: tuple[np.ndarray, ...]
    gram_inverses: tuple[np.ndarray, ...]

    @property
    def mask(self) -> np.ndarray:
        """Mask with 1.0 for every unknown component, shape (4, n)."""
        mask = np.zeros((4, self.n))
        for c, free in enumerate(self.free):
            mask[c, list(free)] = 1.0
        return mask

    def split(self, P):
        """Extract the unknowns from control points (4, n), shape (n_q,)."""
        return jnp.concatenate(
            [
                P[c, i[0] : i[-1] + 1] if _whole(i) else P[c, np.array(i)]
                for c, i in enumerate(self.free)
            ]
        )

    def join(self, q, first, second, before_last, last):
        """Assemble control points (4, n) from the unknowns and the values of the held components at
        both ends."""
        rows, start = [], 0
        for c, free in enumerate(self.free):
            part = q[start : start + len(free)]
            start += len(free)
            pieces, k = [], 0
            for i in range(self.n):
                if i in free:
                    continue
                value = {0: first, 1: second, self.n - 2: before_last, self.n - 1: last}[i][c]
                before = sum(j < i for j in free)
                if before > k:
                    pieces.append(part[k:before])
                    k = before
                pieces.append(value[None])
            if k < len(free):
                pieces.append(part[k:])
            rows.append(jnp.concatenate(pieces))
        return jnp.stack(rows)


def _whole(index) -> bool:
    return index[-1] - index[0] + 1 == len(index)


@lru_cache
def layout(n: int, left: Held, right: Held) -> Layout:
    """Create the layout of a rod with n control points whose ends are held as in `End.held`."""
    free = []
    for c in range(4):
        held = {0: left[0][c], 1: left[1][c], n - 1: right[0][c], n - 2: right[1][c]}
        free.append(tuple(i for i in range(n) if not held.get(i, False)))
    blocks = tuple(bsplines.gram(n)[np.ix_(i, i)] for i in free)
    inverses = tuple(np.linalg.inv(b) for b in blocks)
    return Layout(n, left, right, tuple(free), blocks, inverses)
