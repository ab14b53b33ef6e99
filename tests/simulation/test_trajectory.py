"""What a run stores: names, energies, files, tables."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Presentation, Result, State, Trajectory, simulate
from cordax.systems import Oscillator
from helpers.machines import DoublePendulum


class Watched(DoublePendulum):
    """Has outputs and a warning, and ends where the lower rod is upright."""

    def outputs(self, t, q, v, u, multipliers):
        return {"tip": self.inertial_coordinates(q)[1::2], "spin": jnp.sum(v)}

    def presentation(self):
        return Presentation(warnings=lambda outputs: {"tip_left": outputs["tip"][0] < 0})

    def valid(self, t, q, v):
        return jnp.abs(q[1]) < 3.0


START = State(np.array([1.0, 0.3]), np.array([0.0, 0.0]))
OPTIONS = {"dt": 0.01, "duration": 1.0, "save_every": 5, "throw": False}


@pytest.fixture(scope="module")
def run():
    return simulate(Watched(), START, control=np.array([0.1, -0.2]), **OPTIONS)


@pytest.fixture(scope="module")
def failed():
    return simulate(Watched(), START, control=np.array([0.1, 40.0]), **OPTIONS)


def test_names(run):
    expected = (
        "upper",
        "lower",
        "d_upper",
        "d_lower",
        "torque_upper",
        "torque_lower",
        "spin",
        "tip",
    )
    assert run.names == expected
    np.testing.assert_array_equal(run["lower"], run.q[:, 1])
    np.testing.assert_array_equal(run["d_lower"], run.v[:, 1])
    np.testing.assert_array_equal(run["torque_lower"], np.full(21, -0.2))
    np.testing.assert_allclose(run["spin"], run.v.sum(axis=1))
    np.testing.assert_allclose(
        run["tip"][:, 0], 0.8 * np.sin(run.q[:, 0]) + 0.5 * np.sin(run.q[:, 1])
    )
    with pytest.raises(KeyError, match=r"no 'middle'; it has upper, lower"):
        run["middle"]


def test_warning_gives_the_first_time_of_a_step(run):
    left = run["tip"][:, 0] < 0
    assert np.any(left) and not left[0]
    first = int(np.argmax(left))  # seen before, at a step in between that is not stored
    assert float(run.t[first - 1]) < float(run.warnings["tip_left"]) < float(run.t[first])
    assert f"tip left from t = {float(run.warnings['tip_left']):g} s" in run.summary()


def test_energy_is_that_of_the_machine(run):
    q, v = np.asarray(run.q[7]), np.asarray(run.v[7])
    (m1, m2), (l1, l2) = (1.0, 0.7), (0.8, 0.5)
    kinetic = 0.5 * (m1 + m2) * (l1 * v[0]) ** 2 + 0.5 * m2 * (l2 * v[1]) ** 2
    kinetic += m2 * l1 * l2 * v[0] * v[1] * np.cos(q[0] - q[1])
    potential = -9.81 * ((m1 + m2) * l1 * np.cos(q[0]) + m2 * l2 * np.cos(q[1]))
    energy = run.energy()
    assert float(energy["kinetic"][7]) == pytest.approx(kinetic, rel=1e-12)
    assert float(energy["potential"][7]) == pytest.approx(potential, rel=1e-12)
    np.testing.assert_allclose(energy["total"], energy["kinetic"] + energy["potential"])
    np.testing.assert_array_equal(run.drift(), np.zeros(21))


@pytest.mark.parametrize("which", ["run", "failed"])
def test_files_keep_every_bit(which, request, tmp_path):
    run = request.getfixturevalue(which)
    assert bool(run.succeeded) is (which == "run")
    path = run.save(tmp_path / "deep" / "run_0.5")
    assert path == tmp_path / "deep" / "run_0.5.npz"
    back = Trajectory.load(path, Watched())
    for name in ("t", "q", "v", "u", "multipliers", "failure_time"):
        old, new = np.asarray(getattr(run, name)), np.asarray(getattr(back, name))
        assert old.dtype == new.dtype and old.shape == new.shape
        assert old.tobytes() == new.tobytes()
    assert back.outputs.keys() == run.outputs.keys()
    assert all(np.array_equal(back.outputs[n], run.outputs[n]) for n in run.outputs)
    assert all(np.array_equal(back.warnings[n], run.warnings[n]) for n in run.warnings)
    assert back.result == run.result
    assert back.summary() == run.summary()
    np.testing.assert_array_equal(back.energy()["total"], run.energy()["total"])


def test_loading_without_or_with_another_machine(run, tmp_path):
    path = run.save(tmp_path / "run.npz")
    bare = Trajectory.load(path)  # a machine of these tests is not one of cordax
    assert bare.system is None
    np.testing.assert_array_equal(bare["tip"], run["tip"])
    with pytest.raises(ValueError, match=r"energy needs the machine"):
        bare.energy()
    with pytest.raises(ValueError, match=r"system: got Oscillator, but .*run\.npz.* of Watched"):
        Trajectory.load(path, Oscillator())


def test_a_batch_goes_to_a_file_and_back(tmp_path):
    gravity = jnp.array([9.81, 3.0])
    batch = cordax.simulate_batch(
        lambda g: (Watched(gravity=g), START), gravity, dt=0.01, duration=0.1, integrator="zhai"
    )
    back = Trajectory.load(batch.save(tmp_path / "batch"))
    np.testing.assert_array_equal(back.q, batch.q)
    np.testing.assert_array_equal(back.result == Result.SUCCESSFUL, [True, True])


def test_failed_writing_leaves_the_old_file_and_no_part(run, tmp_path, monkeypatch):
    path = run.save(tmp_path / "run.npz")
    before = path.read_bytes()

    def disk_full(file, **arrays):
        file.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", disk_full)
    with pytest.raises(OSError, match="no space"):
        run.save(path)
    with pytest.raises(OSError, match="no space"):
        run.save(tmp_path / "other.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]
    assert path.read_bytes() == before


def test_to_xarray(run, failed):
    data = run.to_xarray()
    assert data.sizes["time"] == 21
    np.testing.assert_array_equal(data["q"].sel(coordinate="lower"), run["lower"])
    np.testing.assert_array_equal(data["v"].sel(velocity="upper"), run["d_upper"])
    np.testing.assert_array_equal(data["u"].sel(input="torque_lower"), run["torque_lower"])
    np.testing.assert_array_equal(data["tip"], run["tip"])
    np.testing.assert_array_equal(data["spin"].sel(time=0.5, method="nearest"), run["spin"][10])
    assert data.attrs == {"machine": "Watched", "result": "successful"}
    assert "left the range" in failed.to_xarray().attrs["result"]
    assert data["time"].attrs["units"] == "s"


def test_batches_to_xarray_and_units_to_tables(tmp_path):
    """What a machine says of units reaches tables and files; members of a batch are an axis."""
    from cordax.systems import Pendulum

    one = cordax.simulate(Pendulum(), dt=0.1, duration=0.2, integrator="rk4")
    two = jax.tree.map(lambda x: jnp.stack([x, x + 1 if x.ndim == 2 else x]), one)
    data = two.to_xarray()
    assert dict(data.sizes) | {"constraint": 0} == dict(
        member=2, time=3, coordinate=1, velocity=1, input=1, constraint=0
    )
    np.testing.assert_array_equal(data["q"].sel(member=1, coordinate="angle"), one["angle"] + 1)
    assert str(data["coordinate_unit"].sel(coordinate="angle").values) == "rad"
    assert str(data["velocity_unit"].sel(velocity="angle").values) == "rad/s"
    assert bool(data["succeeded"].all())
    other = eqx.tree_at(lambda run: run.t, two, two.t.at[1].add(1.0))
    with pytest.raises(ValueError, match="equal time grids"):
        other.to_xarray()
    assert one.to_pandas().attrs["units"]["d_angle"] == "rad/s"
    head = one.to_csv(tmp_path / "a.csv").read_text().splitlines()[0]
    assert head == "# units = time s, angle rad, d_angle rad/s, torque N m"
