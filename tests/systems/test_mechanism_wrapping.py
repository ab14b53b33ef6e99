"""Cables that lie on a surface only where they bend round it, as parts of a mechanism."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
import cordax.systems.mechanism as mech
from cordax.integrators import RK4
from cordax.systems import ElasticCables

RADIUS, CENTRE = 0.1, np.array([0.12, 0.0, -0.1])
TOP, RIGHT = (0.0, 0.0, 0.5), (1.0, 0.0, -0.1)


def bodies(start=(0.8, -0.7)):
    """A heavy point that moves in the upright plane."""
    ball = mech.Solid(1.0, (0.0, 0.0, 0.0), 1e-3 * np.eye(3))
    rail = mech.Body("rail", mech.Prismatic("x"), start=start[:1])
    return rail, mech.Body("ball", mech.Prismatic("z"), "rail", solids=ball, start=start[1:])


def pendulum(surface=None, start=(0.8, -0.7), rest=1.0, friction=None, **options):
    """The point on a cable that engages a cylinder."""
    surface = mech.CylinderSurface(RADIUS) if surface is None else surface
    wrap = mech.Wrap(surface, at=CENTRE, axis=(0.0, 1.0, 0.0), **options)
    way = [mech.Eyelet(at=TOP), wrap, mech.Eyelet("ball")]
    law = ElasticCables(500.0, width=1e-3)
    return mech.Mechanism(
        bodies(start), elements=(mech.CableSet([way], law, rest, friction=friction),)
    )


def around(a, b):
    """Length, wrap angle and tangent points of the path over the right of the circle."""
    parts, points, angles = 0.0, [], []
    for x, sign in ((a, -1.0), (b, 1.0)):
        d = np.array([x[0], x[2]]) - CENTRE[[0, 2]]
        distance = np.linalg.norm(d)
        angle = np.arctan2(d[1], d[0]) + sign * np.arccos(RADIUS / distance)
        parts += np.sqrt(distance**2 - RADIUS**2)
        angles.append(angle)
        x, z = CENTRE[[0, 2]] + RADIUS * np.array([np.cos(angle), np.sin(angle)])
        points.append([x, 0.0, z])
    angle = angles[0] - angles[1]
    return parts + RADIUS * angle, angle, np.array(points)


def outputs(machine, q, v=(0.0, 0.0)):
    evaluate = jax.jit(lambda q, v: machine.outputs(0.0, q, v, jnp.zeros(0), jnp.zeros(0)))
    return evaluate(jnp.asarray(q, float), jnp.asarray(v, float))


@pytest.mark.parametrize("surface", [mech.CylinderSurface, mech.SphereSurface])
def test_outputs_have_closed_forms(surface):
    q = np.array([-0.4, -0.6])
    right = mech.Wrap(surface(RADIUS), at=CENTRE, side=RIGHT, axis=(0.0, 1.0, 0.0))
    way = [mech.Eyelet(at=TOP), right, mech.Eyelet("ball")]
    machine = mech.Mechanism(
        bodies(), elements=(mech.CableSet([way], ElasticCables(500.0), 0.9, name="rope"),)
    )
    out = outputs(machine, q)
    length, angle, points = around(np.array(TOP), np.array([q[0], 0.0, q[1]]))
    assert angle > 0.5
    np.testing.assert_allclose(out["rope_length"], [length], rtol=0, atol=1e-12)
    np.testing.assert_allclose(out["rope_wrap_angle"], [[angle]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(out["rope_tangent_points"][0, 0], points, rtol=0, atol=1e-12)
    tension = 500.0 * (length - 0.9)
    force = np.asarray(out["rope_contact_force"])[0, 0]
    np.testing.assert_allclose(np.linalg.norm(force), 2.0 * tension * np.sin(angle / 2), rtol=1e-9)
    # towards the axis, halfway between the tangent points
    inward = CENTRE - points.mean(axis=0)
    np.testing.assert_allclose(force / np.linalg.norm(force), inward / np.linalg.norm(inward))


def test_cable_beside_the_surface_is_straight():
    out = outputs(pendulum(), [-0.4, -0.6])
    np.testing.assert_allclose(out["cable_length"], [np.hypot(0.4, 1.1)], rtol=1e-14)
    assert out["cable_wrap_angle"] == 0.0
    np.testing.assert_array_equal(out["cable_contact_force"], np.zeros((1, 1, 3)))


def test_energy_is_conserved_while_the_cable_engages_and_leaves():
    """Within the error of the corner in the force at first contact."""
    machine = pendulum(start=(-0.6, -0.5), rest=1.15, side=(-1.0, 0.0, -0.1))
    run = cordax.simulate(machine, dt=2e-3, duration=2.0, integrator=RK4())
    energy = run.energy()
    assert np.ptp(energy["kinetic"]) > 1.0
    touches = np.asarray(run["cable_wrap_angle"])[:, 0, 0] > 0
    assert touches.any() and not touches.all() and np.abs(np.diff(touches.astype(int))).sum() >= 2
    assert np.ptp(energy["total"]) < 1e-5


def test_gradients_agree_with_central_differences():
    """Of forces with damping and friction, by radius, places and coordinates, in both modes."""
    ball = mech.Solid(1.0, (0.0, 0.0, 0.0), 0.1 * np.eye(3))

    def force(x):
        radius, at, end, mu, q, v = x[0], x[1:4], x[4:7], x[7], x[8:10], x[10:]
        wrap = mech.Wrap(mech.CylinderSurface(radius), at=at, axis=(0.0, 1.0, 0.2), width=0.01)
        way = [mech.Eyelet(at=TOP), wrap, mech.Eyelet("ball", at=end)]
        law = ElasticCables(500.0, damping=3.0, width=1e-3)
        rail = mech.Body("rail", mech.Prismatic("x"))
        turning = mech.Body("ball", mech.Revolute("y"), "rail", solids=ball)
        cable = mech.CableSet([way], law, 1.0, friction=mu)
        machine = mech.Mechanism((rail, turning), elements=(cable,))
        return machine.force(jnp.zeros(()), q, v, jnp.zeros(0))

    rest = 0.1, 0.3, -0.2
    before = 0.1, 0.12, 0.02, -0.1, 0.05, 0.3, -0.6, 0.3
    x = jnp.array([[*before, q, *rest] for q in (0.9, 0.05, -0.3)])
    jitted = jax.jit(jax.vmap(force))
    steps = 1e-6 * jnp.eye(x.shape[1])
    expected = jnp.stack([(jitted(x + h) - jitted(x - h)) / 2e-6 for h in steps], axis=2)
    scale = np.abs(expected).max()
    for mode in (jax.jacfwd, jax.jacrev):
        found = jax.jit(jax.vmap(mode(force)))(x)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * scale)


def test_derivatives_are_finite_at_contact_and_with_points_on_the_surface():
    """First and second derivatives of the length where the cable begins to touch, with an
    attachment on the surface, and with all points in line through the axis."""
    wrap = mech.Wrap(mech.CylinderSurface(RADIUS), axis=(0.0, 1.0, 0.0))
    route = mech.Route((mech.Eyelet("a"), wrap, mech.Eyelet("b")))
    R = jnp.tile(jnp.eye(3), (3, 1, 1))

    def length(x):
        p = jnp.stack([x[:3], jnp.zeros(3), x[3:]])
        return jnp.sum(route.at(R, p).parts)

    places = [
        ((-0.5, 0.0, RADIUS), (0.5, 0.0, RADIUS)),
        ((0.0, 0.0, RADIUS), (0.5, 0.0, -0.2)),
        ((0.0, 0.0, RADIUS), (RADIUS, 0.3, 0.0)),
        ((-0.5, 0.0, 0.0), (0.5, 0.0, 0.0)),
    ]
    x = jnp.array(places).reshape(-1, 6)
    slopes = jax.jit(jax.vmap(jax.grad(length)))(x)
    np.testing.assert_allclose(np.linalg.norm(slopes.reshape(-1, 3), axis=1), 1.0, atol=1e-12)
    for second in (jax.jacfwd(jax.jacrev(length)), jax.jacrev(jax.jacfwd(length))):
        assert np.isfinite(jax.jit(jax.vmap(second))(x)).all()


def test_friction_changes_the_tension_by_the_capstan_law():
    """A cable that slides over the surface; on a helix by less than the angle about the axis."""
    q, mu = np.array([-0.4, -0.6]), 0.3
    machine = pendulum(friction=mu, start=q, side=RIGHT)
    out = outputs(machine, q, v=(-1.0, 0.0))
    first, last = np.asarray(out["cable_tension"])[0]
    angle = float(out["cable_wrap_angle"][0, 0])
    assert angle > 0.4
    np.testing.assert_allclose(last / first, np.exp(mu * angle), rtol=1e-9)
    helix = mech.Wrap(mech.CylinderSurface(0.1))
    ends = mech.Eyelet(at=(-1.0, -0.1, 0.0)), mech.Eyelet(at=(-1.0, 0.1, 0.5))
    poses = jnp.tile(jnp.eye(3), (3, 1, 1)), jnp.zeros((3, 3))
    state = mech.Route((ends[0], helix, ends[1])).at(*poses)
    flat = 2.0 + np.pi * 0.1
    assert state.wrap[0] == pytest.approx(0.0, abs=1e-15)  # the straight line misses the axis
    around = mech.Wrap(mech.CylinderSurface(0.1), side=(1.0, 0.0, 0.0))
    state = mech.Route((ends[0], around, ends[1])).at(*poses)
    expected = np.pi * flat / np.hypot(flat, 0.5)
    np.testing.assert_allclose(state.wrap[0], expected, rtol=1e-12)


def test_rigid_cable_keeps_its_length_over_a_surface():
    wrap = mech.Wrap(mech.CylinderSurface(RADIUS), at=CENTRE, axis=(0.0, 1.0, 0.0), side=RIGHT)
    guides = (mech.Eyelet(at=TOP), wrap, mech.Eyelet("ball"))
    length, *_ = around(np.array(TOP), np.array([-0.4, 0.0, -0.6]))
    cable = mech.RigidCable(guides, length)
    machine = mech.Mechanism(bodies((-0.4, -0.6)), (cable,))
    run = cordax.simulate(machine, dt=2e-3, duration=0.2)
    assert float(np.max(run.drift())) < 1e-6
    assert np.asarray(run["tension"]).min() > 0.0


def test_wrong_surfaces_are_rejected_with_a_sentence():
    wrap = mech.Wrap(mech.SphereSurface(0.1), "ball")
    inside = mech.Eyelet("ball", at=(0.0, 0.05, 0.0))
    with pytest.raises(ValueError, match="attached to 'ball' inside of the surface that it wraps"):
        mech.Route((mech.Eyelet(), wrap, inside))
    with pytest.raises(ValueError, match="needs an Eyelet before it"):
        mech.Route((mech.Eyelet(), wrap))
    with pytest.raises(ValueError, match="side point must be outside"):
        mech.Wrap(mech.SphereSurface(0.1), side=(0.0, 0.0, 0.01))
    with pytest.raises(ValueError, match="radius"):
        mech.CylinderSurface(-0.1)


def test_run_from_inside_of_a_surface_is_rejected():
    machine = pendulum(start=CENTRE[[0, 2]])
    with pytest.raises(ValueError, match="none inside of a pulley or a wrapping surface"):
        cordax.simulate(machine, dt=1e-3, duration=0.01)
