"""Linearised equations of ropes on winches. A winch is coupled only to the first segment of its
rope, so it is eliminated there, and the remaining system is that of a rope robot."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.linalg import inverse2
from ...mechanics.linearisation import ComplementSolver
from ...mechanics.saddle import SaddlePoint
from .linearisation import RopeLinearisation


class Border(eqx.Module):
    """Coupling of winches (e coordinates each) to stretch and angle of first segments, in
    `[A, B; C, E]`: `by_winch` B (2, e, m), `by_rope` C (e, 2, m), and E (e, e, m)."""

    by_winch: Float[Array, "2 e m"]
    by_rope: Float[Array, "e 2 m"]
    own: Float[Array, "e e m"]

    @property
    def inverse(self) -> Float[Array, "e e m"]:
        return 1.0 / self.own if self.own.shape[0] == 1 else inverse2(self.own)


def _times(A, x):
    """Product of matrices (i, k, m) and vectors (k, m)."""
    return jnp.sum(A * x, axis=1)


class WinchedLinearisation(RopeLinearisation):
    """Linearisation of `WinchedRopes`, here `robot`, about a state; fields as in
    `RopeLinearisation`."""

    def bare(self):
        return self

    def border(self, h, h2) -> Border:
        machine = self.robot
        n, e, m = machine.ropes.n_q, machine.n_drive, machine.ropes.n_ropes
        zero = jnp.zeros_like(self.q)
        columns, own = [], []
        for k in range(e):  # all ropes at once: they are not coupled there
            along = zero.at[n + k :: e].set(1.0)
            ropes, winches = machine.split(self.product(h, h2, along))
            columns.append(machine.ropes.split(ropes)[0][:, 0])
            own.append(winches.T)

        def rows(q, v, a):
            return machine.winch_rows(self.t, q, v, self.u, machine.split(a)[1])

        back = []
        at = (self.q, self.v, self.a)
        for i in range(2):
            first = jnp.zeros((2, machine.ropes.count, m), zero.dtype).at[i, 0].set(1.0)
            x = zero.at[: first.size].set(machine.ropes.join(first))
            back.append(jax.jvp(rows, at, (h2 * x, h * x, x))[1].T)
        stack = lambda parts: jnp.stack(parts, axis=1)
        return materialise(Border(stack(columns), stack(back), stack(own)))

    def ropes(self, root=None) -> RopeLinearisation:
        machine = self.robot
        ropes = machine.paid_out(self.t, self.q, self.v)
        q, v, a, f = (machine.split(x)[0] for x in (self.q, self.v, self.a, self.f))
        pull = self.pull[: ropes.n_constraints]
        u = machine.inputs(self.u)[0]
        return RopeLinearisation(  # pyright: ignore[reportCallIssue]
            ropes, self.t, q, v, u, a, pull, f, root=root
        )

    def _condensed(self, h, h2) -> tuple[Border, RopeLinearisation]:
        border = self.border(h, h2)
        follow = jnp.sum(border.inverse[:, :, None] * border.by_rope[None], axis=1)
        root = -jnp.sum(border.by_winch[:, :, None] * follow[None], axis=1)
        return border, self.ropes(materialise(root))

    def factorise(self, h, h2):
        border, ropes = self._condensed(h, h2)
        return border, ropes, ropes.factorise(h, h2)

    def implicit_solve(self, factor, h, h2, b):
        border, ropes, inner = factor
        alone = lambda b, c: (ropes.implicit_solve(inner, h, h2, b), c)
        return WinchedSolver(self.robot, alone, border)(b, jnp.zeros(0, b.dtype))[0]

    def constrained_solver(self, jacobian, h, h2=None, rows=None):
        machine = self.robot
        h2 = h * h if h2 is None else h2
        if not machine.n_constraints:
            return ComplementSolver(self.implicit_solver(h, h2), jacobian, rows)
        n, k = machine.ropes.n_q, machine.ropes.n_constraints
        if machine.programmed:
            border, ropes = self.border(h, h2), self.ropes()
        else:
            border, ropes = self._condensed(h, h2)
        G = None if rows is None else rows[:k, :n]
        inner = ropes.constrained_solver(jacobian[:k, :n], h, h2, G)
        return WinchedSolver(machine, inner, border)


class WinchedSolver(eqx.Module):
    """Solver that uses `inner` for the ropes and `border` for the winches. If lengths are
    programmed, the last rows of constraints are the payouts themselves; otherwise `inner` is
    condensed."""

    machine: Any
    inner: Any
    border: Border

    def __call__(self, b, c):
        machine, border = self.machine, self.border
        k = c.shape[0] - (machine.ropes.n_ropes if machine.programmed and c.shape[0] else 0)
        b, winches = machine.split(b)
        given = machine.programmed and c.shape[0] > 0
        y = c[None, k:] if given else _times(border.inverse, winches.T)
        ropes, platform = machine.ropes.split(b)
        ropes = ropes.at[:, 0].add(-_times(border.by_winch, y))
        x, pull = self.inner(machine.ropes.join(ropes, platform), c[:k])
        seen = _times(border.by_rope, machine.ropes.split(x)[0][:, 0])
        if given:
            left = winches.T - seen - _times(border.own, y)
            pull = jnp.concatenate([pull, left[0]])
        else:
            y = _times(border.inverse, winches.T - seen)
        return jnp.concatenate([x, y.T.reshape(-1)]), pull


class WinchedSaddlePoint(SaddlePoint):
    """Solver of `[M, J^T; J, 0]`: in these coordinates inertia does not couple winches and
    ropes."""

    machine: Any
    inner: Any
    ropes: Any
    q: Float[Array, " n"]
    inertia: Float[Array, "m e"]

    def solve(self, f, b):
        machine, k = self.machine, self.ropes.n_constraints
        f = jnp.zeros(machine.n_v, b.dtype) if f is None else f
        own, winches = machine.split(f)
        if self.inner is None:
            x, pull = self.ropes.structure().mass_solve(self.q, own[:, None])[:, 0], b[:0]
        else:
            x, pull = self.inner.solve(own, b[:k])
        if machine.programmed:
            y = b[k:, None]
            pull = jnp.concatenate([pull, (winches - self.inertia * y)[:, 0]])
        else:
            y = winches / self.inertia
        return jnp.concatenate([x, y.reshape(-1)]), pull
