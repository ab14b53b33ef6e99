"""Tension distributions: choice of tensions with `W T = tau` for more tendons than joints."""

import abc
from collections.abc import Sequence
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from .._base.checks import (
    describe,
    require,
    require_finite,
    require_one_or_each,
    require_positive,
    require_shape,
    require_values,
)
from .._base.fields import flag_field
from .._base.precision import float_field
from ..math.linalg import gram, inverse, matmul, matvec, solve, vecmat
from ..math.qp import solve_qp


class TensionDistribution(eqx.Module):
    """Function `(W, tau) -> T` that returns tensions T (k,) [N] with `W T = tau`, for a matrix W
    (n, k) [m] and torques tau (n,) [N m].

    Tensions may be negative if W requires it. A distribution with `may_fail` returns NaN where
    there is no solution."""

    may_fail: ClassVar[bool] = False

    @abc.abstractmethod
    def __call__(self, W, tau) -> Float[Array, " k"]: ...

    def failure_reason(self, W, tau, rows: Sequence[str]) -> str:
        """Sentence on the limits that keep tensions from producing `tau`, whose components have the
        names `rows`; empty if there are tensions."""
        return ""


class MeanTension(TensionDistribution):
    """Solution of `W T = tau` that is closest to equal tensions `mean` [N]; smooth in W and tau."""

    mean: Float[Array, ""] = float_field(unit="N", default=50.0)

    def __check_init__(self):
        require_positive("mean", self.mean, zero_allowed=True)

    def __call__(self, W, tau):
        ones = jnp.ones(W.shape[1], W.dtype)
        return self.mean * ones + _least_norm(W, tau - self.mean * matvec(W, ones))


class MinimumTension(TensionDistribution):
    """Solution of `W T = tau` whose smallest tension is `minimum` [N], by a shift along the null
    space of W.

    The result has kinks where another tendon becomes the one with the smallest tension. For one
    more tendon than joints, in an arrangement whose null vector is positive ("single" routing)."""

    minimum: Float[Array, ""] = float_field(unit="N", default=5.0)

    def __check_init__(self):
        require_positive("minimum", self.minimum, zero_allowed=True)

    def __call__(self, W, tau):
        T = _least_norm(W, tau)
        ones = jnp.ones(W.shape[1], W.dtype)
        nu = ones - _least_norm(W, matvec(W, ones))
        nu = nu / jnp.max(jnp.abs(nu))
        pulls = nu > 1e-9
        shift = jnp.max(jnp.where(pulls, (self.minimum - T) / jnp.where(pulls, nu, 1.0), -jnp.inf))
        return T + shift * nu


