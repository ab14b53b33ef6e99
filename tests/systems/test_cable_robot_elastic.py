"""Elastic cables: what they store, how they start, and what counts as slack."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import simpson

import cordax
from cordax import simulate
from cordax.io import read_machine
from cordax.mechanics.parts.cables import ElasticCables
from cordax.mechanics.parts.drives import ProgrammedLengths, Winches
from cordax.mechanics.parts.exits import CarriageExit, PointExit
from cordax.mechanics.reference_motion import Quintic
from cordax.systems.cable_robot import CableRobot, NaturalBody, box_inertia
from cordax.systems.mechanism import StrainLaw

BODY = NaturalBody(20.0, box_inertia(20.0, (0.4, 0.3, 0.2)))
ARMS = np.array([[-0.2, -0.15, 0.1], [-0.2, 0.15, 0.1], [0.2, 0.15, 0.1], [0.2, -0.15, 0.1]])
POINTS = ARMS * [6.0, 6.0, 0.0] + [0.0, 0.0, 2.5]
POSITION = np.array([0.1, -0.05, 0.4])
LENGTHS = np.linalg.norm(POSITION + ARMS - POINTS, axis=1)
STIFFNESS = 2e4


def robot(exits, drives, cables=None):
    # smooth enough for RK4 to conserve energy
    cables = ElasticCables(np.full(4, STIFFNESS), width=1e-3) if cables is None else cables
    return CableRobot(BODY, ARMS, exits, drives, cables, position=POSITION)


def test_the_power_of_winches_and_moving_exits_goes_into_the_energy():
    """A load is lifted while its exits move apart: cables stretched by T take `T (dL/dt at a
    platform that rests - dl/dt)`. Energies at t = 0 would miss what was wound in."""
    wind = Quintic(LENGTHS - 0.003, [np.full(4, -0.3)], [[0.1, 1.1]])
    apart = Quintic(POINTS, [POINTS * [0.1, 0.1, 0.0]], [[0.2, 0.9]])
    machine = robot(PointExit(apart), ProgrammedLengths(wind))
    run = simulate(machine, dt=1e-3, duration=1.2)
    t = np.asarray(run.t)

    @jax.jit
    @jax.vmap
    def look(t, q):
        joints = machine.geometry(t, q).points["joint"]
        return wind(t)[1], apart.position(t), apart(t)[1], joints

    speed, place, drift, ends = (np.asarray(x) for x in look(run.t, run.q))
    along = ends - place
    along /= np.linalg.norm(along, axis=2, keepdims=True)
    power = np.sum(np.asarray(run["tension"]) * (-np.sum(along * drift, axis=2) - speed), axis=1)
    energy = np.asarray(run.energy()["total"])
    work = np.array([simpson(power[: k + 1], x=t[: k + 1]) for k in range(0, len(t), 100)])
    assert work[-1] > 40.0, "the load should have been lifted"
    np.testing.assert_allclose(energy[::100] - energy[0], work, atol=1e-5 * work[-1])


def test_carriages_on_springs_keep_the_energy():
    exits = CarriageExit(POINTS, mass=2.0, stiffness=5e3)
    machine = robot(exits, ProgrammedLengths(LENGTHS - 0.003))
    energy = np.asarray(simulate(machine, dt=2e-4, duration=0.4, save_every=100).energy()["total"])
    exchanged = 0.5 * (50.0**2 / 5e3)  # by a spring that carries a quarter of the weight
    assert np.ptp(energy) < 1e-5 * exchanged


def test_cables_on_winches_start_under_the_static_tension():
    machine = robot(PointExit(POINTS), Winches(LENGTHS, 0.05, 0.01))
    state, static = machine.default_state(), np.asarray(machine.static_tensions())
    u = np.concatenate([-0.05 * static, np.zeros(6)])

    @jax.jit
    def look(q, v):
        tension = machine.outputs(jnp.zeros(()), q, v, u, jnp.zeros(0))["tension"]
        return tension, machine.force(jnp.zeros(()), q, v, u)[12:]

    found, own = look(state.q, state.v)
    np.testing.assert_allclose(found, static, rtol=1e-9)
    # four cables hold three forces; what they cannot balance is a small moment
    np.testing.assert_allclose(own, 0.0, atol=1e-9)
    tight = machine.state_at(tension=static + 30.0)
    found, _ = look(tight.q, tight.v)
    np.testing.assert_allclose(found, static + 30.0, rtol=1e-9)


SIX = """
[platform]
mass = 150.0
box = [0.6, 0.5, 0.3]
attachments = [[0.3, 0.1, 0.15], [0.3, -0.1, 0.15], [-0.05, 0.25, 0.15],
               [-0.25, 0.15, 0.15], [-0.25, -0.15, 0.15], [-0.05, -0.25, 0.15]]
