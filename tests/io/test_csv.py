"""Tables of recordings: nothing lost on the way, and errors that say where."""

import numpy as np
import pytest

import cordax
from cordax import Recording
from cordax.io import read_csv, write_csv
from cordax.systems import Pendulum


def test_round_trip_is_exact_and_keeps_gaps(tmp_path):
    t = np.array([0.0, 0.1, 0.30000000000000004])
    values = {"alpha_1": np.array([1 / 3, np.nan, -1e-300]), "alpha_2": np.array([1.0, 2.0, np.pi])}
    path = write_csv(tmp_path / "folder" / "r.csv", Recording(t, values))
    assert path.read_text().splitlines()[2] == "0.1,,2.0"
    back = read_csv(path)
    np.testing.assert_array_equal(back.t, t)
    for name, x in values.items():
        np.testing.assert_array_equal(back.values[name], x)


def test_trajectory_by_names(tmp_path):
    run = cordax.simulate(Pendulum(), dt=0.1, duration=0.3, integrator="rk4")
    whole = read_csv(write_csv(tmp_path / "all.csv", run))
    assert whole.names[:2] == ("angle", "d_angle")
    np.testing.assert_array_equal(whole.values["d_angle"], run.v[:, 0])
    one = read_csv(write_csv(tmp_path / "one.csv", run, ["d_angle"]))
    assert one.names == ("d_angle",)
    with pytest.raises(ValueError, match="names: got 'speed', expected one of angle, d_angle"):
        write_csv(tmp_path / "none.csv", run, ["speed"])
    assert not (tmp_path / "none.csv").exists()


def test_tables_of_other_programs(tmp_path):
    """Byte-order mark, spaces, blank lines, time not first, written-out nan."""
    path = tmp_path / "other.csv"
    path.write_bytes("\ufeffalpha_1, time \r\n0.5, 0\r\n\r\nnan,0.1\r\n".encode())
    back = read_csv(path)
    np.testing.assert_array_equal(back.t, [0.0, 0.1])
    np.testing.assert_array_equal(back.values["alpha_1"], [0.5, np.nan])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty file"),
        ("alpha_1\n1\n", "row 1: got alpha_1, expected a column named 'time'"),
        ("time\n0\n1\n", "only 'time'"),
        ("time,a,a\n0,1,2\n1,2,3\n", "a more than once"),
        ("time,a\n0,1\n", "1 rows of numbers, expected at least two"),
        ("time,a\n0,1\n1,2,3\n", "row 3: got 3 cells, expected 2"),
        ("time,a\n0,1\n1,x\n", "row 3, column a: got 'x', expected a finite number"),
        ("time,a\n0,1\n1,inf\n", "row 3, column a: got 'inf'"),
        ("time,a\n0,1\n\n0,2\n", "row 4, column time: got 0 s after 0 s, expected finite times"),
        ("time,a\n0,1\n,2\n", "row 3, column time: got nan s"),
    ],
)
def test_errors_name_row_and_column(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        read_csv(path)
    assert str(path) in str(error.value)


def test_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_csv(tmp_path / "r.csv", Recording([0.0, 1.0], {"a": [1.0, 2.0]}))
    before = path.read_text()

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_csv(path, Recording([0.0, 1.0], {"a": [3.0, 4.0]}))
    assert path.read_text() == before and list(tmp_path.iterdir()) == [path]


def test_words_above_the_table_come_back(tmp_path):
    about = {"integrator": "zhai", "dt": "0.001", "made on": "a, b = c"}
    path = write_csv(tmp_path / "r.csv", Recording([0.0, 1.0], {"a": [1.0, 2.0]}, about))
    assert path.read_text().startswith("# integrator = zhai\n# dt = 0.001\n# made on = a, b = c\n")
    back = read_csv(path)
    assert back.about == about and back.select(["a"]).about == about
    path.write_text("# a comment without a name\ntime,a\n0,1\n1,2\n")
    assert read_csv(path).about == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"time,a\n0,\xff\xfe\n1,2\n", "not text, expected UTF-8"),
        (
            b"time,a\n0," + b"1" * 200_000 + b"\n1,2\n",
            "got field larger than .* expected a table of text",
        ),
    ],
)
def test_what_is_no_table_is_named(tmp_path, content, message):
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_csv(path)
    assert str(path) in str(error.value)