class BoundedTension(TensionDistribution):
    """Solution of `W T = tau` closest to `mean` [N] with every tension between `minimum` and
    `maximum` [N], computed by a quadratic programme.

    Each of the three is one number for all tendons or has shape (k,). If `mean` is None, it is the
    middle of the bounds. `pulls` False is for inputs that may also push: bounds may then have any
    sign.

    The result is NaN where no tensions within the bounds produce `tau`. A simulation then stops
    with `qp_infeasible`."""

    may_fail = True
    minimum: Float[Array, "..."] = float_field(unit="N")
    maximum: Float[Array, "..."] = float_field(unit="N")
    mean: Float[Array, "..."] | None = float_field(unit="N", default=None)
    pulls: bool = flag_field(default=True)

    def __check_init__(self):
        if self.pulls:
            require_positive("minimum", self.minimum, zero_allowed=True)
        require_finite("minimum", self.minimum)
        require_finite("maximum", self.maximum)
        given = {"minimum": self.minimum, "maximum": self.maximum, "mean": self.mean}
        given = {name: x for name, x in given.items() if x is not None}
        n = max((x.shape[0] for x in given.values() if x.ndim == 1), default=1)
        for name, x in given.items():
            require_one_or_each(name, x)
            require_shape(name, x, (), (n,))
        more = f"more than minimum, {describe(self.minimum)} N"
        bounds = self.maximum, self.minimum
        require_values("maximum", lambda high, low: high > low, *bounds, expected=more)

    def __call__(self, W, tau):
        k = W.shape[1]
        wish = jnp.broadcast_to(self._wish(k), (k,)).astype(W.dtype)
        eye = jnp.eye(k, dtype=W.dtype)
        found = solve_qp(eye, -wish, W, tau, self.minimum, self.maximum)
        return jnp.where(found.solved, found.x, jnp.nan)

    def failure_reason(self, W, tau, rows):
        from scipy.optimize import lsq_linear  # slow to import, and only errors need it

        W, tau = np.asarray(W, float), np.asarray(tau, float)
        k = W.shape[1]
        low, high = (np.broadcast_to(x, (k,)) for x in (self.minimum, self.maximum))
        size = np.linalg.norm(W, axis=1)  # rows of forces and of moments count alike
        size = np.where(size > 0, size, 1.0)
        best = lsq_linear(W / size[:, None], tau / size, (low, high), tol=1e-12).x
        missing = tau - W @ best
        worst = int(np.argmax(np.abs(missing) / size))
        if abs(missing[worst]) < 1e-6 * size[worst] * np.max(np.abs(best)):
            return ""
        near = 1e-6 * (high - low)
        at = {
            "minimum": np.flatnonzero(best < low + near),
            "maximum": np.flatnonzero(best > high - near),
        }
        limits = [
            f"cable{'s' * (len(c) > 1)} {', '.join(str(i + 1) for i in c)} at the {name}"
            for name, c in at.items()
            if len(c)
        ]
        wanted = ", ".join(f"{name} = {x:.4g}" for name, x in zip(rows, tau, strict=True))
        return (
            f"Wanted: {wanted}. The closest tensions within the bounds give "
            f"{rows[worst]} = {tau[worst] - missing[worst]:.4g}, with {' and '.join(limits)}."
        )

    def _wish(self, k: int):
        """Preferred tensions [N] of `k` tendons."""
        mean = 0.5 * (self.minimum + self.maximum) if self.mean is None else self.mean
        for name, x in (("minimum", self.minimum), ("maximum", self.maximum), ("mean", mean)):
            require_shape(name, x, (), (k,))
        return mean


class NullSpaceTension(BoundedTension):
    """The tensions of `BoundedTension`, computed by a smaller quadratic programme.

    `T = T_0 + N z`, where T_0 is the solution of `W T = tau` with the smallest norm and W N = 0.
    Only z is optimised, subject to `minimum <= T_0 + N z <= maximum`. For W of full rank with more
    columns than rows."""

    def __call__(self, W, tau):
        n, k = W.shape
        require(k > n, "W", f"{n} rows and {k} columns", "more columns than rows")
        wish = jnp.broadcast_to(self._wish(k), (k,)).astype(W.dtype)
        start, N = _least_norm(W, tau), null_space(W)
        low, high = self.minimum - start, self.maximum - start
        found = solve_qp(gram(N, N), vecmat(start - wish, N), lower=low, upper=high, C=N)
        return jnp.where(found.solved, start + matvec(N, found.x), jnp.nan)


def null_space(W) -> Float[Array, "k d"]:
    """Return a basis N (k, k - n) of the null space, `W N = 0`, of a matrix W (n, k) of full rank
    with k > n.

    The entries for n columns of W that are far from linear dependence are solved for; the other
    entries are free. The result is differentiable as long as the selected columns do not change."""
    n, k = W.shape
    left, chosen = lax.stop_gradient(W), jnp.zeros(k, bool)
    for _ in range(n):
        size = jnp.where(chosen, -1.0, jnp.sum(left * left, axis=0))
        j = jnp.argmax(size)
        column = left[:, j] / jnp.sqrt(size[j])
        left = left - column[:, None] * vecmat(column, left)
        chosen = chosen | (jnp.arange(k) == j)
    order = jnp.argsort(~chosen)  # selected columns first
    rows = -matmul(inverse(W[:, order[:n]]), W[:, order[n:]])
    return jnp.concatenate([rows, jnp.eye(k - n, dtype=W.dtype)])[jnp.argsort(order)]


def _least_norm(W, tau):
    """Return the solution of `W T = tau` with the smallest norm."""
    return vecmat(solve(matmul(W, W.T), tau, spd=True), W)