position = [0.0, 0.0, 0.0]
linear_damping = 20.0
{start}
[exits]
kind = "point"
points = [[1.0, 1.8, 3.0], [1.0, -1.8, 3.0], [1.1, 1.7, 3.0],
          [-2.0, 0.2, 3.0], [-2.0, -0.2, 3.0], [1.1, -1.7, 3.0]]
[cables]
kind = "elastic"
stiffness = 1e5
damping = 50.0
[drives]
kind = "servo"
radius = 0.05
rotor_inertia = 0.02
K_p = 200.0
K_d = 20.0
{moves}
[run]
dt = 5e-4
duration = 0.2
save_every = 100
"""


@pytest.mark.parametrize("start", ["pose", "equilibrium"])
def test_a_robot_from_a_file_on_elastic_cables_and_servos_stays_put(start, tmp_path):
    """It started unstretched and dropped 12 mm."""
    path = tmp_path / "six.toml"
    path.write_text(SIX.format(start=f'start = "{start}"', moves=""))
    run = cordax.simulate(read_machine(path).experiment)
    np.testing.assert_allclose(
        run["position"], run["position"][:1].repeat(len(run.t), 0), atol=1e-6
    )
    assert np.min(run["tension"]) > 100.0


def test_a_servo_path_begins_where_stretched_cables_are(tmp_path):
    path = tmp_path / "six.toml"
    moves = "[[drives.moves]]\nby = [0.0, 0.0, 0.1]\ntimes = [0.1, 1.0]"
    path.write_text(SIX.format(start="", moves=moves))
    robot = read_machine(path).experiment.system
    np.testing.assert_allclose(robot.drives.reference.position(jnp.zeros(())), 0.0, atol=1e-12)


def test_what_counts_as_slack():
    """The default follows from a tension, so that stiff cables are not born tight; what was given
    and lifts the platform unstretched is refused."""
    for k in (1e2, 1e5, 1e9, 1e11):
        cables = ElasticCables(np.full(4, k))
        assert np.max(cables.tension(jnp.zeros(4), 0.0)) < 1.0 + 1e-9
        T = jnp.array([3.0, 10.0, 200.0, 1e4])
        np.testing.assert_allclose(cables.tension(cables.stretch(T), 0.0), T, rtol=1e-9)
    assert float(ElasticCables(1e5).passage) == 1e-5
    tight = ElasticCables(np.full(4, 1e9), width=1e-5)
    with pytest.raises(
        ValueError, match=r"cables.width: got 1e-05 m, with which .* carries 6931 N"
    ):
        robot(PointExit(POINTS), ProgrammedLengths(LENGTHS), tight)


def test_the_slope_of_the_energy_is_the_tension_also_at_no_stretch():
    cables = ElasticCables(np.full(5, 2e4))
    e = jnp.array([-1e-5, -1e-12, 0.0, 1e-12, 1e-5])
    slope = jax.grad(lambda e: jnp.sum(cables.energy(e)))(e)
    np.testing.assert_allclose(slope, cables.tension(e, 0.0), rtol=1e-9)


@pytest.mark.parametrize("kind", ["stretch", "strain"])
def test_a_cable_that_goes_slack_quickly_does_not_push(kind):
    """Where damping outweighs the stretch it is slack already; slower, it is what was given."""
    stretch, rate = np.meshgrid(np.linspace(-1e-3, 1e-3, 41), np.linspace(-1.0, 1.0, 41))
    if kind == "stretch":
        tension = lambda e, r: ElasticCables(1e4, 30.0).tension(e, r)
        whole = 1e4 * stretch + 30.0 * rate
    else:  # a cable of 1 m
        tension = lambda e, r: StrainLaw(1e4, 30.0).tension(e, r, 1.0, r)
        strain = stretch / (1.0 - stretch)
        whole = 1e4 * strain + 30.0 * rate / (1.0 - stretch)
    found = np.asarray(jax.jit(tension)(stretch, rate))
    assert found.min() == 0.0 and np.any(whole[stretch > 1e-4] < -10.0)
    pulls = (stretch > 1.5e-4) & (whole > 0)  # beyond the smooth passage
    np.testing.assert_allclose(found[pulls], whole[pulls], rtol=0, atol=1e-4)
    assert found[(stretch < -1.5e-4) | (stretch > 0) & (whole < -1.0)].max() < 1e-4
