"""What a machine and its controller compute from the same numbers is computed once."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import State, simulate
from cordax.mechanics import Controller
from cordax.simulation import executor
from cordax.systems import Oscillator


class Soft(Oscillator):
    """With a spring that needs a constant of its own."""

    ready: jax.Array | None = None

    def prepare(self):
        ready = self._ready()
        return eqx.tree_at(lambda m: m.ready, self, ready, is_leaf=lambda x: x is None)

    def _ready(self):
        return jnp.arctan(self.stiffness) if self.ready is None else self.ready

    def force(self, t, q, v, u):
        return u - self._ready() * jnp.tan(self.mass * q)


class Compensated(Controller):
    machine: Soft

    def prepare(self):
        return eqx.tree_at(lambda c: c.machine, self, self.machine.prepare())

    def __call__(self, t, state, memory):
        machine = self.machine
        return -0.5 * machine.force(t, state.q, state.v, jnp.zeros(1)), memory


@pytest.fixture(scope="module")
def programs():
    """Compiled time loops with a controller that holds the machine, and with one that holds a copy
    of it; and where they lead."""
    machine, texts, ends = Soft(), [], []
    copy = jax.tree.map(lambda x: jnp.array(x, copy=True), machine)
    inner = executor._compiled_blocks

    def recording(*given):
        texts.append(inner.lower(*given).compile().as_text())
        return inner(*given)

    executor._compiled_blocks = recording
    try:
        for held in (machine, copy):
            options = {"control": Compensated(held), "integrator": "explicit_euler"}
            start = State(jnp.ones(1), jnp.zeros(1))
            ends.append(simulate(machine, start, dt=0.01, duration=0.05, **options).q)
    finally:
        executor._compiled_blocks = inner
    return texts, ends


@pytest.mark.parametrize("operation", ["atan2(", "tan("])
def test_one_force_for_machine_and_controller(programs, operation):
    """In each step, and among what is constant."""
    (shared, apart), ends = programs
    count = lambda text: text.count(f" {operation}")
    assert 0 < count(shared) < count(apart)
    np.testing.assert_array_equal(*ends)
