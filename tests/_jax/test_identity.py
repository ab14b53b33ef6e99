"""A run after a change gives the new answer: whatever the changed function, class or object is."""

import functools
import time
import types

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax._jax import identity
from cordax._jax.identity import by_value, digest_of, token_of
from cordax.systems import Oscillator, Pendulum

OPTIONS = {"dt": 0.1, "duration": 0.3}
force, factor, table, helper_module = 0.0, 1.0, {"x": 1.0}, types.ModuleType("helper_module")
helper_module.x = 1.0  # pyright: ignore[reportAttributeAccessIssue]


def last(machine, **options) -> float:
    return float(cordax.simulate(machine, **OPTIONS, **options).q[-1, 0])


def reads_global(t, state):
    return jnp.full(1, force)


def test_control_that_reads_a_global(monkeypatch):
    runs = []
    for value in (0.0, 1.0, 0.0):
        monkeypatch.setitem(globals(), "force", value)
        runs.append(last(Oscillator(), control=reads_global))
    expected = [last(Oscillator(), control=np.array([value])) for value in (0.0, 1.0, 0.0)]
    np.testing.assert_allclose(runs, expected, rtol=1e-14)
    assert runs[0] != runs[1]


class _Scaled(Oscillator):
    def applied_force(self, t, q, v, u):
        return u + factor

    def default_state(self):
        return cordax.State(jnp.full(1, factor), jnp.zeros(1))


def test_machine_whose_methods_read_a_global(monkeypatch):
    machine, runs = _Scaled(), []
    for value in (1.0, 3.0):
        monkeypatch.setitem(globals(), "factor", value)
        runs.append(last(machine))
    np.testing.assert_allclose(runs[1], 3.0 * runs[0], rtol=1e-12)  # the machine is linear


class _Push:
    def __init__(self, value):
        self.value = value

    def __call__(self, t, state):
        return jnp.full(1, self.value)

    def method(self, t, state):
        return jnp.full(1, 2 * self.value)


class _Frozen(eqx.Module):
    settings: dict = eqx.field(static=True)

    def __call__(self, t, state):
        return jnp.full(1, self.settings["value"])


def test_control_objects_that_change():
    push, array = _Push(0.0), np.zeros(1)
    settings = {"value": 0.0}
    entries = {"law": lambda t, state: jnp.full(1, push.value)}
    controls = {
        "object": push,
        "bound method": push.method,
        "partial": functools.partial(lambda t, state, p: jnp.full(1, p.value), p=push),
        "closure": lambda t, state: jnp.full(1, push.value),
        "in a dict": lambda t, state: entries["law"](t, state),
        "array in place": lambda t, state: jnp.asarray(array),
        "jitted": jax.jit(lambda t, state: jnp.full(1, push.value)),
        "default": lambda t, state, p=push: jnp.full(1, p.value),
        "dict in a closure": lambda t, state: jnp.full(1, settings["value"]),
    }
    before = {name: last(Oscillator(), control=control) for name, control in controls.items()}
    push.value, array[0], settings["value"] = 1.0, 1.0, 1.0
    after = {name: last(Oscillator(), control=control) for name, control in controls.items()}
    expected = {u: last(Oscillator(), control=np.array([u])) for u in (0.0, 1.0, 2.0)}
    for name in controls:
        np.testing.assert_allclose(before[name], expected[0.0], err_msg=name)
        wanted = expected[2.0 if name == "bound method" else 1.0]
        np.testing.assert_allclose(after[name], wanted, err_msg=name)


def _helper():
    return table["x"]


def _through_helper(x):
    return _helper() * x


def _through_module(x):
    return helper_module.x * x


def _nested(x):
    def inner():
        return [_helper() for _ in range(1)]

    return inner()[0] * x


class _Base:
    def value(self):
        return 1.0


class _Derived(_Base):
    def __call__(self, x):
        return self.value() * x


