"""The equations about a state: every machine's own derivatives against those of the residual, and
solves under constraints against dense ones."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.math.linalg import matvec
from cordax.mechanics import Structure
from cordax.mechanics.linearisation import bare
from cordax.systems import (
    ContactLaw,
    End,
    Harness,
    Joint,
    LineContact,
    Neck,
    Plane,
    SplineRod,
)
from helpers.machines import Bead, DoublePendulum

RNG = np.random.default_rng(3)


class HungPendulum(DoublePendulum):
    """With the lower mass kept at a height."""

    def constraint(self, t, q):
        return jnp.sum(self.lengths * jnp.cos(q))[None] - 1.0


def harness() -> Harness:
    half = {"length": 1.0, "young": 2.5e6, "control_points": 6}
    left = SplineRod(right=End.free(), viscous=True, damping=1e-3, **half)
    right = SplineRod(left=End.free(), right=End.pinned([1.9, 0.0, 0.0]), **half)
    return Harness((left, right), (Joint(0, "right", 1, "left"),))


def touching() -> SplineRod:
    law = ContactLaw(friction=0.3, damping=0.5, width=1e-2)
    return SplineRod(young=2.5e6, control_points=6, contact=LineContact(Plane(), law))


MACHINES = {
    "bead": Bead(),
    "pendulum": HungPendulum(damping=0.2),
    "neck": Neck.default(),
    "harness": harness(),
    "touching": touching(),
}


@pytest.mark.parametrize("name", MACHINES)
def test_derivatives_of_the_whole_residual(name):
    """K and D at an acceleration and multipliers, held forces live, against the dense default."""
    machine = MACHINES[name]
    start, n = machine.default_state(), machine.n_v
    q = start.q + 0.02 * RNG.uniform(-1, 1, n)
    v, a = RNG.uniform(-1, 1, n), RNG.uniform(-3, 3, n)
    u = RNG.uniform(-1, 1, machine.n_u)
    multipliers = jnp.asarray(RNG.uniform(-2, 2, machine.n_constraints))

    @eqx.filter_jit
    def both(machine, q, v, u, a):
        options = {"acceleration": a, "multipliers": multipliers, "hold": False}
        t = jnp.zeros(())
        own = machine.structure().linearise(t, q, v, u, **options)
        dense = Structure(machine).linearise(t, q, v, u, **options)
        x = jnp.cos(jnp.arange(n) * 1.0)
        assert own.exact
        h = 1e-3
        products = [(own.inertia(x), dense.inertia(x)), (own.stiffness(x), dense.stiffness(x))]
        solved = own.implicit_solver(h)(x), dense.implicit_solver(h)(x)
        return [
            (own.f, dense.f),
            *products,
            solved,
            *zip(own.matrices(), dense.matrices(), strict=True),
        ]

    for own, dense in both(machine, q, jnp.asarray(v), u, jnp.asarray(a)):
        np.testing.assert_allclose(own, dense, rtol=1e-9, atol=1e-9 * np.max(np.abs(dense)))


def test_constrained_solves_of_a_harness():
    """Chains and a complement against the whole matrix, with rows of their own too, and their
    derivatives in both modes against differences."""
    machine = harness()
    state, n, m = machine.default_state(), machine.n_v, machine.n_constraints
    q = state.q + 0.01 * jnp.asarray(RNG.uniform(-1, 1, n))
    v = jnp.zeros(n)
    b = machine.structure().momentum(q, jnp.asarray(RNG.uniform(-1, 1, n)))
    c = jnp.asarray(RNG.uniform(-1, 1, m))
    J = machine.structure().constraint_terms(0.0, q, v).jacobian
    G = J + 0.1 * jnp.asarray(RNG.uniform(-1, 1, J.shape))
    h = jnp.asarray(1e-3)

    @jax.jit
    def solved(q, rows):
        motion = machine.structure().linearise(jnp.zeros(()), q, v, jnp.zeros(0))
        solver = motion.constrained_solver(J, h, h * h, rows)
        x, y = solver(b, c)
        M, K, D = motion.matrices()
        left = matvec(M - h * D - h * h * K, x) + matvec(J.T, y)
        return x, left, matvec(rows, x), bare(solver)(b, c)[0]

    for rows in (J, G):
        x, left, held, alone = solved(q, rows)
        # without what derivatives need
        np.testing.assert_allclose(alone, x, atol=1e-10 * np.max(np.abs(x)))
        np.testing.assert_allclose(left, b, rtol=1e-7, atol=1e-11)
        np.testing.assert_allclose(held, c, atol=1e-9)
    along = jnp.asarray(RNG.uniform(-1, 1, n))
    value = lambda s: jnp.sum(jnp.sin(solved(q + s * along, G)[0] * 1e-3))
    forward = jax.jvp(value, (0.0,), (1.0,))[1]
    reverse = jax.grad(value)(0.0)
    central = (value(1e-5) - value(-1e-5)) / 2e-5
    assert forward == pytest.approx(float(reverse), rel=1e-9)
    assert forward == pytest.approx(float(central), rel=1e-5)
