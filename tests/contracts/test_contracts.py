"""What a machine may rely on, and what it is told when it breaks a contract."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Delegate, Minimal, Penalty, State, UdwadiaKalaba, Unilateral, simulate
from cordax.control import PID, Constant
from cordax.formulations import Baumgarte, Dynamics
from cordax.mechanics import Structure, System
from cordax.mechanics.saddle import WholeMatrix
from cordax.mechanics.wrapper import FORWARDED
from cordax.systems import Pendulum
from helpers.hung_ball import Ball
from helpers.small_machines import Door, OneAngle, SprungPendulum

# --- the saddle point -------------------------------------------------------------------------


def test_a_singular_mass_matrix_by_elimination():
    """Rank 8 of 14 with 9 rows, badly scaled, some of them idle; derivatives in both modes."""
    random = np.random.default_rng(3)
    units = 10.0 ** random.uniform(-3, 3, 14)
    root = np.zeros((14, 8))
    root[:8] = random.normal(size=(8, 8)) + 2.0 * np.eye(8)
    M = jnp.asarray(root @ root.T * units[:, None] * units)
    J = jnp.asarray(random.normal(size=(9, 14)) * units)
    f, b = jnp.asarray(random.normal(size=14) * units), jnp.asarray(random.normal(size=9))
    active = jnp.ones(9).at[4].set(0.0)

    @jax.jit
    def left(f, b):
        out = []
        for rows in (None, active):
            x, lam = WholeMatrix(M, J, rows).solve(f, b)
            out.append((M @ x + J.T @ lam - f, J @ x - b, lam))
        return out

    (force, rows, _), (idle_force, idle_rows, lam) = left(f, b)
    np.testing.assert_allclose(force / units, 0.0, atol=1e-9)
    np.testing.assert_allclose(rows, 0.0, atol=1e-9)
    np.testing.assert_allclose(idle_force / units, 0.0, atol=1e-9)
    np.testing.assert_allclose(np.delete(idle_rows, 4), 0.0, atol=1e-9)
    assert lam[4] == 0.0
    twice = WholeMatrix(M, J.at[1].set(J[0]), None)
    assert np.all(np.isnan(eqx.filter_jit(twice.solve)(f, b)[0]))

    def size(s):
        x, lam = WholeMatrix(M, J * (1.0 + s[0]), None).solve(f * (1.0 + s[1]), b)
        return jnp.sum(x * units) + jnp.sum(lam)

    both = jax.jit(lambda s: (size(s), jax.jacfwd(size)(s), jax.grad(size)(s)))
    h, zero = 1e-6, jnp.zeros(2)
    _, forward, reverse = both(zero)
    sides = [[both(zero.at[i].set(s * h))[0] for s in (1, -1)] for i in range(2)]
    differences = [(a - b) / (2 * h) for a, b in sides]
    np.testing.assert_allclose(forward, differences, rtol=1e-6)
    np.testing.assert_allclose(reverse, forward, rtol=1e-9)


def test_massless_parts_need_constraints():
    class Loose(Pendulum):
        mass_is_regular = False

    for formulation in (Minimal(), Baumgarte()):
        with pytest.raises(ValueError, match=r"Loose says that its mass matrix is singular"):
            simulate(Loose(), duration=0.1, formulation=formulation)


def test_strings_on_massless_parts_catch_and_let_go():
    """The node's string against the same machine in one angle, events and impulses included."""
    whole = SprungPendulum(stop=jnp.asarray(0.95), stiffness=3.0)
    start = State(jnp.array([0.9]), jnp.array([-3.0]))
    options = {"dt": 0.005, "duration": 0.5, "integrator": Unilateral(capacity=8)}
    options |= {"formulation": Baumgarte(0.0, 0.0), "save_every": 20}
    one = simulate(OneAngle(whole), start, **options)
    node = simulate(whole, whole.at(0.9, -3.0), **options)
    np.testing.assert_allclose(node.q[:, 0], one.q[:, 0], atol=1e-8)
    np.testing.assert_allclose(node.multipliers[:, 2], one.multipliers[:, 0], atol=1e-6)
    happened = np.isfinite(one.events.time)
    assert np.sum(happened) >= 1
    np.testing.assert_allclose(node.events.time, one.events.time, atol=1e-8)
    np.testing.assert_allclose(node.events.impulse, one.events.impulse, atol=1e-7)


@pytest.mark.parametrize("formulation", [Penalty(), UdwadiaKalaba()])
def test_bodies_joined_at_speed_jump_under_redundant_rows(formulation):
    """A ball in flight is caught by two equal strings: only what lies across them is left."""

    class Flying(Ball):
        outputs = lambda self, *_: {}  # as many in both phases

    free = Flying(anchors=np.zeros((0, 2)), lengths=np.zeros(0))
    start = State(jnp.array([0.6, -0.6]), jnp.array([1.5, 0.4]))

    def caught(state):
        return Flying(anchors=jnp.zeros((2, 2)), lengths=jnp.full(2, jnp.linalg.norm(state.q)))

    options = {"dt": 0.005, "formulation": formulation, "integrator": "rk4"}
    run = simulate([(free, 0.05), (caught, 0.1)], start, **options)
    q, before, after = run.q[10], start.v - jnp.array([0.0, 9.81 * 0.05]), run.v[10]
    along = q / jnp.linalg.norm(q)
    assert abs(before @ along) > 0.5
    np.testing.assert_allclose(after, before - (before @ along) * along, atol=1e-6)
    assert np.max(run.violation[11:]) < 1e-6


# --- wrappers ---------------------------------------------------------------------------------