@pytest.mark.parametrize("function", [_through_helper, _through_module, _nested, _Derived()])
def test_tokens_follow_what_functions_reach(function, monkeypatch):
    first = token_of(function)
    assert first is not None and first == token_of(function)
    monkeypatch.setitem(table, "x", 2.0)
    monkeypatch.setattr(helper_module, "x", 2.0)
    monkeypatch.setattr(_Base, "value", lambda self: 2.0)
    changed = token_of(function)
    assert changed != first
    monkeypatch.undo()
    assert token_of(function) == first
    monkeypatch.setitem(globals(), "_helper", lambda: 2.0)
    assert (token_of(function) != first) == (function in (_through_helper, _nested))


def test_what_cannot_be_established_is_traced_again():
    """With one warning; values of a transformation without."""
    identity._warned.clear()
    clock = lambda t, state: jnp.full(1, time.perf_counter())
    with pytest.warns(UserWarning, match="compiles again in every call: .*uses time"):
        first = token_of(clock)
    assert not identity.is_known(first) and token_of(clock) != first
    traced = []
    jax.jit(lambda x: traced.append(token_of(lambda: x)))(1.0)
    assert not identity.is_known(traced[0])


def test_code_of_libraries_needs_no_token(monkeypatch):
    machine = Pendulum()
    assert token_of(machine, jnp.sin, np.zeros(2), "rk4", None) is None
    original = Pendulum.potential_energy
    monkeypatch.setattr(Pendulum, "potential_energy", lambda self, t, q: 0.0 * q[0])
    assert token_of(machine) is not None
    assert last(machine) == pytest.approx(float(machine.default_state().q[0]))  # no gravity
    monkeypatch.setattr(Pendulum, "potential_energy", original)
    assert token_of(machine) is None


SOURCE = """
import cordax
from cordax.systems import Pendulum
class Pendulum(Pendulum):
    def potential_energy(self, t, q): return {} * super().potential_energy(t, q)
"""


def test_classes_of_equal_names_made_by_exec():
    """Also where `__module__` is that of a library: `exec` takes it from the globals it is given,
    which has "builtins" without a name."""
    for name in ("builtins", "cordax.systems.oscillator", "__main__"):
        scopes = [{"__name__": name}, {"__name__": name}]
        for scale, scope in zip((1.0, 4.0), scopes, strict=True):
            exec(SOURCE.format(scale), scope)
        slow, quick = (scope["Pendulum"](length=0.5) for scope in scopes)
        assert identity.library_digest(slow) is None  # no program of theirs is stored
        assert token_of(slow) != token_of(quick) and None not in (token_of(slow), token_of(quick))
    assert last(slow) != last(quick)


def test_build_that_reads_a_dict(monkeypatch):
    settings = {"length": 0.5}
    rows = jnp.array([0.1, 0.2])
    state = lambda angle: cordax.State(angle[None], jnp.zeros(1))
    build = lambda angle: (Pendulum(length=settings["length"]), state(angle))
    first = cordax.simulate_batch(build, rows, **OPTIONS)
    settings["length"] = 2.0
    second = cordax.simulate_batch(build, rows, **OPTIONS)
    for run, length in ((first, 0.5), (second, 2.0)):
        alone = cordax.simulate(Pendulum(length=length), state(rows[1]), **OPTIONS)
        np.testing.assert_allclose(run.q[1], alone.q, rtol=1e-12)


def test_equal_lambdas_are_equal():
    make = lambda scale: by_value(lambda x: scale * x)
    assert make(2.0) == make(2.0) and hash(make(2.0)) == hash(make(2.0))
    assert make(2.0) != make(3.0) and make(1) != make(True)
    assert digest_of(lambda x: x + 1) != digest_of(lambda x: x + 2)


def test_frozen_machine_with_a_dict_of_arrays():
    """A list or dict in a module can change although the module cannot."""

    class Gains(cordax.Controller):
        values: dict

        def __call__(self, t, state, memory):
            return self.values["u"], memory

    control = Gains({"u": jnp.zeros(1)})
    before = last(Oscillator(), control=control)
    control.values["u"] = jnp.ones(1)
    assert last(Oscillator(), control=control) != before
    frozen = _Frozen({"value": 0.0})
    assert last(Oscillator(), control=frozen) == pytest.approx(before)
    frozen.settings["value"] = 1.0
    assert last(Oscillator(), control=frozen) != pytest.approx(before)
