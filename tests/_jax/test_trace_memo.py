"""What a machine and its controller compute from the same numbers is computed once."""

import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import State, simulate
from cordax._jax.trace_memo import once
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


def test_the_same_numbers_are_traced_once_within_one_function():
    """Not across branches or derivatives, whose numbers must not leave them."""
    calls = []

    def square(x):
        calls.append(1)
        return x * x

    both = jax.jit(lambda x: once(square, x) + once(square, x))
    assert float(both(3.0)) == 18.0 and len(calls) == 1

    def branches(x):
        outside = once(square, x)
        return jax.lax.cond(x > 0, lambda: once(square, x) + 1.0, lambda: once(square, x) - outside)

    assert float(jax.jit(branches)(2.0)) == 5.0 and float(jax.jit(branches)(-2.0)) == 0.0
    slope = lambda x: jax.grad(lambda y: once(square, y))(x) + once(square, x)
    assert float(jax.jit(slope)(3.0)) == 15.0 and float(jax.grad(slope)(3.0)) == 8.0
    assert once(square, np.float64(2.0)) == 4.0


def test_without_the_memo_results_are_the_same(monkeypatch):
    calls = []

    def square(x):
        calls.append(1)
        return x * x

    monkeypatch.setenv("CORDAX_TRACE_MEMO", "0")
    assert float(jax.jit(lambda x: once(square, x) + once(square, x))(3.0)) == 18.0
    assert len(calls) == 2


@jax.tree_util.register_static
class Interrupting:
    """While it is compared, another thread traces a function that uses `once`."""

    def __hash__(self):
        return 0

    def __eq__(self, other):
        double = jax.jit(lambda x: once(jnp.sin, x) + once(jnp.sin, x))
        other_thread = threading.Thread(target=double, args=(1.0,))
        other_thread.start()
        other_thread.join()
        return False


def test_another_thread_traces_while_one_looks_for_a_result():
    function = lambda x, _: x * x
    twice = lambda x: once(function, x, Interrupting()) + once(function, x, Interrupting())
    assert float(jax.jit(twice)(3.0)) == 18.0
