"""The rod in time: steps of six methods, trajectories, orders, limits, energy, symmetry."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import State, simulate
from helpers.rod_reference import DATA, pull, rod_of

SCHEMES = {
    "SE": "symplectic_euler",
    "SV": "stormer_verlet",
    "FR4": "forest_ruth_4",
    "RK4": "rk4",
    "ZHAI": "zhai",
    "IM": "implicit_midpoint",
}


@pytest.mark.parametrize("name", SCHEMES)
def test_steps_of_each_method(name):
    rod, p = rod_of("steps")
    split = lambda x: rod.layout.split(jnp.asarray(x.T))
    start = State(split(DATA["steps/q0"]), split(DATA["steps/v0"]))
    options = {"dt": 1e-3, "duration": 0.02, "control": pull(p)}
    run = simulate(rod, start, integrator=SCHEMES[name], **options)
    for row, (step, limit) in enumerate([(1, 1e-11), (2, 1e-11), (20, 1e-10)]):
        limit = 1e-9 if name == "IM" and step == 20 else limit
        wanted = np.asarray(split(DATA[f"steps/{name}/q"][row]))
        np.testing.assert_allclose(run.q[step], wanted, rtol=0, atol=limit)
        rates = np.asarray(split(DATA[f"steps/{name}/v"][row]))
        np.testing.assert_allclose(run.v[step], rates, rtol=0, atol=1e-9 * np.abs(rates).max())


@pytest.mark.parametrize(
    ("case", "dt", "limit"),
    [
        ("pe_gravity", 2.5e-4, 2e-7),
        ("pe_forced", 2.5e-4, 2e-7),
        ("pe_forced_gauss", 5e-4, 1e-7),
        ("phys_forced", 1e-5, 1e-8),
    ],
)
def test_trajectories(case, dt, limit):
    """Suzuki's 4th-order splitting against an 8th-order method."""
    rod, p = rod_of(case)
    t = DATA[f"{case}/t"]
    options = {"dt": dt, "duration": float(t[-1]), "save_every": round(float(t[1]) / dt)}
    run = simulate(rod, integrator="suzuki_4", control=pull(p), **options)
    found = np.asarray(run["control"])
    assert np.abs(found[:, :, :3] - DATA[f"{case}/q"][:, :, :3]).max() < limit
    if case == "pe_gravity":
        # y and theta stay exactly zero, and left mirrors right
        assert np.abs(found[:, :, [1, 3]]).max() == 0.0
        assert np.abs(found[:, :, 2] - found[:, ::-1, 2]).max() < 1e-9


@pytest.mark.parametrize(
    ("name", "order", "within", "error_at_1_ms"),
    [
        ("forest_ruth_4", 4, 0.1, 2.13e-6),
        ("stormer_verlet", 2, 0.05, 8.8e-5),
        ("rk4", 4, 0.15, 2.4e-7),
        ("symplectic_euler", 1, 0.05, 1.02e-3),
    ],
)
def test_order_on_the_rod(name, order, within, error_at_1_ms):
    """Orders against independent data; `error_at_1_ms` [m] is a regression."""
    rod, _ = rod_of("pe_gravity")
    wanted = DATA["pe_gravity/q"][10][:, :3]
    errors = []
    for n in (1000, 2000, 4000):
        run = simulate(rod, dt=1.0 / n, duration=1.0, integrator=name, save_every=n)
        errors.append(np.abs(run["control"][-1][:, :3] - wanted).max())
    assert errors[0] == pytest.approx(error_at_1_ms, rel=0.05)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=within)
    if errors[2] > 1e-9:  # the data end there
        assert np.log2(errors[1] / errors[2]) == pytest.approx(order, abs=within)


def test_step_limits_of_the_soft_rod():
    rod, p = rod_of("pe_gravity")
    predicted = cordax.step_limit(rod, rod.default_state(), "forest_ruth_4")
    assert predicted.dt == pytest.approx(2.090e-3, rel=2e-3)
    fly = {"duration": 10.0, "throw": False}
    good = simulate(rod, dt=2e-3, integrator="forest_ruth_4", save_every=10, **fly)
    assert bool(good.succeeded)
    assert np.abs(np.asarray(good["control"])[:, :, :3]).max() < 5.0
    with pytest.warns(UserWarning, match="largest stable step"):
        bad = simulate(rod, dt=2.2e-3, duration=0.22, integrator="forest_ruth_4", throw=False)
    places = np.nan_to_num(np.asarray(bad["control"])[:, :, :3], nan=np.inf)
    far = np.abs(places).max(axis=(1, 2)) > 5.0
    stopped = not bool(bad.succeeded)
    assert stopped or (far.any() and float(bad.t[np.argmax(far)]) < 0.2)
    # over 10 s: bounded for the symplectic method, lost for Runge-Kutta
    energy = np.asarray(good.energy()["total"])
    assert np.abs(energy - energy[0]).max() < 1.5e-4
    lossy = simulate(rod, dt=2e-3, integrator="rk4", save_every=10, **fly)
    energy = np.asarray(lossy.energy()["total"])
    assert energy[0] - energy[-1] == pytest.approx(2.4e-4, rel=0.2)
    assert np.all(np.diff(energy[::50]) < 0)
    for name in ("rk4", "zhai"):
        forced, p = rod_of("pe_forced")
        run = simulate(forced, dt=2e-3, integrator=name, control=pull(p), save_every=10, **fly)
        assert bool(run.succeeded)
        assert np.abs(np.asarray(run["control"])[:, :, :3]).max() < 5.0


def test_energy_at_the_papers_small_step():
    rod, _ = rod_of("pe_gravity")
    options = {"dt": 8e-4, "duration": 10.0, "save_every": 25}
    run = simulate(rod, integrator="forest_ruth_4", **options)
    energy = np.asarray(run.energy()["total"])
    assert np.abs(energy - energy[0]).max() < 5e-7


def test_real_aluminium_at_two_milliseconds():
    """135 times above the limit of every explicit method. Axial waves are not resolved; the sag of
    some 30 mm and the energy are."""
    rod, _ = rod_of("phys_gravity")
    wanted = DATA["phys_gravity/q"]
    options = {"dt": 2e-3, "duration": 0.4, "save_every": 5}
    run = simulate(rod, integrator="implicit_midpoint", **options)
    error = np.abs(np.asarray(run["control"])[:, :, :3] - wanted[:, :, :3]).max()
    assert error < 1.5e-3
    energy = np.asarray(run.energy()["total"])
    assert np.ptp(energy) < 1e-5
