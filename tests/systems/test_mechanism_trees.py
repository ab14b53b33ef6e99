"""Joints against reference data, trees against Pinocchio, and the balance of energy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mechanism_trees import PinocchioTree, random_state, random_tree

import cordax
from cordax.systems import mechanism as parts

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
    q, v, u = jnp.array([0.4, 0.3]), jnp.array([0.0, 0.6]), jnp.array([1.5])
    f = machine.force(0.0, q, v, u) + machine.bias(q, v)
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
    with pytest.raises(ValueError, match=r"low, high: got .* expected low at most high"):
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
