"""Contact of bodies: friction, rest, impact and shapes, against textbook results."""

import jax
import jax.numpy as jnp
import numpy as np

import cordax
from cordax.integrators import ConvexContact
from cordax.mechanics import State
from cordax.mechanics.parts.contact_geometry import Pose, candidates
from cordax.systems import mechanism as parts

G, MU, MASS = 9.81, 0.5, 1.0
STIFF = parts.ContactLaw(stiffness=1e5, damping=1.0, friction=MU, slip_speed=1e-6)
EDGE, HEIGHT, RADIUS = 0.1, 0.05, 0.05


def ground_scene(angle=0.0, law=STIFF):
    """A box and a ball on a plane that is inclined by an angle [rad]: the direction of gravity."""
    box = parts.Body(
        "box",
        parts.Floating(),
        solids=parts.box((EDGE, EDGE, HEIGHT), mass=MASS),
        start=(1, 0, 0, 0, 0, 0, HEIGHT / 2),
    )
    ball = parts.Body(
        "ball",
        parts.Floating(),
        solids=parts.sphere(RADIUS, mass=MASS),
        start=(1, 0, 0, 0, 0, 1.0, RADIUS),
    )
    shapes = {"box": parts.Box((EDGE, EDGE, HEIGHT)), "ball": parts.Sphere(RADIUS)}
    contact = parts.Contact(shapes, parts.Plane(), law)
    gravity = (G * np.sin(angle), 0.0, -G * np.cos(angle))
    return parts.Mechanism([box, ball], elements=[contact], gravity=gravity)


def run(machine, speed=0.0, duration=1.0, dt=5e-3):
    """Both bodies start with a speed [m/s] along x."""
    state = machine.default_state()
    v = state.v.at[np.array([3, 9])].set(speed)
    options = {"dt": dt, "duration": duration, "integrator": ConvexContact()}
    return cordax.simulate(machine, State(state.q, v), **options)


def test_friction_on_a_plane():
    """A box sticks below and slides above the friction angle, within 0.5 %; it stops after
    v^2/(2 mu g); a ball that slides at first rolls at 5/7 of its speed."""
    limit = np.arctan(MU)
    held = run(ground_scene(0.995 * limit)).v[-1, 3]
    assert 0 < held < 30e-6  # creep of a load of 99.4 % of the limit: slip_speed * 9
    angle = 1.005 * limit
    v = run(ground_scene(angle)).v[:, 3]
    slides = G * (np.sin(angle) - MU * np.cos(angle))
    np.testing.assert_allclose((v[-1] - v[100]) / 0.5, slides, rtol=5e-3)
    fast = run(ground_scene(), speed=2.0, dt=1e-3)
    np.testing.assert_allclose(fast.q[-1, 4], 2.0**2 / (2 * MU * G), rtol=5e-3)
    x = fast.q[:, 11]
    np.testing.assert_allclose((x[-1] - x[-101]) / 0.1, 5 / 7 * 2.0, rtol=5e-3)
    np.testing.assert_allclose(fast.v[-1, 7] * RADIUS, 5 / 7 * 2.0, rtol=5e-3)
    # a ball of 1 kg rests on one point: its weight, and no more
    force = np.asarray(fast.outputs["contact_force"][-1])
    np.testing.assert_allclose(force[:, 2].sum(), 2 * MASS * G, rtol=1e-6)
    assert fast.outputs["contact_gap"].shape[1] == 2


def test_rest_for_a_minute():
    """A box on a plane of half the friction angle creeps less than 0.1 mm in a minute."""
    x = run(ground_scene(np.arctan(0.5 * MU)), duration=60.0, dt=2e-2).q[:, 4]
    assert abs(x[-1] - x[50]) < 1e-4


