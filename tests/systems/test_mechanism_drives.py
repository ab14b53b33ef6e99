"""Cables wound at both ends, stick and slip under load, and drives that take speeds."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import Hermite
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


def winch_and_load(at_last=False, on_drum=False, pulley=True, rigid=False, rest=2.4):
    """A drum winds a cable that runs over an eyelet to a load; the drum is at either end of the
    cable, its pulley on the ground or on the drum itself."""
    drum = parts.Pulley(
        "drum" if on_drum else "world", (0, 0, 0), R, axis=(0, 1, 0),
        zero=(-1.0 if at_last else 1.0, 0, 0), clockwise=at_last,
    )  # fmt: skip
    way = [drum if pulley else parts.Eyelet(), parts.Eyelet("world", (1.0, 0, 0.5)),
           parts.Eyelet("load")]  # fmt: skip
    way = way[::-1] if at_last else way
    bodies = [
        parts.Body("load", parts.Prismatic("z"), at=(1.0, 0, -1.0), solids=parts.point_mass(1.0)),
        parts.Body("drum", parts.Revolute("y"), solids=parts.cylinder(R, 0.1, mass=1.0, axis="y")),
    ]
    if rigid:
        return parts.Mechanism(bodies, [parts.RigidCable(way, rest, "drum", [R])])
    cables = parts.CableSet(
        [way], ElasticCables([1e3]), rest, [("drum",)], [[R]], friction=0.4, slip_width=1e-6
    )
    return parts.Mechanism(bodies, elements=[cables])


@eqx.filter_jit
def pulls(machine, q, v):
    """Tensions of the first cable, and joint forces."""
    tension = machine.elements[0].state(machine.instant(0.0, q, v)).tension[0]
    return tension, machine.force(0.0, q, v, jnp.zeros(0))


@pytest.mark.parametrize("pulley", [True, False])
def test_the_end_of_the_drum_does_not_matter(pulley):
    """Wound in, the segment at the drum pulls by exp(mu theta) more than that at the load, and
    turns the drum by radius times its tension, from whichever end and on whichever body."""
    q, v = jnp.array([0.0, -0.1]), jnp.array([R, -1.0])
    seen = []
    for at_last in (False, True):
        for on_drum in (False, True) if pulley else (False,):
            tension, force = pulls(winch_and_load(at_last, on_drum, pulley), q, v)
            tension = tension[::-1] if at_last else tension
            assert tension[0] > 1.5 * tension[1]
            np.testing.assert_allclose(force[1], R * tension[0], rtol=1e-12)
            seen.append(np.append(tension, force))
    np.testing.assert_allclose(seen, np.broadcast_to(seen[0], np.shape(seen)), rtol=1e-12)


def test_programmed_lengths_pay_out_on_the_ground():
    """Without a drum a cable that is shortened slides towards its end on the ground."""
    load = parts.Body("load", parts.Prismatic("z"), at=(1.0, 0, -1.0), solids=parts.point_mass(1.0))
    way = [parts.Eyelet(), parts.Eyelet("world", (1.0, 0, 0.5)), parts.Eyelet("load")]
    rest = Hermite([0.0, 1.0], [[2.4], [1.4]], [[-1.0], [-1.0]])
    for guides in (way, way[::-1]):
        cables = parts.CableSet([guides], ElasticCables([1e3]), rest, friction=0.4)
        machine = parts.Mechanism([load], elements=[cables])
        tension, _ = pulls(machine, jnp.zeros(1), jnp.ones(1))
        tension = tension if guides is way else tension[::-1]
        assert tension[0] > 1.5 * tension[1]


@eqx.filter_jit
def loop_terms(machine, q):
    return machine.structure().constraint_terms(0.0, q, jnp.zeros_like(q))


def test_rigid_cables_on_drums():
    """A drum that carries its pulley pays out once; strands between drums on the ground and over
    neighbouring pulleys have lengths."""
    for on_drum in (False, True):
        machine = winch_and_load(on_drum=on_drum, rigid=True)
        terms = loop_terms(machine, jnp.zeros(2))
        np.testing.assert_allclose(terms.jacobian, [[-1.0, -R]], atol=1e-12)
    drum = lambda x: parts.Pulley("world", (x, 0, 1.0), R, axis=(0, 1, 0))
    strand = parts.RigidCable([drum(0.0), drum(1.0)], 1.0, ("left", "right"), [R, R])
    machine = parts.Mechanism([winch("left", 0.0), winch("right", 1.0)], [strand])
    terms = loop_terms(machine, jnp.array([0.3, -0.3]))
    np.testing.assert_allclose(terms.phi, 0.0, atol=1e-15)
    np.testing.assert_allclose(terms.jacobian, [[-R, -R]], rtol=1e-12)
    load = parts.Body("load", parts.Prismatic("z"), at=(1 + R, 0, 0), solids=parts.point_mass(1.0))
    way = [parts.Eyelet("world", (-1, 0, 1 + R)), drum(0.0), drum(1.0), parts.Eyelet("load")]
    machine = parts.Mechanism([load], [parts.RigidCable(way, 3.0 + 0.5 * np.pi * R)])
    assert machine.valid(0.0, jnp.zeros(1), jnp.zeros(1))
    np.testing.assert_allclose(loop_terms(machine, jnp.zeros(1)).phi, 0.0, atol=1e-12)


def test_drums_that_contradict_their_pulleys_are_named():
    drum = parts.Pulley("flange", (0, 0, 0), R, axis=(0, 1, 0))
    end = parts.Eyelet("world", (1.0, 0, 0))
    flange = parts.Body("flange", parent="left")
    slider = parts.Body("left", parts.Prismatic("y"), solids=parts.point_mass(1.0))
    on = lambda body, **options: dataclasses.replace(drum, body=body, **options)
    for bodies, guides, message in (
        ([winch("left", 0.0), flange], [drum, end], "'flange', which is fixed to the drum 'left'"),
        ([winch("left", 0.0)], [on("left", clockwise=True), end], "radius of 'left': got 0.1, exp"),
        ([slider], [on("left"), end], "joint of 'left': got Prismatic, expected a Revolute"),
    ):
        with pytest.raises(ValueError, match=message):
            parts.Mechanism(bodies, [parts.RigidCable(guides, 1.0, "left", [R])])
        cables = parts.CableSet([guides], ElasticCables([1e3]), 1.0, [("left",)], R)
        with pytest.raises(ValueError, match=message):
            parts.Mechanism(bodies, elements=[cables])
