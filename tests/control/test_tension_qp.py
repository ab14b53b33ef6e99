"""Inverse dynamics on nearly rigid cables against stored programmes and motions."""

import os
import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import Hermite, NearRigidQP, Reference
from cordax.systems import mechanism as parts
from helpers.manipulator_run import EFFECTOR
from helpers.stored import stored

AREA = np.pi * 1e-6


@pytest.fixture(scope="module")
def data():
    return stored("tensegrity")


class Pushed(Reference):
    """From rest, with an acceleration that changes evenly."""

    acceleration: jax.Array = cordax._base.precision.float_field()
    jerk: jax.Array = cordax._base.precision.float_field(default=0.0)

    def position(self, t):
        return 0.5 * self.acceleration * t * t + self.jerk * t**3 / 6.0


@eqx.filter_jit
def programme(control, q, v, t=None):
    return control.solve(jnp.zeros(()) if t is None else t, cordax.State(q, v))


@eqx.filter_jit
def answer(machine, q, v, u):
    """Rate of the coordinates, and accelerations."""
    a, _ = cordax.Baumgarte().acceleration(machine, jnp.zeros(()), q, v, u)
    return machine.rate(q, v), a


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
        control = NearRigidQP(
            machine, Pushed(get("qp_acc"), np.zeros(3)), get("qp_emin"), point=EFFECTOR
        )
        u, change, solved = programme(control, get("q"), get("v"), jnp.zeros(()))
        assert solved
        np.testing.assert_allclose(u, get("qp_u"), rtol=1e-6)
        np.testing.assert_allclose(change / (2e9 * AREA), get("qp_deps"), rtol=1e-6, atol=1e-10)
    # a fixed point of the programme: nothing wanted, no tension to change, no acceleration
    start = machine.state_at(data["man_eq/ang"], data["man_eq/eps"])
    control = NearRigidQP(machine, Pushed(np.zeros(3), np.zeros(3)), 0.01, point=EFFECTOR)
    u, change, _ = programme(control, start.q, start.v, jnp.zeros(()))
    np.testing.assert_allclose(u, data["man_eq/u"], atol=1e-5)
    assert np.abs(change).max() < 1e-4
    assert np.abs(answer(machine, start.q, start.v, u)[1][6:]).max() < 1e-2


def test_equilibrium_of_the_manipulator_is_found(data):
    """Symmetric, the end effector at its nominal height, the slackest cables at 1 %."""
    machine = parts.tensegrity_manipulator()
    names = machine.velocity_names
    first = np.array([names.index("dummy1"), names.index("strut1")])

    def balance(x):
        strain = np.array([0.01, x[2]] * 3)
        state = machine.state_at([x[0], x[1]] * 3, strain)
        # pulleys at rest: torque is radius times tension
        u = 0.05 * 2e9 * AREA * strain
        a = np.array(answer(machine, state.q, state.v, u)[1])[first]
        return np.append(1e-3 * a, float(state.q[6]) - HEIGHT), u

    x, h = np.array([-0.02, -0.23, 0.0145]), 1e-6
    for _ in range(6):
        r = balance(x)[0]
        J = np.stack([(balance(x + h * e)[0] - r) / h for e in np.eye(3)], axis=1)
        x = x - np.linalg.solve(J, r)
    np.testing.assert_allclose(x[:2], data["man_eq/ang"][:2], atol=1e-6)
    np.testing.assert_allclose(balance(x)[1], data["man_eq/u"], atol=1e-5)


def marched(machine, control, start, steps, h=2.5e-3):
    """RK4 on programmes and accelerations that are compiled already: coordinates, each step."""
    q, v, found = start.q, start.v, [start.q]
    for k in range(steps):
        slope, slopes = (0.0 * v, 0.0 * v), []
        for share in (0.0, 0.5, 0.5, 1.0):
            at = (q + share * h * slope[0] if slopes else q), v + share * h * slope[1]
            u = programme(control, *at, jnp.asarray((k + share) * h))[0]
            slope = answer(machine, *at, u)
            slopes.append(slope)
        q, v = (
            x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)
            for x, (a, b, c, d) in zip((q, v), zip(*slopes, strict=True), strict=True)
        )
        found.append(q)
    return np.array(found)


def test_manipulator_leaves_the_prism_as_the_reference_does(data):
    """`man_stab`, the first 0.3 s: strut angles and height."""
    machine = parts.tensegrity_manipulator(friction=5.0)
    control = NearRigidQP(machine, Pushed(np.zeros(3), np.zeros(3)), 0.01, point=EFFECTOR)
    q = marched(machine, control, machine.state_at(np.zeros(6), 0.01), 120)[::20]
    angles = [machine.coordinate_names.index(name) for name in machine.strut_angles]
    y, z = data["man_stab/y"][:7, :6], data["man_stab/ee"][:7, 2]
    assert np.ptp(y[:, 1]) > 0.02
    np.testing.assert_allclose(q[:, angles], y, atol=1e-3)
    np.testing.assert_allclose(q[:, 6], z, atol=2e-4)


