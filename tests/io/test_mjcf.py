"""MJCF models: every quantity of the equations of motion beside that of MuJoCo."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import cordax
from cordax.io import read_mjcf
from helpers.mjcf_models import CONSTRAINTS, JOINTS, TENDONS

COMPARED = (
    "qfrc_passive",
    "actuator_force",
    "qfrc_actuator",
    "ten_length",
    "ten_velocity",
    "qacc",
    "act_dot",
)


def quantities(machine, qpos, qvel, act, u):
    """Of the equations of motion at one state, by MuJoCo's names."""
    t, drive, n = jnp.zeros(()), machine.elements[0], machine.tree.n_v
    q, v = jnp.concatenate([qpos, jnp.zeros_like(act)]), jnp.concatenate([qvel, act])
    at = machine.instant(t, q, v)
    out = {"M": machine.mass_matrix(q)[:n, :n], "qfrc_passive": drive.passive_force(at)}
    out["actuator_force"], out["qfrc_actuator"] = drive.actuator_force(at, u)
    if drive.tendons is not None:
        tendons = drive.tendons.at(at)
        out |= {"ten_length": tendons.length, "ten_velocity": tendons.rate}
        out["ten_J"] = drive.tendons.jacobian(at, tendons)
    acceleration = machine.structure().acceleration(t, q, v, u)
    return out | {"qacc": acceleration[:n], "act_dot": acceleration[n:]}


def of_mujoco(model, qpos, qvel, act, u):
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.act, data.ctrl = qpos, qvel, act, u
    mujoco.mj_forward(model, data)
    found = {name: np.array(getattr(data, name)) for name in COMPARED}
    found["M"] = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, found["M"])
    found["ten_J"] = np.zeros((model.ntendon, model.nv))
    if model.ntendon:
        mujoco.mju_sparse2dense(
            found["ten_J"], data.ten_J, model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind
        )
    return found


def poses(model, count):
    random = np.random.default_rng(3)
    for _ in range(count):
        qpos, qvel = np.array(model.qpos0), random.normal(size=model.nv)
        mujoco.mj_integratePos(model, qpos, 0.5 * random.normal(size=model.nv), 1.0)
        yield qpos, qvel, random.uniform(0, 1, model.na), random.normal(size=model.nu)


@pytest.mark.parametrize("text", [JOINTS, TENDONS], ids=["joints", "tendons"])
def test_every_quantity_is_that_of_mujoco(text):
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    experiment = read_mjcf(text, constraints=False)
    assert experiment.import_report.entries == ()
    states = [np.stack(x) for x in zip(*poses(model, 12), strict=True)]
    found = jax.jit(jax.vmap(lambda *state: quantities(experiment.system, *state)))(*states)
    for i, state in enumerate(zip(*states, strict=True)):
        expected = of_mujoco(model, *state)
        for name, values in found.items():
            want = expected[name]
            # MuJoCo finds the bend of a tendon that passes through a surface to about 1e-7
            accuracy = 1e-6 if text is TENDONS else 1e-11
            scale = 1.0 + np.abs(want).max(initial=0.0)
            np.testing.assert_allclose(values[i], want, atol=accuracy * scale, rtol=0, err_msg=name)


CHANGED = """
<mujoco>
  <option density="1.2"/>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body>
      <joint name="swing" axis="0 1 0" range="-30 30"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
      <body pos="0.3 0 0">
        <joint name="knee" axis="0 1 0" frictionloss="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
      </body>
    </body>
  </worldbody>
  <equality><joint joint1="swing" joint2="knee"/></equality>
  <actuator>
    <motor name="swing" joint="swing"/>
    <adhesion name="glue" body="world" ctrlrange="0 1"/>
    <muscle name="calf" joint="knee" lengthrange="-1 1"/>
  </actuator>
  <sensor><jointpos joint="knee"/></sensor>
  <keyframe><key name="bent" qpos="0.2 0.3" qvel="1 2" act="0.5" ctrl="3 0 0.1"/></keyframe>
</mujoco>
"""


def test_everything_that_changes_is_reported():
    report = read_mjcf(CHANGED).import_report
    counts = {entry.element: entry.count for entry in report.entries}
    assert counts["limit"] == counts["frictionloss"] == counts["equality joint"] == 1
    assert counts["sensor"] == counts["actuator"] == counts["option density, viscosity"] == 1
    text = str(report)
    assert "contact (2): is compliant" in text  # the ground and each link; links are neighbours
    left_out = str(read_mjcf(CHANGED, contact=False).import_report)
    assert "geom (3): can collide: contacts are ignored" in left_out
    assert "transmission 'body' is not supported" in text
    assert "keyframes: bent" in text


def test_names_of_joints_and_inputs_do_not_meet():
    machine = read_mjcf(CHANGED).system
    assert machine.coordinate_names == ("swing", "knee", "calf_activation_integral")
    assert machine.input_names == ("swing_", "glue", "calf")


