"""Contact of rods and ropes with obstacles and with themselves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.mechanics import Structure
from cordax.mechanics.parts.line_contact import line
from cordax.systems import (
    Box,
    Capsule,
    ContactLaw,
    Cylinder,
    DiscreteRod,
    End,
    Gripper,
    Harness,
    HeightField,
    Joint,
    LineContact,
    Plane,
    RopeRobot,
    SpatialRopeRobot,
    Sphere,
    SplineRod,
)

LAW = ContactLaw(stiffness=1e4, damping=0.5, friction=0.3, width=3e-3)
ROUND = (
    Plane(point=(0.0, 0.0, -0.02)),
    Sphere(0.05, (0.4, 0.05, 0.0)),
    Capsule(0.02, (0.2, -1.0, 0.0), (0.2, 1.0, 0.02)),
    Cylinder(0.05, None, (0.6, 0.0, -0.02), (0.0, 1.0, 0.0)),
)
EDGED = (
    Box((0.1, 0.1, 0.1), (0.3, 0.0, 0.0)),
    Cylinder(0.05, 0.2, (0.5, 0.0, 0.0), (0.0, 1.0, 0.0)),
    HeightField(0.01 * np.sin(np.arange(64.0)).reshape(8, 8), (0.1, 0.1), (0.0, -0.3)),
)


def discrete(**contact) -> DiscreteRod:
    x = np.linspace(0.0, 0.8, 13)
    nodes = np.stack([x, 0.03 * np.sin(9 * x), 0.02 * np.cos(7 * x)], axis=1)
    ends = [Gripper(nodes[i], (1.0, 0.2, 0.0), (0.0, 0.0, 1.0)) for i in (0, -1)]
    return DiscreteRod(nodes, *ends, 0.82, drag=0.1, contact=LineContact(law=LAW, **contact))


def spline(**contact) -> SplineRod:
    fields = {"length": 0.8, "diameter": 0.02, "young": 1e6, "control_points": 6}
    return SplineRod(**fields, contact=LineContact(law=LAW, **contact))


def harness() -> Harness:
    half = {"length": 0.4, "diameter": 0.02, "young": 1e6, "control_points": 5}
    left = SplineRod(right=End.free(), **half)
    right = SplineRod(left=End.free(), right=End.pinned([0.8, 0.0, 0.0]), **half)
    contact = LineContact(ROUND, LAW, self_contact=True)
    return Harness((left, right), (Joint(0, "right", 1, "left"),), contact)


ROPES = {"length": 0.8, "count": 5, "contact": LineContact(ROUND, LAW, 0.02, self_contact=True)}
MACHINES = {
    "rod": lambda: discrete(obstacles=ROUND + EDGED, radius=0.02),
    "rod_with_itself": lambda: discrete(obstacles=ROUND, radius=0.02, self_contact=True),
    "spline": lambda: spline(obstacles=ROUND + EDGED),
    "spline_with_itself": lambda: spline(obstacles=ROUND, self_contact=True),
    "harness": harness,
    "ropes": lambda: RopeRobot(roots=[[0.0, 0.0], [0.1, 0.0]], **ROPES),
    "ropes_in_space": lambda: SpatialRopeRobot(roots=[[0.0, 0, 0], [0.1, 0.02, 0]], **ROPES),
}


@eqx.filter_jit
def _compared(machine, q, v):
    t, u = jnp.zeros(()), jnp.zeros(machine.n_u)
    ours = machine.structure().linearise(t, q, v, u)
    slope = jax.grad(machine.potential_energy, 1)(t, q)
    still = machine.force(t, q, jnp.zeros_like(v), u)
    outputs = machine.outputs(t, q, v, u, jnp.zeros(machine.n_constraints))
    solved = ours.implicit_solver(jnp.asarray(1e-3))(jnp.sin(jnp.arange(1.0, 1.0 + len(q))))
    dense = Structure(machine).linearise(t, q, v, u)
    return ours.matrices(), dense.matrices(), (ours.f, dense.f), slope + still, outputs, solved


@pytest.mark.parametrize("name", MACHINES)
def test_machines_in_contact(name):
    """Structured derivatives equal those of the whole force, solves invert them, and forces of
    round obstacles are minus the gradient of the energy."""
    machine, rng = MACHINES[name](), np.random.default_rng(0)
    if "ropes" in name:
        q = machine.hanging().q
        q = q.at[1::2].set(np.linspace(1.2, 2.0, len(q) // 2)) if name == "ropes" else q
    else:
        q = machine.default_state().q
    q, v = q + 5e-3 * rng.standard_normal(len(q)), rng.standard_normal(len(q))
    ours, dense, forces, difference, outputs, solved = _compared(machine, q, v)
    push = np.abs(outputs["contact_force"]).max()
    assert push > 1.0, "it should touch"
    for a, b in zip(ours, dense, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10 * np.abs(b).max())
    np.testing.assert_allclose(*forces, atol=1e-9 * push)
    M, K, D = dense
    right = (M - 1e-3 * D - 1e-6 * K) @ solved
    np.testing.assert_allclose(right, np.sin(np.arange(1.0, 1.0 + len(q))), atol=1e-7)
    if name not in ("rod", "spline"):  # edges and height fields have approximate energies
        assert np.abs(difference).max() < 1e-5 * push


def test_degenerate_segments_have_finite_forces_and_derivatives():
    """Coincident, parallel, crossing and zero-length segments, and a deep penetration."""
    contact = LineContact(ROUND + EDGED, LAW, 0.02, self_contact=True)

    @jax.jit
    def found(x):
        at = line(x, jnp.ones_like(x), 0.2)
        energy = lambda x: contact.energy(line(x, jnp.ones_like(x), 0.2))
        return contact.forces(at), contact.jacobians(at), jax.grad(energy)(x)

    back = [[0, 0, 0], [0.2, 0, 0], [0.4, 0, 0], [0.2, 0, 0], [0, 0, 0], [0.2, 0, 0]]
    still = np.zeros((6, 3))
    crossed = [[0, 0, 0], [0.2, 0, 0], [0.2, 0.2, 0], [0.1, 0.1, 0], [0.1, -0.1, 0], [0, -0.1, 0]]
    parallel = [[0, 0, 0], [0.2, 0, 0], [0.2, 0.03, 0], [0, 0.03, 0], [0, 0.06, 0], [0.2, 0.06, 0]]
    centres = [
        [0.4, 0.05, 0],
        [0.2, 0, 0.01],
        [0.6, 0, -0.02],
        [0.3, 0, 0],
        [0.5, 0, 0],
        [0, 0, -9],
    ]
    for x in (back, still, crossed, parallel, centres):
        for value in jax.tree.leaves(found(jnp.asarray(x, float))):
            assert np.isfinite(value).all(), x


def test_broad_phase_keeps_the_pairs_that_touch_and_reports_overflow():
    """A coil of 60 segments: forces with the broad phase equal those of all pairs."""
    angle = np.linspace(0.0, 8 * np.pi, 61)
    x = np.stack([0.1 * np.cos(angle), 0.1 * np.sin(angle), 0.002 * angle], axis=1)
    v = np.random.default_rng(1).standard_normal(x.shape)

    @eqx.filter_jit
    def found(contact):
        at = line(jnp.asarray(x), jnp.asarray(v), 0.042)
        return contact.forces(at), contact.pairs(at).overflow

    law = ContactLaw(stiffness=1e4, friction=0.3, width=1e-4)
    of = lambda capacity: LineContact((), law, 0.01, self_contact=True, capacity=capacity)
    everything, no = found(of(60 * 59 // 2))
    some, enough = found(of(301))
    _, few = found(of(50))
    assert np.abs(everything).max() > 0.1 and not no and not enough and few
    np.testing.assert_allclose(some, everything, atol=1e-9)


def test_bad_input():
    with pytest.raises(ValueError, match=r"obstacles: got .*, expected at least one"):
        LineContact()
    with pytest.raises(ValueError, match=r"contact.radius: got None, expected a number > 0"):
        discrete(obstacles=Plane())
