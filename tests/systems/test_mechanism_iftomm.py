"""IFToMM benchmarks against published and independently computed solutions."""

import jax
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import cordax
from cordax.formulations import UdwadiaKalaba
from cordax.systems import mechanism as parts
from helpers import andrews_reference


def test_simple_pendulum():
    """A01 after 10 s, by elliptic functions."""
    run = cordax.simulate(parts.simple_pendulum(), duration=10.0, dt=1e-3, save_every=10000)
    place = [np.cos(run.q[-1, 0]), np.sin(run.q[-1, 0])]
    np.testing.assert_allclose(place, [-0.275087462577, -0.961419205099], atol=1e-10)


def crank_angle(n, times):
    """The exact form of A02 with one degree of freedom."""
    inertia, weight = (n + 1) / 3 + n, 9.81 * ((n + 1) / 2 + n)
    slope = lambda t, y: [y[1], -weight / inertia * np.cos(y[0])]
    exact = solve_ivp(slope, (0, times[-1]), [np.pi / 2, -1.0], t_eval=times, rtol=1e-12,
                      atol=1e-13, method="DOP853")  # fmt: skip
    return exact.y[0]


def test_two_windows_pass_their_singular_positions():
    """A02 with N = 2, stored at 4 s: the constraints lose rank twice on the way."""
    run = cordax.simulate(parts.n_four_bar(2), duration=4.0, dt=1e-3, save_every=1000)
    place = [np.cos(run.q[-1, 0]), np.sin(run.q[-1, 0])]
    np.testing.assert_allclose(place, [0.117616102376, 0.993059138451], atol=1e-9)
    np.testing.assert_allclose(run.q[:, 0], [np.pi / 2, *crank_angle(2, np.arange(1, 5.0))],
                               atol=1e-8)  # fmt: skip


def test_forty_windows():
    """81 bodies and 80 constraints, a tenth of a second."""
    run = cordax.simulate(parts.n_four_bar(40), duration=0.1, dt=5e-3, save_every=20)
    exact = crank_angle(40, np.array([0.1]))[0]
    cranks = np.array([run.q[-1, run.system.coordinate_names.index(f"crank{i}")] for i in (0, 40)])
    # RK4 at 5 ms, angular rates of 1 rad/s: error of a step 1e-12
    np.testing.assert_allclose(cranks, exact, atol=1e-9)


def test_andrews_squeezer():
    """A03 at 0.03 s: positions to 8 digits as published; positions and velocities to 8 digits and
    multipliers to 6, every entry, by its equations in seven angles."""
    order = [0, 1, 2, 4, 3, 6, 5]
    machine = parts.andrews_squeezer()
    start = machine.default_state()
    assert np.abs(machine.constraint(0.0, start.q)).max() < 1e-15
    run = cordax.simulate(machine, start, duration=0.03, dt=2.5e-6, save_every=12000)
    q, v, multipliers = andrews_reference.solution(0.03)
    np.testing.assert_allclose(run.q[-1], andrews_reference.Q[order], rtol=1e-8)
    np.testing.assert_allclose(run.q[-1], q[order], rtol=1e-8)
    np.testing.assert_allclose(run.v[-1], v[order], rtol=1e-8)
    np.testing.assert_allclose(run.multipliers[-1], multipliers, rtol=1e-8)


def test_published_velocities_of_the_squeezer_leave_its_loops():
    """Why small velocities are not compared with the published ones, which no state on the loops
    matches to 8 digits; the largest are, and multipliers to 5."""
    q, v, multipliers = andrews_reference.solution(0.03)
    published = andrews_reference
    gap = lambda q, v: np.abs(published.jacobian(q) @ v).max()
    assert np.abs(published.loops(published.Q)).max() < 1e-15
    assert gap(published.Q, published.V) > 5e-10
    assert gap(q, v) < 1e-13
    J = published.jacobian(published.Q)
    nearest = published.V - np.linalg.pinv(J) @ (J @ published.V)
    assert np.abs(nearest / published.V - 1.0).max() > 1e-8
    np.testing.assert_allclose(v, published.V, rtol=0, atol=1e-8 * np.abs(v).max())
    np.testing.assert_allclose(multipliers, published.MULTIPLIERS, rtol=2e-6)


def test_bricard():
    """A04: a redundant row in every position; place of joint 4 at 0.5 and 1 s."""
    machine = parts.bricard()
    found = machine.mobility()
    assert (found.dof, found.rank, len(found.redundant)) == (1, 4, 1)
    options = {"duration": 1.0, "formulation": UdwadiaKalaba()}
    run = cordax.simulate(machine, dt=2e-3, save_every=250, **options)
    place = jax.vmap(lambda q: machine.position(q, "rod4"))(run.q)
    expected = [[0.96828368, -1.22462516, 0.75014661], [0.51050146, -1.64916760, 0.14012311]]
    np.testing.assert_allclose(place[1:], expected, atol=2e-8)
    energy = np.array(run.energy()["total"])
    np.testing.assert_allclose(energy, -29.43, atol=1e-6)
    # with large steps the redundant row is off by more: it must not lock the mechanism
    coarse = cordax.simulate(machine, dt=2e-2, save_every=50, **options)
    np.testing.assert_allclose(machine.position(coarse.q[-1], "rod4"), expected[1], atol=2e-4)


def test_redundant_rows_end_a_run_with_a_sentence():
    with pytest.raises(cordax.SimulationError, match="redundant constraints"):
        cordax.simulate(parts.bricard(), duration=0.01, dt=1e-3)
