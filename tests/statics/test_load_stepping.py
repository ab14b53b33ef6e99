"""Rest states reached by way of lighter loads."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import LagrangianSystem, State, equilibrium, float_field


class SnapThrough(LagrangianSystem):
    """A mass in the double well (x^2 - 1)^2, pulled by a `weight`: two states at rest up to a
    weight of 8/(3 sqrt(3)) = 1.54, one beyond."""

    weight: jax.Array = float_field(default=-1.0)
    coordinate_names = ("x",)

    def inertial_coordinates(self, q):
        return q

    def inertial_weights(self):
        return jnp.ones(1)

    def potential_energy(self, t, q):
        return (q[0] ** 2 - 1.0) ** 2 - self.weight * q[0]

    def default_state(self):
        return State(jnp.array([0.1]), jnp.zeros(1))


def under(weight):
    return lambda s: eqx.tree_at(lambda m: m.weight, SnapThrough(), jnp.asarray(weight * s))


def test_the_branch_of_the_lighter_load_is_followed():
    """4 x (x^2 - 1) = weight has both solutions; the guess lies in the right well without weight,
    and in the left one with it."""
    roots = np.sort(np.roots([4.0, 0.0, -4.0, 1.0]))
    machine = SnapThrough(-1.0)
    assert float(equilibrium(machine).q[0]) == pytest.approx(roots[0], abs=1e-9)
    led = equilibrium(machine, load=under(-1.0))
    assert float(led.q[0]) == pytest.approx(roots[2], abs=1e-9)


def test_beyond_the_limit_it_snaps():
    """Past 1.54 the right well is gone."""
    led = equilibrium(SnapThrough(-2.0), load=under(-2.0))
    assert float(led.q[0]) == pytest.approx(np.min(np.roots([4.0, 0.0, -4.0, 2.0]).real), abs=1e-9)


def test_too_few_steps_at_once_are_enough_bit_by_bit():
    """A weight of 2000 from the guess takes more than eight steps."""
    machine, few = SnapThrough(2000.0), {"max_steps": 8}
    with pytest.raises(RuntimeError, match="max_steps were not enough"):
        equilibrium(machine, **few)
    led = equilibrium(machine, guess=State([1.0], [0.0]), load=under(2000.0), **few)
    x = float(led.q[0])
    assert 4.0 * x * (x * x - 1.0) == pytest.approx(2000.0, rel=1e-9)


def test_what_cannot_be_followed_says_so():
    with pytest.raises(ValueError, match="load: got 3, expected a function"):
        equilibrium(SnapThrough(), load=3)
    with pytest.raises(ValueError, match="load: got a call inside of jit"):
        jax.jit(lambda w: equilibrium(SnapThrough(w), load=under(1.0)).q)(1.0)
    with pytest.raises(RuntimeError, match=r"max_steps were not enough.*of the load"):
        equilibrium(SnapThrough(2000.0), load=under(2000.0), max_steps=1)
