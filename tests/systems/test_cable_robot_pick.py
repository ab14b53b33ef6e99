"""A robot under PID picks up a payload, carries it, puts it down and lets it fall."""

from functools import cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Baumgarte, Penalty, Result, State, UdwadiaKalaba, simulate
from cordax.mechanics.constraints import rank_margin
from cordax.systems.cable_robot.payload import CROSSED, EQUAL, Payload
from helpers.cable_robot_reference import errors, fields, parameters, picker_of, relative

DT = 2e-3  # 1e-8 m and 1e-3 N are met with room: at half of it 3e-11 m, 3e-6 N


@cache
def picking(case):
    robot = picker_of(case)
    p = parameters(case)
    phases = [(robot, p.tjoin), (robot.pick, p.tend)]
    return simulate(phases, robot.state_at(p.p0, p.R0), dt=DT, save_every=50)


@pytest.mark.parametrize("case", ["pick", "pick_off"])
def test_against_the_reference(case):
    found = errors(case, picking(case))
    assert found.p < 1e-8 and found.quat < 1e-8 and found.f < 1e-3
    assert relative(picking(case)["theta"], fields(case).theta) < 1e-8
    assert np.max(np.abs(picking(case)["payload_position"] - fields(case).ppl)) < 1e-8
    assert float(np.max(picking(case).drift())) < 1e-9


def test_the_load_is_felt():
    tension = np.asarray(picking("pick")["tension"])
    np.testing.assert_allclose(tension[109], 185.533, atol=1e-2)
    np.testing.assert_allclose(tension[125], 204.085, atol=1e-2)


# --- joining at speed, on a short run ----------------------------------------------------------


@pytest.fixture(scope="module")
def moving():
    """The robot at the payload and a state in which it passes by, drums and all."""
    robot = picker_of("pick_off", servo=False)
    state = robot.state_at(
        np.array([0.0, 0.0, 0.105]), velocity=[0.1, -0.2, 0.3], angular_velocity=[0.3, 0.2, -0.4]
    )
    return robot, state


@eqx.filter_jit
def join(robot, state):
    """The state after joining and the robot that holds the payload, kinetic energies before and
    after, constraints after, and the jump of the generalised momentum."""
    held = robot.pick(state)
    both = Baumgarte().enter(held, jnp.zeros(()), state)
    terms = held.structure().constraint_terms(jnp.zeros(()), both.q, both.v)
    jump = held.mass_matrix(state.q) @ (both.v - state.v)
    before, after = (held.kinetic_energy(s.q, s.v) for s in (state, both))
    return both, held, before, after, terms, jump


def momentum(robot, q, v):
    """Linear and angular (about the origin) momentum of platform and payload."""
    total = np.zeros(6)
    for body, part in ((robot.platform, slice(0, 12)), (robot.payload.body, slice(12, 24))):
        K = np.asarray(body.mass_weights)
        points, rates = np.asarray(q[part]).reshape(4, 3), np.asarray(v[part]).reshape(4, 3)
        total[:3] += (K @ rates)[:2].sum(axis=0)
        total[3:] += np.einsum("ij,ijk->k", K, np.cross(points[:, None], rates[None]))
    return total


def test_joining_conserves_momentum(moving):
    """What the bodies lose, the cables and with them the drums have gained: the generalised
    momentum changes by the impulses of the constraints alone, which are inner ones but for those
    of the cables."""
    robot, state = moving
    after, held, before_energy, after_energy, terms, jump = join(robot, state)
    np.testing.assert_allclose(terms.rate, 0.0, atol=1e-11)
    assert float(after_energy) < float(before_energy)
    impulses = np.linalg.lstsq(np.asarray(terms.jacobian).T, jump, rcond=None)[0]
    np.testing.assert_allclose(np.asarray(terms.jacobian).T @ impulses, jump, atol=1e-10)
    b = np.asarray(held.platform.weights(held.attachments)) @ np.asarray(after.q[:12]).reshape(4, 3)
    pull = 2 * impulses[:4, None] * (b - np.asarray(held.exits.points.position(0.0)))
    frame = np.concatenate([pull.sum(axis=0), np.cross(b, pull).sum(axis=0)])
    change = momentum(held, after.q, after.v) - momentum(held, state.q, state.v)
    np.testing.assert_allclose(change, frame, atol=1e-9)


