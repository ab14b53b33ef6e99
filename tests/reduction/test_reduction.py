"""Reduced models of a rope robot: exact where they must be, and machines like any other."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Baumgarte, State, float_field, simulate
from cordax.reduction import Subspace, axial_basis, piecewise_linear, pod_basis, select_snapshots
from cordax.systems import Pendulum
from helpers.machines import DoublePendulum
from helpers.rope_robot_reference import errors, fields, inputs_of, relative, robot_of


@pytest.fixture(scope="module")
def tpwl():
    robot, s = robot_of("paper2_s6"), fields("paper2_s6")
    states = State(s.q_full, s.v_full)
    return robot, piecewise_linear(robot, select_snapshots(states, 4, 0.05), velocity_scale=0.05)


def test_piecewise_linear_is_exact_at_its_points(tpwl):
    robot, model = tpwl
    u, t = jnp.array([1.0, 20.0, -3.0]), jnp.zeros(())
    both = eqx.filter_jit(
        lambda q, v: (robot.force(t, q, v, u), model.force(t, q, v, u), model.weights(q, v))
    )
    for q, v in zip(model.q, model.v, strict=True):
        exact, found, weights = both(q, v)
        assert relative(found, exact) < 1e-12
        assert float(jnp.sum(weights)) == pytest.approx(1.0, abs=1e-14)
    # near a point the remainder is of second order
    rng = np.random.default_rng(0)
    direction = jnp.asarray(rng.normal(size=robot.n_q))
    off = []
    for size in (2e-3, 1e-3):
        exact, found, _ = both(model.q[1] + size * direction, model.v[1] + size * direction)
        off.append(float(jnp.max(jnp.abs(found - exact))))
    assert off[0] / off[1] == pytest.approx(4.0, rel=0.1)
    weights = both(model.q[1] + 0.3 * direction, model.v[1])[2]
    assert float(jnp.sum(weights)) == pytest.approx(1.0, abs=1e-14)


def test_piecewise_linear_leaves_constraints_and_masses_alone(tpwl):
    robot, model = tpwl
    s = fields("paper2_s6")
    q, v, t = jnp.asarray(s.q_full[9]), jnp.asarray(s.v_full[9]), jnp.zeros(())
    look = eqx.filter_jit(lambda m: (m.constraint(t, q), m.structure().momentum(q, v)))
    (mine, momentum), (whole, expected) = look(model), look(robot)
    np.testing.assert_array_equal(mine, whole)
    np.testing.assert_allclose(momentum, expected, rtol=1e-12)


@eqx.filter_jit
def about_rest(model, y):
    """M, K, D and J about a state at rest, with the pulls that balance it."""
    t, u, rest = jnp.zeros(()), jnp.zeros(3), jnp.zeros_like(y)
    pull = Baumgarte(0.0, 0.0).acceleration(model, t, y, rest, u)[1]

    def force(y, v):
        J = jax.jacfwd(lambda y: model.constraint(t, y))(y)
        return model.force(t, y, v, u) - J.T @ pull

    K, D = jax.jacfwd(force, argnums=(0, 1))(y, rest)
    return model.mass_matrix(y), K, D, jax.jacfwd(lambda y: model.constraint(t, y))(y)


def spectral_radius(model, y):
    """Of the free motions about it."""
    M, K, D, J = (np.asarray(x) for x in about_rest(model, y))
    N = np.linalg.svd(J)[2][J.shape[0] :].T
    M, K, D = (N.T @ x @ N for x in (M, K, D))
    n = len(M)
    A = np.block([[np.zeros((n, n)), np.eye(n)], [np.linalg.solve(M, np.hstack([K, D]))]])
    return np.abs(np.linalg.eigvals(A)).max()


def test_axial_waves_are_most_of_the_stiffness():
    """Constant and linear elongation per rope: 47 coordinates instead of 83, and a two-hundredth
    of the spectrum."""
    robot, s = robot_of("paper2"), fields("paper2")
    basis = axial_basis(robot)
    assert basis.shape == (83, 47)
    model = Subspace(robot, basis, np.zeros(83))
    y = model.project(State(s.q0, s.v0)).q
    # stretch of a hanging rope is linear: the state at rest is in the subspace
    np.testing.assert_allclose(model.lift(State(y, 0 * y)).q, s.q0, atol=1e-7)
    assert spectral_radius(model, y) < 3e3


def test_reduced_robot_moves_like_the_whole():
    """Six segments through slack, explicit steps eight times those of the whole robot."""
    robot, s, inputs = robot_of("paper2_s6"), fields("paper2_s6"), inputs_of("paper2_s6")
    model = Subspace(robot, axial_basis(robot), np.zeros(robot.n_q))
    run = simulate(
        model,
        model.project(State(s.q0, s.v0)),
        dt=5e-4,
        duration=5.0,
        save_every=50,
        integrator="rk4",
        formulation=Baumgarte(20.0, 20.0),
        control=lambda t, state: inputs(t),
    )
    q = jax.vmap(lambda y: model.lift(State(y, 0 * y)).q)(run.q)
    assert errors("paper2_s6", eqx.tree_at(lambda r: r.q, run, q)).motion < 0.01


def test_pod_keeps_what_snapshots_show():
    robot, s = robot_of("paper2_s6"), fields("paper2_s6")
    names = robot.coordinate_names
    stretches = [i for i, n in enumerate(names) if n.startswith("stretch")]
    angles = [i for i, n in enumerate(names) if n.startswith("angle_")]
    basis, origin = pod_basis(robot, s.q_full, [(stretches, 4), (angles, 12)])
    assert basis.shape == (27, 4 + 12 + 3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(19), atol=1e-12)
    model = Subspace(robot, basis, origin)
    y = model.project(State(s.q_full[3], s.v_full[3]))
    np.testing.assert_allclose(np.asarray(model.lift(y).q)[angles], s.q_full[3][angles], atol=1e-10)
    t, u = jnp.zeros(()), jnp.zeros(3)

    @eqx.filter_jit
    def look(robot, model, y):
        full = robot.force(t, model.lift(y).q, model.lift(y).v, u)
        own = model.force(t, y.q, y.v, u)
        return model.mass_matrix(y.q) @ y.v, model.structure().momentum(y.q, y.v), own, full

    product, momentum, own, full = look(robot, model, y)
    np.testing.assert_allclose(product, momentum, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own, basis.T @ np.asarray(full), rtol=1e-9)


def test_any_machine_may_be_reduced():
    """A double pendulum: reductions simulate, batch and differentiate. Kept whole, a subspace is
    the machine itself; linear about where it hangs, forces are near; exact derivatives and those
    of the machine give steps that differ little."""
    pendulum = DoublePendulum(damping=0.1)
    start = State(np.array([0.1, -0.05]), np.zeros(2))
    hanging = [State(np.zeros(2), np.zeros(2))]
    models = {
        "itself": (pendulum, 1e-15),
        "subspace": (Subspace(pendulum, np.eye(2), np.zeros(2)), 1e-10),
        "linear": (piecewise_linear(pendulum, hanging), 0.02),
        "structured": (piecewise_linear(pendulum, hanging, structured=True), 0.02),
    }

    def moved(machine, push):
        run = simulate(
            machine,
            start,
            dt=1e-2,
            duration=0.2,
            save_every=20,
            control=lambda t, state: push * jnp.ones(2),
            integrator="rosenbrock_2",
            throw=False,
        )
        return run.q[-1] - start.q

    exact = moved(pendulum, 0.5)
    size = float(jnp.abs(exact).max())
    assert size > 0.05
    for machine, near in models.values():
        place = lambda push, machine=machine: moved(machine, push)
        low, here, high = jax.jit(jax.vmap(place))(jnp.array([0.499, 0.5, 0.501]))
        np.testing.assert_allclose(here, exact, atol=near * size)
        forward, reverse = (jax.jit(mode(place))(0.5) for mode in (jax.jacfwd, jax.jacrev))
        slope = float(jnp.abs(forward).max())
        np.testing.assert_allclose(forward, (high - low) / 2e-3, atol=1e-5 * slope)
        np.testing.assert_allclose(reverse, forward, atol=1e-9 * slope)


class Driven(Pendulum):
    """A pendulum whose torque is shaken [N m] or `squared` (0 or 1) in its input."""

    shaken: jax.Array = float_field(default=0.0)
    squared: jax.Array = float_field(default=0.0)

    def force(self, t, q, v, u):
        more = self.shaken * (1.0 - jnp.cos(3.0 * t)) + self.squared * u**2
        return super().force(t, q, v, u) + more


def test_piecewise_linear_warns_of_what_it_does_not_contain():
    points = [State(jnp.array([x]), jnp.zeros(1)) for x in (0.0, 0.4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        piecewise_linear(Driven(), points)
    with pytest.warns(UserWarning, match=r"force of Driven depends on time"):
        piecewise_linear(Driven(shaken=1.0), points)
    with pytest.warns(UserWarning, match=r"force of Driven is not linear in its inputs"):
        piecewise_linear(Driven(squared=1.0), points)
