"""Discrete elastic rods: energies, linearisation, beams, twist, rest shapes."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax.control import Quintic
from cordax.systems import DiscreteRod, Gripper, StrandSlip

N = 6


@pytest.fixture(scope="module")
def bent():
    """A bent, twisted, damped rod in moving, turning grippers, and a state of it in motion."""
    rng = np.random.default_rng(0)
    s = np.linspace(0.0, 1.0, N + 1)
    nodes = np.stack([0.6 * s, 0.1 * np.sin(3 * s), -0.3 * np.sin(np.pi * s)], axis=1)
    moved = lambda start, by: Quintic(jnp.array(start), jnp.array([by]), [[0.0, 1.0]])
    left = Gripper(
        moved(nodes[0], [0.1, 0.2, 0.1]),
        moved([0.6, 0.2, -0.9], [0.2, 0.1, 0.3]),
        moved([0.0, 1.0, 0.0], [0.5, 0.0, 0.4]),
    )
    right = Gripper(nodes[-1], [0.6, -0.2, 0.9], [0.1, 1.0, 0.0])
    rod = DiscreteRod(
        nodes,
        left,
        right,
        length=0.9,
        bending_time=0.05,
        axial_time=0.01,
        drag=0.1,
        rest_curvature=rng.normal(size=(N + 1, 2)),
    )
    q = np.asarray(rod.default_state().q) + 0.02 * rng.normal(size=rod.n_q)
    return rod, jnp.asarray(0.4), jnp.asarray(q), jnp.asarray(0.3 * rng.normal(size=rod.n_q))


@eqx.filter_jit
def force(rod, t, q, v):
    return rod.force(t, q, v, jnp.zeros(0))


@eqx.filter_jit
def energy(rod, t, q):
    """And how it falls."""
    value, slope = jax.value_and_grad(rod.potential_energy, argnums=1)(t, q)
    return value, -slope


@eqx.filter_jit
def strains(rod, t, q):
    return rod.strains(t, q)


def test_forces_are_those_of_the_energy(bent):
    rod, t, q, v = bent
    fall = energy(rod, t, q)[1]
    rigid = DiscreteRod(
        rod.nodes, rod.left, rod.right, rod.length, rest_curvature=rod.rest_curvature
    )
    f = force(rigid, t, q, 0.0 * v)
    np.testing.assert_allclose(f, fall, atol=1e-12 * np.abs(f).max())


def test_linearisation_is_the_derivative_of_the_force(bent):
    rod, t, q, v = bent
    b, h = jnp.asarray(np.sin(np.arange(q.shape[0]) + 1.0)), 5e-3

    @eqx.filter_jit
    def look(rod):
        motion = rod.structure().linearise(t, q, v, jnp.zeros(0))
        derivatives = jax.jacfwd(rod.force, argnums=(1, 2))(t, q, v, jnp.zeros(0))
        solved = motion.implicit_solver(jnp.asarray(h))(b)
        return motion.matrices(), motion.f, solved, derivatives, rod.mass_matrix(q)

    found, f, solved, (K, D), M = (jax.tree.map(np.asarray, x) for x in look(rod))
    np.testing.assert_allclose(found[1], K, atol=1e-12 * np.abs(K).max())
    np.testing.assert_allclose(found[2], D, atol=1e-12 * np.abs(D).max())
    x = np.linalg.solve(M - h * D - h * h * K, b)
    np.testing.assert_allclose(solved, x, rtol=1e-9)
    np.testing.assert_allclose(f, force(rod, t, q, v), rtol=1e-12)


def test_damping_takes_what_grippers_and_nodes_do_to_strains(bent):
    """Damping forces are those of rates of strain by differences, turning grippers included."""
    rod, t, q, v = bent
    h = 1e-5
    ahead, behind = (strains(rod, t + e, q + e * v) for e in (h, -h))
    rates = [(a - b) / (2 * h) for a, b in zip(ahead, behind, strict=True)]

    @eqx.filter_jit
    def damping(rod, rates):
        bending, axial = rod._joints(rod._held(t)).bending, rod.spacing * rod.EA
        _, back = jax.vjp(lambda q: rod.strains(t, q), q)
        resists = rod.bending_time * bending * rates[0], rod.axial_time * axial * rates[1]
        return back(resists)[0], rod.drag * rod.spacing * v.at[3 * (N - 1) :].set(0.0)

    resists, air = map(np.asarray, damping(rod, rates))
    still = energy(rod, t, q)[1]
    f = force(rod, t, q, v)
    np.testing.assert_allclose(f - still, -resists - air, atol=1e-6 * np.abs(resists).max())


def straight(count, **numbers):
    nodes = np.linspace([0.0, 0.0, 0.0], [1.0, 0.0, 0.0], count + 1)
    hold = lambda x: Gripper([x, 0.0, 0.0], [2.0, 0.0, 0.0], [0.3, 0.0, 1.0])
    return DiscreteRod(nodes, hold(0.0), hold(1.0), length=1.0, **numbers)


def test_sag_of_a_clamped_beam():
    """rho A g L^4 / (384 EI) to first order in g, with order 2 in the number of segments."""

    @eqx.filter_jit
    def about(rod, state):
        motion = rod.structure().linearise(0.0 * rod.length, state.q, state.v, jnp.zeros(0))
        return motion.matrices()[1], motion.f

    errors = []
    for count in (8, 16):
        rod = straight(count, EI=1.0, gravity=1e-3)
        K, f = map(np.asarray, about(rod, rod.default_state()))
        down = np.linalg.solve(K, -f)[: 3 * (count - 1)].reshape(-1, 3)[:, 2]
        errors.append(-down.min() * 384 / 1e-3 - 1.0)
    assert abs(errors[1]) < 0.04
    assert 3.8 < errors[0] / errors[1] < 4.2


def test_turned_gripper_twists_evenly():
    rod, angle = straight(5, GJ=0.3, gravity=0.0), 1.2
    turned = Gripper([1.0, 0, 0], [1.0, 0, 0], [0.0, -np.sin(angle), np.cos(angle)])
    rod = DiscreteRod(rod.nodes, rod.left, turned, length=1.0, GJ=0.3, gravity=0.0)
    places = (np.arange(5) + 0.5) / 5
    q = np.array(rod.default_state().q)
    q[12:] = angle * places
    q, t = jnp.asarray(q), jnp.zeros(())
    # round-off of the spacing, 1e-16 m, is 1e-11 N through EA/l = 1e5 N/m
    np.testing.assert_allclose(force(rod, t, q, 0.0 * q), 0.0, atol=1e-10)
    np.testing.assert_allclose(energy(rod, t, q)[0], 0.5 * 0.3 * angle**2, rtol=1e-12)


def test_rest_shape_that_holds_a_shape():
    """An arc without weight needs the arc for its rest shape; in the presence of weight the rest
    shape found leaves a hundredth of the force."""
    a = np.linspace(-0.7, 0.7, N + 1)
    nodes = np.stack([np.sin(a), 0.0 * a, np.cos(a)], axis=1)
    edge = lambda a: [np.cos(a), 0.0, -np.sin(a)]
    grips = [Gripper(nodes[i], edge(a[i]), [0.0, 1.0, 0.0]) for i in (0, -1)]
    spacing = np.linalg.norm(nodes[1] - nodes[0])
    rod = lambda **kw: DiscreteRod(nodes, *grips, length=N * spacing, **kw)
    t, q = jnp.zeros(()), rod().default_state().q
    arc = np.asarray(strains(rod(), t, q)[0])[:2].T
    np.testing.assert_allclose(np.abs(arc), np.tile([0.0, 1.0], (N + 1, 1)), atol=0.02)
    at_rest = force(rod(rest_curvature=arc, gravity=0.0), t, q, 0.0 * q)
    np.testing.assert_allclose(at_rest, 0.0, atol=1e-9)
    find = eqx.filter_jit(
        lambda rod: rod.balanced_rest(
            jnp.zeros((N + 1, 3)), acceleration_error=0.01, curvature=10.0
        )
    )
    rest = find(rod())
    # tension may do what it likes
    across = np.asarray(eqx.filter_jit(jax.jacfwd(lambda q: rod().strains(t, q)[1]))(q)).T
    free = lambda f: f - across @ np.linalg.lstsq(across, np.asarray(f), rcond=None)[0]
    left = free(force(rod(rest_curvature=rest), t, q, 0.0 * q))
    assert np.abs(left).max() < 0.01 * np.abs(free(force(rod(), t, q, 0.0 * q))).max()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="rest_curvature"):
        straight(5, rest_curvature=np.zeros((5, 2)))
    with pytest.raises(ValueError, match="nodes"):
        grip = Gripper([0.0, 0, 0], [1.0, 0, 0], [0, 0, 1.0])
        DiscreteRod(np.zeros((2, 3)), grip, grip, length=1.0)


def test_contract(bent):
    cordax.check_machine(bent[0])


def test_derivatives_in_both_modes():
    """Of where nodes are after some steps in moving grippers, from the balanced rest shape on and
    with strands that slip, by every number, against central differences."""
    s = np.linspace(0.0, 1.0, 4)
    nodes = np.stack([0.6 * s, 0.1 * np.sin(3 * s), -0.3 * np.sin(np.pi * s)], axis=1)
    moved = lambda start, by: Quintic(jnp.array(start), jnp.array([by]), [[0.0, 0.1]])
    left = Gripper(
        moved(nodes[0], [0.02, 0.04, 0.02]),
        moved([0.6, 0.2, -0.9], [0.2, 0.1, 0.3]),
        moved([0.0, 1.0, 0.0], [0.5, 0.0, 0.4]),
    )
    right = Gripper(nodes[-1], [0.6, -0.2, 0.9], [0.1, 1.0, 0.0])
    names = "EI GJ bending_time axial_time drag length stick slip".split()
    sizes = dict(zip(names, (0.1, 0.05, 0.05, 0.01, 0.2, 0.9, 1.5, 0.05), strict=True))
    weights = jnp.arange(3.0 * len(s)).reshape(-1, 3) % 5.0

    def end(p):
        rod = DiscreteRod(nodes, left, right, **{n: sizes[n] * p[i] for i, n in enumerate(names)})
        rest = rod.balanced_rest(jnp.zeros((len(s), 3)), curvature=p[-1])
        rod = dataclasses.replace(rod, rest_curvature=rest)
        run = cordax.simulate(rod, control=StrandSlip(rod), dt=5e-3, duration=0.05, save_every=10)
        return jnp.sum(run["nodes"][-1] * weights)

    ones, h = jnp.ones(len(names) + 1), 1e-4
    both = jax.jit(lambda p: (end(p), jax.jacfwd(end)(p)))
    slopes = np.array(both(ones)[1])
    ahead, behind = (np.array([both(ones + e)[0] for e in h * s * jnp.eye(9)]) for s in (1, -1))
    least = 1e-6 * np.abs(slopes).max()
    np.testing.assert_allclose(slopes, (ahead - behind) / (2 * h), rtol=1e-5, atol=least)
    reverse = np.array(jax.jit(jax.grad(end))(ones))
    np.testing.assert_allclose(reverse, slopes, rtol=1e-8, atol=1e-8 * np.abs(slopes).max())
    for name, slope in zip([*names, "curvature"], slopes, strict=True):
        assert abs(slope) > 10 * least, name


# --- strands that slip
def sticky(stick=1.5, slip=2.0):
    rod = straight(4, EI=0.2, stick=stick, slip=slip, gravity=0.0)
    return rod, StrandSlip(rod)


@eqx.filter_jit
def rubbing(rod, t, q, v, u):
    return rod.force(t, q, v, u)


def bent_by(rod, angle):
    """The state in which node 2 is aside, so that joint 1 is bent by about `angle`."""
    state = rod.default_state()
    aside = 0.25 * np.tan(angle)
    return dataclasses.replace(state, q=state.q.at[3:6].add(jnp.array([0.0, 0.0, aside])))


def test_nothing_slips_below_the_limit_and_all_beyond_it():
    rod, slips = sticky(slip=2.0)
    t, start = jnp.zeros(()), rod.default_state()
    memory = slips(t, start, slips.init(start))[1]
    np.testing.assert_allclose(memory, 0.0, atol=1e-12)
    for angle in (0.1, 0.4, -0.4, 0.0):
        state = bent_by(rod, angle)
        before = memory
        u, memory = slips(t, state, memory)
        bent = rod.strains(t, state.q)[0][:2]
        stuck = np.linalg.norm(bent - memory, axis=0)
        tried = np.linalg.norm(bent - before, axis=0)
        np.testing.assert_allclose(stuck, np.minimum(tried, 2.0), atol=1e-12)
        np.testing.assert_array_equal(u, memory.reshape(-1))
        moved = np.abs(memory - before).max()
        assert moved == 0.0 if tried.max() < 2.0 else moved > 0.1
    assert np.abs(memory).max() > 0.1  # straight again, friction would bend it


@pytest.fixture(scope="module")
def rubbed():
    """A rod that sticks, a state of it in motion, and what has slipped at random."""
    rng = np.random.default_rng(2)
    rod, _ = sticky(stick=1.5, slip=1e3)
    rod = dataclasses.replace(rod, bending_time=jnp.asarray(0.05), GJ=jnp.asarray(0.1))
    u = jnp.asarray(rng.normal(size=rod.n_u))
    q = rod.default_state().q + 0.03 * rng.normal(size=rod.n_q)
    return rod, jnp.zeros(()), q, jnp.asarray(rng.normal(size=rod.n_q)), u


def test_friction_is_a_spring_about_what_has_slipped(rubbed):
    """Where nothing slips, moments are those of a rod without friction, and of another, stick times
    as stiff, whose rest curvature is what has slipped."""
    rod, t, q, v, u = rubbed
    plain = dataclasses.replace(rod, stick=None, slip=None)
    other = straight(4, EI=0.3, GJ=1e-9, EA=1e-9, gravity=0.0, rest_curvature=u.reshape(2, -1).T)
    both = force(plain, t, q, v) + force(other, t, q, v)
    found = rubbing(rod, t, q, v, u)
    np.testing.assert_allclose(found, both, atol=1e-6 * float(jnp.abs(found).max()))


def test_linearised_friction(rubbed):
    """It is the derivative of forces, where some joints slip and others do not, by state and by
    what has slipped."""
    rod, t, q, v, u = rubbed
    rod = dataclasses.replace(rod, slip=jnp.asarray(1.5))
    beyond = np.linalg.norm(strains(rod, t, q)[0][:2] - u.reshape(2, -1), axis=0)
    assert beyond.min() < 1.5 < beyond.max()

    @eqx.filter_jit
    def look(rod):
        derivatives = jax.jacfwd(rod.force, argnums=(1, 2))(t, q, v, u)
        return derivatives, rod.structure().linearise(t, q, v, u).matrices()

    (K, D), motion = look(rod)
    np.testing.assert_allclose(motion[1], K, atol=1e-12 * float(jnp.abs(K).max()))
    np.testing.assert_allclose(motion[2], D, atol=1e-12 * float(jnp.abs(D).max()))
    ahead, behind = (rubbing(rod, t, q + 1e-6 * e, v, u) for e in (v, -v))
    np.testing.assert_allclose(
        (ahead - behind) / 2e-6, K @ v, atol=1e-6 * float(jnp.abs(K @ v).max())
    )


def test_steps_know_what_slips_within_them(rubbed):
    """Counted before a step or after it, slipped curvature leaves the same forces: nothing acts a
    step late."""
    rod, t, q, v, u = rubbed
    rod = dataclasses.replace(rod, slip=jnp.asarray(0.5))
    state = cordax.State(q, v)
    counted, _ = eqx.filter_jit(StrandSlip(rod))(t, state, u.reshape(2, -1))
    assert np.abs(counted - u).max() > 0.1
    before, after = rubbing(rod, t, q, v, u), rubbing(rod, t, q, v, counted)
    np.testing.assert_allclose(after, before, atol=1e-10 * float(jnp.abs(before).max()))


def test_friction_starts_without_load_at_any_time(bent):
    """Grippers have moved until then."""
    rod, _, q, v = bent
    rod = dataclasses.replace(rod, stick=jnp.asarray(1.5), slip=jnp.asarray(0.1))
    slips, t, state = StrandSlip(rod), jnp.asarray(0.9), cordax.State(q, v)
    u, _ = slips(t, state, slips.init(state))
    np.testing.assert_allclose(u, strains(rod, t, q)[0][:2].reshape(-1), rtol=1e-12)


def test_a_run_with_friction_needs_its_controller():
    with pytest.raises(ValueError, match=r"control: got None, expected StrandSlip"):
        cordax.simulate(sticky()[0], dt=1e-3, duration=0.01)


def test_what_slips_takes_the_energy():
    """A bent rod that springs back in still grippers: kinetic, potential and stuck energy fall by
    friction moments times slipped curvature, which is never negative."""
    rod, _ = sticky(stick=1.5, slip=0.3)
    rod = dataclasses.replace(rod, EA=jnp.asarray(200.0))
    run = cordax.simulate(
        rod,
        bent_by(rod, 0.15),
        control=StrandSlip(rod),
        dt=1e-3,
        duration=0.3,
        integrator=cordax.GeneralisedAlpha(1.0, tolerance=1e-10),
    )
    whole = np.asarray(run.energy()["total"] + run["stuck_energy"])
    bent = np.asarray(jax.vmap(lambda t, q: strains(rod, t, q)[0][:2])(run.t, run.q))
    slipped = np.asarray(run.u).reshape(len(bent), 2, -1)
    moments = 1.5 * 0.2 * np.asarray(rod.shares) * (bent - slipped)
    change = np.diff(slipped, axis=0)
    late = np.sum(moments[1:] * change, axis=(1, 2))
    assert late.min() > -1e-12
    taken = np.cumsum(np.sum(0.5 * (moments[1:] + moments[:-1]) * change, axis=(1, 2)))
    assert taken[-1] > 0.3 * whole[0]
    # to second order in the step
    np.testing.assert_allclose(whole[1:] + taken, whole[0], atol=2e-3 * whole[0])


def test_rest_is_what_is_expected_where_nothing_speaks_against_it():
    """Accelerations known to nothing leave the mean; and damping and air of a moving shape are part
    of its balance: with the accelerations that it has, its own rest shape is found."""
    rod = straight(5, EI=0.2, bending_time=0.1, drag=0.3, gravity=1.0)
    rng = np.random.default_rng(3)
    mean = jnp.asarray(rng.normal(size=(6, 2)))
    still = jnp.zeros((6, 3))
    rest = eqx.filter_jit(lambda a, **given: rod.balanced_rest(a, mean=mean, **given))
    vague = rest(still, acceleration_error=1e6, curvature=0.1)
    np.testing.assert_allclose(vague, mean, atol=1e-3)
    bent = dataclasses.replace(rod, rest_curvature=mean)
    q, speed = bent.default_state().q, jnp.asarray(rng.normal(size=(4, 3)))
    v = jnp.concatenate([speed.reshape(-1), jnp.zeros(5)])
    a = force(bent, jnp.zeros(()), q, v) / bent.structure().momentum(q, jnp.ones_like(q))
    moving = still.at[1:-1].set(a[:12].reshape(-1, 3))
    found = rest(moving, speed=speed, acceleration_error=1e-6)
    np.testing.assert_allclose(found, mean, atol=1e-6)
    without = rest(moving, acceleration_error=1e-6)
    assert jnp.abs(without - mean).max() > 0.1


def test_strands_of_a_rod_without_friction():
    with pytest.raises(ValueError, match="stick"):
        StrandSlip(straight(4))
    with pytest.raises(ValueError, match="slip"):
        straight(4, stick=1.0)
    with pytest.raises(ValueError, match="stick"):
        straight(4, slip=1.0)
    with pytest.raises(ValueError, match="slip"):
        sticky(slip=-1.0)
