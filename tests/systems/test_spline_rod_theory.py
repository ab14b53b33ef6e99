"""The rod against theory: sags, frequencies, a catenary, a bend that stays, contact, joints."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq

import cordax
from cordax import State, simulate
from cordax.systems import (
    ContactLaw,
    Cylinder,
    End,
    Harness,
    Joint,
    LineContact,
    Plane,
    PlasticFlow,
    Sphere,
    SplineRod,
)
from helpers.rod_reference import DATA, rod_of


@eqx.filter_jit
def linearised(rod):
    at = rod.default_state()
    linear = rod.structure().linearise(jnp.zeros(()), at.q, at.v, jnp.zeros(rod.n_u))
    return linear.matrices()[1], linear.f


@eqx.filter_jit
def shown(rod, q, u=None):
    """Control points and outputs at rest."""
    t, v = jnp.zeros(()), jnp.zeros(rod.n_v)
    u = jnp.zeros(rod.n_u) if u is None else u
    return rod.control(t, q), rod.outputs(t, q, v, u, None)


def stiffness_at_rest(rod):
    """Stiffness (n, n) and load (n,) of the straight rod."""
    K, f = linearised(rod)
    return -np.asarray(K), np.asarray(f)


@pytest.mark.parametrize(("slope", "factor"), [(False, 5.0), (True, 1.0)])
def test_small_sag_under_its_own_weight(slope, factor):
    """5 w L^4/(384 EI) between pins, w L^4/(384 EI) between clamps."""
    ends = End.sliding(0.0, slope=slope)
    rod = SplineRod(left=End.pinned() if not slope else ends, right=ends, control_points=9)
    K, f = stiffness_at_rest(rod)
    shift = np.linalg.lstsq(K, f, rcond=None)[0]
    middle = float(shown(rod, rod.default_state().q + shift)[1]["centre"][2])
    weight = float(rod.line_density[0] * rod.gravity)
    theory = factor * weight * 2.0**4 / (384.0 * float(rod.elasticity.bending))
    assert middle == pytest.approx(-theory, rel=1e-8)


def frequencies(rod, component: str):
    """Angular frequencies of the straight rod in one component."""
    names = [i for i, name in enumerate(rod.coordinate_names) if name.startswith(component)]
    K, _ = stiffness_at_rest(rod)
    M = np.asarray(rod.mass_matrix(None))
    pick = np.ix_(names, names)
    return np.sqrt(np.sort(np.real(np.linalg.eigvals(np.linalg.solve(M[pick], K[pick])))))


def test_bending_axial_and_twist_frequencies():
    """Against closed forms of the continuous rod. The discretisation errors are regressions, stored
    from this code; they bound the errors of the mesh from both sides."""
    spring = End.sliding(1e4)
    rod = SplineRod(left=spring, right=spring)
    EA, GJ, EI = (float(x) for x in (rod.elasticity[0], rod.elasticity[1], rod.elasticity[2]))
    mu, polar = (float(x) for x in rod.line_density)
    order = np.arange(1, 5)
    bending = (order * np.pi / 2.0) ** 2 * np.sqrt(EI / mu)
    np.testing.assert_allclose(
        frequencies(rod, "z")[:4] / bending - 1.0, [5.5e-5, 1.0e-3, 6.3e-3, 2.4e-2], rtol=0.02
    )
    twist = order[:3] * np.pi / 2.0 * np.sqrt(GJ / polar)
    np.testing.assert_allclose(
        frequencies(rod, "theta")[:3] / twist - 1.0, [3.8e-7, 3.3e-5, 5.4e-4], rtol=0.02
    )
    a = 1e4 / EA
    secular = lambda k: (k * k - a * a) * np.sin(2.0 * k) - 2.0 * a * k * np.cos(2.0 * k)
    grid = np.linspace(1e-3, 6.0, 4000)
    signs = np.sign(secular(grid))
    roots = [brentq(secular, grid[i], grid[i + 1]) for i in np.flatnonzero(np.diff(signs))][:3]
    axial = np.array(roots) * np.sqrt(EA / mu)
    found = frequencies(rod, "x")[:3] / axial - 1.0
    assert abs(found[0]) < 1e-9
    np.testing.assert_allclose(found[1:], [3.3e-7, 2.8e-5], rtol=0.03)


@pytest.mark.parametrize(
    ("case", "sag", "shift"), [("phys", 18.532e-3, 0.2131e-3), ("pe", 0.211202, 3.870e-3)]
)
def test_rest_shape(case, sag, shift):
    rod, _ = rod_of(f"{case}_gravity", quadrature=("gauss", 5))
    guess = State(
        rod.layout.split(jnp.asarray(DATA[f"static/{case}_q"].T)) * 1.0, jnp.zeros(rod.n_q)
    )
    rest = cordax.equilibrium(rod, guess=guess)
    P, out = shown(rod, rest.q)
    np.testing.assert_allclose(P.T, DATA[f"static/{case}_q"], atol=1e-8)
    assert float(out["sag"]) == pytest.approx(sag, rel=1e-4)
    assert P[0, 0] == pytest.approx(shift, rel=1e-3)


def test_catenary():
    """A thin wire, 2 m between points 1.6 m apart. On the catenary of a coarse spline the wire is
    on a saddle, 0.509970 m deep: it buckles sideways into what its splines can follow better."""
    length, span, n = 2.0, 1.6, 9
    a = brentq(lambda a: 2.0 * a * np.sinh(0.5 * span / a) - length, 0.05, 10.0)
    depth = a * (np.cosh(0.5 * span / a) - 1.0)
    assert depth == pytest.approx(0.530875, abs=1e-6)
    # control points above the averages of three knots, on the curve
    knots = np.concatenate([[0.0] * 3, np.arange(n - 2.0), [n - 3.0] * 3])
    s = np.array([knots[i + 1 : i + 4].mean() for i in range(n)]) * length / (n - 3) - length / 2
    x, z = 0.5 * span + a * np.arcsinh(s / a), np.sqrt(a**2 + s**2) - np.hypot(a, length / 2)
    rod = SplineRod(
        length=length,
        diameter=0.2e-3,
        young=1e9,
        control_points=n,
        quadrature=("gauss", 5),
        right=End.pinned([span, 0.0, 0.0]),
    )
    P = jnp.asarray(np.stack([x, 0 * x, z, 0 * x]))
    on_it = State(rod.layout.split(P), jnp.zeros(rod.n_v))
    rest = cordax.equilibrium(rod, guess=on_it, full=True)
    sag = lambda q: -float(shown(rod, q)[1]["centre"][2])
    assert sag(rest.state.q) == pytest.approx(0.512403, abs=1e-6)
    assert (int(rest.unstable), int(rest.neutral)) == (0, 0)
    assert np.abs(rest.residual).max() < 1e-11
    straight = cordax.equilibrium(rod, full=True)  # from the straight wire, stretched to 2 m
    assert bool(straight.stable) and sag(straight.state.q) == pytest.approx(depth, rel=0.04)


def test_a_bent_wire_keeps_its_bend():
    """A cantilever pushed at its tip beyond yield, then let go: what stays is what yielded."""
    flow_stress = 2.0  # yield curvature [1/m]
    settings = {
        "length": 0.5,
        "young": 2e9,
        "left": End.clamped(),
        "right": End.free(),
        "gravity": 0.0,
        "viscous": True,
        "damping": 0.3,
        "loads": (1.0,),
    }
    rod = SplineRod(plastic=True, **settings)
    push = 8.0 * float(rod.elasticity.bending) / 0.5  # far beyond yield at the root

    def load(t):
        ramp = jnp.clip(t / 0.2, 0.0, 1.0) * jnp.clip((0.6 - t) / 0.2, 0.0, 1.0)
        return jnp.stack([0.0 * t, 0.0 * t, push * ramp])

    flow = PlasticFlow(rod, flow_stress, load)
    run = simulate(
        rod,
        dt=1e-2,
        duration=4.0,
        control=flow,
        save_every=100,
        integrator="linearly_implicit_euler",
    )
    plastic = np.asarray(run.u[-1, 3:])
    bent = np.asarray(run["control"])[-1, -1, 2]
    assert plastic.max() > 1.0, "the root should have yielded"
    assert bent > 5e-3
    assert np.abs(run.v[-1]).max() < 1e-2, "the wire should be at rest again"
    # the same push within the elastic range leaves nothing
    gentle = PlasticFlow(rod, 1e3, load)
    run = simulate(
        rod,
        dt=1e-2,
        duration=4.0,
        control=gentle,
        save_every=100,
        integrator="linearly_implicit_euler",
    )
    assert np.abs(np.asarray(run["control"])[-1, :, 2]).max() < 0.1 * bent


def test_damping_takes_energy_and_nothing_else():
    rod, _ = rod_of("pe_gravity", quadrature=("gauss", 4), viscous=True, damping=1e-2, gravity=0.0)
    start = rod.default_state()
    rng = np.random.default_rng(1)
    state = State(start.q, 0.1 * rng.standard_normal(rod.n_q))
    run = simulate(rod, state, dt=5e-4, duration=0.1, integrator="rk4", save_every=10)
    energy = np.asarray(run.energy()["total"])
    assert np.all(np.diff(energy) < 0)
    # a translation of a free rod is not resisted
    loose = SplineRod(left=End.free(), right=End.free(), viscous=True, damping=1.0, gravity=0.0)
    velocity = np.tile([[0.3], [-0.2], [0.1], [0.0]], (1, 9))

    @eqx.filter_jit
    def resistance(rod):
        drift = rod.layout.split(jnp.asarray(velocity))
        return rod.force(jnp.zeros(()), rod.default_state().q, drift, jnp.zeros(0))

    force = resistance(loose)
    assert np.abs(force).max() < 1e-6


@pytest.mark.parametrize(
    "obstacle",
    [
        Plane((0.0, 0.0, -0.05)),
        Sphere(0.2, (1.0, 0.0, -0.25)),
        Cylinder(0.2, None, (1.0, 0.0, -0.25), (0.0, 1.0, 0.0)),
    ],
)
def test_a_rod_lies_on_what_it_falls_on(obstacle):
    contact = LineContact(obstacle, ContactLaw(stiffness=2e3, friction=0.3, damping=5.0))
    rod, _ = rod_of("pe_gravity", quadrature=("gauss", 4), contact=contact)
    run = simulate(rod, dt=1e-3, duration=0.6, integrator="rk4", save_every=50)
    distance = jax.vmap(lambda x: obstacle.surface(x)[0], in_axes=1)
    places = lambda P: distance(rod.points.positions(P.T).reshape(3, -1))
    gaps = np.asarray(jax.jit(jax.vmap(places))(run["control"]))
    assert gaps.min() < 2e-3, "it should touch"
    assert gaps.min() > -0.02, "and not sink in"


def test_a_rod_cut_in_two_and_joined_is_the_whole_rod():
    """Static sag of two halves with a joint in the middle against one rod with the same knots."""
    half = {"length": 1.0, "young": 2.5e6, "control_points": 6}
    spring = End.sliding(50.0)
    whole = SplineRod(young=2.5e6, left=spring, right=spring)
    left = SplineRod(left=spring, right=End.free(), **half)
    far = End(
        (False, True, True), (False, False, False), True, jnp.array([50.0, 0, 0]), point=[2.0, 0, 0]
    )
    right = SplineRod(left=End.free(), right=far, **half)
    harness = Harness((left, right), (Joint(0, "right", 1, "left"),))
    shifted = lambda u: jnp.stack([u + 1.0, 0 * u, 0 * u], axis=1)
    start = harness.state_of(left.default_state(), right.state_of(shifted))
    run = simulate(
        harness,
        start,
        dt=2e-3,
        duration=0.2,
        integrator=cordax.GeneralisedAlpha(1.0),
        save_every=20,
    )
    assert float(run.drift().max()) < 1e-10
    alone = simulate(
        whole, dt=2e-3, duration=0.2, integrator=cordax.GeneralisedAlpha(1.0), save_every=20
    )
    # the joined pair has one degree of smoothness less at the joint: equal to discretisation error
    joint = np.asarray(run["0_control"])[:, -1, 2]
    centre = np.asarray(alone["centre"])[:, 2]
    np.testing.assert_allclose(joint, centre, atol=0.03 * np.abs(centre).max())


def test_a_moving_gripper_takes_the_rod_along():
    """Prescribed ends carry their inertia: a rod moved as a whole stays straight."""
    from cordax.control import Quintic

    path = lambda x: Quintic([x, 0.0, 0.0], [[0.0, 0.0, 0.3]], [[0.0, 0.5]])
    left, right = End.clamped(path(0.0), [1.0, 0, 0]), End.clamped(path(2.0), [1.0, 0, 0])
    rod = SplineRod(young=70e9, left=left, right=right, gravity=0.0)
    run = simulate(rod, dt=1e-3, duration=0.6, integrator="implicit_midpoint", save_every=100)
    heights = np.asarray(run["control"])[-1, :, 2]
    assert np.abs(heights - 0.3).max() < 0.05
    # started at rest in a moving frame, a free fall: the mean height follows the hands
    b = np.asarray(run["centre"])[:, 2]
    assert b[0] == 0.0
    assert b[-1] > 0.2
