"""Friction with memory: analytic limits, power balance, derivatives, identification."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Experiment, Recording, State
from cordax.io import read_machine
from cordax.systems import mechanism as mech

LUGRE = mech.FrictionLaw.lugre(2.0, 500.0, 3.0, 0.05, 4.0, 0.3)
PLASTIC = mech.FrictionLaw.elastoplastic(2.0, 500.0, 0.6, 3.0, 0.05, 4.0)
LAWS = {"dahl": mech.FrictionLaw.dahl(2.0, 500.0), "lugre": LUGRE, "elastoplastic": PLASTIC}


def arm(law, gravity=9.81, **fields):
    """A rod of 1 kg and 1 m that swings about its end, with friction in its joint."""
    body = mech.Body("arm", mech.Revolute("y"), solids=mech.rod(1.0, mass=1.0, centre=(0.5, 0, 0)))
    friction = mech.StickingFriction("arm", law)
    elements = [friction, *fields.pop("elements", [])]
    return mech.Mechanism(bodies=[body], elements=elements, gravity=(0.0, 0.0, -gravity))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_no_law_creates_energy_at_any_state_and_speed(law):
    random = np.random.default_rng(0)
    v = jnp.asarray(random.choice([-1, 1], 20000) * 10.0 ** random.uniform(-6, 3, 20000))
    z = jnp.asarray(random.uniform(-1.0, 1.0, 20000) * 5.0 / 500.0)  # beyond the static level
    state = jnp.sqrt(law.stiffness) * z
    rate, force = eqx.filter_jit(law)(state, v)
    dissipated = np.asarray(force * v - state * rate)
    assert np.min(dissipated) >= -1e-9 * np.max(np.abs(force * v))


def test_limits_are_those_of_the_literature():
    for law in LAWS.values():  # presliding: a spring
        rate, force = law(jnp.array([0.0]), jnp.array([1e-9]))
        assert np.isclose(rate[0], np.sqrt(500.0) * 1e-9)
        rate, force = law(jnp.sqrt(500.0) * jnp.array([1e-4]), jnp.array([0.0]))
        assert np.isclose(force[0], 500.0 * 1e-4) and rate[0] == 0.0
    for v in (1e-3, 0.05, 2.0):  # steady slip: Stribeck's curve
        level = 2.0 + np.exp(-((v / 0.05) ** 2))
        rate, force = LUGRE(jnp.array([level / np.sqrt(500.0)]), jnp.array([v]))
        assert np.isclose(force[0], level + 0.3 * v) and np.isclose(rate[0], 0.0, atol=1e-9)
    below = jnp.array([0.5 * 2.0 / np.sqrt(500.0)])  # elasto-plastic: no slip below breakaway
    assert np.isclose(PLASTIC(below, jnp.array([1.0]))[0][0], np.sqrt(500.0))


def test_dahl_follows_its_closed_form_and_holds_a_load():
    """A torque M below the level bends the bristles by -(coulomb/stiffness) log(1 - M/coulomb)."""
    law = mech.FrictionLaw.dahl(2.0, 500.0)
    loads = mech.JointLoads("arm", 1.2)
    damper = mech.JointSprings("arm", damping=40.0)
    machine = arm(law, gravity=0.0, elements=[loads, damper])
    run = cordax.simulate(machine, dt=2e-3, duration=3.0, integrator="rosenbrock_2")
    angle = -2.0 / 500.0 * np.log(1.0 - 1.2 / 2.0)
    assert np.isclose(run["arm"][-1], angle, rtol=1e-4)  # monotonic: no overshoot
    assert np.isclose(run["friction_arm"][-1], 1.2, rtol=1e-5)


@pytest.fixture(scope="module")
def swing():
    run = lambda law: cordax.simulate(
        arm(law), State(jnp.array([1.2, 0.0]), jnp.zeros(2)), dt=1e-3, duration=4.0,
        integrator="rk4", save_every=10,
    )  # fmt: skip
    return run(mech.FrictionLaw.lugre(0.3, 200.0, 0.4, 0.05, 2.0, 0.02))


def test_energy_falls_and_the_arm_sticks(swing):
    total = np.asarray(swing.energy()["total"])
    assert np.max(np.diff(total)) < 1e-9 and total[0] - total[-1] > 0.25
    assert np.max(np.abs(swing["d_arm"][-20:])) < 1e-2
    assert 1e-3 < abs(float(swing["arm"][-1]) - 0.5 * np.pi) < 0.3 / 4.9  # not at the lowest point


def test_derivatives_in_both_modes():
    def last(y):
        law = mech.FrictionLaw.lugre(y[0], y[1], 1.4 * y[0], 0.05, 2.0, 0.02)
        start = State(jnp.array([1.2, 0.0]), jnp.zeros(2))
        run = cordax.simulate(arm(law), start, dt=1e-3, duration=0.3, integrator="rk4")
        return run.q[-1, 0]

    y = jnp.array([0.3, 200.0])
    reverse, forward = jax.jit(jax.grad(last))(y), jax.jit(jax.jacfwd(last))(y)
    value = jax.jit(last)
    steps = [1e-5 * float(y[i]) * np.eye(2)[i] for i in range(2)]
    central = [(value(y + h) - value(y - h)) / (2 * h[i]) for i, h in enumerate(steps)]
    assert np.allclose(reverse, forward, rtol=1e-8)
    assert np.allclose(reverse, central, rtol=1e-5, atol=1e-9)


def test_the_law_is_identified(swing):
    noise = 2e-4
    random = np.random.default_rng(0)
    t = np.asarray(swing.t)
    log = Recording(t, {"arm": np.asarray(swing["arm"]) + noise * random.normal(size=t.size)})
    guess = mech.FrictionLaw.lugre(0.4, 250.0, 0.5, 0.05, 2.0, 0.02)
    experiment = Experiment(
        arm(guess), State(jnp.array([1.2, 0.0]), jnp.zeros(2)), dt=1e-3, integrator="rk4"
    )
    experiment = eqx.tree_at(lambda e: e.system.elements[0].law.static, experiment, jnp.array(0.4))
    names = ["elements[0].law.coulomb", "elements[0].law.stiffness"]
    fit = cordax.identify(experiment, log, names, noise=noise, check_step=False)
    errors = (np.asarray(fit.values) - [0.3, 200.0]) / np.asarray(fit.standard_errors)
    assert bool(fit.succeeded) and np.max(np.abs(errors)) < 3.5
    assert np.asarray(fit.standard_errors)[0] < 0.003


def test_friction_along_a_path_pulls_the_ends_together():
    slide = mech.Body("block", mech.Prismatic("x"), solids=mech.sphere(0.1, mass=1.0))
    path = mech.PathFriction(
        "cord", ("world", "world", "block"), [[0, 0, 1], [0, 0, 0], [1, 0, 0]],
        mech.FrictionLaw.dahl(2.0, 1e4),
    )  # fmt: skip
    machine = mech.Mechanism(bodies=[slide], elements=[path], gravity=(0.0, 0.0, 0.0))
    start = State(jnp.zeros(2), jnp.array([1.0, 0.0]))  # 0.5 J, 2 N: stops after 0.25 m
    run = cordax.simulate(machine, start, dt=1e-3, duration=0.6, integrator="rosenbrock_2")
    assert np.isclose(run["block"][-1], 0.25, atol=2e-3)
    total = np.asarray(run.energy()["total"])
    assert np.max(np.diff(total)) < 1e-6


def test_a_machine_file_has_it(tmp_path):
    (tmp_path / "arm.toml").write_text(
        'kind = "mechanism"\n[[bodies]]\nname = "arm"\njoint = { kind = "revolute", axis = "y" }\n'
        'solids = [{ kind = "rod", length = 1.0, mass = 1.0, centre = [0.5, 0, 0] }]\n'
        '[[elements]]\nkind = "sticking_friction"\njoints = "arm"\n'
        'law = { kind = "dahl", coulomb = 0.3, stiffness = 200.0 }\n[run]\nduration = 1.0\n'
    )
    machine = read_machine(tmp_path / "arm.toml").experiment.system
    assert machine.state_names == ("stick_arm",)
    assert float(machine.elements[0].law.stiffness) == 200.0


def test_bad_laws_are_rejected():
    for fields, message in (
        ({"coulomb": 0.0}, "coulomb"),
        ({"stiffness": -1.0}, "stiffness"),
        ({"static": 1.0}, "static: got"),
        ({"breakaway": 1.0}, "breakaway: got"),
        ({"damping": -0.1}, "damping"),
        ({"stribeck": float("nan")}, "stribeck"),
    ):
        with pytest.raises(ValueError, match=message):
            mech.FrictionLaw(**{"coulomb": 2.0, "stiffness": 500.0, **fields})
    with pytest.raises(ValueError, match="bodies: got"):
        mech.PathFriction("cord", ("world",), [[0.0, 0.0, 0.0]], LUGRE)
    with pytest.raises(ValueError, match="joints"):
        mech.Mechanism(bodies=arm(LUGRE).bodies, elements=[mech.StickingFriction("leg", LUGRE)])
