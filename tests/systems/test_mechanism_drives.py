"""Cables wound at both ends, stick and slip under load, and drives that take speeds."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.mechanics.parts.cables import ElasticCables
from cordax.systems import mechanism as parts

G, R = 9.81, 0.1


def winch(name, x):
    solid = parts.cylinder(0.05, 0.1, mass=1.0, axis="y")
    return parts.Body(name, parts.Revolute("y"), at=(x, 0, 1.0), solids=solid)


def hung_between_drums(rigid=False, **options):
    """A pulley with a load in the bight of a cable that drums of 0.05 and 0.08 m wind at both of
    its ends; both straight parts are vertical."""
    load = parts.Body("load", parts.Prismatic("z"), solids=parts.point_mass(2.0))
    way = [
        parts.Eyelet("world", (-R, 0, 1.0)),
        parts.Pulley("load", (0, 0, 0), R, axis=(0, 1, 0), clockwise=True),
        parts.Eyelet("world", (R, 0, 1.0)),
    ]
    bodies, names, radii = (
        [winch("left", -R), winch("right", R), load],
        ("left", "right"),
        (0.05, 0.08),
    )
    length = 2.0 + np.pi * R
    if rigid:
        return parts.Mechanism(bodies, [parts.RigidCable(way, length, names, radii)])
    cables = parts.CableSet(
        [way], ElasticCables([1e3]), [length - 0.01], [names], [radii], **options
    )
    return parts.Mechanism(bodies, elements=[cables])


@eqx.filter_jit
def forces(machine, q, v):
    """Joint forces, the slope of the energy, and tensions of the first cable."""
    slope = jax.grad(lambda q: machine.potential_energy(0.0, q))(q)
    tension = machine.elements[0].state(machine.instant(0.0, q, v)).tension[0]
    return machine.force(0.0, q, v, jnp.zeros(0)), slope, tension


def test_both_ends_wind():
    """Forces are the gradient of the energy; what both drums pay out lowers the load by half."""
    machine, rigid = hung_between_drums(), hung_between_drums(rigid=True)
    q, rest = jnp.array([0.01, -0.02, 0.005]), jnp.zeros(3)
    force, slope, tensions = forces(machine, q, rest)
    np.testing.assert_allclose(force, -slope, rtol=1e-10)
    tension = float(tensions[0])
    assert tension > 1.0
    np.testing.assert_allclose(force, [0.05 * tension, 0.08 * tension, 2 * tension - 2 * G])
    paid_out = 0.05 * 0.7 + 0.08 * -0.2
    closed = jnp.array([0.7, -0.2, -0.5 * paid_out])
    gap = eqx.filter_jit(lambda machine, q: machine.constraint(0.0, q))(rigid, closed)
    np.testing.assert_allclose(gap, 0.0, atol=1e-14)


def test_the_cable_slides_towards_the_drum_that_winds_in():
    """Over a guide with friction the tension is larger on the side of the drum that pulls."""
    machine = hung_between_drums(friction=0.3, slip_width=1e-6)
    grown = np.exp(0.3 * np.pi)
    for rate, ratio in (([0, -1.0, 0], grown), ([-1.0, 0, 0], 1 / grown)):
        tension = forces(machine, jnp.zeros(3), jnp.array(rate, float))[2]
        np.testing.assert_allclose(tension[1] / tension[0], ratio, rtol=1e-9)


def loads_over_a_post(second):
    """1 kg and `second` kg on a cable over a fixed post, mu = 0.3, half a turn."""
    load = lambda name, x, m: parts.Body(
        name, parts.Prismatic("z"), at=(x, 0, 0), solids=parts.point_mass(m)
    )
    post = parts.Pulley("world", (0, 0, 1.0), R, axis=(0, 1, 0))
    way = [parts.Eyelet("a"), post, parts.Eyelet("b")]
    cables = parts.CableSet(
        [way], ElasticCables([2e4], [60.0]), [2.0 + np.pi * R - 5e-4], friction=0.3, slip_width=1e-2
    )
    return parts.Mechanism([load("a", -R, 1.0), load("b", R, second)], elements=[cables])


@pytest.mark.parametrize("second", [1.3, 4.0])
def test_stick_and_slip(second):
    """Below exp(mu theta) = 2.57 the loads hang, but for a creep of
    `slip_width atanh(log(ratio)/(mu theta))`; above, they slide as Euler and Eytelwein say."""
    run = cordax.simulate(loads_over_a_post(second), duration=0.3, dt=5e-4, save_every=200)
    share = np.log(second) / (0.3 * np.pi)
    if share < 1:
        np.testing.assert_allclose(run.v[-1, 0], 1e-2 * np.arctanh(share), rtol=1e-3)
        np.testing.assert_allclose(run.v[-1, 1], -run.v[-1, 0], rtol=1e-3)
    else:
        grown = np.exp(0.3 * np.pi)
        acceleration = G * (second - grown) / (second + grown)
        gained = float(run.v[-1, 0] - run.v[-2, 0])
        np.testing.assert_allclose(gained, 0.1 * acceleration, rtol=1e-3)


def test_speed_drives():
    """Torques in proportion to what is missing of the wanted speed, bounded where asked for."""
    rotor = parts.Body("rotor", parts.Revolute("z"), solids=parts.cylinder(0.1, 0.1, mass=4.0))
    machine = lambda **bound: parts.Mechanism(
        [rotor], elements=[parts.JointSpeeds("rotor", 0.2, **bound)]
    )
    assert machine().input_names == ("speed_rotor",)
    torque = lambda m, rate, u: float(
        m.force(0.0, jnp.zeros(1), jnp.array([rate]), jnp.array([u]))[0]
    )
    np.testing.assert_allclose(torque(machine(), 1.0, 3.0), 0.4, rtol=1e-14)
    np.testing.assert_allclose(torque(machine(most=0.3), 1.0, 3.0), 0.3 * np.tanh(0.4 / 0.3))
    for bad, message in (({"gain": -1.0}, "gain"), ({"gain": 1.0, "most": 0.0}, "most")):
        with pytest.raises(ValueError, match=message):
            parts.JointSpeeds("rotor", **bad)