def test_momentum_and_power():
    """Two bodies that hit each other off centre without gravity keep momentum and angular momentum
    to round-off; what energy is lost is the work of the contact, to 1e-6."""
    law = parts.ContactLaw(stiffness=2e3, damping=0.5, friction=0.4, slip_speed=0.05, width=1e-3)
    block = parts.Body("block", parts.Floating(), solids=parts.box((0.2, 0.1, 0.1), mass=1.0))
    ball = parts.Body(
        "ball",
        parts.Floating(),
        solids=parts.sphere(RADIUS, mass=0.5),
        start=(1, 0, 0, 0, 0.2, 0.02, 0.03),
        start_rate=(0, 3.0, 20.0, -2.0, 0.3, 0),
    )
    pairs = [("block", "ball")]
    shapes = {"block": parts.Box((0.2, 0.1, 0.1)), "ball": parts.Sphere(RADIUS)}
    contact = parts.Contact(shapes, law=law, pairs=pairs)
    machine = parts.Mechanism([block, ball], elements=[contact], gravity=(0, 0, 0))
    run = cordax.simulate(machine, dt=2e-5, duration=0.1, integrator="rk4", save_every=2)
    masses = np.array([1.0, 0.5])
    inertias = [
        parts.box((0.2, 0.1, 0.1), mass=1.0).inertia,
        parts.sphere(RADIUS, mass=0.5).inertia,
    ]

    @jax.jit
    @jax.vmap
    def measured(q, v):
        at = machine.motions(q, v)
        p, V = at.poses.p, at.V
        linear = V[:, 3:] + jnp.cross(V[:, :3], p)
        spun = jnp.einsum(
            "bij,bjk,blk,bl->bi", at.poses.R, jnp.stack(inertias), at.poses.R, V[:, :3]
        )
        momentum = masses[:, None] * linear
        turning = spun + jnp.cross(p, momentum)
        element = machine.elements[0]
        state = element.state(machine.instant(0.0, q, v))
        velocity, _ = state.relative(jnp.concatenate([V, jnp.zeros((1, 6))]))
        gap = state.touch.gap
        force = law.surface_force(-gap, state.touch.normal, velocity)
        elastic = law.pressure(-gap, 0.0)[:, None] * state.touch.normal
        power = jnp.sum((force - elastic) * velocity)
        energy = machine.kinetic_energy(q, v) + machine.potential_energy(0.0, q)
        return momentum.sum(0), turning.sum(0), energy, power

    momentum, turning, energy, power = map(np.asarray, measured(run.q, run.v))
    np.testing.assert_allclose(momentum - momentum[0], 0.0, atol=1e-10)
    np.testing.assert_allclose(turning - turning[0], 0.0, atol=1e-10)
    lost = energy[-1] - energy[0]
    assert lost < -0.05
    h = float(run.t[1] - run.t[0])  # Simpson's rule
    work = h / 3 * (power[0] + 4 * power[1:-1:2].sum() + 2 * power[2:-1:2].sum() + power[-1])
    np.testing.assert_allclose(work, lost, rtol=1e-6)


def test_bounce_follows_the_dissipation_law():
    """A ball bounces with the speed w that v/d - log(1 + d v)/d^2 = -w/d - log(1 - d w)/d^2 gives
    for a damping d."""
    d, v = 0.3, 1.0
    law = parts.ContactLaw(stiffness=1e6, damping=d, width=1e-6)
    ball = parts.Body(
        "ball",
        parts.Prismatic("z"),
        solids=parts.sphere(RADIUS, mass=1.0),
        start=(RADIUS + 1e-4,),
        start_rate=(-v,),
    )
    contact = parts.Contact({"ball": parts.Sphere(RADIUS)}, parts.Plane(), law)
    machine = parts.Mechanism([ball], elements=[contact], gravity=(0, 0, 0))
    after = float(cordax.simulate(machine, dt=2e-6, duration=6e-3, save_every=100).v[-1, 0])
    level = lambda v: v / d - np.log(1 + d * v) / d**2
    np.testing.assert_allclose(level(-after), level(v), rtol=1e-6)
    assert 0.7 < after < 0.9