def test_a_keyframe_is_an_initial_state_with_its_inputs():
    experiment = read_mjcf(CHANGED, keyframe="bent")
    np.testing.assert_array_equal(experiment.start.q, [0.2, 0.3, 0.0])
    np.testing.assert_array_equal(experiment.start.v, [1.0, 2.0, 0.5])
    np.testing.assert_array_equal(experiment.control, [3.0, 0.0, 0.1])
    with pytest.raises(ValueError, match="keyframe: got 'flat', expected one of bent"):
        read_mjcf(CHANGED, keyframe="flat")


@pytest.mark.parametrize(
    "text, message",
    [
        ("no_such.xml", "path: got 'no_such.xml', expected an existing MJCF or URDF file"),
        ("<mujoco><engine/></mujoco>", "unrecognized element.*engine"),
        ('<mujoco><asset><mesh file="cup.stl"/></asset></mujoco>', "opening file 'cup.stl'"),
        (
            "<mujoco><worldbody><site name='a'/></worldbody><tendon><spatial name='rope'>"
            "<site site='a'/></spatial></tendon></mujoco>",
            "tendon 'rope'.*at least two",
        ),
        ("<mujoco/>", "a model without joints"),
    ],
)
def test_bad_files_are_rejected_in_one_sentence(text, message):
    with pytest.raises(ValueError, match=message):
        read_mjcf(text)


def test_without_mujoco_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ImportError, match="`mjcf` extra"):
        read_mjcf(CHANGED)


def test_urdf_is_read():
    link = (
        "<inertial><mass value='1'/><inertia ixx='.1' iyy='.1' izz='.1' ixy='0' ixz='0' iyz='0'/>"
    )
    text = (
        f"<robot name='r'><link name='a'/><link name='b'>{link}</inertial></link>"
        "<joint name='turn' type='continuous'><parent link='a'/><child link='b'/>"
        "<axis xyz='0 1 0'/></joint></robot>"
    )
    machine = read_mjcf(text).system
    assert machine.coordinate_names == ("turn",)
    np.testing.assert_allclose(machine.mass_matrix(jnp.zeros(1)), [[0.1]], atol=1e-12)


def test_derivatives_at_the_initial_configuration_are_those_of_central_differences():
    """Of accelerations and tendon lengths, in both modes, by coordinates and parameters."""
    machine = read_mjcf(TENDONS, constraints=False).system
    drive, start = machine.elements[0], machine.default_state()
    random = np.random.default_rng(5)
    weights = random.normal(size=machine.n_v), random.normal(size=drive.tendons.n)
    parts = lambda m: (
        m.elements[0].tendons.sites.position,
        m.elements[0].tendons.radius,
        m.elements[0].laws.stiffness,
        m.elements[0].laws.rest,
    )
    zero = (jnp.zeros(machine.n_q), *(jnp.zeros_like(x) for x in parts(machine)))

    @jax.jit
    def measure(shift):
        changed = [x + y for x, y in zip(parts(machine), shift[1:], strict=True)]
        moved = eqx.tree_at(parts, machine, changed)
        t, q, u = jnp.zeros(()), start.q + shift[0], jnp.full(machine.n_u, 0.3)
        lengths = moved.elements[0].tendons.at(moved.instant(t, q, start.v)).length
        return weights[0] @ moved.structure().acceleration(t, q, start.v, u) + weights[1] @ lengths

    gradient = jax.jit(jax.grad(measure))(zero)
    for i, part in enumerate(zero):
        along = [jnp.zeros_like(x) for x in zero]
        along[i] = jnp.asarray(random.normal(size=part.shape))
        reverse = float(jnp.sum(gradient[i] * along[i]))
        forward = float(jax.jvp(measure, (zero,), (tuple(along),))[1])
        step = 1e-6
        there, back = (measure(tuple(s * x for x in along)) for s in (step, -step))
        central = float(there - back) / (2.0 * step)
        assert reverse == pytest.approx(forward, rel=1e-9)
        assert reverse == pytest.approx(central, rel=1e-6, abs=1e-6)


def test_limits_and_couplings_hold_what_mujoco_holds():
    """At rest under gravity; without constraints some bodies fall much further."""
    experiment = read_mjcf(CONSTRAINTS).replace(duration=2.0, dt=1e-3, save_every=2000)
    model = mujoco.MjModel.from_xml_string(CONSTRAINTS)
    data = mujoco.MjData(model)
    for _ in range(1000):
        mujoco.mj_step(model, data)
    run = cordax.simulate(experiment)
    free = cordax.simulate(read_mjcf(CONSTRAINTS, constraints=False).replace(duration=2.0, dt=1e-3))
    np.testing.assert_allclose(run.q[-1], data.qpos, atol=1e-2)
    assert np.abs(np.asarray(free.q[-1]) - data.qpos).max() > 0.5


