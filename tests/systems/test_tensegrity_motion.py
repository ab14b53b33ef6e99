"""The strut in motion: stored trajectories, variants, balance of power, and cables as parts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import Hermite, NearRigidQP
from cordax.formulations import Dynamics
from cordax.systems import mechanism as parts

AREA = np.pi * 1e-6


@eqx.filter_jit
def march(machine, start, u, dt, saves: int, every: int):
    """RK4 with Baumgarte's stabilisation: what `simulate` does, without its outputs, which would
    be compiled too."""
    dynamics = Dynamics(machine.prepare(), cordax.Baumgarte())
    step = lambda state, _: (
        cordax.RK4().step(dynamics, 0.0, dt, state, lambda t, q, v: u, ()).state,
        None,
    )

    def block(state, _):
        state = jax.lax.scan(step, state, length=every)[0]
        return state, state

    return jax.lax.scan(block, start, length=saves)[1]


@eqx.filter_jit
def at_the_end(machine, run, look):
    """What `look` says of the machine and its last instant."""
    return look(machine, machine.instant(jnp.zeros(()), run.q[-1], run.v[-1]))


def strain_of(machine, at):
    return machine.cables.state(at).strain


def tension_of(machine, at):
    return machine.elements[0].state(at).tension[:, 0]


def test_variants_agree_with_each_other_and_with_the_reference(tensegrity_data):
    """`fd_thesis`, the first 0.1 s."""
    angles, strain = (
        tensegrity_data["fd_thesis/z"][1:11, :2],
        tensegrity_data["fd_thesis/eps"][1:11],
    )
    u = jnp.asarray(tensegrity_data["fd_thesis/u"])
    for variant in ("stretch", "strain", "length"):
        machine = parts.single_strut(variant, modulus=50e6)
        start = machine.state_at((0.0, 0.0), 0.1 / (0.07 * AREA * 50e6))
        run = march(machine, start, u, 1e-3, 10, 10)
        found = at_the_end(machine, run, strain_of)
        np.testing.assert_allclose(run.q[:, :2], angles, rtol=0, atol=1e-9)
        np.testing.assert_allclose(found, strain[-1], rtol=0, atol=1e-9)
        assert np.abs(run.q[:, 0]).max() < 1e-12


def test_weightless_strut_follows_the_reference(tensegrity_data):
    """`fd_g0`, the first second, by the program of the variants."""
    machine = parts.single_strut("strain", modulus=50e6, gravity=(0.0, 0.0, 0.0))
    state = machine.state_at((0.0, 0.0), 0.1 / (0.07 * AREA * 50e6))
    u = jnp.asarray(tensegrity_data["fd_g0/u"])
    for z, strain in zip(
        tensegrity_data["fd_g0/z"][1:11], tensegrity_data["fd_g0/eps"][1:11], strict=True
    ):
        run = march(machine, state, u, 1e-3, 10, 10)
        state = cordax.State(run.q[-1], run.v[-1])
        np.testing.assert_allclose(state.q[:2], z[:2], rtol=0, atol=1e-7)
        np.testing.assert_allclose(at_the_end(machine, run, strain_of), strain, rtol=0, atol=1e-7)
    assert abs(z[1]) > 1e-4


def tilted(data, variant="strain"):
    """`fd_tilt`: the machine, its start and the pulley torques."""
    stiffness, viscosity = data["fd_tilt/par"][11:13]
    machine = parts.single_strut(variant, modulus=stiffness / AREA, viscosity=viscosity / AREA)
    z, strain = data["fd_tilt/z"][0], data["fd_tilt/eps"][0]
    at = lambda rate: machine.state_at(z[:2], strain, z[5:7], rate)
    # the rates of strain that belong to the stored rates of the pulleys: each is linear in its own
    pulleys = [machine.velocity_names.index(f"pulley{i}") for i in (1, 2, 3)]
    zero, one = (np.array(at(x * np.ones(3)).v)[pulleys] for x in (0.0, 1.0))
    start = at((z[7:10] - zero) / (one - zero))
    np.testing.assert_allclose(start.q[np.array(pulleys)], z[2:5], rtol=1e-7)
    return machine, start, jnp.asarray(data["fd_tilt/u"])


@pytest.fixture(scope="module")
def tilt(tensegrity_data):
    """In independent coordinates, 50 ms."""
    machine, start, u = tilted(tensegrity_data)
    return cordax.simulate(
        machine, start, duration=0.05, dt=5e-4, save_every=5, control=u,
        formulation=cordax.formulations.IndependentCoordinates(),
    )  # fmt: skip


def test_independent_coordinates_follow_the_reference_without_drift(tensegrity_data, tilt):
    n = tilt.t.shape[0]
    z, strain = tensegrity_data["fd_tilt/z"][:n], tensegrity_data["fd_tilt/eps"][:n]
    np.testing.assert_allclose(tilt.t, tensegrity_data["fd_tilt/t"][:n], atol=1e-12)
    assert np.ptp(z[:, :2], axis=0).max() > 1e-3
    np.testing.assert_allclose(tilt.outputs["angles"], z[:, :2], rtol=0, atol=1e-7)
    np.testing.assert_allclose(tilt.outputs["strain"], strain, rtol=0, atol=1e-7)
    assert np.max(tilt.violation) < 1e-13


def test_power_balance(tilt):
    """d(T + V)/dt = sum u theta' - sum F du/dt, integrated by Simpson's rule."""
    energy = np.array(tilt.energy()["total"])
    machine = tilt.system
    pulleys = [machine.velocity_names.index(f"pulley{i}") for i in (1, 2, 3)]
    supplied = np.sum(np.array(tilt.u) * np.array(tilt.v)[:, pulleys], axis=1)
    power = supplied - np.sum(tilt.outputs["cable_power"], axis=1)
    h = float(tilt.t[1] - tilt.t[0])
    work = h / 3 * np.sum(power[:-1:2] + 4 * power[1::2] + power[2::2])
    # Simpson's rule at 2.5 ms on motions of about 20 rad/s: relative error below 1e-6
    np.testing.assert_allclose(energy[-1] - energy[0], work, atol=1e-6 * np.abs(power).max())


def strut_of_cable_parts(involute):
    """The same strut without involute joints: cables wound on drums carried by the blocks, which
    keep the ends of the cables in the planes of their pulleys."""
    bodies = [b for b in involute.bodies if not b.name.startswith("cable")]
    s, names = 0.07 / np.sqrt(2), [f"pulley{i}" for i in (1, 2, 3)]
    centre, end = (-s, 0.0, s), (0.0, 0.0, 1.0)
    drum = lambda i: parts.Pulley(
        f"block{i}", centre, 0.07, axis=(0, 1, 0), zero=(0, 0, 1), clockwise=True
    )
    law = parts.StrainLaw(involute.cables.modulus * AREA, involute.cables.viscosity * AREA)
    cables = parts.CableSet(
        [[drum(i), parts.Eyelet("strut", end)] for i in (1, 2, 3)],
        law,
        np.zeros(3),
        windings=names,
        radius=-0.07 * np.ones(3),
    )
    planes = [parts.FrameLoop(f"block{i}", "strut", centre, end, rows=("y",)) for i in (1, 2, 3)]
    return parts.Mechanism(
        bodies,
        planes,
        [cables, parts.JointMotors(names)],
        independent=("cross", "strut", *names),
    )


def test_cable_part_and_involute_joint_give_the_same_motion(tensegrity_data, tilt):
    involute, start, u = tilted(tensegrity_data)
    machine = strut_of_cable_parts(involute)
    keep = np.array([involute.coordinate_names.index(n) for n in machine.coordinate_names])
    assert machine.mobility(start.q[keep]).dof == 5
    run = march(machine, cordax.State(start.q[keep], start.v[keep]), u, 5e-4, 10, 10)
    np.testing.assert_allclose(run.q, tilt.q[2::2][:, keep], rtol=0, atol=1e-9)
    tension = at_the_end(machine, run, tension_of)
    np.testing.assert_allclose(tension, tilt.outputs["tension"][-1], rtol=1e-7)


def test_programme_is_the_same_on_cable_parts(tensegrity_data):
    """Near-rigid inverse dynamics where strains are coordinates, and where they are not."""
    involute, start, _ = tilted(tensegrity_data)
    machine = strut_of_cable_parts(involute)
    keep = np.array([involute.coordinate_names.index(n) for n in machine.coordinate_names])
    path = Hermite([0.0, 1.0], [[0.0, 0.0], [0.3, -0.1]], np.zeros((2, 2)))

    @eqx.filter_jit
    def torques(machine, state):
        law = NearRigidQP(machine, path, 0.01, followed=("cross", "strut"))
        return law.solve(0.2, state)

    u, change, solved = torques(involute, start)
    mine, my_change, also = torques(machine, cordax.State(start.q[keep], start.v[keep]))
    assert solved and also and np.abs(change).max() > 0.1
    np.testing.assert_allclose(mine, u, rtol=1e-8)
    np.testing.assert_allclose(my_change, change, rtol=1e-7, atol=1e-7)


def test_gradients_against_central_differences(tensegrity_data):
    """Of psi after 20 steps by modulus, viscosity and density."""
    _, start, u = tilted(tensegrity_data)
    start = jax.tree.map(np.array, start)
    p0 = np.array([1.0, 1.0, 1.0])

    def psi(p):
        machine = parts.single_strut(
            modulus=2e8 * p[0], viscosity=1e6 * p[1], density=2700.0 * p[2]
        )
        return 1e3 * march(machine, cordax.State(start.q, start.v), u, 1e-3, 1, 20).q[-1, 1]

    value, h = jax.jit(psi), 1e-4
    differences = [(value(p0 + h * e) - value(p0 - h * e)) / (2 * h) for e in np.eye(3)]
    for derivative in (jax.jacfwd, jax.grad):
        mine = np.array(jax.jit(derivative(psi))(p0))
        np.testing.assert_allclose(mine, differences, rtol=1e-5, atol=1e-6 * np.abs(mine).max())
        assert np.all(np.abs(mine) > 0)


def test_parameters_do_not_retrace():
    traces = []

    @eqx.filter_jit
    def mass(machine, q):
        traces.append(1)
        return machine.mass_matrix(q)

    for density in (2700.0, 2800.0):
        machine = parts.single_strut(density=density)
        mass(machine, jnp.zeros(machine.n_q))
    assert len(traces) == 1