def test_no_pair_of_shapes_gives_nan():
    """Values and derivatives in both modes are finite for coincident centres, parallel capsules,
    zero gaps and deep penetration."""
    bar = parts.Capsule(0.1, (-0.5, 0, 0), (0.5, 0, 0))
    box, drum = parts.Box((0.4, 0.6, 0.2)), parts.Cylinder(0.2, 0.5)
    hull = parts.ConvexPoints(np.array([[0.1, 0, 0], [0, 0.2, 0], [0, 0, 0.3], [-0.1, -0.1, -0.1]]))
    field = parts.HeightField(np.outer(np.arange(5.0), np.ones(4)) * 0.1, (0.25, 0.25))
    ground, ball, pipe = parts.Plane(), parts.Sphere(0.3), parts.Cylinder(0.2)
    pairs = [(ball, other) for other in (ball, bar, box, drum, ground, field, pipe)]
    pairs += [(bar, bar), (bar, box), (bar, pipe), (box, box), (drum, box), (drum, ground)]
    pairs += [(hull, box), (hull, bar)]
    law = parts.ContactLaw(stiffness=1e3, friction=0.3, damping=0.1)
    places = np.array([[0, 0, 0], [0, 0, 0.2], [0.3, 0, 0], [0, 0.1, 0.1], [0.02, 0.01, -0.3]])
    kinds = []
    for a, b in pairs:
        for swap, narrow in candidates(type(a), type(b)):
            kinds.append((narrow, *((b, a) if swap else (a, b))))

    def total(p):
        forces = []
        for narrow, a, b in kinds:
            touch = narrow(a, Pose(jnp.eye(3), p), b, Pose(jnp.eye(3), jnp.zeros(3)))
            velocity = jnp.broadcast_to(jnp.array([0.1, 0.0, 0.0]), touch.normal.shape)
            forces.append(law.surface_force(-touch.gap, touch.normal, velocity).sum(axis=0))
        return jnp.stack(forces)

    every = jax.jit(jax.vmap(lambda p: (total(p), jax.jacfwd(total)(p), jax.jacrev(total)(p))))
    force, forward, reverse = every(places)
    assert np.isfinite(force).all() and np.isfinite(forward).all()
    # next to a centre directions turn at once: derivatives are large there
    size = np.abs(forward).max(axis=(2, 3), keepdims=True)
    np.testing.assert_allclose(reverse / (1 + size), forward / (1 + size), atol=1e-9)
    touching = np.abs(np.asarray(force[0])).max(axis=1) > 1.0
    assert touching.sum() >= 14, touching


def test_rigid_cables_and_joint_limits_take_part():
    """A bob thrown up on a rigid cable rises to v^2/(2 g) and is caught at its length. A step of
    order 1 misses the top by v dt/2 = 1 mm. A stop holds an arm as with RK4."""
    bob = parts.Body("bob", parts.Prismatic("z"), solids=parts.sphere(0.05, mass=1.0), start=[-1.0])
    path = [parts.Eyelet(parts.WORLD, (0, 0, 0)), parts.Eyelet("bob", (0, 0, 0))]
    hung = parts.Mechanism(bodies=[bob], loops=[parts.RigidCable(path, 1.0)])
    thrown = State(jnp.array([-1.0]), jnp.array([2.0]))
    options = {"dt": 1e-3, "integrator": ConvexContact()}
    run = cordax.simulate(hung, thrown, duration=0.8, **options)
    np.testing.assert_allclose(np.max(run["bob"]), -1.0 + 2.0**2 / (2 * 9.81), atol=2e-3)
    np.testing.assert_allclose(run["bob"][-1], -1.0, atol=1e-6)
    assert float(np.min(run["bob"])) > -1.0 - 1e-5
    bar = parts.rod(1.0, mass=1.0, centre=(0.5, 0, 0))
    arm = parts.Body("arm", parts.Revolute("y"), solids=bar)
    stop = parts.JointLimits("arm", -1.0, 0.5, stiffness=1e4, damping=50.0)
    held = parts.Mechanism(bodies=[arm], elements=[stop])
    exact = cordax.simulate(held, dt=1e-4, duration=1.0, integrator="rk4")["arm"][-1]
    found = cordax.simulate(held, duration=1.0, **options)["arm"][-1]
    np.testing.assert_allclose(found, exact, atol=1e-6)


def test_gradients_through_the_convex_problem():
    """A hanging bob pulls a box over the ground by a rigid cable. Derivatives of the end by
    stiffness and friction of the contact, the mass of the bob and the initial speed agree with
    central differences to 1e-5."""
    sizes = (EDGE, EDGE, HEIGHT)
    path = [
        parts.Eyelet("box", (EDGE / 2, 0, 0)),
        parts.Eyelet(parts.WORLD, (0.5, 0.02, 0.1)),
        parts.Eyelet("bob", (0, 0, 0)),
    ]
    length = float(np.linalg.norm([0.45, 0.02, 0.075])) + 0.2

    def final(p):
        box = parts.Body(
            "box",
            parts.Floating(),
            solids=parts.box(sizes, mass=MASS),
            start=(1, 0, 0, 0, 0, 0, HEIGHT / 2),
        )
        bob = parts.Body(
            "bob", parts.Prismatic("z"), at=(0.5, 0.02, -0.1), solids=parts.sphere(0.02, mass=p[2])
        )
        law = parts.ContactLaw(
            stiffness=1e4 * p[0], damping=1.0, friction=MU * p[1], slip_speed=1e-3
        )
        machine = parts.Mechanism(
            [box, bob],
            loops=[parts.RigidCable(path, length)],
            elements=[parts.Contact({"box": parts.Box(sizes)}, parts.Plane(), law)],
        )
        state = machine.default_state()
        state = State(state.q, state.v.at[4].set(0.1 * p[3]))
        options = {"dt": 5e-3, "duration": 0.1, "integrator": ConvexContact(), "throw": False}
        run = cordax.simulate(machine, state, **options)
        return jnp.sum(run.q[-1] * jnp.arange(1.0, 9.0)) + jnp.sum(run.v[-1, 3:6])

    p = jnp.array([1.0, 1.0, 0.8, 1.0])
    gradient = np.asarray(jax.jit(jax.grad(final))(p))
    value, h = jax.jit(final), 1e-5
    central = [(value(p + h * e) - value(p - h * e)) / (2 * h) for e in np.eye(4)]
    assert np.abs(gradient).min() > 1e-5
    np.testing.assert_allclose(gradient, central, rtol=1e-5, atol=1e-8)


