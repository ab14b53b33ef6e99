"""The whole way: a table of joint and motor angles, `cordax fit`, tendon stiffness and damping."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tyro

import cordax
from cordax import Recording
from cordax.cli import main
from cordax.cli.fit import fit
from cordax.io import write_csv
from cordax.systems import Neck

TENSION = 50.0  # [N]
SIGMA = 1e-4  # [rad]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """2 s at 1 kHz: the neck upright, its motors shaken about the first elastic resonance. Made
    with another integrator and step than the fit, explicit and ten times finer than the samples."""
    neck = Neck.default(3)
    frequency = 2 * jnp.pi * jnp.array([[10 + i + 4 * k for k in range(4)] for i in range(4)])
    holding = -neck.motors.travel * TENSION

    def torque(t, state):
        return holding + 0.003 * jnp.sum(jnp.sin(frequency * t), axis=1)

    start = neck.state_at(jnp.zeros(3), tension=jnp.full(4, TENSION))
    run = cordax.simulate(
        neck, start, dt=1e-4, duration=2.0, integrator="zhai", control=torque, save_every=10
    )
    q = run.q + SIGMA * jax.random.normal(jax.random.key(1), run.q.shape)
    columns = dict(zip(neck.coordinate_names, q.T, strict=True))
    columns |= dict(zip(neck.input_names, run.u.T, strict=True))
    columns["theta_2"] = columns["theta_2"].at[100:300].set(jnp.nan)
    path = tmp_path_factory.mktemp("recording") / "neck.csv"
    return write_csv(path, Recording(run.t, columns))


def call(*words):
    return tyro.cli(fit, args=[str(word) for word in words])


def test_stiffness_and_damping_from_a_factor_five_off(table, tmp_path, capsys):
    code = call(
        "neck", table, "--set", f"start={{kind='at',alpha=[0,0,0],tension={[TENSION] * 4}}}",
        "--parameters", "tendon.stiffness,tendon.damping",
        "--start", "tendon.stiffness=5e5,tendon.damping=20", "--noise", SIGMA,
        "--output", tmp_path, "--json",
    )  # fmt: skip
    assert code == 0
    found = json.loads(capsys.readouterr().out)
    assert found["converged"] and found["not_identifiable"] == []
    for name, truth, start in (("tendon.stiffness", 1e5, 5e5), ("tendon.damping", 100.0, 20.0)):
        entry = found["parameters"][name]
        assert entry["start"] == start
        assert abs(entry["estimate"] / truth - 1) < 0.01
        low, high = entry["interval_95"]
        assert low < truth < high
        assert abs(entry["half_step_shift"]) < 0.5 * entry["standard_error"]
    assert np.isclose(found["residual_deviation_over_noise"], 1.0, atol=0.03)
    assert (tmp_path / "fit.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--parameters", "tendon.stifness"], "one of stiffness, damping"),
        (["--parameters", "gravity", "--start", "gravity"], "name=value"),
        (["--parameters", "gravity", "--start", "tendon.stiffness=-1"], "finite values > 0"),
        (["--parameters", "gravity", "--start", "gravity=much"], "a finite number"),
        (["--parameters", "gravity", "--observe", "beta_1"], "beta_1.*some of alpha_1"),
        (["--parameters", "gravity", "--set", "springs.stiffness=[1,2]"], "springs.stiffness"),
        (["--parameters", "gravity", "--dt", "-3e-4"], "dt.*> 0"),
        (["--parameters", "gravity", "--noise", "x"], "noise.*a finite number"),
    ],
)
def test_bad_words_are_named(tmp_path, words, message):
    neck = Neck.default(3)
    names = (*neck.coordinate_names, *neck.input_names)
    short = Recording(np.arange(5) * 1e-3, {name: np.zeros(5) for name in names})
    with pytest.raises(ValueError, match=message):
        call("neck", write_csv(tmp_path / "short.csv", short), *words)


@pytest.fixture(scope="module")
def own_recording(tmp_path_factory):
    """What `cordax run neck --csv` writes: a first-order method at 2 ms, numerical damping and
    all, from a start that the first torques would not hold."""
    folder = tmp_path_factory.mktemp("run")
    words = ["--duration", "1", "--no-figure", "--film", "none", "--no-npz"]
    command = ["run", "neck", "--csv", *words, "--output", str(folder)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        assert main(command) == 0
    return folder / "neck.csv"


FIT = ["--parameters", "tendon.stiffness,tendon.damping", "--no-figure"]


def test_its_own_recording_gives_the_truth_back(own_recording, capsys):
    start = ["--start", "tendon.stiffness=8e4,tendon.damping=150"]
    assert call("neck", own_recording, *FIT, *start) == 0
    text = capsys.readouterr().out
    assert "linearly_implicit_euler at 0.002 s, as the recording was; from the first" in text
    assert "warning" not in text
    rows = {line.split()[0]: line for line in text.splitlines() if "tendon." in line}
    assert "[N/m]" in rows["tendon.stiffness"] and "[N s/m]" in rows["tendon.damping"]
    for name, truth in (("tendon.stiffness", 1e5), ("tendon.damping", 100.0)):
        assert abs(float(rows[name].split("]")[1].split()[1]) / truth - 1) < 1e-4


def test_without_its_origin_it_says_why_it_cannot(own_recording, tmp_path, capsys):
    """The same numbers as from a machine, fitted with another integrator."""
    lines = own_recording.read_text().splitlines(keepends=True)
    assert lines[0].startswith("# simulated by = cordax")
    bare = tmp_path / "bare.csv"
    bare.write_text("".join(line for line in lines if not line.startswith("#")))
    call("neck", bare, *FIT, "--json")
    found = json.loads(capsys.readouterr().out)
    low, high = found["parameters"]["tendon.damping"]["interval_95"]
    said = " ".join(found["warnings"])
    assert not found["residuals_are_noise"] and "the residuals are not noise" in said
    assert "linearly_implicit_euler at 0.002 s" in said
    assert low < 100.0 < high or "does not show tendon.damping" in said