def test_manipulator_goes_down_as_the_reference_does(data):
    """`man_z5`, without friction, the first 0.4 s: the end effector within 20 um."""
    machine = parts.tensegrity_manipulator()
    fall = 6.0 * (data["man_z5/P"][1] - data["man_z5/P"][0]) / 5.0**2
    path = Pushed(fall, -2.0 * fall / 5.0)
    control = NearRigidQP(machine, path, 0.01, point=EFFECTOR)
    q = marched(machine, control, machine.state_at(data["man_eq/ang"], data["man_eq/eps"]), 160)
    wanted = data["man_z5/ee"][:5]
    assert np.ptp(wanted[:, 2]) > 8e-3
    np.testing.assert_allclose(q[::40, 4:7], wanted, atol=2e-5)


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    """Motions of the manipulator, in a process that compiles as users do: for so many steps that is
    faster, too."""
    path = tmp_path_factory.mktemp("manipulator") / "moved.npz"
    plain = {name: x for name, x in os.environ.items() if name != "XLA_FLAGS"}
    tests = Path(__file__).parents[1]
    data = tests / "data" / "tensegrity.npz"
    script = [sys.executable, tests / "helpers" / "manipulator_run.py", data, path]
    subprocess.run(script, env=plain, check=True)
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def test_whole_motions_of_the_manipulator(data, moved):
    """`man_z20` until 5 s, `man_z5`, without friction, and `man_stab`, from the prism into the
    singular configuration."""
    place, y = moved["man_z20/place"], moved["man_z20/y"]
    np.testing.assert_allclose(place[:101:4, 2], data["man_z20/ee"][:26, 2], atol=2e-5)
    # the seed of what is asymmetric is round-off of the angles alone
    assert np.ptp(y[:41, :6].reshape(-1, 3, 2), axis=1).max() < 5e-15

    place, off = moved["man_z5/place"], moved["man_z5/off"]
    np.testing.assert_allclose(place[::2, 2], data["man_z5/ee"][:, 2], atol=2e-5)
    np.testing.assert_allclose(np.abs(off[:, 2]).max(), 6.0e-4, rtol=5e-2)

    place, y = moved["man_stab/place"], moved["man_stab/y"]
    np.testing.assert_allclose(y[:, :6], data["man_stab/y"][:, :6], atol=1e-3)
    np.testing.assert_allclose(place[:, 2], data["man_stab/ee"][:, 2], atol=2e-4)


def test_twenty_seconds_of_the_manipulator(data, moved):
    """`man_z20` to its end. Asymmetric modes grow a hundredfold per second while the structure is
    low, and leave an offset of z that goes with the square of their seed: what round-off in the
    angles leaves of it must be small here, in the last digits of optimised code. As compiled for
    tests, without optimisation, it is larger (1.7 mm at 20 s). Starts that differ by 1e-14 rad end
    alike, by 1e-13 rad they are lost."""
    off = moved["man_z20/off"]
    wanted = data["man_z20/ee"] - data_path(data, "man_z20")
    np.testing.assert_allclose(off[:101:4, 2], wanted[:26, 2], atol=2e-5)
    assert np.abs(off[:, 2]).max() < 1.5e-3
    assert np.abs(off[:, :2]).max() < 1e-3


def data_path(data, case):
    """What was wanted at the stored instants of a case."""
    path = Hermite(*(data[f"{case}/{name}"] for name in ("tk", "P", "Pd")))
    return np.array(jax.vmap(path.position)(data[f"{case}/t"]))