TOUCHING = """
<mujoco>
  <option timestep="0.005" cone="elliptic"/>
  <asset><mesh name="wedge" vertex="0 0 0  .2 0 0  0 .2 0  0 0 .2"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction="0.6 0 0"/>
    <body name="box" pos="0 0 0.06"><freejoint/>
      <geom name="box" type="box" size=".1 .1 .05" mass="1"/>
      <geom name="lid" type="sphere" size=".02" pos="0 0 .07" contype="2" conaffinity="4"/>
    </body>
    <body name="drum" pos="1 0 0.11"><freejoint/>
      <geom name="drum" type="cylinder" size=".05 .1" mass="2" condim="1"/>
    </body>
    <body name="bar" pos="2 0 0.04"><freejoint/>
      <geom name="bar" type="capsule" fromto="-.2 0 0 .2 0 0" size=".03" mass="1"/>
    </body>
    <body name="wedge" pos="3 0 0.01"><freejoint/>
      <geom name="wedge" type="mesh" mesh="wedge" mass="1"/>
    </body>
    <body name="egg" pos="4 0 1"><freejoint/>
      <geom name="egg" type="ellipsoid" size=".1 .1 .2" mass="1"/>
    </body>
  </worldbody>
  <contact>
    <exclude body1="box" body2="bar"/>
    <pair geom1="lid" geom2="bar" condim="3" friction="0.1"/>
  </contact>
</mujoco>
"""


def test_which_geoms_of_a_model_touch():
    """The filters of MuJoCo: bits, excludes and given pairs; ellipsoids are reported."""
    experiment = read_mjcf(TOUCHING)
    contact = experiment.system.elements[1]
    bodies = {frozenset(pair) for pair in contact.pair_names}
    assert frozenset(("world", "wedge")) in bodies and frozenset(("box", "drum")) in bodies
    assert not any("egg" in pair for pair in bodies)
    assert sum(set(pair) == {"box", "bar"} for pair in contact.pair_names) == 1  # the given one
    law = {frozenset(x): i for i, x in enumerate(contact.pair_names)}
    friction = np.asarray(contact.law.friction)
    assert friction[law[frozenset(("box", "bar"))]] == 0.1
    assert friction[law[frozenset(("world", "drum"))]] == 1.0  # the larger of both, condim 3
    assert "geom ellipsoid (1): can collide: its contacts are ignored" in str(
        experiment.import_report
    )
    assert len(read_mjcf(TOUCHING, contact=False).system.elements) == 1
    assert len(read_mjcf(TOUCHING, constraints=False).system.elements) == 1


def test_bodies_of_a_model_come_to_rest_where_those_of_mujoco_do():
    """Rest poses within 0.2 mm and 0.1 mrad; the ground carries the weight."""
    model = mujoco.MjModel.from_xml_string(TOUCHING)
    data = mujoco.MjData(model)
    for _ in range(200):
        mujoco.mj_step(model, data)
    run = cordax.simulate(read_mjcf(TOUCHING).replace(duration=1.0))
    rest = np.arange(28)  # box, drum, bar and wedge
    found, expected = np.asarray(run.q[-1])[rest], data.qpos[rest]
    turned = np.concatenate([7 * i + np.arange(3, 7) for i in range(4)])
    moved = np.setdiff1d(rest, turned)
    np.testing.assert_allclose(found[moved], expected[moved], atol=2e-4)
    np.testing.assert_allclose(found[turned], expected[turned], atol=1e-4)
    weight = 9.81 * sum(model.body_mass[1:5])
    np.testing.assert_allclose(run.outputs["contact_force"][-1].sum(axis=0)[2], weight, rtol=1e-3)


def test_muscles_and_armature_move_as_with_a_method_of_high_order():
    """`ConvexContact` keeps activations and reflected inertia. An arm above the ground moves as
    with RK4, to the error of a method of order 1, which halves with the step."""
    text = """
    <mujoco>
      <worldbody>
        <geom type="plane" size="5 5 1" pos="0 0 -2"/>
        <body><joint name="elbow" axis="0 1 0" armature="0.02" damping="0.05"/>
          <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.02" mass="0.5"/>
          <body pos="0.4 0 0"><joint name="wrist" axis="1 0 1" armature="0.01"/>
            <geom type="capsule" fromto="0 0 0 0.2 0.1 0.1" size="0.02" mass="0.2"/></body>
        </body>
      </worldbody>
      <actuator><muscle name="biceps" joint="elbow" lengthrange="-2 2" force="15"/></actuator>
    </mujoco>
    """
    experiment = read_mjcf(text).replace(control=np.array([0.5]), duration=0.3)
    assert len(experiment.system.elements) == 2
    exact = cordax.simulate(
        read_mjcf(text, contact=False).replace(control=np.array([0.5]), duration=0.3, dt=1e-3)
    )
    error = []
    for dt in (2e-3, 1e-3):
        run = cordax.simulate(experiment.replace(dt=dt))
        error.append(float(np.abs(np.asarray(run.v[-1] - exact.v[-1])).max()))
    assert np.abs(np.asarray(exact.v[-1])).min() > 0.1
    assert error[1] < 0.03 and 1.7 < error[0] / error[1] < 2.3
