"""What does not belong into a field or an argument is refused by its name, also when it was put
there after a machine was made."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import cordax
from cordax import (
    Baumgarte,
    Dynamics,
    GeneralisedAlpha,
    ImplicitMidpoint,
    Projected,
    Result,
    System,
    Unilateral,
    float_field,
)
from cordax._base.checks import require_positive, require_rotation, require_shape
from cordax._base.revalidate import recheck
from cordax.control import PID, BoundedTension, ComputedTorque, Pulses, RaisedCosine
from cordax.systems import (
    CableRobot,
    Cylinder,
    ElasticCables,
    End,
    Harness,
    LineContact,
    NaturalBody,
    Neck,
    Oscillator,
    Plane,
    PointExit,
    ProgrammedLengths,
    RopeRobot,
    SplineRod,
    box_inertia,
)
from cordax.systems import mechanism as parts

BODY = NaturalBody(10.0, box_inertia(10.0, (0.4, 0.4, 0.1)))
CORNERS = np.array([[x, y, 0.0] for x in (-1.0, 1.0) for y in (-1.0, 1.0)])
EXITS, LENGTHS = PointExit(3.0 * CORNERS + [0.0, 0.0, 4.0]), ProgrammedLengths(np.full(4, 4.0))
FREE = SplineRod(left=End.free(), right=End.free())
RUN = {"dt": 0.01, "duration": 0.1}


def robot(**fields):
    given = {"platform": BODY, "attachments": CORNERS, "exits": EXITS, "drives": LENGTHS}
    return CableRobot(**{**given, **fields})


@pytest.mark.parametrize(
    "make, message",
    [
        # wrong objects
        (lambda: robot(platform=3.0), "platform: got 3.0, expected a NaturalBody"),
        (lambda: robot(cables=None), r"cables: got None, expected a Cables \(RigidCables, Elastic"),
        (lambda: robot(exits=PointExit), "exits: got .*PointExit.*, expected an Exit"),
        (lambda: robot(cables=ElasticCables(np.ones(7))), r"cables.stiffness: got shape \(7,\)"),
        (lambda: SplineRod(left=None), "left: got None, expected an End"),
        (lambda: LineContact((Plane(), 3)), r"obstacles\[1\]: got 3, expected a Shape"),
        (lambda: SplineRod(control_points=9.5), "control_points: got 9.5, expected a whole number"),
        (lambda: Neck.default(3, tendon=1.0), "tendon: got 1.0, expected an ElasticTendon or a Ri"),
        (lambda: Projected(inner=3), "inner: got 3, expected a Constrained"),
        (lambda: Unilateral(inner="rk4"), "inner: got rk4, expected an Integrator"),
        (
            lambda: ComputedTorque(FREE, [0.0]),
            "machine: got .*, expected a machine with joint_torq",
        ),
        # numbers that are none, or not allowed
        (lambda: robot(rotation=3.0 * np.eye(3)), "rotation: got .*, expected a rotation"),
        (lambda: robot(rotation=np.diag([1.0, 1.0, -1.0])), "rotation: got .*determinant 1"),
        (
            lambda: Plane(normal=np.zeros(3)),
            r"normal: got \[0.0, 0.0, 0.0\], expected a vector oth",
        ),
        (lambda: Cylinder(1.0, axis=np.zeros(3)), "axis: got .*, expected a vector other"),
        (lambda: End.pinned([0.0, np.inf, 0.0]), "point: got .*inf.*, expected finite values"),
        (lambda: PointExit(["a"]), r"points: got \['a'\], expected a number or an array"),
        (lambda: box_inertia(-5.0, (1.0, 1.0, 1.0)), "mass: got -5.0, expected finite values > 0"),
        (lambda: box_inertia(5.0, (1.0, np.nan, 1.0)), "size: got .*nan.*, expected finite values"),
        (lambda: ImplicitMidpoint(max_iterations=0), "max_iterations: got 0, expected a whole num"),
        (lambda: GeneralisedAlpha(tolerance=np.nan), "tolerance: got nan, expected a finite numbe"),
        (lambda: Unilateral(pieces=0), "pieces: got 0, expected a whole number >= 1"),
        (lambda: PID([0.0], (0,), 0.01, K_p=-1.0), "K_p: got -1.0, expected finite values >= 0"),
        (lambda: PID([0.0], (0,), 0.01, K_d=np.nan), "K_d: got nan, expected finite values"),
        (lambda: Pulses([[0.0, 1.0]], [[np.nan]], 0.01), "inputs: got .*, expected finite values"),
        (lambda: RaisedCosine([0.1, 0.2], [1.0, 2.0, 3.0]), r"amplitude|frequency: got shape"),
        # joints
        (lambda: Harness((FREE,), ((0, "left", 0, "left"),)), "joints: .*two different ends"),
        (
            lambda: Harness((FREE, FREE), ((0, "right", 1, "left"), (1, "left", 0, "right"))),
            "joints: .*joined once",
        ),
        (lambda: Harness((FREE,), 3), "joints: got 3, expected a tuple of Joint"),
    ],
)
def test_parts(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"formulation": 3}, "formulation: got 3, expected a Formulation"),
        ({"integrator": 3}, "integrator: got 3, expected an Integrator or one of"),
        ({"control": 3}, "control: got 3, expected a Controller"),
        ({"control": "abc"}, "control: got 'abc', expected a number"),
        ({"control": lambda t: t}, r"control: got .*, expected a Controller, or a function \(t, s"),
        ({"control": lambda t, state: [0.0]}, "control: got .*, expected an array of 1 real numb"),
        ({"control": [np.nan]}, r"control: got \[nan\], expected finite values"),
        ({"t0": np.inf}, "t0: got inf, expected a finite number"),
        ({"duration": 10**400}, "duration: got 1000.*, expected a finite time"),
        ({"duration": 1e30}, "duration: got .* expected fewer than"),
        ({"save_every": True}, "save_every: got True, expected a whole number"),
        ({"throw": "no"}, "throw: got no, expected True or False"),
        ({"system": 3.0}, "system: got 3.0, expected a System or a list"),
        ({"state0": 3.0}, "state0: got .*, expected a cordax.State"),
        ({"state0": cordax.State([np.nan], [0.0])}, "state0.q: got .nan., expected finite values"),
    ],
)
def test_runs(options, message):
    with pytest.raises(ValueError, match=message):
        cordax.simulate(**{"system": Oscillator(), **RUN, **options})


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: cordax.equilibrium(3.0), "system: got 3.0, expected a System"),
        (lambda: cordax.equilibrium(Oscillator(), [np.nan]), "u: got .nan., expected finite"),
        (lambda: cordax.equilibrium(Oscillator(), max_steps=0), "max_steps: got 0"),
        (lambda: cordax.equilibrium(Oscillator(), tolerance=np.nan), "tolerance: got nan"),
        (lambda: cordax.modes(None), "system: got None, expected a System"),
        (lambda: cordax.modes(Oscillator(), 3.0), "state: got 3.0, expected a State"),
        (lambda: cordax.step_limit(Oscillator(), integrator=3), "integrator: got 3"),
        (lambda: cordax.consistent(3.0), "system: got 3.0, expected a System"),
        (
            lambda: parts.single_strut(n_cables="abc"),
            "n_cables: got .?abc.?, expected a whole number",
        ),
        (lambda: parts.single_strut(azimuth=[1.0, 2.0]), r"azimuth: got shape \(2,\)"),
        (
            lambda: parts.single_strut().state_at(0.5),
            r"angles: got shape \(\), expected shape \(2,\)",
        ),
        (lambda: parts.single_strut().state_at(strain=np.nan), "strain: got nan, expected finite"),
        (lambda: RopeRobot([[0.0, 0.0]], 1.0).hanging(t="abc"), "t: got 'abc', expected a number"),
        (
            lambda: cordax.Recording([0.0, 1.0], 3.0),
            "recording.values: got 3.0, expected arrays by",
        ),
        (lambda: cordax.Parameter("a", bounds=3.0), "a: bounds: got 3.0, expected .low, high"),
        (lambda: cordax.Experiment(3.0), "system: got 3.0, expected a System"),
        (lambda: cordax.simulate_batch(3.0, jnp.ones(2)), "build: got 3.0, expected a function"),
    ],
)
def test_other_entries(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "fields, message",
    [
        ({"position": (0.0, 0.0, 1000.0)}, "position: got .*, 996 m from the middle.*metres"),
        (
            {"cables": ElasticCables(5e10)},
            r"cables.stiffness: got 5e\+10 N/m, more than a",
        ),
    ],
)
def test_allowed_and_hardly_meant(fields, message):
    with pytest.warns(UserWarning, match=message):
        robot(**fields)


# --- numbers set later


def test_numbers_set_later_are_checked_where_a_run_begins():
    soft = eqx.tree_at(lambda n: n.tendon.stiffness, Neck.default(3), jnp.asarray(-1e9))
    for call in (
        lambda: cordax.simulate(soft, duration=0.01),
        lambda: cordax.equilibrium(soft),
        lambda: cordax.modes(soft),
    ):
        with pytest.raises(ValueError, match=r"tendon\.stiffness: got -1000000000\.0, expected"):
            call()
    # of the method and the controller, and of the wrong shape
    wild = eqx.tree_at(lambda f: f.alpha, Baumgarte(), jnp.asarray(jnp.nan))
    with pytest.raises(ValueError, match="alpha: got nan"):
        cordax.simulate(Oscillator(), **RUN, formulation=wild)
    two = eqx.tree_at(lambda o: o.mass, Oscillator(), jnp.ones(2))
    with pytest.raises(ValueError, match=r"mass: got shape \(2,\), expected a scalar"):
        cordax.simulate(two, **RUN)


def _with(stiffness):
    return eqx.tree_at(lambda o: o.stiffness, Oscillator(), stiffness)


def test_members_of_a_batch_carry_a_code():
    stiffness = jnp.array([1.0, -1.0, jnp.nan, 4.0])
    runs = cordax.simulate_batch(_with, stiffness, **RUN)
    refused = np.asarray(runs.result == Result.INVALID_NUMBERS)
    np.testing.assert_array_equal(refused, [False, True, True, False])
    np.testing.assert_array_equal(runs.succeeded, [True, False, False, True])
    np.testing.assert_array_equal(runs.failure_time[1:3], 0.0)
    alone = cordax.simulate(_with(jnp.asarray(4.0)), **RUN)
    np.testing.assert_allclose(runs.q[3], alone.q, rtol=1e-13)
    assert np.all(runs.q[1:3] == 1.0)  # where they started


def test_inside_of_jit():
    end = jax.jit(lambda k: cordax.simulate(_with(k), **RUN, throw=False))
    assert bool(end(1.0).succeeded) and not bool(end(-1.0).succeeded)
    with pytest.raises(Exception, match="A number of the machine, its controller or the method"):
        jax.block_until_ready(jax.jit(lambda k: cordax.simulate(_with(k), **RUN).q)(-1.0))
    # and derivatives are what they were
    rate = jax.grad(lambda k: cordax.simulate(_with(k), **RUN).q[-1, 0])(1.0)
    t = 0.1  # x = cos(sqrt(k) t), dx/dk = -t sin(t)/2; RK4 at 10 ms is good to 1e-9
    np.testing.assert_allclose(rate, -0.5 * t * np.sin(t), rtol=1e-7)


def test_what_has_passed_is_not_checked_again(monkeypatch):
    calls = []
    machine = Oscillator()
    check = Oscillator.__check_init__
    monkeypatch.setattr(Oscillator, "__check_init__", lambda self: calls.append(1) or check(self))
    from cordax._base import revalidate

    revalidate._contents.cache_clear()
    assert recheck(machine) is True and recheck(machine) is True
    assert len(calls) == 1
    revalidate._contents.cache_clear()


def test_rotations_to_single_precision():
    c, s = np.cos(0.3), np.sin(0.3)
    turned = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    require_rotation("R", jnp.asarray(turned, jnp.float32))
    with pytest.raises(ValueError, match="R: got"):
        require_rotation("R", turned + 1e-3)


class _Springs(eqx.Module):
    stiffness: Float[Array, ""] = float_field()

    def __check_init__(self):
        require_shape("stiffness", self.stiffness, ())
        require_positive("stiffness", self.stiffness)


class _Row(System):
    springs: _Springs

    coordinate_names = ("x",)

    def mass_matrix(self, q):
        return jnp.eye(1)

    def force(self, t, q, v, u):
        return -jnp.sum(self.springs.stiffness) * q


def test_parts_that_are_stacked_pass():
    """Equal parts as one module with a leading axis, as `eqx.filter_vmap` makes them."""
    many = lambda k: _Row(eqx.filter_vmap(_Springs)(jnp.asarray(k)))
    assert recheck(Dynamics(many([1.0, 2.0]), cordax.Minimal())) is True
    with pytest.raises(ValueError, match=r"_Springs: got .*nan.*, expected finite values"):
        recheck(Dynamics(many([1.0, jnp.nan]), cordax.Minimal()))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_poses_and_rates_are_finite(bad):
    neck, hung = Neck.default(2), robot()
    calls = {
        "position": lambda: hung.lengths([0.0, bad, 1.0]),
        "rotation": lambda: hung.lengths(rotation=np.diag([1.0, 1.0, bad])),
        "t": lambda: hung.lengths(t=bad),
        "alpha": lambda: neck.state_at([0.0, bad]),
        "rate": lambda: neck.state_at([0.0, 0.1], rate=[bad, 0.0]),
    }
    for name, call in calls.items():
        with pytest.raises(ValueError, match=rf"^{name}: got "):
            call()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BoundedTension(minimum=[], maximum=10.0), r"minimum: got shape \(0,\)"),
        (lambda: BoundedTension(minimum=1.0, maximum=[]), r"maximum: got shape \(0,\)"),
        (lambda: End.sliding(stiffness=[1.0, 2.0]), r"stiffness: got shape \(2,\), expected a sc"),
        (lambda: End.sliding(stiffness=[1.0, 2.0, 3.0]), r"stiffness: got shape \(3,\)"),
    ],
)
def test_shapes_of_bounds_and_springs(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def _over_pulley(radius=0.1, axis=(0.0, 1.0, 0.0)):
    way = parts.Eyelet(), parts.Pulley("world", (1.0, 0.0, 0.0), radius, axis), parts.Eyelet("load")
    cables = parts.CableSet([way], parts.StrainLaw(100.0), 1.5, friction=0.1)
    load = parts.Body("load", parts.Prismatic("z"), at=(1.1, 0.0, -1.0), solids=[parts.Solid(1.0)])
    return parts.Mechanism([load], elements=[cables])


def _pulley(machine):
    return machine.elements[0].routes.guides[1]


_CABLES = _over_pulley().elements[0]
SET_LATER = {
    "axis of a hinge": (parts.Revolute("x"), lambda x: x.axis, np.zeros(3)),
    "axis of a pulley": (
        parts.SwivelPulley("a", np.zeros(3), 0.1),
        lambda x: x.axis,
        2 * np.ones(3),
    ),
    "zero of a drum": (parts.Pulley("a", np.zeros(3), 0.1), lambda x: x.zero, np.eye(3)[2]),
    "spring": (parts.JointSprings("a", 1.0), lambda x: x.stiffness, np.array(-1.0)),
    "dashpot": (parts.PointSpring("a", "b", damping=1.0), lambda x: x.damping, np.array(-1.0)),
    "limits": (parts.JointLimits("a", 0.0, 1.0, 1e3), lambda x: x.high, np.array(-1.0)),
    "radius in a set": (_over_pulley(), lambda x: x.elements[0].routes.guides[1].radius, [-0.1]),
    "axis in a set": (
        _over_pulley(),
        lambda x: x.elements[0].routes.guides[1].axis,
        2 * np.ones((1, 3)),
    ),
    "friction of a set": (_CABLES, lambda x: x.friction, np.array(-0.1)),
    "plane of a body": (NaturalBody(1.0, np.eye(3)), lambda x: x.v_i, np.array([1.0, 0.0, 0.0])),
    "flat body": (NaturalBody(1.0, np.eye(3)), lambda x: x.inertia, np.diag([1.0, 1.0, 2.0])),
    "ropes too short": (
        RopeRobot([[0.0, 0.0]], 1.5, end_point=[[0.5, -1.0]]),
        lambda x: x.length,
        np.array(0.1),
    ),
}


def test_values_set_later_are_checked_as_in_constructors():
    """With concrete values by an error, with traced ones by the code of the run."""
    bad = {name: jnp.asarray(value, float) for name, (_, _, value) in SET_LATER.items()}
    for name, (part, where, _) in SET_LATER.items():
        with pytest.raises(ValueError, match="expected"):
            recheck(eqx.tree_at(where, part, bad[name]))
    later = lambda name, x: recheck(eqx.tree_at(SET_LATER[name][1], SET_LATER[name][0], x))
    passed = jax.jit(lambda bad: {name: jnp.asarray(later(name, x)) for name, x in bad.items()})
    assert not any(map(bool, passed(bad).values()))
    good = {name: where(part) for name, (part, where, _) in SET_LATER.items()}
    assert all(map(bool, passed(good).values()))