def test_a_floating_body_on_cables():
    """A ball on four cables wound by drums: the tensions that the programme brings about give it
    the wanted acceleration, none is below its bound, and torques turn the drums as fast as the
    cables ask for."""
    anchors = np.array([[-1, -1, 1], [-1, 1.2, 1.1], [1.1, 1, 1], [1, -1, 0.9]])
    start, mass, r, stiffness, stretch = np.array([0.1, 0.0, -0.2]), 2.0, 0.05, 1e5, 1e-3
    ball = parts.Body(
        "ball", parts.Floating(), solids=parts.sphere(0.1, mass=mass), start=[1, 0, 0, 0, *start]
    )
    names = [f"drum{i}" for i in range(4)]
    drums = [
        parts.Body(name, parts.Revolute("z"), solids=parts.cylinder(r, 0.1, mass=1.0))
        for name in names
    ]
    lengths = np.linalg.norm(anchors - start, axis=1)
    cables = parts.CableSet(
        [[parts.Eyelet("world", a), parts.Eyelet("ball")] for a in anchors],
        parts.StrainLaw(stiffness),
        lengths / (1.0 + stretch),
        [(name,) for name in names],
        r * np.ones(4),
    )
    machine = parts.Mechanism([ball, *drums], elements=[cables, parts.JointMotors(names)])
    wanted, least = np.array([0.3, -0.2, 0.5]), 5e-5
    control = NearRigidQP(machine, Pushed(wanted), least, point=("ball", (0.0, 0.0, 0.0)))
    state = machine.default_state()
    u, change, solved = programme(control, state.q, state.v)
    assert solved
    tension = stiffness * stretch + np.array(change)
    assert tension.min() >= stiffness * least * (1 - 1e-6)
    along = (anchors - start) / lengths[:, None]
    force = tension @ along + mass * np.array([0, 0, -9.81])
    np.testing.assert_allclose(force / mass, wanted, atol=1e-8)
    # strains stay: drums pay out what the ball moves by, less what the stretch of it is
    spin = -along @ wanted / (1.0 + stretch) / r
    np.testing.assert_allclose(u, 0.5 * r**2 * spin - r * tension, rtol=1e-8)
    with pytest.raises(ValueError, match=r"followed: got 'ball_wx'.*`point` for a floating body"):
        NearRigidQP(machine, Pushed(wanted[:1]), least, followed=("ball_wx",))


HEIGHT = np.sqrt(0.5) * (1.0 + np.sqrt(2.0 / 3.0))


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


@pytest.mark.parametrize("case", ["tr_E200_mu0", "tr_E2000_mu0"])
def test_whole_motion(data, tracked, case):
    """9 s, the programme in every stage: angles at all samples, and the largest deviations from
    the path. `cordax reproduce tensegrity` does the same on the stiffest cables."""
    run = tracked(case, 1e-3, 9.0, 0.01)
    angles = np.array(run.outputs["angles"])
    np.testing.assert_allclose(angles[::10], data[f"{case}/ang"], rtol=0, atol=2e-5)
    path = Hermite(*(data[f"{case}/{name}"] for name in ("tk", "P", "Pd")))
    wanted = jax.vmap(lambda t: path(t)[0])(run.t)
    largest = np.abs(angles - wanted).max(axis=0)
    np.testing.assert_allclose(largest, data[f"{case}/maxdev"], rtol=1e-2)
    assert np.min(run.outputs["strain"]) > 0.9 * data[f"{case}/emin"]


@pytest.mark.parametrize(
    ("case", "dt"), [("tr_E200_mu1", 1e-3), ("tr_E2000_mu1", 1e-3), ("tr_E20000_mu1", 5e-4)]
)
def test_begin_of_the_motion_on_viscous_cables(data, tracked, case, dt):
    """Past the first knot; the same compiled program as whole motions, which `cordax reproduce
    tensegrity` compares for these cables too."""
    run = tracked(case, dt, 1.5, 10 * dt)
    wanted = data[f"{case}/ang"][:16]
    np.testing.assert_allclose(
        run.outputs["angles"][:: round(0.01 / dt)], wanted, rtol=0, atol=2e-5
    )
    assert np.min(run.outputs["strain"]) > 0.9 * data[f"{case}/emin"]


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


def test_slack_at_the_start_is_refused():
    machine = parts.single_strut()
    control = NearRigidQP(machine, Pushed(np.zeros(2)), 0.01, followed=("cross", "strut"))
    start = machine.state_at((0.0, 0.0), [0.01, -2e-3, 0.01])
    with pytest.raises(ValueError, match=r"state0: got cable2_strain = -0.002, expected strains"):
        cordax.simulate(machine, start, control=control, duration=0.01, dt=1e-3)


def test_wrong_use_is_named():
    machine = parts.single_strut()
    with pytest.raises(ValueError, match="least_strain"):
        NearRigidQP(machine, Pushed(np.zeros(2)), -0.01, followed=("cross", "strut"))
    with pytest.raises(ValueError, match="followed, point"):
        NearRigidQP(machine, Pushed(np.zeros(2)), 0.01)
    with pytest.raises(ValueError, match=r"point: got \('ee', 0.0\).*a body and a point of it"):
        NearRigidQP(machine, Pushed(np.zeros(3)), 0.01, point=("ee", 0.0))
    with pytest.raises(ValueError, match="followed: got 'foot'"):
        NearRigidQP(machine, Pushed(np.zeros(2)), 0.01, followed=("foot",))
