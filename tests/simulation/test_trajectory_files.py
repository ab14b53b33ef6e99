"""Files of trajectories: machines come back as data, and what is no such file is named."""

import json
import subprocess
import sys

import equinox as eqx
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

import cordax
from cordax import Trajectory
from cordax._base import atomic_files
from cordax._base.serialise import NotDescribable, describe, rebuild
from cordax.mechanics.reference_motion import Quintic
from cordax.systems import (
    CableRobot,
    ElasticCables,
    End,
    NaturalBody,
    Neck,
    Oscillator,
    Pendulum,
    PlasticFlow,
    ProgrammedLengths,
    RigidTendon,
    SplineRod,
    SwivelPulleyExit,
    box_inertia,
)
from helpers.machines import DoublePendulum

POINTS = np.array([[-3.0, -2.0, 2.0], [-3.0, 2.5, 2.0], [3.0, 2.5, 2.0], [3.0, -2.0, 2.0]])
BODY = NaturalBody(6.24, box_inertia(6.24, [0.2, 0.4, 0.01]))
ROBOT = CableRobot(
    BODY,
    0.1 * POINTS,
    SwivelPulleyExit(POINTS, 0.05, 5e-3),
    ProgrammedLengths(Quintic(np.ones(4), np.ones((1, 4)), np.array([[0.0, 1.0]]))),
    cables=ElasticCables(1e5),
).with_payload(BODY, [0.0, 0.0, 0.1])


@pytest.mark.parametrize(
    "machine",
    [
        Oscillator(2.0, 50.0, 0.8),
        Neck.default(3),
        Neck.default(1, tendon=RigidTendon()),
        ROBOT,
        SplineRod(left=End.clamped(), loads=(0.5,), quadrature=("gauss", 3)),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_machines_are_data(machine):
    arrays = {}
    text = json.dumps(describe(machine, arrays, "system/"))
    back = rebuild(json.loads(text), arrays)
    assert bool(eqx.tree_equal(back, machine))
    assert type(back) is type(machine) and back.coordinate_names == machine.coordinate_names


def test_what_is_no_data_is_not_described():
    class Own(Oscillator):
        pass

    for thing in (lambda x: x, Own(1.0, 2.0, 3.0), {"a": print}, PlasticFlow):
        with pytest.raises(NotDescribable):
            describe(thing, {}, "")


@pytest.mark.parametrize(
    "kind",
    [
        "os:system",
        "cordax.simulation.trajectory:np",
        "cordax.cli:main",
        "cordax.__main__:X",
        "cordax.systems.__main__:X",
        "cordax.nowhere:X",
    ],
)
def test_only_modules_of_cordax_are_made(kind):
    with pytest.raises(ValueError, match="which this version of cordax does not have"):
        rebuild({"kind": kind, "fields": {}}, {})
    with pytest.raises(ValueError, match=r"another version of cordax \(fields damping\)"):
        fields = {"mass": 1.0, "stiffness": 1.0}
        rebuild({"kind": "cordax.systems.oscillator:Oscillator", "fields": fields}, {})


@pytest.fixture(scope="module")
def run():
    return cordax.simulate(Oscillator(2.0, 50.0, 0.8), dt=0.01, duration=0.2, integrator="rk4")


@pytest.fixture
def stored(run, tmp_path):
    return run.save(tmp_path / "run.npz")


def test_a_file_has_names_energies_and_can_be_gone_on_with(run, stored):
    back = Trajectory.load(stored)
    assert isinstance(back.system, Oscillator) and eqx.tree_equal(back.system, run.system)
    np.testing.assert_array_equal(back["x"], run["x"])
    np.testing.assert_array_equal(back.energy()["total"], run.energy()["total"])
    options = {"dt": 0.01, "integrator": "rk4"}
    whole = cordax.simulate(run.system, duration=0.4, **options)
    rest = cordax.simulate(back.system, back.end, t0=float(back.t[-1]), duration=0.2, **options)
    np.testing.assert_allclose(rest.q, whole.q[20:], rtol=1e-12)


class Mine(Pendulum):
    """A machine of a user."""


def test_phases_of_other_coordinates(run, tmp_path):
    """Saved as one file, plotted, and gone on with; machines of cordax come back, others are given
    again."""
    fork = DoublePendulum()
    apart = lambda s: (fork, cordax.State(jnp.append(s.q, 0.3), jnp.append(s.v, 0.0)))
    joined = lambda s: (Mine(), cordax.State(s.q[:1], s.v[:1]))
    phases = [(Oscillator(), 0.1), (apart, 0.2), (joined, 0.3)]
    options = {"dt": 0.01, "integrator": "rk4"}
    whole = cordax.simulate(phases, **options)
    path = whole.save(tmp_path / "phases.npz")
    bare = Trajectory.load(path)
    assert [type(p.system).__name__ for p in bare.phases] == ["Oscillator", "NoneType", "NoneType"]
    with pytest.raises(ValueError, match="got 1 machines, expected one for each of the 3 phases"):
        Trajectory.load(path, Mine())
    back = Trajectory.load(path, [Oscillator(), fork, Mine()])
    assert eqx.tree_equal(back.phases[1].system, fork) and isinstance(back.system, Mine)
    np.testing.assert_array_equal(back.q, whole.q)
    np.testing.assert_array_equal(back.energy()["total"], whole.energy()["total"])
    assert np.all(np.isfinite(back.energy()["total"]))
    plt.close(back.plot())
    on = cordax.simulate(back.system, back.end, t0=float(back.t[-1]), duration=0.1, **options)
    longer = cordax.simulate([*phases[:2], (joined, 0.4)], **options)
    np.testing.assert_allclose(on.q[-1], longer.end.q, rtol=1e-12)


def _changed(path, **changes):
    with np.load(path) as file:
        arrays = dict(file)
    arrays |= {name: x for name, x in changes.items() if x is not None}
    for name in [name for name, x in changes.items() if x is None]:
        del arrays[name]
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": np.zeros((20, 1))}, r"q of shape \(20, 1\) where t has \(21,\)"),
        ({"v": np.zeros(21)}, r"v of shape \(21,\)"),
        ({"q": np.zeros((21, 1), complex)}, "q of type complex128"),
        ({"t": np.array(["a"] * 21)}, "t of type"),
        ({"u": None}, "a file without u"),
        ({"result": np.asarray("splendid")}, "the result splendid"),
        ({"about": np.asarray("{}")}, "a file that is not a cordax trajectory"),
        ({"about": np.asarray('{"format": 99}')}, "format 99 of another version"),
        ({"about": np.asarray("{")}, "expected a trajectory written by"),
        ({"about": None}, "a file that is not a cordax trajectory"),
        ({"q": np.zeros((21, 3)), "v": np.zeros((21, 3))}, "1 coordinates.*a trajectory of 3"),
        ({"outputs/energy": np.zeros(4)}, "outputs/energy of shape"),
        ({"events/time": np.zeros(4)}, "events of unequal length"),
    ],
)
def test_files_that_do_not_fit_together(stored, changes, message):
    _changed(stored, **changes)
    with pytest.raises(ValueError, match=message) as error:
        Trajectory.load(stored)
    assert str(stored) in str(error.value)


