"""Joints against reference data, trees against Pinocchio, and the balance of energy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import cordax
from cordax.systems import mechanism as parts
from helpers.mechanism_trees import PinocchioTree, random_state, random_tree

INVOLUTES = {
    "inv_rigid": parts.RigidInvolute,
    "inv_u": parts.StretchInvolute,
    "inv_eps": parts.StrainInvolute,
    "inv_l": parts.LengthInvolute,
}
JOINTS = {
    "Rx": parts.Revolute("x"),
    "Ry": parts.Revolute("y"),
    "Rz": parts.Revolute("z"),
    "universal": parts.Universal(),
    "spherical": parts.Spherical(),
    "floating": parts.Floating(),
}


@pytest.mark.parametrize("name", [*JOINTS, *INVOLUTES])
def test_joints_against_reference(tensegrity_data, name):
    get = lambda field: tensegrity_data[f"joint_{name}_{field}"]
    joint = JOINTS[name] if name in JOINTS else INVOLUTES[name](get("r"))
    R, p, S, c = joint.motion(jnp.asarray(get("q")), jnp.asarray(get("v")))
    for mine, field in ((R, "R"), (p, "p"), (S.T, "S"), (c, "cJ")):
        np.testing.assert_allclose(mine, get(field), rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(4)
    machine = random_tree(rng, 12)
    return machine, *random_state(machine, rng), rng.normal(size=machine.n_v)


@pytest.fixture(scope="module")
def evaluated(tree):
    machine, q, v, tau = tree

    @eqx.filter_jit
    def evaluate(machine, q, v, tau):
        M, c = machine.mass_matrix(q), machine.bias(q, v)
        return M, c, jnp.linalg.solve(M, tau - c)

    return evaluate(machine, q, v, tau)


def test_trees_agree_with_pinocchio(tree, evaluated):
    pin = pytest.importorskip("pinocchio", reason="pip install pin: the second opinion on trees")
    machine, q, v, tau = tree
    M, c, a = evaluated
    other = PinocchioTree(pin, machine)
    for mine, theirs in (
        (M, other.mass_matrix(q)),
        (c, other.bias(q, v)),
        (a, other.acceleration(q, v, tau)),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max())


def test_mass_matrix_gives_the_kinetic_energy_of_all_bodies(tree, evaluated):
    """`v^T M v/2` is the sum over bodies of m |dc/dt|^2/2 + omega^T I omega/2, by differences."""
    machine, q, v, _ = tree
    bodies = [b.inertia() for b in machine.bodies]
    pose = jax.jit(lambda q: machine.motions(q, jnp.zeros(machine.n_v)).poses[:2])
    h = 1e-6
    rate = np.array(machine.rate(jnp.asarray(q), jnp.asarray(v)))
    (Ra, pa), (R, _), (Rb, pb) = (jax.tree.map(np.array, pose(q + s * rate)) for s in (-h, 0.0, h))
    energy = 0.0
    for i, solid in enumerate(bodies):
        centre = np.array(solid.centre)
        speed = (pb[i] - pa[i] + (Rb[i] - Ra[i]) @ centre) / (2 * h)
        spin = R[i].T @ (Rb[i] - Ra[i]) / (2 * h)
        omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        energy += 0.5 * float(solid.mass) * speed @ speed
        energy += 0.5 * omega @ np.array(solid.inertia) @ omega
    # central differences of quantities of size 10: error about 1e-8
    np.testing.assert_allclose(0.5 * v @ np.array(evaluated[0]) @ v, energy, rtol=1e-7)


def test_quaternion_coordinates(tree):
    machine, q, v, _ = tree
    q, v = jnp.asarray(q), jnp.asarray(v)
    retract = jax.jit(lambda q, dq: machine.retract(q, dq))
    difference = jax.jit(lambda q, other: machine.difference(q, other))
    moved = retract(q, 0.3 * v)
    np.testing.assert_allclose(difference(q, moved), 0.3 * v, atol=1e-12)
    np.testing.assert_allclose(machine.normalise(moved), moved, atol=1e-14)
    h = 1e-6
    slope = (retract(q, h * v) - retract(q, -h * v)) / (2 * h)
    np.testing.assert_allclose(machine.rate(q, v), slope, atol=1e-9)


def test_free_tumbling_conserves_energy_with_order_four():
    """A body thrown with a pendulum on a ball joint; RK4 at 1 and 2 ms."""
    box = parts.box((0.3, 0.2, 0.1), mass=2.0)
    machine = parts.Mechanism(
        [
            parts.Body("box", parts.Floating(), solids=box, start_rate=[3, 1, 2, 0, 0, 4.0]),
            parts.Body(
                "bob",
                parts.Spherical(),
                "box",
                at=(0.2, 0, 0),
                start_rate=[1.0, -2, 0.5],
                solids=parts.sphere(0.05, mass=0.5, centre=(0, 0, -0.3)),
            ),
        ]
    )
    drift = []
    for dt in (2e-3, 1e-3):
        run = cordax.simulate(machine, duration=0.4, dt=dt, save_every=round(0.1 / dt))
        energy = np.array(run.energy()["total"])
        drift.append(np.ptp(energy))
    assert drift[1] < 1e-8 * abs(energy[0])
    assert drift[0] / drift[1] > 12


def round_cells(outer, inner, along):
    """Places (k, 3) and volumes (k,) round an axis z: exact for moments of inertia."""
    x, w = np.polynomial.legendre.leggauss(4)
    r, dr = 0.5 * (outer + inner + (outer - inner) * x), 0.5 * (outer - inner) * w
    angle = 2 * np.pi * np.arange(8) / 8
    z, dz = 0.5 * along * x, 0.5 * along * w
    r, a, z = np.meshgrid(r, angle, z, indexing="ij")
    volume = (dr[:, None, None] * np.pi / 4 * dz) * r
    return np.stack([r * np.cos(a), r * np.sin(a), z], axis=-1).reshape(-1, 3), volume.reshape(-1)


def square_cells(sizes):
    x, _ = np.polynomial.legendre.leggauss(2)
    places = np.stack(np.meshgrid(*(0.5 * s * x for s in sizes), indexing="ij"), axis=-1)
    return places.reshape(-1, 3), np.full(8, np.prod(sizes) / 8)


def ball_cells(radius):
    """Slices of a ball, each a disc: the radius of a slice depends on z."""
    x, w = np.polynomial.legendre.leggauss(4)
    slices = [round_cells(radius * np.sqrt(1 - z * z), 0.0, 1e-9) for z in x]
    places = [p * [1, 1, 0] + [0, 0, radius * z] for (p, _), z in zip(slices, x, strict=True)]
    volumes = [v / 1e-9 * radius * dz for (_, v), dz in zip(slices, w, strict=True)]
    return np.concatenate(places), np.concatenate(volumes)


SHAPES = {
    "cylinder": (lambda o: parts.cylinder(0.2, 0.7, **o), round_cells(0.2, 0.0, 0.7)),
    "tube": (lambda o: parts.tube(0.2, 0.15, 0.7, **o), round_cells(0.2, 0.15, 0.7)),
    "box": (lambda o: parts.box((0.3, 0.2, 0.5), **o), square_cells((0.3, 0.2, 0.5))),
    "cube": (lambda o: parts.cube(0.4, **o), square_cells((0.4, 0.4, 0.4))),
    "sphere": (lambda o: parts.sphere(0.3, **o), ball_cells(0.3)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_primitives_weigh_what_their_volume_does(shape):
    """Mass, centre and inertia by a sum over the volume, from a density and from a mass; turned and
    moved as pieces of a body."""
    make, (places, volumes) = SHAPES[shape]
    turn, shift = Rotation.from_rotvec([0.3, -0.5, 0.2]), np.array([0.1, -0.2, 0.4])
    pieces = [make({"density": 800.0}), make({"mass": 800.0 * volumes.sum()})]
    weights, x = 800.0 * volumes, turn.apply(places) + shift
    for solid in (piece.turned(turn.as_matrix()).moved(shift) for piece in pieces):
        np.testing.assert_allclose(solid.mass, weights.sum(), rtol=1e-12)
        np.testing.assert_allclose(solid.centre, weights @ x / weights.sum(), atol=1e-12)
        d = x - shift
        inertia = np.einsum("k,kij->ij", weights, np.einsum("kl,kl,ij->kij", d, d, np.eye(3)))
        inertia = inertia - np.einsum("k,ki,kj->ij", weights, d, d)
        np.testing.assert_allclose(solid.inertia, inertia, rtol=1e-9, atol=1e-9 * inertia.max())


def test_a_tube_is_wider_outside_than_inside():
    with pytest.raises(ValueError, match=r"inner: got 0.2.*less than outer, 0.1"):
        parts.tube(0.1, 0.2, 1.0, mass=1.0)


ROWS = ("x", "y", "z", "rx", "ry", "rz")


@pytest.mark.parametrize(("free", "velocity"), [("rz", 2), ("z", 5)])
def test_rows_of_a_loop_are_a_joint(free, velocity):
    """A floating body held in all rows but one moves like one on a hinge, or on a slider."""
    solids = parts.box((0.3, 0.2, 0.5), mass=2.0, centre=(0.2, 0.1, 0.05))
    gravity, u = (3.0, -4.0, -8.0), jnp.zeros(0)
    joint = parts.Revolute("z") if free == "rz" else parts.Prismatic("z")
    placed = {"at": (0.5, 0.2, 0.1), "solids": solids}
    one = parts.Mechanism([parts.Body("a", joint, **placed)], gravity=gravity)
    kept = tuple(row for row in ROWS if row != free)
    loop = parts.FrameLoop("world", "a", point=(0.5, 0.2, 0.1), rows=kept)
    held = parts.Mechanism([parts.Body("a", parts.Floating(), solids=solids)], [loop],
                           gravity=gravity)  # fmt: skip
    q, rate = 0.3, 0.7
    turn = (np.cos(0.5 * q), 0, 0, np.sin(0.5 * q)) if free == "rz" else (1, 0, 0, 0)
    place = np.array([0.5, 0.2, 0.1 if free == "rz" else 0.1 + q])
    accelerate = eqx.filter_jit(lambda machine, *at: cordax.Baumgarte().acceleration(machine, *at))
    wanted = accelerate(one, 0.0, jnp.array([q]), jnp.array([rate]), u)[0]
    v = jnp.zeros(6).at[velocity].set(rate)
    found, forces = accelerate(held, 0.0, jnp.array([*turn, *place]), v, u)
    np.testing.assert_allclose(found[velocity], wanted[0], rtol=1e-10)
    np.testing.assert_allclose(np.delete(found, velocity), 0.0, atol=1e-10)
    assert abs(wanted[0]) > 1.0 and np.abs(forces).max() > 1.0


def test_springs_friction_and_limits():
    """Each against its formula; a limit of width w at its stop pushes with k w log 2."""
    joints = ("a", "b")
    machine = parts.Mechanism(
        [parts.Body("a", parts.Revolute("x"), solids=parts.sphere(0.1, mass=1.0)),
         parts.Body("b", parts.Prismatic("z"), "a", solids=parts.sphere(0.1, mass=1.0))],
        elements=[
            parts.JointSprings(joints, stiffness=[3.0, 5.0], rest=0.1, damping=[0.2, 0.4]),
            parts.JointFriction("b", torque=2.0, width=0.5),
            parts.JointLimits("a", low=-1.0, high=0.4, stiffness=100.0, width=1e-3),
            parts.JointMotors("b"),
            parts.JointLoads("a", torque=0.7),
        ],
        gravity=(0, 0, 0),
    )  # fmt: skip
    at = np.array([0.4, 0.3]), np.array([0.0, 0.6]), np.array([1.5])
    f = jax.jit(lambda q, v, u: machine.force(0.0, q, v, u) + machine.bias(q, v))(*at)
    a = -3.0 * 0.3 + 0.7 - 100.0 * 1e-3 * np.log(2.0)
    b = -5.0 * 0.2 - 0.4 * 0.6 - 2.0 * np.tanh(1.2) + 1.5
    np.testing.assert_allclose(f, [a, b], rtol=1e-12)
    assert machine.input_names == ("torque_b",)


def test_a_body_without_mass_that_nothing_holds_is_refused():
    arm = parts.Body("arm", parts.Revolute("y"), solids=parts.rod(1.0, mass=1.0))
    machine = parts.Mechanism([arm, parts.Body("frame", parts.Revolute("y"), "arm")])
    with pytest.raises(ValueError, match=r"expected mass on every joint.* frame carry none"):
        cordax.simulate(machine, duration=0.01, dt=1e-3)


def test_bad_input_names_the_part():
    with pytest.raises(ValueError, match=r"low: got 1.0, expected values of at most high"):
        parts.JointLimits("a", 1.0, 0.5, 1e3)
    body = parts.Body("a", parts.Revolute("x"))
    with pytest.raises(ValueError, match="two named 'a'"):
        parts.Mechanism([body, body])
    with pytest.raises(ValueError, match="body 'b': parent: got 'c', expected"):
        parts.Mechanism([body, parts.Body("b", parent="c")])
    with pytest.raises(ValueError, match=r"joints: got 'x', expected one of a"):
        parts.Mechanism([body], elements=[parts.JointMotors("x")])
    with pytest.raises(ValueError, match="turned"):
        parts.Body("b", turned=np.diag([1.0, 1.0, -1.0]))
    with pytest.raises(ValueError, match="axis: got 'w'"):
        parts.Revolute("w")
    with pytest.raises(ValueError, match="density, mass"):
        parts.cube(0.1)


ROTATIONS_THAT_ARE_NONE = (
    2.0 * np.eye(3),
    np.diag([1.0, 1.0, -1.0]),
    np.zeros((3, 3)),
    np.eye(3) + 0.1 * np.eye(3, k=1),
)


@pytest.mark.parametrize("matrix", ROTATIONS_THAT_ARE_NONE)
def test_matrices_that_do_not_rotate_are_refused(matrix):
    for name, make in (
        ("body 'b': turned", lambda R: parts.Body("b", turned=R)),
        ("turned", lambda R: parts.FrameLoop("a", "b", turned=R)),
        ("successor_turned", lambda R: parts.FrameLoop("a", "b", successor_turned=R)),
        ("rotation", lambda R: parts.cube(0.1, mass=1.0).turned(R)),
    ):
        with pytest.raises(ValueError, match=f"^{name}: got .*, expected a rotation"):
            make(matrix)


@pytest.mark.parametrize(
    ("inertia", "expected"),
    [
        (np.diag([-1.0, 1.0, 1.0]), "principal moments"),
        (-np.eye(3), "principal moments"),
        (np.diag([1.0, 1.0, 2.1]), "principal moments >= 0, each at most the sum"),
        (np.diag([0.0, 0.0, 1.0]), "principal moments"),
        (np.eye(3) + 0.1 * np.eye(3, k=1), "a symmetric matrix"),
    ],
)
def test_inertias_that_no_body_has_are_refused(inertia, expected):
    turn = Rotation.from_rotvec([0.3, -0.5, 0.7]).as_matrix()
    for J in (inertia, turn @ inertia @ turn.T):
        with pytest.raises(ValueError, match=f"^inertia: got .*, expected {expected}"):
            parts.Solid(1.0, inertia=J)


def test_inertias_of_thin_bodies_are_accepted():
    """Plates and rods in any direction: moments that are the sum of the others, to round-off."""
    turn = Rotation.from_rotvec([0.3, -0.5, 0.7]).as_matrix()
    for moments in ([1.0, 1.0, 2.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]):
        for dtype in (np.float64, np.float32):
            J = np.asarray(turn @ np.diag(moments) @ turn.T, dtype)
            parts.Solid(1.0, inertia=1e-6 * J)


def test_two_quantities_of_one_name_are_refused():
    body = lambda name: parts.Body(name, parts.Prismatic("z"), solids=parts.point_mass(1.0))
    rope = lambda name="cable": parts.CableSet(
        [[parts.Eyelet(), parts.Eyelet("a")]], parts.StrainLaw(1e3), 1.0, name=name
    )
    motors = parts.JointMotors("a")
    parts.Mechanism([body("a"), body("b")], elements=[rope(), rope("second"), motors])
    for names, elements, message in (
        ("a", [rope(), rope()], "output 'cable_tension'"),
        ("a", [motors, motors], "input 'torque_a'"),
        (("a", "d_a"), [], "velocity 'd_a'"),
        (("a", "tension"), [rope()], "output 'tension'"),
        (("a", "torque_a"), [motors], "input 'torque_a'"),
        (("a", "cable_free"), [rope()], "output 'cable_free'"),
    ):
        with pytest.raises(ValueError, match=f"^names: got {message} beside"):
            parts.Mechanism([body(name) for name in names], elements=elements)


@pytest.mark.parametrize("kind", [parts.Revolute, parts.Prismatic])
def test_axes_have_length_one_however_they_are_set(kind):
    """By the constructor, in a batch, and by `tree_at`."""
    axis, q = jnp.array([0.0, 2.0, 0.0]), jnp.array([0.3])
    expected = kind("y").motion(q, None)
    motions = [
        kind(axis).motion(q, None),
        jax.tree.map(lambda x: x[0], jax.vmap(lambda a: kind(a).motion(q, None))(axis[None])),
        eqx.tree_at(lambda joint: joint.axis, kind(), axis).motion(q, None),
    ]
    for motion in motions:
        for x, y in zip(motion, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("angle", [80.0, 120.0, 170.0])
def test_welds_close_without_half_a_turn_between_their_frames(angle):
    """From any angle apart; frames that are half a turn apart are not welded."""
    weld = parts.FrameLoop("world", "b", rows=("x", "y", "z", "rx", "ry", "rz"))
    machine = parts.Mechanism(
        [parts.Body("b", parts.Floating(), solids=parts.cube(0.1, mass=1.0))], [weld]
    )
    half = np.deg2rad(angle) / 2
    guess = np.array([np.cos(half), 0.0, np.sin(half), 0.0, 0.1, -0.2, 0.3])
    closed = np.asarray(machine.assembled(guess).q)
    np.testing.assert_allclose(np.abs(closed), [1, 0, 0, 0, 0, 0, 0], atol=1e-9)
    with pytest.raises(ValueError, match="loops: cannot close"):
        machine.assembled(np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
