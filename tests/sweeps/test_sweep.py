"""Sweeps: the same as single runs, resumable, and honest about members that fail."""

import functools
import json
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax._jax.identity import digest_of
from cordax.sweeps import Measure, Sweep, grid, latin_hypercube
from cordax.sweeps import shard_files as files
from cordax.sweeps.tables import variation
from cordax.systems import Oscillator

BASE = cordax.Experiment(Oscillator(), duration=0.5, dt=0.01, integrator="rk4")
MEASURES = ("largest x", "final x")
TABLE = grid({"stiffness": [10.0, 100.0, 1000.0], "mass": [1.0, 2.0]})


class InTurn(Executor):
    """Computes shards in this process, one after the other; `before(index)` is called first."""

    def __init__(self, before):
        self.before = before

    def submit(self, function, *arguments):  # pyright: ignore[reportIncompatibleMethodOverride]
        *_, index, _ = arguments
        self.before(index)
        future = Future()
        try:
            future.set_result(function(*arguments))
        except RuntimeError as error:
            future.set_exception(error)
        return future


@pytest.fixture(scope="module")
def whole():
    return cordax.sweep(BASE, TABLE, MEASURES, envelope=["x"], shard=4, chunk=2)


def test_members_are_single_runs(whole):
    assert whole.succeeded.all() and whole.size == 6
    runs = [cordax.simulate(whole.experiment(i)) for i in range(6)]
    x = np.stack([run["x"] for run in runs])
    np.testing.assert_allclose(whole.measures["largest x"], x.max(axis=1), rtol=1e-12)
    np.testing.assert_allclose(whole.measures["final x"], x[:, -1], rtol=0, atol=1e-12)
    seen = whole.envelope["x"]
    np.testing.assert_allclose(seen.mean, x.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(seen.deviation, x.std(axis=0, ddof=1), atol=1e-12)
    np.testing.assert_allclose(seen.high, x.max(axis=0), atol=1e-12)
    np.testing.assert_array_equal(seen.t, runs[0].t)


def test_the_worst_come_first(whole):
    worst = whole.worst("final x", 2)
    order = np.argsort(-whole.measures["final x"])
    assert [row["row"] for row in worst] == order[:2].tolist()
    assert worst[0]["stiffness"] == TABLE["stiffness"][order[0]]
    assert "6 variants: 6 finished, 0 of them failed" in whole.summary()
    assert "stiffness [N/m]" in whole.summary() and "final x [m]" in whole.summary()
    table = whole.to_pandas()
    assert list(table.columns[:4]) == ["stiffness", "mass", "largest x", "final x"]


def test_a_member_that_fails_leaves_the_others_alone(whole):
    stiff = {name: np.append(x, x[-1]) for name, x in TABLE.items()}
    stiff["stiffness"][-1] = 1e12
    found = cordax.sweep(BASE, stiff, MEASURES, shard=8, chunk=2)
    assert not found.succeeded[-1] and found.succeeded[:-1].all()
    assert np.isnan(found.measures["final x"][-1]) and np.isfinite(found.failure_time[-1])
    np.testing.assert_allclose(
        found.measures["final x"][:-1], whole.measures["final x"], rtol=0, atol=1e-12
    )


def test_a_killed_sweep_goes_on(whole, tmp_path):
    def killed(index):
        if index == 1:
            raise KeyboardInterrupt

    options = {"envelope": ["x"], "folder": tmp_path, "shard": 4, "chunk": 2}
    with pytest.raises(KeyboardInterrupt):
        cordax.sweep(BASE, TABLE, MEASURES, executor=InTurn(killed), **options)
    half = Sweep.load(tmp_path)
    assert half.finished.tolist() == [True] * 4 + [False] * 2
    assert np.isnan(half.measures["final x"][4:]).all()
    again = []
    found = cordax.sweep(BASE, TABLE, MEASURES, executor=InTurn(again.append), **options)
    assert again == [1]  # the first one was not computed twice
    loaded = Sweep.load(tmp_path, BASE)
    assert loaded.units == found.units and loaded.units["largest x"] == "m"
    for one in (found, loaded):
        for name in whole.measures:
            np.testing.assert_array_equal(one.measures[name], whole.measures[name])
        np.testing.assert_allclose(one.envelope["x"].mean, whole.envelope["x"].mean, atol=1e-15)


def test_another_sweep_in_the_folder_is_noticed(tmp_path):
    options = {"folder": tmp_path, "shard": 4, "chunk": 2}
    cordax.sweep(BASE, TABLE, MEASURES, **options)
    heavier = BASE.replace(system=Oscillator(damping=3.0))
    with pytest.raises(ValueError, match="differs in experiment"):
        cordax.sweep(heavier, TABLE, MEASURES, **options)
    page = json.loads((tmp_path / "sweep.json").read_text())
    (tmp_path / "sweep.json").write_text(json.dumps(page | {"code": "older"}))
    with pytest.raises(ValueError, match="differs in code"):
        cordax.sweep(BASE, TABLE, MEASURES, **options)
    found = cordax.sweep(heavier, TABLE, MEASURES, **options, overwrite=True)
    assert found.finished.all()
    shard = files.shard_path(tmp_path, 0)
    shard.write_bytes(shard.read_bytes()[:100])
    with pytest.raises(ValueError, match="shard-000000"):
        Sweep.load(tmp_path)


GRAVITY = 1.0


def _load(mass):
    return GRAVITY * mass


class _Hanging(Oscillator):
    def potential_energy(self, t, q):
        return super().potential_energy(t, q) - _load(self.mass) * q[0]


class _Machine(_Hanging):
    pass


def test_changes_of_globals_helpers_and_base_classes_are_noticed(tmp_path, monkeypatch):
    """Neither is part of the experiment; the machine of the user reaches all of them."""
    options = {"folder": tmp_path, "shard": 3, "chunk": 3}
    machine = BASE.replace(system=_Machine())
    cordax.sweep(machine, TABLE, MEASURES, **options)
    for change in (
        lambda patch: patch.setitem(globals(), "GRAVITY", 2.0),
        lambda patch: patch.setitem(globals(), "_load", lambda mass: mass + 1.0),
        lambda patch: patch.setattr(_Hanging, "potential_energy", Oscillator.potential_energy),
    ):
        with monkeypatch.context() as patch:
            change(patch)
            with pytest.raises(ValueError, match="differs in experiment"):
                cordax.sweep(machine, TABLE, MEASURES, **options)
    assert cordax.sweep(machine, TABLE, MEASURES, **options).finished.all()


def test_an_older_sweep_ends_when_its_folder_is_overwritten(tmp_path):
    options = {"folder": tmp_path, "shard": 2, "chunk": 2}
    newer = []

    def overwrite(index):
        if index == 1 and not newer:  # between two shards of the older sweep
            newer.append(None)
            heavier = BASE.replace(system=Oscillator(damping=3.0))
            newer[0] = cordax.sweep(heavier, TABLE, MEASURES, **options, overwrite=True)

    with pytest.raises(RuntimeError, match="has been overwritten by another sweep"):
        cordax.sweep(BASE, TABLE, MEASURES, executor=InTurn(overwrite), **options)
    loaded = Sweep.load(tmp_path)
    assert loaded.finished.all()
    for name in MEASURES:
        np.testing.assert_array_equal(loaded.measures[name], newer[0].measures[name])


def test_shards_of_other_rows_and_corrupt_ones_are_computed_again(tmp_path):
    options = {"folder": tmp_path, "shard": 3, "chunk": 3}
    whole = cordax.sweep(BASE, TABLE, MEASURES, **options)
    first, second = (files.shard_path(tmp_path, i) for i in (0, 1))
    for damage, message in (
        (first.read_bytes(), "rows of another shard or sweep; its rows are computed again"),
        (second.read_bytes()[:100], "its rows are computed again"),
    ):
        second.write_bytes(damage)
        with pytest.raises(ValueError, match="shard-000001"):
            Sweep.load(tmp_path)
        with pytest.warns(UserWarning, match=message):
            again = cordax.sweep(BASE, TABLE, MEASURES, **options)
        np.testing.assert_array_equal(again.measures["final x"], whole.measures["final x"])
        np.testing.assert_array_equal(
            Sweep.load(tmp_path).measures["final x"], whole.measures["final x"]
        )


def test_executors_find_the_same(whole, tmp_path, monkeypatch):
    with ThreadPoolExecutor(2) as threads:
        found = cordax.sweep(BASE, TABLE, MEASURES, shard=4, chunk=2, executor=threads)
    np.testing.assert_array_equal(found.measures["final x"], whole.measures["final x"])
    # other processes: spawned, as JAX has threads that do not survive a fork
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        options = {"shard": 4, "chunk": 2, "executor": pool, "folder": tmp_path}
        found = cordax.sweep(BASE, TABLE, (*MEASURES, _high), **options)
        # a process that was started earlier has the global value of that time
        monkeypatch.setitem(globals(), "LIMIT", 3.0)
        with pytest.raises(RuntimeError, match=r"other global values .* start the workers again"):
            cordax.sweep(BASE, TABLE, (*MEASURES, _high), **options | {"folder": None})
    np.testing.assert_allclose(found.measures["final x"], whole.measures["final x"], atol=1e-13)
    assert len(list(tmp_path.glob("shard-*.npz"))) == 2


def test_dask_on_this_machine_finds_the_same(whole, tmp_path):
    """Through the executor of its client, as on a cluster, with a scheduler and a worker of their
    own on loopback."""
    distributed = pytest.importorskip("distributed")
    quiet = {"dashboard_address": None, "silence_logs": 50, "local_directory": tmp_path / "dask"}
    with distributed.LocalCluster(1, threads_per_worker=1, host="127.0.0.1", **quiet) as cluster:
        with distributed.Client(cluster) as client:
            options = {"shard": 4, "chunk": 2, "executor": client.get_executor()}
            found = cordax.sweep(BASE, TABLE, MEASURES, folder=tmp_path / "sweep", **options)
    np.testing.assert_allclose(found.measures["final x"], whole.measures["final x"], atol=1e-13)
    assert found.succeeded.all() and len(list((tmp_path / "sweep").glob("shard-*.npz"))) == 2


def test_tables():
    assert TABLE["mass"].tolist() == [1.0, 2.0] * 3
    name, values = variation("tendon.stiffness=1e4:1e6:3:log")
    assert name == "tendon.stiffness"
    np.testing.assert_allclose(values, [1e4, 1e5, 1e6])
    np.testing.assert_allclose(variation("mass=1,2.5")[1], [1.0, 2.5])
    np.testing.assert_allclose(variation("mass=0:1:3")[1], [0.0, 0.5, 1.0])
    cube = latin_hypercube({"a": (1.0, 16.0), "b": (2.0, 32.0)}, 4, log=True)
    parts = np.sort(np.floor(np.log(cube["a"]) / np.log(16.0) * 4))
    assert parts.tolist() == [0, 1, 2, 3]
    mixed = latin_hypercube({"a": (1.0, 16.0), "b": (2.0, 32.0)}, 4, log=["a"])
    np.testing.assert_array_equal(mixed["a"], cube["a"])
    assert np.sort(np.floor((mixed["b"] - 2.0) / 30.0 * 4)).tolist() == [0, 1, 2, 3]
    for ends in ((2.0, 1.0), (1.0, 2.0, 3.0), 1.0):
        with pytest.raises(ValueError, match=r"a: .* expected \(low, high\)"):
            latin_hypercube({"a": ends}, 4)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vary": {"stifness": [1.0]}}, "stifness"),
        ({"vary": {"mass": [1.0], "stiffness": [1.0, 2.0]}}, "one length"),
        ({"vary": {"mass": ["heavy"]}}, "mass"),
        ({"vary": {}}, "vary"),
        ({"measures": ["biggest x"]}, "biggest"),
        ({"measures": ["largest y"]}, "measure: got 'y', expected names of the machine: x"),
        ({"measures": ["largest"]}, "KIND NAME"),
        ({"measures": []}, "something to keep"),
        ({"shard": 0}, "shard"),
        ({"experiment": cordax.Experiment(Oscillator())}, "duration"),
    ],
)
def test_bad_input_is_named(change, words):
    given = {"experiment": BASE, "vary": TABLE, "measures": MEASURES} | change
    with pytest.raises(ValueError, match=words):
        cordax.sweep(**given)