def test_bytes_that_are_no_trajectory(stored, tmp_path):
    whole = stored.read_bytes()
    broken = {
        "truncated": whole[: len(whole) // 2],
        "empty": b"",
        "foreign": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "flipped": whole[:200] + bytes(b ^ 255 for b in whole[200:300]) + whole[300:],
    }
    np.save(tmp_path / "array.npy", np.zeros(3))
    broken["array"] = (tmp_path / "array.npy").read_bytes()
    np.save(tmp_path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    broken["pickled"] = (tmp_path / "pickle.npy").read_bytes()
    for name, content in broken.items():
        path = tmp_path / f"{name}.npz"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"{name}.npz: got .*written by Trajectory.save"):
            Trajectory.load(path)
    with pytest.raises(FileNotFoundError, match="missing"):
        Trajectory.load(tmp_path / "missing.npz")


def test_parts_of_killed_processes_are_swept(run, tmp_path):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    host = atomic_files._host()
    left = tmp_path / f".other.{host}.{dead}.part.npz"
    alive = tmp_path / f".busy.{host}.1.part.npz"
    foreign = tmp_path / f".far.{host}x.{dead}.part.npz"
    for path in (left, alive, foreign):
        path.write_bytes(b"half")
    run.save(tmp_path / "run.npz")
    assert {p.name for p in tmp_path.iterdir()} == {"run.npz", alive.name, foreign.name}


def test_batches_have_no_machine(tmp_path):
    build = lambda k: Oscillator(2.0, k, 0.8)
    options = {"dt": 0.01, "duration": 0.02, "integrator": "rk4"}
    batch = cordax.simulate_batch(build, jnp.array([1.0, 2.0]), **options)
    back = Trajectory.load(batch.save(tmp_path / "batch"))
    assert back.system is None and back.end.q.shape == (2, 1)


def test_another_machine_of_the_same_class_is_rejected(tmp_path):
    path = cordax.simulate(Oscillator(mass=2.0), dt=0.1, duration=0.2).save(tmp_path / "run")
    with pytest.raises(ValueError, match="Oscillator whose parameters differ"):
        Trajectory.load(path, Oscillator(mass=3.0))
    back = Trajectory.load(path, Oscillator(mass=2.0))
    assert float(back.system.mass) == 2.0
