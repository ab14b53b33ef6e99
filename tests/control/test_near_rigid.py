"""Inverse dynamics on nearly rigid cables against stored programmes and motions."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import Hermite, NearRigidQP, Reference
from cordax.systems import mechanism as parts

AREA = np.pi * 1e-6


@pytest.fixture(scope="module")
def data():
    with np.load(Path(__file__).parents[1] / "data" / "tensegrity.npz") as file:
        return {name: file[name] for name in file.files}


class Pushed(Reference):
    """At rest with an acceleration."""

    acceleration: jax.Array = cordax._precision.float_field()

    def position(self, t):
        return 0.5 * self.acceleration * t * t


@eqx.filter_jit
def programme(control, q, v):
    return control.solve(jnp.zeros(()), cordax.State(q, v))


def test_strut_programmes(data):
    machine = parts.single_strut(modulus=2e9, viscosity=1e6)
    for i in range(3):
        get = lambda name, i=i: data[f"ss_eps/{name}"][i]
        control = NearRigidQP(
            machine, Pushed(get("qp_acc")), get("qp_emin"), followed=("cross", "strut")
        )
        u, change, solved = programme(control, get("q"), get("v"))
        assert solved
        np.testing.assert_allclose(u, get("qp_u"), rtol=1e-6)
        expected = get("eps") + np.array(change) / (2e9 * AREA)
        np.testing.assert_allclose(expected, get("eps") + get("qp_deps"), rtol=1e-6)
        assert np.all(expected >= get("qp_emin") * (1 - 1e-6))


def test_slack_cables_leave_no_programme(data):
    """No torque acts through a slack cable: refused, not answered with numbers."""
    machine = parts.single_strut(modulus=2e9, viscosity=1e6)
    wanted, least = data["ss_eps/qp_acc"][0], data["ss_eps/qp_emin"][0]
    control = NearRigidQP(machine, Pushed(wanted), least, followed=("cross", "strut"))
    for strain, right in ((0.01, True), (-1e-3, False)):
        state = machine.state_at((0.1, 0.05), strain)
        assert bool(programme(control, state.q, state.v)[2]) == right


def test_manipulator_programmes_and_equilibrium(data):
    machine = parts.tensegrity_manipulator()
    for i in range(3):
        get = lambda name, i=i: data[f"man/{name}"][i]
        control = NearRigidQP(machine, Pushed(get("qp_acc")), get("qp_emin"), point=EFFECTOR)
        u, change, solved = programme(control, get("q"), get("v"))
        assert solved
        np.testing.assert_allclose(u, get("qp_u"), rtol=1e-6)
        np.testing.assert_allclose(change / (2e9 * AREA), get("qp_deps"), rtol=1e-6, atol=1e-10)
    # a fixed point of the programme: nothing wanted, no tension to change, no acceleration
    start = machine.state_at(data["man_eq/ang"], data["man_eq/eps"])
    control = NearRigidQP(machine, Pushed(np.zeros(3)), 0.01, point=EFFECTOR)
    u, change, _ = programme(control, start.q, start.v)
    np.testing.assert_allclose(u, data["man_eq/u"], atol=1e-5)
    assert np.abs(change).max() < 1e-4
    still = eqx.filter_jit(
        lambda m, q, v, u: cordax.Baumgarte().acceleration(m, jnp.zeros(()), q, v, u)[0]
    )
    assert np.abs(still(machine, start.q, start.v, u)[6:]).max() < 1e-2


EFFECTOR = ("ee", (0.0, 0.0, 0.0))


@pytest.fixture(scope="module")
def tracked(data):
    """A case from its start: by default past the first knot, into the first motion."""

    def run(case, dt, duration=1.2, every=0.1):
        get = lambda name: data[f"{case}/{name}"]
        stiffness, viscosity = get("par")[11:13]
        machine = parts.single_strut(modulus=stiffness / AREA, viscosity=viscosity / AREA)
        path = Hermite(get("tk"), get("P"), get("Pd"))
        position, rate, _ = path(0.0)
        control = NearRigidQP(
            machine,
            path,
            get("emin"),
            followed=("cross", "strut"),
            K_p=get("kp"),
            K_d=get("kd"),
            period=None if get("cont") else float(get("Tc")),
        )
        start = machine.state_at(position, get("emin"), rate)
        return cordax.simulate(
            machine,
            start,
            duration=duration,
            dt=dt,
            save_every=round(every / dt),
            control=control,
        )

    return run


def test_whole_motion_on_soft_cables(data, tracked):
    """9 s, the programme in every stage: angles at all samples, and the largest deviations from
    the path."""
    case = "tr_E200_mu0"
    run = tracked(case, 1e-3, 9.0, 0.01)
    angles = np.array(run.outputs["angles"])
    np.testing.assert_allclose(angles[::10], data[f"{case}/ang"], rtol=0, atol=2e-5)
    path = Hermite(*(data[f"{case}/{name}"] for name in ("tk", "P", "Pd")))
    wanted = jax.vmap(lambda t: path(t)[0])(run.t)
    largest = np.abs(angles - wanted).max(axis=0)
    np.testing.assert_allclose(largest, data[f"{case}/maxdev"], rtol=1e-2)


@pytest.mark.parametrize(
    ("case", "dt", "tolerance"),
    [("tr_zoh", 1e-3, 1e-5), ("tr_zoh_fb", 1e-3, 1e-5)],
)
def test_tracking_follows_the_reference(data, tracked, case, dt, tolerance):
    run = tracked(case, dt)
    n = run.t.shape[0]
    np.testing.assert_allclose(
        run.outputs["angles"], data[f"{case}/ang"][:n], rtol=0, atol=tolerance
    )
    least = float(data[f"{case}/emin"])
    assert np.min(run.outputs["strain"]) > 0.9 * least


def test_hermite_spline(data):
    """Values and derivatives of the spline of Table 4.1."""
    x, y = [0.0, 4.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0]
    values = np.stack([x, y], axis=1)
    spline = Hermite([0.0, 2.0, 4.0, 6.0], values, np.zeros((4, 2)))
    for mine, name in zip(jax.vmap(spline)(data["herm_t"]), ("P", "Pd", "Pdd"), strict=True):
        np.testing.assert_allclose(mine, data[f"herm_{name}"], atol=1e-12)


def test_wrong_use_is_named():
    machine = parts.single_strut()
    with pytest.raises(ValueError, match="followed, point"):
        NearRigidQP(machine, Pushed(np.zeros(2)), 0.01)
    with pytest.raises(ValueError, match="followed: got 'foot'"):
        NearRigidQP(machine, Pushed(np.zeros(2)), 0.01, followed=("foot",))