def test_a_measure_of_ones_own():
    def overshoot(run):
        return jnp.max(run["x"]) - run["x"][-1]

    found = cordax.sweep(BASE, {"mass": [1.0, 3.0]}, [overshoot, Measure("rms", "x")], shard=2)
    assert set(found.measures) == {"overshoot", "rms x"} and found.succeeded.all()


LIMIT = 1.0


def _high(run):
    return jnp.max(run["x"]) - LIMIT


def _low(run):
    return jnp.min(run["x"]) - LIMIT


def test_another_measure_of_the_same_name_is_noticed(monkeypatch):
    """What a function calls, its defaults, functions within, and numbers it refers to."""
    named = lambda measure: setattr(measure, "__qualname__", "measure") or measure
    texts = [digest_of(named(x)) for x in (_high, _low)]
    assert texts[0] != texts[1]
    within = lambda k: named(lambda run, k=k: sum(map(lambda x: x + k, run)))
    assert digest_of(within(1)) != digest_of(within(2))
    inner = [named(lambda run: map(lambda x: x + 1, run)), named(lambda run: map(lambda x: x, run))]
    assert digest_of(inner[0]) != digest_of(inner[1])
    assert digest_of(within(1)) == digest_of(within(1))
    monkeypatch.setitem(globals(), "LIMIT", 2.0)
    assert digest_of(_high) != texts[0]


def test_what_is_wrapped_does_not_depend_on_where_it_lies():
    """No address of an object, which another process would not have."""
    again = lambda: jax.jit(lambda x: 2.0 * x)
    assert digest_of(again()) == digest_of(again())
    bound = lambda: functools.partial(lambda x, k: x in {"a", k}, k="b")
    assert digest_of(bound()) == digest_of(bound())