def cuboid(name, sizes, x=0.0, z=None):
    height = sizes[2] / 2 if z is None else z
    start = (1, 0, 0, 0, x, 0, height)
    return parts.Body(name, parts.Floating(), solids=parts.box(sizes, mass=MASS), start=start)


def test_a_box_tips_or_slides():
    """On an incline with the slope 0.6 a tall box with friction 0.7 tips over its edge, because
    its width over its height is 0.5. A flat one with friction 0.5 slides with the acceleration of
    the textbook and does not turn."""
    tall, flat = (0.1, 0.1, 0.2), (0.2, 0.2, 0.1)
    bodies = [cuboid("tall", tall), cuboid("flat", flat, x=1.0)]
    law = lambda mu: parts.ContactLaw(stiffness=1e5, damping=1.0, friction=mu, slip_speed=1e-4)
    elements = [
        parts.Contact({"tall": parts.Box(tall)}, parts.Plane(), law(0.7), name="rough"),
        parts.Contact({"flat": parts.Box(flat)}, parts.Plane(), law(0.5), name="smooth"),
    ]
    angle = np.arctan(0.6)
    gravity = (G * np.sin(angle), 0.0, -G * np.cos(angle))
    machine = parts.Mechanism(bodies, elements=elements, gravity=gravity)
    options = {"dt": 2e-3, "duration": 0.4, "integrator": ConvexContact()}
    run = cordax.simulate(machine, **options)
    turned = 2 * np.arctan2(run.q[:, 2], run.q[:, 0])
    assert turned[-1] > 0.3
    edge = [
        np.asarray(machine.position(q, "tall", (0.05, 0, -0.1))) for q in (run.q[0], run.q[100])
    ]
    np.testing.assert_allclose(edge[1], edge[0], atol=5e-4)  # the lower edge stays
    slides = G * (np.sin(angle) - 0.5 * np.cos(angle))
    v = np.asarray(run.v[:, 9])  # the first steps settle on the ground
    np.testing.assert_allclose((v[200] - v[100]) / 0.2, slides, rtol=5e-3)
    assert np.abs(2 * run.q[-1, 9]) < 1e-3


def test_three_stacked_boxes_stay():
    """Three boxes on each other rest for two seconds. The interfaces carry three, two and one
    weights."""
    sizes = (EDGE, EDGE, HEIGHT)
    names = ["low", "middle", "high"]
    bodies = [cuboid(name, sizes, z=HEIGHT * (k + 0.5)) for k, name in enumerate(names)]
    shapes = {name: parts.Box(sizes) for name in names}
    pairs = [("middle", "low"), ("high", "middle")]
    machine = parts.Mechanism(
        bodies, elements=[parts.Contact(shapes, parts.Plane(), STIFF, pairs=pairs)]
    )
    run = cordax.simulate(machine, dt=1e-2, duration=2.0, integrator=ConvexContact())
    q = np.asarray(run.q).reshape(-1, 3, 7)
    assert np.abs(q[-1, :, 4:6]).max() < 1e-5
    assert np.abs(q[-1] - q[100]).max() < 1e-5
    assert np.abs(q[-1] - q[0]).max() < 5e-4  # elastic depth
    force = np.asarray(run.outputs["contact_force"][-1])
    np.testing.assert_allclose(force.sum(axis=0)[2], 6 * MASS * G, rtol=1e-3)