def test_the_payload_keeps_its_place_on_the_platform(moving):
    robot, state = moving
    after, held, *_ = join(robot, state)
    np.testing.assert_allclose(after.q, state.q, atol=0)
    R = np.asarray(held.platform.rotation(after.q[:12]))
    spin = np.asarray(held.platform.angular_velocity(after.q[:12], after.v[:12]))
    payload = np.asarray(held.payload.body.angular_velocity(after.q[12:24], after.v[12:24]))
    np.testing.assert_allclose(payload, spin, atol=1e-10)
    np.testing.assert_allclose(R, np.eye(3), atol=1e-12)


def test_put_down_and_dropped(moving):
    robot, state = moving
    held = robot.pick(state)
    put = held.place(state)
    assert put.payload.held_by == "ground" and put.n_constraints == held.n_constraints
    at = lambda r: eqx.filter_jit(r.constraint)(jnp.zeros(()), state.q)
    np.testing.assert_allclose(at(put), 0.0, atol=1e-12)
    free = held.drop(state)
    assert free.payload.held_by == "nothing" and free.n_constraints == held.n_constraints - 6
    u = jnp.zeros(free.n_u)
    a, _ = eqx.filter_jit(Baumgarte().acceleration)(free, jnp.zeros(()), state.q, 0 * state.v, u)
    centre = np.asarray(free.payload.body.weights(free.payload.body.centre))
    falls = centre @ np.asarray(a[12:24]).reshape(4, 3)
    np.testing.assert_allclose(falls, [0.0, 0.0, -9.81], atol=1e-10)


def test_a_robot_without_payload_cannot_pick(moving):
    robot = eqx.tree_at(lambda r: r.payload, moving[0], None)
    with pytest.raises(ValueError, match=r"payload: got None, expected a robot `with_payload`"):
        robot.pick(moving[1])


# --- the joint of the paper is singular ---------------------------------------------------------


def joined_by(pairs):
    """The robot of `pick`, payload joined with its axes parallel to the platform's, at rest."""
    robot = picker_of("pick", servo=False)
    load = Payload(robot.payload.body, robot.payload.joint, pairs=pairs)
    robot = eqx.tree_at(lambda r: r.payload, robot, load)
    state = robot.state_at(np.array([0.0, 0.0, 0.105]))
    return robot.pick(state), state


def test_equal_pairs_are_redundant_and_crossed_ones_are_not():
    for pairs, regular in ((CROSSED, True), (EQUAL, False)):
        robot, state = joined_by(pairs)
        margin = float(eqx.filter_jit(rank_margin)(robot, jnp.zeros(()), state.q))
        assert (margin > 1e-6) if regular else (margin < 1e-12)


@pytest.mark.parametrize("formulation", [Baumgarte(), UdwadiaKalaba(), Penalty()])
def test_equal_pairs(formulation):
    """The index-1 equations end by name. Rows that regain rank as soon as the payload turns are
    not for the pseudo-inverse either: its multipliers grow without bounds, which ends the run. The
    penalty form holds the orientation by a quartic term: it runs, and is off by about 1e-4 m and
    5 N."""
    robot, state = joined_by(EQUAL)
    p = parameters("pick")
    weight = (p.m + p.mpl) * 9.81
    b = np.array([0.0, 0.0, 0.105]) + p.bl - p.d
    tension = weight / 4 * np.linalg.norm(b[0]) / -b[0, 2]
    u = np.concatenate([np.full(4, -p.rw[0] * tension), np.zeros(6)])
    run = simulate(
        robot,
        State(state.q, state.v),
        dt=2e-3,
        duration=0.1,
        save_every=50,
        control=u,
        formulation=formulation,
        throw=False,
    )
    assert bool(run.succeeded) == isinstance(formulation, Penalty)
    if isinstance(formulation, Baumgarte):
        assert run.result == Result.SINGULAR_CONSTRAINTS
    if isinstance(formulation, Penalty):
        np.testing.assert_allclose(run["position"][-1], [0.0, 0.0, 0.105], atol=1e-4)
        np.testing.assert_allclose(run["tension"][-1], tension, atol=6.0)
    assert np.all(np.isfinite(run.q))
