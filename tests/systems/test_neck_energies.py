"""The written-out equations of the neck equal those derived from its energies, for any neck."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.mechanics.presentation import instant_warnings
from cordax.systems.neck import Bars, Neck, Springs, closed_form
from cordax.systems.neck.tendons import ElasticTendon, Motors, RigidTendon, Routing
from helpers.neck_reference import relative


def random_neck(joints, *, elastic, routing=None, seed=0) -> Neck:
    """Every quantity different for each joint, tendon or motor."""
    rng = np.random.default_rng(100 * joints + seed)
    routing = Routing.named("single", joints) if routing is None else routing
    tendons = routing.left.shape[0]
    per = lambda low, high, size: rng.uniform(low, high, size)
    return Neck(
        bars=Bars(0.05, per(0.08, 0.12, joints), per(0.02, 0.05, joints), per(0.04, 0.08, joints)),
        springs=Springs(per(200.0, 900.0, joints), per(0.03, 0.06, joints)),
        motors=Motors(
            inertia=per(1e-5, 1e-4, tendons),
            drum_radius=per(0.01, 0.03, tendons),
            gear_ratio=per(15.0, 30.0, tendons),
            dry_friction=per(0.0, 0.02, tendons),
            friction_slope=per(0.1, 1.0, tendons),
        ),
        tendon=ElasticTendon(per(5e4, 2e5, tendons), per(50.0, 200.0, tendons))
        if elastic
        else RigidTendon(),
        routing=routing,
        pivot_friction=2e-3,
    )


state_at = eqx.filter_jit(Neck.state_at)


def random_state(neck: Neck, seed):
    """Rates up to 2 rad/s, tensions and torques as in use."""
    rng = np.random.default_rng(seed)
    n, k = neck.n_joints, neck.n_tendons
    state = state_at(neck, rng.uniform(-1, 1, n), rng.uniform(-2, 2, n), rng.uniform(0, 80, k))
    v = np.array(state.v)
    v[n:] += rng.uniform(-3, 3, v.size - n)
    return state.q, jax.device_put(v), jax.device_put(rng.uniform(-0.1, 0.02, k))


@eqx.filter_jit
def equations(neck, q, v, u):
    """M, f, K, D; of the written-out machine also the acceleration, which has its own formulas."""
    t = jnp.zeros(())
    motion = neck.structure().linearise(t, q, v, u)
    M, K, D = motion.matrices()
    values = {"f": motion.f, "K": K, "D": D, "M": M}
    if neck.closed_form:
        values["acceleration"] = neck.structure().acceleration(t, q, v, u)
    return values


def assert_equal_equations(neck):
    derived = Neck(**{f: getattr(neck, f) for f in _FIELDS}, closed_form=False)
    for seed, gravity in enumerate((9.81, -9.81, 0.0)):  # upright, hanging, none
        q, v, u = random_state(neck, seed)
        at = lambda m, g=gravity: eqx.tree_at(lambda m: m.gravity, m, jnp.asarray(g))
        written = equations(at(neck), q, v, u)
        expected = equations(at(derived), q, v, u)
        f, M = expected["f"], expected["M"]
        for name in ("f", "K", "D", "M"):
            assert relative(written[name], expected[name]) < 1e-11, name
        assert relative(written["acceleration"], np.linalg.solve(M, f)) < 1e-9


_FIELDS = ("bars", "springs", "motors", "tendon", "routing", "pivot_friction", "gravity")


def test_tensions_that_are_watched_are_those_of_the_outputs():
    neck = random_neck(4, elastic=True)
    alarms = eqx.filter_jit(lambda neck, q, v, u: instant_warnings(neck, 0.0, q, v, u, None))
    both = eqx.filter_jit(
        lambda neck, q, v, u: (closed_form.tension(neck, q, v), neck.tension(0.0, q, v, u))
    )
    for seed in range(3):
        q, v, u = random_state(neck, seed)
        assert relative(*both(neck, q, v, u)) < 1e-12
        slack = state_at(neck, np.asarray(q)[:4], None, np.array([5.0, -5.0, 5.0, 5.0, 5.0]))
        pushes = alarms(neck, slack.q, slack.v, u)["tendon_in_compression"]
        assert np.array_equal(pushes, [False, True, False, False, False])


# three joints: test_neck_points; two: test_user_given_routing
@pytest.mark.parametrize("joints", [1, 4, 8])
def test_elastic_neck(joints):
    assert_equal_equations(random_neck(joints, elastic=True))


def test_rigid_neck():
    assert_equal_equations(random_neck(4, elastic=False))


def test_user_given_routing():
    """Five tendons on two joints, one along both sides of the neck, one along both of a joint."""
    routing = Routing(
        left=[[1, 1], [1, 0], [0, 1], [0, 0], [0, 1]],
        right=[[0, 0], [0, 1], [0, 0], [1, 1], [0, 1]],
    )
    neck = random_neck(2, elastic=True, routing=routing)
    assert neck.n_tendons == neck.n_u == 5
    assert neck.n_q == 7
    assert_equal_equations(neck)


def test_force_derives_from_the_energy():
    """Power balance: energy changes by the work of motors less what friction and damping take."""
    neck = random_neck(3, elastic=True)
    q, v, u = random_state(neck, 7)

    @jax.jit
    def rates(q, v, u):
        energy = lambda q, v: neck.kinetic_energy(q, v) + neck.potential_energy(0.0, q)
        a = neck.structure().acceleration(0.0, q, v, u)
        change = jax.jvp(energy, (q, v), (v, a))[1]
        dissipated = 2.0 * neck.dissipation(q, v)
        work = jnp.dot(u + neck.held(0.0, q, v), v[neck.n_joints :])
        return change, work - dissipated, dissipated

    change, power, dissipated = (float(x) for x in rates(q, v, u))
    assert dissipated > 0.0
    assert change == pytest.approx(power, rel=1e-9)
