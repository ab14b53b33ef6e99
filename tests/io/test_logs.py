"""Logs as other programs write them: names, units and separators are read and reported."""

import json

import numpy as np
import pytest

from cordax.io import read_csv, read_recording
from cordax.recordings.headers import read_headers


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("Time [ms];angle [deg];mode\n0;10,5;on\n20;-3;on\n40;;off\n", "decimal commas"),
        ("t\tangle (°)\n0\t10.5\n0.02\t-3\n0.04\t\n", "tabs between columns"),
        ("time / ms,angle / deg\n0,10.5\n20,-3\n40,\n", "times 0.001"),
        ("time;angle;\ns;deg;\n0;10.5;\n0.02;-3;\n0.04;;\n", "angle [rad], times 0.0174532925"),
        (
            "Timestamp,angle [deg]\n2024-05-01 12:00:00,10.5\n2024-05-01 12:00:00.02,-3\n"
            "2024-05-01 12:00:00.04,\n",
            "'Timestamp' is time",
        ),
    ],
)
def test_tables_as_people_have_them(tmp_path, text, reported):
    path, lines = tmp_path / "log.csv", []
    path.write_bytes(text.encode("cp1252"))
    log = read_csv(path, report=lines.append)
    np.testing.assert_allclose(log.t, [0.0, 0.02, 0.04], atol=1e-12)
    np.testing.assert_allclose(log.values["angle"], np.radians([10.5, -3.0, np.nan]))
    assert log.names == ("angle",) and log.about["units"].endswith("angle rad")
    assert len(lines) == 1 and reported in lines[0] and lines[0].startswith(str(path))


def test_a_plain_table_is_not_commented_on(tmp_path, capsys):
    (tmp_path / "log.csv").write_text("time,x\n0,1\n1,2\n")
    assert read_csv(tmp_path / "log.csv").about == {}
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("header", "name", "unit", "factor"),
    [
        ("force [kN]", "force", "N", 1e3),
        ("moment [Nm]", "moment", "N m", 1.0),
        ("speed [km/h]", "speed", "m/s", 1 / 3.6),
        ("rate [°/s]", "rate", "rad/s", np.pi / 180),
        ("a [mm/s²]", "a", "m/s^2", 1e-3),
        ("duty [%]", "duty", "1", 0.01),
        ("springs[2]", "springs[2]", None, 1.0),
        ("force (filtered)", "force (filtered)", None, 1.0),
        ("/joint/t", "/joint/t", None, 1.0),
        ("acceleration [g]", "acceleration", "?", 1.0),  # gram or gravity
        ("current [A]", "current", "?", 1.0),
    ],
)
def test_units_in_headers(header, name, unit, factor):
    column = read_headers("log", ["time", header])[1]
    assert (column.name, column.unit) == (name, unit)
    assert np.isclose(column.factor, factor, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Time [m],x\n0,1\n1,2\n", "'Time .m.', expected a time in s, ms"),
        ("t,Time,x\n0,0,1\n1,1,2\n", "the time columns t, Time, expected one"),
        ("time;x\n0;1.234,5\n1;2,5\n", "row 2, column x: got '1.234,5'"),
        ("time,x [mm],x\n0,1,1\n1,2,2\n", "x more than once"),
        ("time,mode\n0,on\n1,off\n", "at least one column of numbers"),
        (
            "time,x\n2024-05-01 12:00:00,1\nsoon,2\n",
            "row 3, column time: got 'soon', expected a nu",
        ),
    ],
)
def test_bad_tables_are_named(tmp_path, text, message):
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_csv(path)


def test_matlab_files(tmp_path):
    from scipy.io import savemat

    t = 0.1 * np.arange(5)
    log = {"log": {"Time": 1.0 * t, "x": t**2, "pose": np.outer(np.ones(3), t), "gain": [1.0, 2.0]}}
    savemat(tmp_path / "log.mat", log)
    lines = []
    found = read_recording(tmp_path / "log.mat", report=lines.append)
    assert np.array_equal(found.t, t) and np.array_equal(found.values["x"], t**2)
    assert found.values["pose"].shape == (5, 3) and "gain" in lines[0]
    renamed = read_recording(tmp_path / "log.mat", {"y": "x"}, report=None)
    assert renamed.names == ("y",)
    (tmp_path / "bad.mat").write_bytes(b"nothing" * 40)
    with pytest.raises(ValueError, match="expected a MATLAB file"):
        read_recording(tmp_path / "bad.mat")


def test_mcap_files_of_json_messages(tmp_path):
    writer_of = pytest.importorskip("mcap.writer").Writer
    with (tmp_path / "log.mcap").open("wb") as file:
        writer = writer_of(file)
        writer.start()
        schema = writer.register_schema("any", "jsonschema", b"{}")
        angle = writer.register_channel("/angle", "json", schema)
        force = writer.register_channel("/force", "json", schema)
        for i in range(4):
            at = 1_700_000_000_000_000_000 + i * 10_000_000
            message = json.dumps({"data": [0.1 * i, 5.0], "name": "a"}).encode()
            writer.add_message(angle, at, message, at)
            if i % 2:
                writer.add_message(force, at, json.dumps({"z": -i}).encode(), at)
        writer.finish()
    found = read_recording(tmp_path / "log.mcap", report=None)
    np.testing.assert_allclose(found.t, [0.0, 0.01, 0.02, 0.03], atol=1e-9)
    np.testing.assert_allclose(found.values["/angle.data_1"], [0.0, 0.1, 0.2, 0.3])
    np.testing.assert_array_equal(found.values["/force.z"], [np.nan, -1.0, np.nan, -3.0])
    only = read_recording(tmp_path / "log.mcap", {"force": "/force.z"}, report=None)
    assert only.names == ("force",) and only.t.size == 2


@pytest.mark.parametrize("kind", ["SQLITE3", "MCAP"])
def test_ros_2_bags(tmp_path, kind):
    """Joint states with header stamps, as a folder and, for MCAP, as the file alone."""
    bags = pytest.importorskip("rosbags.rosbag2")
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kinds = store.types
    JointState = kinds["sensor_msgs/msg/JointState"]
    Header, Time = kinds["std_msgs/msg/Header"], kinds["builtin_interfaces/msg/Time"]
    folder = tmp_path / "bag"
    plugin = bags.StoragePlugin[kind]
    with bags.Writer(folder, version=9, storage_plugin=plugin) as writer:
        topic = writer.add_connection("/joint_states", JointState.__msgtype__, typestore=store)
        for i in range(3):
            stamp = Time(sec=100, nanosec=20_000_000 * i)
            message = JointState(
                Header(stamp=stamp, frame_id=""), ["a", "b"], np.array([0.5 * i, 1.0]),
                np.zeros(0), np.zeros(0),
            )  # fmt: skip
            raw = store.serialize_cdr(message, JointState.__msgtype__)
            writer.write(topic, 100_000_000_000 + 20_000_000 * i + 7, raw)
    paths = [folder, *sorted(folder.glob("*.mcap"))]
    for path in paths:
        found = read_recording(path, report=None)
        np.testing.assert_allclose(found.t, [0.0, 0.02, 0.04], atol=1e-9)
        np.testing.assert_allclose(found.values["/joint_states.position_1"], [0.0, 0.5, 1.0])
