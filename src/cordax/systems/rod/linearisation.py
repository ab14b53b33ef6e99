"""Linearised equations of a spline rod: chains of span matrices."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.chain import ChainFactor, factor_chain
from ...mechanics import Linearisation
from .layout import Layout
from .quadrature import overlap, span_gram, times_gram

Spans = Float[Array, "4 4 4 4 s"]


class RodLinearisation(Linearisation):
    """Linearisation of a spline rod about a state. `elastic` and `viscous`: resistance to
    displacements, `-K`, and to velocities, `-D` or None, as span matrices, components first, then
    control points, spans last; `elastic` is None if only solves remain to be done; `springs` (2, 3)
    [N/m] at the ends; `densities` (4,) times h, the factors of the Gram matrix."""

    f: Float[Array, " n"]
    elastic: Spans | None
    viscous: Spans | None
    springs: Float[Array, "2 3"]
    densities: Float[Array, " 4"]
    layout: Layout = eqx.field(static=True)
    #: no term is neglected: the mass matrix is constant, and no force is held fixed
    exact: bool = eqx.field(static=True, default=True)

    def stiffness(self, x):
        P = self._control(x)
        ends = jnp.pad(self.springs, ((0, 0), (0, 1)))[:, :, None]
        left, right = ends[0] * P[:, :1], ends[1] * P[:, -1:]
        between = jnp.zeros((4, self.layout.n - 2), x.dtype)
        springs = jnp.concatenate([left, between, right], axis=1)
        return -self._product(self.elastic, x) - self.layout.split(springs)

    def inertia(self, x):
        P = self._control(x)
        return self.layout.split(self.densities[:, None] * times_gram(P))

    def factorise(self, h, h2):
        stopped = lax.stop_gradient((self, h, h2))
        return factor_chain(_elements(*stopped), 4)

    def bare(self):
        spans = lambda motion: (motion.elastic, motion.viscous)
        return eqx.tree_at(spans, self, (None, None), is_leaf=lambda x: x is None)

    def implicit_solve(self, factor: ChainFactor, h, h2, b):
        if self.elastic is None:
            return self._substitute(factor, b)
        return lax.custom_linear_solve(
            lambda x: self._implicit(h, h2, x),
            b,
            lambda _, r: self._substitute(factor, r),
            lambda _, r: self._substitute(factor.transposed(), r),
        )

    def matrices(self):
        columns = jnp.eye(self.f.shape[0], dtype=self.f.dtype)
        matrix = lambda product: jax.vmap(product, out_axes=1)(columns)
        D = jnp.zeros_like(columns) if self.viscous is None else matrix(self._damping)
        return matrix(self.inertia), matrix(self.stiffness), D

    def _damping(self, x):
        return -self._product(self.viscous, x)

    def _implicit(self, h, h2, x):
        total = self.inertia(x) - h2 * self.stiffness(x)
        return total if self.viscous is None else total - h * self._damping(x)

    def _control(self, x):
        zero = jnp.zeros(4, x.dtype)
        return self.layout.join(x, zero, zero, zero, zero)

    def _product(self, spans, x):
        P = self._control(x)
        total = spans.shape[-1]
        moved = jnp.stack([P[:, k : k + total] for k in range(4)], axis=1)  # (d, k, s)
        terms = [spans[:, d, :, k] * moved[d, k] for d in range(4) for k in range(4)]
        forces = sum(terms[1:], terms[0])  # (c, i, s)
        return self.layout.split(overlap([forces[:, i] for i in range(4)]))

    def _substitute(self, factor, r):
        return self.layout.split(factor.solve(self._control(r).T).T)


def _elements(motion: RodLinearisation, h, h2) -> Float[Array, "n 16 16"]:
    """Chain elements of `M - h D - h2 K`, by control points and components, span after span. Held
    components have the separate equation x = 0."""
    layout = motion.layout
    A = h2 * motion.elastic
    A = A if motion.viscous is None else A + h * motion.viscous
    spans = A.transpose(4, 2, 0, 3, 1)  # (s, i, c, k, d)
    inertia = span_gram(layout.n)[:, :, None, :, None] * jnp.diag(motion.densities)[:, None, :]
    keep, own = _held(layout)
    free = (spans + inertia).reshape(-1, 16, 16) * keep
    # every node is the first of its own element; those of the last three have no span
    spring = lambda k, i: h2 * jnp.pad(jnp.diag(k) * layout.mask[:3, i], ((0, 13), (0, 13)))
    first = free[:1] + spring(motion.springs[0], 0)
    none = jnp.zeros((2, 16, 16), free.dtype)
    last = spring(motion.springs[1], -1)[None]
    return materialise(jnp.concatenate([first, free[1:], none, last]) + own)


def _held(layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Factors (s, 16, 16) that clear rows and columns of held components, and the diagonal
    (n, 16, 16) of their separate equations."""
    free = layout.mask.T  # (n, 4)
    touched = np.stack([free[e : e + 4].reshape(-1) for e in range(layout.n - 3)])
    own = np.zeros((layout.n, 16, 16))
    own[:, range(4), range(4)] = 1.0 - free
    return touched[:, :, None] * touched[:, None, :], own


class HarnessLinearisation(Linearisation):
    """Linearisation of several rods side by side. Every rod keeps its chain; joints are handled by
    the Schur complement of the constraints."""

    parts: tuple[Linearisation, ...]

    @property
    def f(self):
        return jnp.concatenate([part.f for part in self.parts])

    @property
    def exact(self):
        return all(part.exact for part in self.parts)

    def stiffness(self, x):
        return self._each(lambda part, x: part.stiffness(x), x)

    def inertia(self, x):
        return self._each(lambda part, x: part.inertia(x), x)

    def factorise(self, h, h2):
        return tuple(part.factorise(h, h2) for part in self.parts)

    def implicit_solve(self, factor, h, h2, b):
        each = zip(self.parts, factor, self._split(b), strict=True)
        return jnp.concatenate([p.implicit_solve(f, h, h2, x) for p, f, x in each])

    def bare(self):
        return HarnessLinearisation(tuple(part.bare() for part in self.parts))  # pyright: ignore[reportCallIssue]

    def matrices(self):
        every = zip(*(part.matrices() for part in self.parts), strict=True)
        return tuple(jax.scipy.linalg.block_diag(*blocks) for blocks in every)

    def _split(self, x):
        return jnp.split(x, np.cumsum([part.f.shape[0] for part in self.parts])[:-1])

    def _each(self, apply, x):
        each = zip(self.parts, self._split(x), strict=True)
        return jnp.concatenate([apply(part, x) for part, x in each])