def test_a_wrapper_forwards_everything():
    wrapped = Delegate(Pendulum())
    derived = {"n_q", "n_v", "n_u", "n_constraints", "rate", "normalise", "total_force"}
    derived |= {"kinetic_energy", "structure", "active_force"}
    for name in (n for n in vars(System) if not n.startswith("_")):
        assert (name in vars(Delegate) or name in FORWARDED) != (name in derived), name
    assert wrapped.default_integrator == Pendulum().default_integrator
    assert wrapped.coordinate_names == Pendulum().coordinate_names
    assert wrapped.length == Pendulum().length  # a field of the machine inside
    with pytest.raises(AttributeError, match="nothing"):
        _ = wrapped.nothing
    cordax.check_machine(wrapped)


class Twice(Delegate):
    """All forces twice as large, masses too."""

    def force(self, t, q, v, u):
        return 2.0 * self.inner.force(t, q, v, u)

    def mass_matrix(self, q):
        return 2.0 * self.inner.mass_matrix(q)


def test_what_follows_from_an_overridden_part_follows():
    """Nothing of the robot's closed formulas is left where they no longer hold."""
    robot = Pendulum()
    q, v, u = jnp.array([0.4]), jnp.array([0.7]), jnp.zeros(robot.n_u)

    @eqx.filter_jit
    def look(machine):
        of = machine.structure()
        return of.acceleration(0.0, q, v, u), of.linearise(0.0, q, v, u).f

    a, b = look(robot), look(Twice(robot))
    np.testing.assert_allclose(b[0], a[0], rtol=1e-13)
    np.testing.assert_allclose(b[1], 2.0 * a[1], rtol=1e-13)


class Watched(Pendulum):
    """Warns by what it puts out."""

    def presentation(self):
        return cordax.Presentation(warnings=lambda outputs: {"far": outputs["angle"] > 1.0})


class Silent(Delegate):
    def outputs(self, t, q, v, u, multipliers):
        return {}


def test_a_wrapper_without_what_the_machine_inside_reads_says_so():
    words = r"Silent.outputs: got no 'angle', expected what `warnings` of Watched reads"
    with pytest.raises(ValueError, match=words):
        Silent(Watched()).presentation().warnings({})


# --- configurations and the check --------------------------------------------------------------


@pytest.mark.parametrize("machine", [SprungPendulum(), Door(), Ball(), Pendulum()])
def test_good_machines_pass(machine):
    cordax.check_machine(machine, conservative=not isinstance(machine, SprungPendulum))


class Lopsided(Pendulum):
    def mass_matrix(self, q):
        return -super().mass_matrix(q)


class Unturned(Door):
    def difference(self, start, end):
        return 2.0 * super().difference(start, end)


class Hasty(Door):
    def rate(self, q, v):
        return 2.0 * super().rate(q, v)


class Rough(Door):
    """A retraction that is off in second order, with the right rate."""

    def retract(self, q, dq):
        moved = super().retract(q, dq)
        return moved.at[4:].add(jnp.sum(dq * dq))


class Fed(Pendulum):
    def force(self, t, q, v, u):
        return super().force(t, q, v, u) + 5.0 * v


class Misnamed(Ball):
    coordinate_names = ("x", "y", "z")


class Listed(Ball):
    def outputs(self, t, q, v, u, multipliers):
        return [multipliers]


class Forgetful(Ball):
    def structure(self):
        return _Forgetful(self)


class _Forgetful(Structure):
    def constraint_terms(self, t, q, v):
        return super().constraint_terms(t, q, v)._replace(bias=jnp.zeros(1))


class Weightless(Ball):
    def potential_energy(self, t, q):
        return -super().potential_energy(t, q)


@pytest.mark.parametrize(
    "machine, words",
    [
        (Lopsided(), "mass_matrix: has a negative eigenvalue"),
        (Unturned(), "difference: difference"),
        (Hasty(), "rate: is not the derivative of retract"),
        (Rough(), "retract: .* to first order in s only"),
        (Fed(), "force: its velocity terms do work"),
        (Misnamed(), r"default_state\(\).q: got shape \(2,\), expected \(3,\)"),
        (Listed(), "outputs: got list, expected a dict"),
        (Forgetful(), "constraint_terms: bias"),
        (Weightless(), "potential_energy: its gradient differs"),
    ],
    ids=lambda x: type(x).__name__ if isinstance(x, System) else "",
)
def test_broken_contracts_are_named(machine, words):
    with pytest.raises(ValueError, match=words):
        cordax.check_machine(machine)


def test_the_bias_needs_retract_to_first_order_only():
    state = Door().default_state()
    bias = [
        jax.jit(lambda m=m: m.structure().constraint_terms(jnp.zeros(()), state.q, state.v).bias)()
        for m in (Door(), Rough())
    ]
    np.testing.assert_allclose(*bias, atol=1e-13)


def test_dynamics_normalise_by_the_machine():
    q = 1.1 * Door().default_state().q
    normal = Dynamics(Door(), Baumgarte()).normalise(q)
    np.testing.assert_allclose(np.linalg.norm(normal[:4]), 1.0, rtol=1e-15)
    np.testing.assert_allclose(normal[4:], q[4:])


def test_pid_finds_velocities_behind_a_quaternion():
    """Position z of the door is coordinate 6 and its rate velocity 5."""
    state = Door().default_state()
    hold = PID(Constant([0.1]), coordinates=(6,), velocities=(5,), period=0.01, K_p=2.0, K_d=3.0)
    u, _ = hold(jnp.zeros(()), state, hold.init(state))
    np.testing.assert_allclose(u, 2.0 * (0.1 - state.q[6:]) - 3.0 * state.v[5:])
