"""Cables as parts: paths against closed formulas, capstan friction, and the suspended robot."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import cordax
from cordax.mechanics.parts.cables import ElasticCables
from cordax.mechanics.parts.drives import ProgrammedLengths
from cordax.mechanics.parts.exits import PulleyExit
from cordax.systems import mechanism as parts
from cordax.systems.cable_robot import CableRobot, NaturalBody

STILL = jnp.tile(jnp.eye(3), (4, 1, 1)), jnp.zeros((4, 3))  # four bodies


def test_belt_round_two_pulleys():
    """Open and crossed belts of radii r1, r2 at distance D, from a point on one tangent round to
    the other end: textbook lengths."""
    r1, r2, D = 0.3, 0.2, 1.0
    guides = lambda clockwise: (
        parts.Eyelet("world", (-2.0, -r1, 0)),
        parts.Pulley("world", (0, 0, 0), r1),
        parts.Pulley("world", (-D, 0.0, 0), r2, clockwise=clockwise),
        parts.Eyelet("world", (-D + 3.0, r2 if clockwise else -r2, 0)),
    )
    for clockwise in (False, True):
        route = parts.Route(guides(clockwise))
        state, line = jax.jit(lambda R, p, route=route: (route.at(R, p), route.line(R, p)))(*STILL)
        delta = r1 + r2 if clockwise else r1 - r2
        straight = np.sqrt(D**2 - delta**2)
        lean = np.arcsin(delta / D)
        wrap1 = np.pi + lean
        wrap2 = np.pi + lean if clockwise else np.pi - lean
        np.testing.assert_allclose(state.straight, [2.0, straight, 3.0], rtol=1e-12)
        np.testing.assert_allclose(state.wrap, [wrap1, wrap2], rtol=1e-12)
        total = 5.0 + straight + r1 * wrap1 + r2 * wrap2
        np.testing.assert_allclose(np.sum(state.parts), total, rtol=1e-12)
        # as drawn: arcs of eight chords
        chords = 16 * (r1 * np.sin(wrap1 / 16) + r2 * np.sin(wrap2 / 16))
        drawn = np.linalg.norm(np.diff(line, axis=0), axis=1).sum()
        np.testing.assert_allclose(drawn, 5.0 + straight + chords, rtol=1e-12)


@eqx.filter_jit
def lengths_and_slope(route, end):
    """The way with its last body moved to `end`, and the gradient of its last part by that."""
    R = jnp.tile(jnp.eye(3), (len(route.guides), 1, 1))
    at = lambda end: route.at(R, jnp.zeros((len(route.guides), 3)).at[-1].set(end))
    return at(end), jax.grad(lambda end: at(end).parts[-1])(end)


def test_swivelling_pulleys_anywhere():
    """First, last and between guides: the same arc and straight part; what turns the cable counts
    for friction."""
    place, r, end = np.array([0.2, -0.1, 1.0]), 0.1, np.array([0.9, 0.5, 0.4])
    swivel, point = parts.SwivelPulley("a", place, r), parts.Eyelet("b")
    first, _ = lengths_and_slope(parts.Route((swivel, point)), end)
    aside, up = np.linalg.norm((end - place)[:2]), (end - place)[2]
    straight = np.sqrt((aside - r) ** 2 + up**2 - r**2)
    arc = np.pi - np.arctan2(up, aside - r) - np.arctan2(straight, r)
    np.testing.assert_allclose(first.straight, [straight], rtol=1e-12)
    np.testing.assert_allclose(first.parts, [straight + r * arc], rtol=1e-12)
    last = parts.Route((parts.Eyelet("b", end), swivel)).at(STILL[0][:2], STILL[1][:2])
    np.testing.assert_allclose(last.parts, first.parts, rtol=1e-12)
    for below, turn in ((place - [0, 0, 2.0], 0.0), (place - [2.0, 0, 2.0], np.pi / 4)):
        way = parts.Route((parts.Eyelet("world", below), swivel, point))
        inner, slope = lengths_and_slope(way, end)
        np.testing.assert_allclose(inner.parts[1], first.parts[0], rtol=1e-12)
        np.testing.assert_allclose(inner.parts[0], np.linalg.norm(place - below), rtol=1e-12)
        np.testing.assert_allclose(inner.wrap, [turn + arc], rtol=1e-12)
        # the arc is what the cable turns by, from the axis to its straight part
        np.testing.assert_allclose(np.arccos(slope[2]), arc, rtol=1e-12)
    way = parts.Route((swivel, parts.Eyelet("world", end), parts.Eyelet("b")))
    over, _ = lengths_and_slope(way, end + 2.0 * np.array(slope))
    np.testing.assert_allclose(over.wrap, [0.0], atol=1e-7)  # straight on


def hoist(mu, angle_turns, slip_width=1e-3):
    """A weight on a slider, a cable over a fixed pulley, a drum that winds in at 0.1 rad/s."""
    pulley = parts.Pulley("world", (0, 0, 1.0), 0.1, axis=(0, 1, 0), zero=(1, 0, 0),
                          turns=angle_turns)  # fmt: skip
    way = [parts.Eyelet("world", (-0.1, 0, 0)), pulley, parts.Eyelet("load", (0.1, 0, 0))]
    load = parts.Body("load", parts.Prismatic("z"), solids=parts.point_mass(1.0, (0.1, 0, 0)))
    drum = parts.Body("drum", parts.Revolute("y"), at=(-0.1, 0, 0),
                      solids=parts.cylinder(0.05, 0.1, mass=1.0, axis="y"))  # fmt: skip
    cables = parts.CableSet(
        [way], ElasticCables([1e4]), [2.0], [("drum",)], [[0.05]],
        friction=mu, slip_width=slip_width,
    )  # fmt: skip
    return parts.Mechanism([load, drum], elements=[cables])


@eqx.filter_jit
def tensions(machine, q, v):
    """Of the segments of the first cable."""
    return machine.elements[0].state(machine.instant(0.0, q, v)).tension[0]


@pytest.mark.parametrize(("turns", "ratio"), [(0, 2.5663323952), (1, 16.9020242), (2, 111.3177785)])
def test_capstan_ratio(turns, ratio):
    """Sliding well above the width, tensions differ by exp(0.3 theta): half a turn and more."""
    machine = hoist(0.3, turns)
    tension = np.array(tensions(machine, jnp.array([-0.1, 0.0]), jnp.array([-0.5, 0.0])))
    # the load pulls the cable towards itself: the tension is larger on its side
    theta = np.pi + 2 * np.pi * turns
    np.testing.assert_allclose(tension[1] / tension[0], np.exp(0.3 * theta), rtol=1e-9)
    np.testing.assert_allclose(tension[1] / tension[0], ratio, rtol=1e-7)


def test_stick_holds_what_friction_can_carry():
    """At speeds below the width tensions differ by the share of exp(mu theta) that the load
    needs."""
    machine = hoist(0.6, 0)
    tension = np.array(tensions(machine, jnp.zeros(2), jnp.array([-1e-4, 0.0])))
    share = np.log(tension[1] / tension[0]) / (0.6 * np.pi)
    # half of the stretch lies before the pulley: it slides with half of the speed, 5e-5 m/s
    np.testing.assert_allclose(share, np.tanh(0.05), rtol=1e-6)


MASS, CENTRE = 3.0, np.array([0.03, -0.02, 0.05])
INERTIA = np.array([[0.05, 0.004, -0.003], [0.004, 0.07, 0.006], [-0.003, 0.006, 0.09]])
ATTACHMENTS = np.array([[-0.2, -0.3, 0.1], [-0.2, 0.3, 0.0], [0.2, 0.3, 0.1], [0.2, -0.3, 0.0]])
EXITS = np.array([[-2.0, -2.0, 2.0], [-2.0, 2.1, 2.2], [2.0, 2.0, 2.0], [2.2, -2.0, 1.9]])
RADIUS = 0.05
POSITION, TURN = np.array([0.1, -0.05, 0.3]), Rotation.from_rotvec([0.2, -0.1, 0.3])
VELOCITY, SPIN = np.array([0.02, -0.01, 0.0]), np.array([0.1, -0.2, 0.15])


@pytest.fixture(scope="module")
def suspended():
    """Four elastic cables over swivelling pulleys: in natural coordinates and with a quaternion."""
    law = ElasticCables(4e3 * np.ones(4), 12.0 * np.ones(4), width=1e-3)
    exits = PulleyExit(EXITS, RADIUS * np.ones(4))
    body = NaturalBody(MASS, INERTIA, CENTRE)
    robot = CableRobot(body, ATTACHMENTS, exits, ProgrammedLengths(np.ones(4)), cables=law,
                       position=POSITION, rotation=TURN.as_matrix())  # fmt: skip
    lengths = np.array(robot.lengths()) - 5e-3
    robot = CableRobot(body, ATTACHMENTS, exits, ProgrammedLengths(lengths), cables=law,
                       position=POSITION, rotation=TURN.as_matrix())  # fmt: skip
    ways = [
        [parts.SwivelPulley("world", a, RADIUS), parts.Eyelet("platform", b)]
        for a, b in zip(EXITS, ATTACHMENTS, strict=True)
    ]
    start = np.concatenate([TURN.as_quat(scalar_first=True), POSITION])
    twist = np.concatenate([TURN.inv().apply(SPIN), TURN.inv().apply(VELOCITY)])
    platform = parts.Body(
        "platform", parts.Floating(), solids=parts.Solid(MASS, CENTRE, INERTIA), start=start,
        start_rate=twist,
    )  # fmt: skip
    machine = parts.Mechanism([platform], elements=[parts.CableSet(ways, law, lengths)])
    options = {"duration": 10.0, "dt": 1e-3, "save_every": 500}
    natural = cordax.simulate(
        robot, robot.state_at(velocity=VELOCITY, angular_velocity=SPIN), **options
    )
    return natural, cordax.simulate(machine, **options)


def test_suspended_robot_follows_natural_coordinates(suspended):
    """For 10 s."""
    natural, quaternion = suspended
    turn = Rotation.from_quat(np.array(quaternion.q)[:, :4], scalar_first=True)
    centre = np.array(quaternion.q)[:, 4:] + turn.apply(CENTRE)
    assert np.ptp(centre, axis=0).max() > 1e-2
    np.testing.assert_allclose(centre, natural.outputs["position"], rtol=0, atol=1e-8)
    # stiffness 4e3 N/m times that
    np.testing.assert_allclose(
        quaternion.outputs["cable_tension"][..., 0], natural.outputs["tension"], rtol=0, atol=4e-5
    )


def test_energy_of_the_suspended_robot(suspended):
    natural, quaternion = suspended
    mine, theirs = (np.array(run.energy()["total"]) for run in (quaternion, natural))
    np.testing.assert_allclose(mine, theirs, rtol=1e-8)


def test_rigid_cables_hold_a_bob():
    """A conical pendulum: a ball on a rigid cable of 1 m over an eyelet keeps its length and its
    tension, m g / cos(angle)."""
    slope, g = 0.4, 9.81
    speed = np.sqrt(g * np.sin(slope) * np.tan(slope))
    start = [1, 0, 0, 0, np.sin(slope), 0, -np.cos(slope)]
    ball = parts.Body(
        "ball", parts.Floating(), solids=parts.sphere(0.05, mass=2.0), start=start,
        start_rate=[0, 0, 0, 0, speed, 0],
    )  # fmt: skip
    cable = parts.RigidCable([parts.Eyelet(), parts.Eyelet("ball")], 1.0)
    machine = parts.Mechanism([ball], [cable])
    assert machine.one_sided.tolist() == [True]
    run = cordax.simulate(machine, duration=0.5, dt=2e-3, save_every=50)
    np.testing.assert_allclose(run.multipliers[:, 0], 2.0 * g / np.cos(slope), rtol=1e-8)
    np.testing.assert_allclose(run.q[:, 6], -np.cos(slope), atol=1e-9)


def test_bad_cables_are_named():
    with pytest.raises(ValueError, match="guides: got 1, expected two or more"):
        parts.RigidCable([parts.Eyelet()], 1.0)
    with pytest.raises(ValueError, match=r"friction: got 0.3, expected none: .*use CableSet"):
        parts.RigidCable([parts.Eyelet(), parts.Eyelet("a")], 1.0, friction=0.3)
    swivel = parts.SwivelPulley("world", (0, 0, 0), 0.1)
    with pytest.raises(ValueError, match="got Pulley, expected an Eyelet next to a SwivelPulley"):
        parts.Route((parts.Eyelet(), swivel, parts.Pulley("world", (1, 0, 0), 0.1)))
    with pytest.raises(ValueError, match=r"axis: .*a unit vector"):
        parts.SwivelPulley("world", (0, 0, 0), 0.1, axis=(0, 0, 2.0))
    two = [[parts.Eyelet(), parts.Eyelet("a")], [parts.Pulley("b", (0, 0, 0), 0.1), parts.Eyelet()]]
    with pytest.raises(ValueError, match="the same kinds of guides for all"):
        parts.CableSet(two, ElasticCables([1.0, 1.0]), [1.0, 1.0])
    same, law = [two[0], two[0]], parts.StrainLaw(1e3)
    for options, message in (
        ({"windings": [("a",), ()], "radius": 0.1}, "windings.*as many drums for each cable"),
        ({"windings": ["a", "b"]}, "radius: got None, expected that of the drums"),
        ({"windings": ["a", "b"], "radius": [0.1, 0.1, 0.1]}, r"radius: got .*\(3,\)"),
        ({"law": parts.StrainLaw([1.0, 2.0, 3.0])}, r"stiffness: got .*\(3,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            parts.CableSet(same, **{"law": law, "rest": 1.0} | options)


def weight_on_a_pulley(height, **cable):
    """A slider under a pulley of 0.1 m at the origin; a cable comes from the left."""
    load = parts.Body("load", parts.Prismatic("z"), solids=parts.point_mass(1.0), start=[height])
    pulley = parts.Pulley("world", (0, 0, 0), 0.1, axis=(0, 1, 0), zero=(1, 0, 0))
    way = [parts.Eyelet("world", (-1.0, 0, 0)), pulley, parts.Eyelet("load")]
    if cable:
        return parts.Mechanism([load], elements=[parts.CableSet([way], **cable)])
    return parts.Mechanism([load], [parts.RigidCable(way, 2.0)])


def test_guide_inside_a_pulley_is_refused():
    """At the start by name, elastic or rigid; on the way the run ends where it gets there."""
    expected = "none inside of a pulley.*from 'world' to 'load', segment 2 of the cable world-load"
    elastic = {"law": ElasticCables([1e2]), "rest": [2.0]}
    for machine in (weight_on_a_pulley(-0.05, **elastic), weight_on_a_pulley(-0.05)):
        with pytest.raises(ValueError, match=expected):
            cordax.simulate(machine, duration=0.01, dt=1e-3)
    machine = weight_on_a_pulley(-0.2, **elastic)
    start = machine.default_state()
    assert bool(jax.jit(lambda q, v: machine.valid(0.0, q, v))(start.q, start.v))
    rising = cordax.State(start.q, jnp.array([2.0]))
    with pytest.raises(cordax.SimulationError, match="model is valid"):
        cordax.simulate(machine, rising, duration=0.2, dt=1e-3)


def test_cable_that_leaves_its_pulley():
    """Its length goes on smoothly, the run says when, and ends where the cable is far off."""
    law = ElasticCables([50.0])
    bob = parts.Body("bob", parts.Prismatic("z"), at=(2.0, 0, 0), solids=parts.cube(0.1, mass=1))
    pulley = parts.Pulley("world", (1.0, 0.0, 0.0), 0.1, axis=(0, 1, 0))
    way = [parts.Eyelet("world", (0.0, 0.0, 0.1)), pulley, parts.Eyelet("bob")]
    cables = parts.CableSet([way], law, 1.9)
    machine = parts.Mechanism([bob], elements=[cables], gravity=(0, 0, 0))
    # the cable would leave the pulley where the bob is as high as its top
    z = np.array([-0.5, 0.1 - 1e-6, 0.1 + 1e-6, 0.3])
    length = jax.jit(lambda q: machine.cable_lengths(q)["cable"][0])
    lengths = [float(length(np.array([x]))) for x in z]
    assert abs(lengths[2] - lengths[1]) < 1e-9
    assert lengths[0] > lengths[1] < lengths[3]
    start = cordax.State(jnp.array([0.0]), jnp.array([2.0]))
    run = cordax.simulate(machine, start, duration=0.12, dt=1e-3)
    passed = float(run.t[np.argmax(np.asarray(run.q[:, 0]) > 0.1)])
    assert float(run.warnings["cable_off_pulley"]) == pytest.approx(passed)
    assert run["wrap"][0, 0] > 0 > run["wrap"][-1, 0]
    energy = np.asarray(run.energy()["total"])
    np.testing.assert_allclose(energy, energy[0], rtol=1e-6)
    calm = cordax.simulate(machine, cordax.State(start.q, 0.0 * start.v), duration=0.02, dt=1e-3)
    assert calm.warnings["cable_off_pulley"] == np.inf
    far = cordax.State(jnp.array([1.5]), jnp.zeros(1))
    with pytest.raises(ValueError, match="the cable world-bob round its pulley: it has left it"):
        cordax.simulate(machine, far, duration=0.01, dt=1e-3)


def test_rigid_cable_that_pushes_is_named():
    """A weight that hangs pulls, one that would rise pushes from the first step on."""
    hanging = weight_on_a_pulley(-0.2)
    start = hanging.assembled()
    for lift, pushed in ((-9.81, np.inf), (9.81, 0.0)):
        machine = eqx.tree_at(lambda m: m.gravity, hanging, jnp.array([0.0, 0.0, lift]))
        run = cordax.simulate(machine, start, duration=0.01, dt=1e-3)
        assert run.warnings["cable_pushes"] == pushed


def test_lengths_of_ways_and_one_coefficient_of_friction():
    """Over a quarter of a pulley; a coefficient for all guides stays one number to be fitted."""
    bob = parts.Body("bob", parts.Prismatic("z"), at=(1.1, 0, -2.0), solids=parts.cube(0.1, mass=1))
    way = [
        parts.Eyelet("world", (0.0, 0.0, 0.1)),
        parts.Pulley("world", (1.0, 0.0, 0.0), 0.1, axis=(0, 1, 0)),
        parts.Eyelet("bob"),
    ]
    rope = lambda friction: parts.CableSet(
        [way], parts.StrainLaw(1e4), 3.0, friction=friction, name="rope"
    )
    machine = parts.Mechanism([bob], elements=[rope(0.3)])
    lengths = machine.cable_lengths()
    np.testing.assert_allclose(lengths["rope"], [1.0 + 0.05 * np.pi + 2.0], rtol=1e-12)
    assert machine.elements[0].friction.shape == ()
    with pytest.raises(ValueError, match=r"friction: got .*\(3,\)"):
        rope([0.1, 0.2, 0.3])


def test_strain_law_conserves_energy():
    """A mass bounces on an undamped cable that stays taut."""
    bob = parts.Body("bob", parts.Prismatic("z"), solids=parts.point_mass(1.0), start=[-1.105])
    rope = parts.CableSet([[parts.Eyelet(), parts.Eyelet("bob")]], parts.StrainLaw(500.0), 1.1)
    run = cordax.simulate(parts.Mechanism([bob], elements=[rope]), duration=0.5, dt=1e-3)
    energy, stretch = run.energy(), np.asarray(run["cable_stretch"])[:, 0]
    assert 0 < stretch.min() < stretch.max() - 0.03
    cable = np.asarray(energy["potential"]) - 9.81 * np.asarray(run.q)[:, 0]
    np.testing.assert_allclose(cable, 0.5 * 500.0 * stretch**2 / 1.1, atol=1e-12)
    total = np.asarray(energy["total"])
    # RK4 on 21 rad/s at 1 ms
    np.testing.assert_allclose(total, total[0], rtol=0, atol=1e-7 * np.ptp(energy["kinetic"]))


@pytest.mark.parametrize("speed", [3.0, -3.0])
def test_a_cable_that_would_lose_a_turn_ends_the_run(speed):
    """A mass circles a post that its cable winds round: the run ends before the length jumps, with
    the energy that it began with."""
    x = parts.Body("x", parts.Prismatic("x"), start=[0.6])
    bob = parts.Body(
        "bob", parts.Prismatic("y"), "x", solids=parts.point_mass(1.0), start_rate=[speed]
    )
    way = [parts.Pulley("world", (0, 0, 0), 0.05, zero=(1, 0, 0)), parts.Eyelet("bob")]
    cables = parts.CableSet([way], ElasticCables([1e3]), [0.59])
    machine = parts.Mechanism([x, bob], elements=[cables], gravity=(0, 0, 0))
    with pytest.raises(cordax.SimulationError, match="model is valid"):
        cordax.simulate(machine, duration=2.0, dt=1e-3)
    run = cordax.simulate(machine, duration=2.0, dt=1e-3, throw=False)
    energy = np.asarray(run.energy()["total"])
    energy = energy[np.isfinite(energy)]
    np.testing.assert_allclose(energy, energy[0], rtol=1e-5)
    assert np.ptp(np.asarray(run.q)[:, 0]) > 0.5


@pytest.mark.parametrize("inner", [False, True])
def test_cables_wind_over_several_turns(inner):
    """A mass circles a post, as an end of its cable in both directions, or between its ends. The
    energy stays, and the length is that of the arc and the tangent."""
    radius = 0.02
    x = parts.Body("x", parts.Prismatic("x"), start=[0.6])
    bob = parts.Body("bob", parts.Prismatic("y"), "x", solids=parts.point_mass(1.0))
    way = [parts.Pulley("world", (0, 0, 0), radius, winds=True), parts.Eyelet("bob")]
    way = [parts.Eyelet("world", (-0.3, -radius, 0)), *way] if inner else way
    cables = parts.CableSet([way], ElasticCables([1e3]), [0.89 if inner else 0.59])
    machine = parts.Mechanism([x, bob], elements=[cables], gravity=(0, 0, 0))
    start = machine.default_state()
    assert machine.coordinate_names == ("x", "bob", "winding_1")
    for speed in (3.0,) if inner else (3.0, -3.0):
        begin = cordax.State(start.q, np.array([0.0, speed]))
        run = cordax.simulate(machine, begin, duration=2.6, dt=1e-3)
        turns = np.asarray(run["winding_1"]) / (2.0 * np.pi)
        assert turns[-1] > 2.5 if speed > 0 else turns[-1] < -1.4
        assert np.max(np.abs(np.diff(turns))) < 0.1
        energy = np.asarray(run.energy()["total"])
        np.testing.assert_allclose(energy, energy[0], rtol=2e-5)
        straight = np.sqrt(np.sum(np.asarray(run.q)[:, :2] ** 2, axis=1) - radius**2)
        length = straight + radius * np.asarray(run["winding_1"]) + (0.3 if inner else 0.0)
        stretch = length - float(cables.rest.value[0])
        np.testing.assert_allclose(np.asarray(run["cable_stretch"])[:, 0], stretch, atol=1e-12)


def test_a_rigid_cable_winds():
    """At constant speed, and its state keeps the contracts of a machine."""
    x = parts.Body("x", parts.Prismatic("x"), start=[0.6])
    bob = parts.Body("bob", parts.Prismatic("y"), "x", solids=parts.point_mass(1.0))
    way = [parts.Eyelet("bob"), parts.Pulley("world", (0, 0, 0), 0.05, winds=True, turns=1)]
    rest = np.sqrt(0.6**2 - 0.05**2) + 0.05 * 2.0 * np.pi
    machine = parts.Mechanism([x, bob], loops=[parts.RigidCable(way, rest)], gravity=(0, 0, 0))
    start = machine.assembled()
    cordax.check_machine(machine, start)
    start = cordax.consistent(machine, cordax.State(start.q, np.array([0.0, -3.0])))
    run = cordax.simulate(machine, start, duration=1.3, dt=1e-3)
    speed = np.linalg.norm(np.asarray(run.v), axis=1)
    np.testing.assert_allclose(speed, speed[0], rtol=1e-7)
    assert abs(float(run["winding_1"][-1] - run["winding_1"][0])) > 2.0 * np.pi


def test_cables_are_drawn_where_they_run():
    scene = jax.jit(lambda q: hoist(0.3, 0).geometry(0.0, q))(np.array([-0.1, 0.0]))
    (line,) = np.asarray(scene.lines["cable"])
    np.testing.assert_allclose(line[0], [-0.1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(line[-1], [0.1, 0, -0.1], atol=1e-12)
    np.testing.assert_allclose(line[5], [0, 0, 1.1], atol=1e-2)  # over the top of the pulley
