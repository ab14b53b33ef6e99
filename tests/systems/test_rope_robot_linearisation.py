"""The structured linearisation of ropes against one by dense differentiation, and its solves."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Baumgarte, Dynamics, Rosenbrock2, State
from cordax.mechanics import Structure
from cordax.systems import ProgressiveRope
from cordax.systems.rope_robot.linearisation import RopeSaddle
from helpers.rope_robot_reference import fields, inputs_of, relative, robot_of

H, H2 = 3e-3, 5e-6


@eqx.filter_jit
def both(robot, t, q, v, u, a, pull, b, c, bend):
    """Matrices and solutions, structured and dense; rows that are not the Jacobian's too."""
    out = []
    for structure in (robot.structure(), Structure(robot)):
        motion = structure.linearise(t, q, v, u, acceleration=a, multipliers=pull)
        found = [*motion.matrices(), motion.implicit_solver(H, H2)(b), motion.f]
        held = robot.n_constraints  # none at a free end
        J = (
            robot.structure().constraint_terms(t, q, v).jacobian
            if held
            else jnp.zeros((0, robot.n_v))
        )
        found += motion.constrained_solver(J, H, H2, J * bend)(b, c)
        out.append(found)
    return out


@pytest.mark.parametrize("case", ["p_free", "p_end", "p_robot2"])
def test_against_dense(case):
    """At rest of accelerations and multipliers, which is what leaving them out means, and away
    from it; with the rows of the Jacobian and others. All by one program."""
    s, robot = fields(case), robot_of(case, law=ProgressiveRope(2.0, 0.1))
    t, q, v = (jnp.asarray(x[0]) for x in (s.t, s.q, s.v))
    n, m = robot.n_v, robot.n_constraints
    u = inputs_of(case)(t)
    for given in (0.0, 1.0):
        rng = np.random.default_rng(0)
        a, pull = (jnp.asarray(given * rng.normal(size=k) * x) for k, x in ((n, 3.0), (m, 50.0)))
        b, c = jnp.asarray(rng.normal(size=n)), jnp.asarray(rng.normal(size=m))
        bend = 1.0 + 0.05 * rng.normal(size=(m, n))
        for rows in (jnp.ones((m, n)), jnp.asarray(bend)):
            for found, dense in zip(*both(robot, t, q, v, u, a, pull, b, c, rows), strict=True):
                assert relative(found, dense) < 1e-11


def test_saddle_point():
    """Alone and under constraints, h = 0: the mass matrix."""
    s, robot = fields("p_robot2"), robot_of("p_robot2")
    q, v = jnp.asarray(s.q[0]), jnp.asarray(s.v[0])

    @eqx.filter_jit
    def solved(robot):
        t = jnp.zeros(())
        own = robot.structure().saddle(t, q).solve(v, jnp.arange(4.0))
        dense = Structure(robot).saddle(t, q).solve(v, jnp.arange(4.0))
        return robot.structure().mass_solve(q, robot.mass_matrix(q)), own, dense

    product, own, dense = solved(robot)
    np.testing.assert_allclose(product, np.eye(robot.n_v), atol=1e-11)
    for x, y in zip(own, dense, strict=True):
        assert relative(x, y) < 1e-11


def test_solve_differentiates_in_both_modes():
    """Through the matrix, its constraints and the right-hand side."""
    s, robot = fields("p_robot2"), robot_of("p_robot2")
    t, q, v = (jnp.asarray(x[0]) for x in (s.t, s.q, s.v))
    u, b = inputs_of("p_robot2")(t), jnp.asarray(np.random.default_rng(1).normal(size=robot.n_v))

    @jax.jit
    def solution(p):
        scaled = eqx.tree_at(
            lambda r: (r.EA, r.line_density), robot, (robot.EA * p[0], 0.03 * p[1])
        )
        at = q * p[2]
        motion = scaled.structure().linearise(t, at, v, u, multipliers=jnp.full(4, 3.0))
        J = scaled.structure().constraint_terms(t, at, v).jacobian
        x, y = motion.constrained_solver(J, H * p[0], H2)(b, J[:, -1])
        return jnp.concatenate([1e3 * x[:4], x[-3:], y])

    p, step = jnp.ones(3), 1e-6
    forward, backward = jax.jit(jax.jacfwd(solution))(p), jax.jit(jax.jacrev(solution))(p)
    np.testing.assert_allclose(forward, backward, rtol=1e-9, atol=1e-9)
    for i in range(3):
        d = step * jnp.eye(3)[i]
        central = (solution(p + d) - solution(p - d)) / (2.0 * step)
        np.testing.assert_allclose(forward[:, i], central, rtol=1e-6, atol=1e-6)


def test_index_1_steps_go_along_the_ropes():
    """Rosenbrock's method under Baumgarte's stabilisation: order 2 on taut ropes, with their own
    solve and nothing dense."""
    s, robot, inputs = fields("paper2_s6"), robot_of("paper2_s6"), inputs_of("paper2_s6")
    k = int(np.argmin(np.abs(s.t_full - 3.0)))
    start = State(jnp.asarray(s.q_full[k]), jnp.asarray(s.v_full[k]))
    dynamics, method = Dynamics(robot, Baumgarte()), Rosenbrock2()
    pushed = jnp.array([1e4, 0.0, 0.0])  # N/s^2: 100 N at the end
    u = lambda t, q, v: inputs(3.0 + t) + t**2 * pushed

    @jax.jit
    def pose(n):
        dt = 0.1 / n
        step = lambda i, state: method.step(dynamics, i * dt, dt, state, u, ()).state
        return jax.lax.fori_loop(0, n, step, start).q[-3:]

    coarse, middle, fine = (np.asarray(pose(n)) for n in (200, 400, 800))
    off = np.abs(coarse - middle).max(), np.abs(middle - fine).max()
    assert np.abs(fine - start.q[-3:]).max() > 1e-3 and off[1] < 1e-6
    assert np.log2(off[0] / off[1]) == pytest.approx(2.0, abs=0.2)

    motion = dynamics.linearise(jnp.zeros(()), start.q, start.v, u(0.0, None, None))
    assert isinstance(motion.implicit_solver(jnp.asarray(1e-3)).factor, RopeSaddle)
