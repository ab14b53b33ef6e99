"""Models of CASPR: two small ones, written for these tests in its format."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.io import read_caspr
from cordax.systems import CableRobot

LINK = """<link_rigid num="{num}" name="{name}">
  <joint type="{joint}" q_initial="{q}" q_min="-1" q_max="1" {more}/>
  <physical><mass>{mass}</mass><com_location>{com}</com_location><end_location>0 0 1</end_location>
  <inertia ref="{ref}"><Ixx>0.9</Ixx><Iyy>0.8</Iyy><Izz>0.7</Izz><Ixy>0.01</Ixy><Ixz>0</Ixz>
  <Iyz>0.02</Iyz></inertia></physical>
  <parent><num>{parent}</num><location>{at}</location></parent></link_rigid>"""
CABLE = """<{kind} name="{name}" attachment_reference="{ref}"><properties>{properties}</properties>
  <attachments>{points}</attachments></{kind}>"""
POINT = "<attachment><link>{}</link><location>{}</location></attachment>"
PULLEY = """<screw_base_rotating_pulley><constant_winch_point>1 0 2</constant_winch_point>
  <winch_vector>0 1 0</winch_vector><cable_pulley_entry_vector>0 0 1</cable_pulley_entry_vector>
  <pulley_radius>0.05</pulley_radius><winch_radius>0.06</winch_radius>
  <winch_groove_width>0.002</winch_groove_width></screw_base_rotating_pulley>"""
BOUNDS = "<force_min>2</force_min><force_max>50</force_max>"
SPRING, PASSIVE = f"{BOUNDS}<K>900</K>", "<K>5</K><l0>1</l0>"
POLYNOMIAL = (
    "<K_cable>4000</K_cable><num_stiffness_polynomial_coeff>2</num_stiffness_polynomial_coeff>"
    "<stiffness_poly_coeff>100 3</stiffness_poly_coeff>"
)
ARM = [
    {"num": 1, "name": "upper arm", "joint": "S_EULER_XYZ", "q": "0.1 0.2 0.3", "parent": 0,
     "at": "0 0 0.1", "com": "0 0.1 0.3", "mass": 1.5, "ref": "joint", "more": ""},
    {"num": 2, "name": "fore arm", "joint": "R_AXIS", "q": "-0.4", "parent": 1,
     "at": "0 0 0.6", "com": "0 0 0.2", "mass": 0.5, "ref": "com", "more": 'axis="0 3 4"'},
]  # fmt: skip
PLATFORM = ARM[0] | {"joint": "SPATIAL_EULER_XYZ", "q": "0.1 0.2 0.9 0.1 -0.2 0.3", "ref": "com"}


def cable(kind, name, ref, points, properties=BOUNDS):
    points = "".join(x if isinstance(x, str) else POINT.format(*x) for x in points)
    return CABLE.format(kind=kind, name=name, ref=ref, properties=properties, points=points)


CABLES = [
    cable("cable_ideal", "a", "com", [(0, "0.5 0 0"), (1, "0.1 0 0.1")]),
    cable("cable_ideal", "b", "joint", [(0, "0 0.5 0"), (1, "0 0.1 0.3"), (2, "0.1 0 0.1")]),
    cable("cable_linear_spring", "c", "joint", [(0, "0 -0.5 0"), (2, "0 0 0.3")], SPRING),
    cable("cable_vsd_polynomial", "d", "com", [(1, "0 0 0"), (2, "0 0.1 0")], BOUNDS + POLYNOMIAL),
    cable("cable_passive_linear_spring", "e", "joint", [(0, "0 1 1"), (1, "0 0 0.5")], PASSIVE),
]  # fmt: skip


def written(folder, links=ARM, cables=CABLES):
    """The folder with a model "own"."""
    bodies = "".join(LINK.format(**link) for link in links)
    text = f"<bodies_system><links>{bodies}</links></bodies_system>"
    (folder / "own_bodies.xml").write_text(text)
    text = f'<cables default_cable_set="all"><cable_set id="all">{"".join(cables)}</cable_set>'
    (folder / "own_cables.xml").write_text(text + '<cable_set id="empty"/></cables>')
    return folder


def turned(axis, angle):
    """Rotation matrix by Rodrigues' formula."""
    x, y, z = np.asarray(axis) / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def test_lengths_forces_and_stiffnesses_of_an_arm(tmp_path):
    experiment = read_caspr(written(tmp_path), "own")
    machine = experiment.system
    names = ("upper_arm_rx", "upper_arm_ry", "upper_arm_rz", "fore_arm")
    assert machine.coordinate_names == names
    assert machine.input_names == tuple(f"tension_{x}" for x in "abcd")
    np.testing.assert_array_equal(experiment.control, [2.0] * 4)
    q = np.array([0.3, -0.2, 0.5, 0.7])

    def lengths(q):
        R1 = turned((1, 0, 0), q[0]) @ turned((0, 1, 0), q[1]) @ turned((0, 0, 1), q[2])
        p1 = np.array([0, 0, 0.1])
        p2, R2 = p1 + R1 @ [0, 0, 0.6], R1 @ turned((0, 3, 4), q[3])
        on = lambda x: p1 + R1 @ x
        fore = lambda x: p2 + R2 @ x
        size = np.linalg.norm
        middle = on([0, 0.1, 0.3])
        return np.array([
            size(on([0.1, 0.1, 0.4]) - [0.5, 0, 0]),
            size(middle - [0, 0.5, 0]) + size(fore([0.1, 0, 0.1]) - middle),
            size(fore([0, 0, 0.3]) - [0, -0.5, 0]),
            size(fore([0, 0.1, 0.2]) - middle),
        ])  # fmt: skip

    tension = np.array([3.0, 5.0, 7.0, 11.0])

    @jax.jit
    def evaluated(q):
        at_rest = lambda u: machine.force(0.0, q, jnp.zeros(4), u)
        out = machine.outputs(0.0, q, jnp.zeros(4), jnp.asarray(tension), jnp.zeros(0))
        found = jax.jacrev(lambda q: machine.cable_lengths(q)["cable"])(q)
        return out, found, at_rest(jnp.asarray(tension)) - at_rest(jnp.zeros(4))

    out, jacobian, force = evaluated(jnp.asarray(q))
    expected = lengths(q)
    steps = 1e-6 * np.eye(4)
    slopes = np.stack([(lengths(q + h) - lengths(q - h)) / 2e-6 for h in steps], axis=1)
    np.testing.assert_allclose(out["cable_length"], expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(jacobian, slopes, rtol=0, atol=1e-9)
    np.testing.assert_allclose(force, -slopes.T @ tension, rtol=0, atol=1e-7)
    stiffness = np.asarray(out["cable_stiffness"])
    assert np.isinf(stiffness[:2]).all()
    series = 1.0 / (expected[3] / 4000 + 1.0 / (100 + 3 * 11.0))
    np.testing.assert_allclose(stiffness[2:], [900 / expected[2], series], rtol=1e-12)


def test_inertia_about_the_joint_becomes_that_about_the_centre(tmp_path):
    bodies = read_caspr(written(tmp_path), "own").system.bodies
    own = np.array([[0.9, 0.01, 0.0], [0.01, 0.8, 0.02], [0.0, 0.02, 0.7]])
    r = np.array([0.0, 0.1, 0.3])
    upper, fore = bodies[3].solids[0], bodies[4].solids[0]
    moved = own - 1.5 * (r @ r * np.eye(3) - np.outer(r, r))
    np.testing.assert_allclose(upper.inertia, moved, rtol=0, atol=1e-15)
    np.testing.assert_allclose(fore.inertia, own, rtol=0, atol=1e-15)


def test_platform_is_a_mechanism_or_a_cable_robot_of_the_same_lengths(tmp_path):
    points = ["1 0 2", "0 1 2", "-1 0 2", "0 -1 2", "1 1 0", "-1 -1 0"]
    cables = [
        cable("cable_ideal", f"c{i}", "joint", [(0, x), (1, f"0.1 {0.1 * i - 0.2} 0.05")])
        for i, x in enumerate(points)
    ]
    folder = written(tmp_path, [PLATFORM], cables)
    robot = read_caspr(folder, "own", machine="cable_robot").system
    assert isinstance(robot, CableRobot)
    lengths = read_caspr(folder, "own").system.cable_lengths()["cable"]
    np.testing.assert_allclose(robot.lengths(), lengths, rtol=0, atol=1e-14)


def test_report_lists_what_was_changed(tmp_path):
    pulley = cable("cable_ideal", "p", "joint", [PULLEY, (1, "0.1 0 0")])
    device = cable("cable_vsd_torsion_spring", "t", "joint", [(0, "0 0 1"), (1, "0 0 0.1")])
    flat = ARM[0] | {"joint": "PLANAR_YZ", "ref": "com"}
    text = written(tmp_path, [flat], [pulley, device])
    bodies = tmp_path / "own_bodies.xml"
    bodies.write_text(bodies.read_text().replace("<Iyy>0.8", "<Iyy>0.1"))
    experiment = read_caspr(text, "own")
    report = str(experiment.import_report)
    for words in ("screw_base_rotating_pulley (1): read as", "cable_vsd_torsion_spring (1)"):
        assert words in report
    assert "inertia of link 1" in report and "limits of the joints are not imposed" in report
    assert len(experiment.system.elements) == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("bodies", "R_AXIS", "HELIX_Z"), "joint type 'HELIX_Z' is not supported"),
        (("bodies", "<num>1<", "<num>7<"), "link 2: parent: got 7"),
        (("bodies", "<mass>1.5", "<mass>heavy"), "link 1: mass: got 'heavy'"),
        (("bodies", "</links>", "</link>"), "not an XML file"),
        (("cables", "<link>2<", "<link>9<"), "cable 'b': link: got 9"),
        (("cables", POINT.format(0, "0.5 0 0"), ""), "cable 'a': attachments: got 1"),
    ],
)
def test_bad_files_are_rejected_with_a_sentence(tmp_path, change, words):
    written(tmp_path)
    file = tmp_path / f"own_{change[0]}.xml"
    file.write_text(file.read_text().replace(change[1], change[2]))
    with pytest.raises(ValueError, match=words):
        read_caspr(tmp_path, "own")


def test_missing_models_and_sets_are_named(tmp_path):
    with pytest.raises(ValueError, match=r"own_bodies.xml.*expected an existing file"):
        read_caspr(tmp_path, "own")
    with pytest.raises(ValueError, match="cable_set: got 'some', expected one of 'all'"):
        read_caspr(written(tmp_path), "own", cable_set="some")
    with pytest.raises(ValueError, match="a set with cables"):
        read_caspr(tmp_path, "own", cable_set="empty")
    with pytest.raises(ValueError, match="use machine="):
        read_caspr(tmp_path, "own", machine="cable_robot")
