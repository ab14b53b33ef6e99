"""The strut and the manipulator against reference data at single states."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.formulations import Baumgarte, reduce
from cordax.systems import mechanism as parts

VARIANTS = {"stretch": "ss_u", "strain": "ss_eps", "length": "ss_l"}


@eqx.filter_jit
def evaluate(machine, q, v, u):
    M, _, terms = machine.structure().equations(0.0, q, v, u)
    a, lam = Baumgarte(0.0, 0.0).acceleration(machine, 0.0, q, v, u)
    idle = machine.force(0.0, q, v, 0.0 * u)
    reduced = reduce(machine, 0.0, q, v, u, machine.independent)
    return {
        "M": M,
        "c": machine.bias(q, v),
        "p": idle + machine.bias(q, v),
        "K": terms.jacobian,
        "k": -terms.bias,
        "qdd": a,
        "lam": -lam,
        "G": reduced.G,
        "g": reduced.g,
        "Mt": reduced.mass,
        "rhs": reduced.force,
        "phi": terms.phi,
        "rate": terms.rate,
    }


@eqx.filter_jit
def constraint(machine, q):
    return machine.constraint(0.0, q)


def near(mine, reference, tolerance=1e-9):
    np.testing.assert_allclose(mine, reference, rtol=0, atol=tolerance * np.abs(reference).max())


@pytest.mark.parametrize("variant", VARIANTS)
def test_strut_points(tensegrity_data, variant):
    machine = parts.single_strut(variant, modulus=2e9, viscosity=1e6)
    case = VARIANTS[variant]
    for i in range(3):
        get = lambda field, i=i: tensegrity_data[f"{case}/{field}"][i]
        mine = evaluate(machine, *(jnp.asarray(get(name)) for name in "qvu"))
        for field in ("M", "c", "p", "K", "k", "qdd", "lam", "G", "g", "Mt"):
            near(mine[field], get(field))
        near(mine["rhs"], get("pt") + get("Bt") @ get("u") - get("ct"))
        assert np.abs(mine["phi"]).max() < 1e-12
        assert np.abs(mine["rate"]).max() < 1e-12


@pytest.fixture(scope="module")
def manipulator():
    return parts.tensegrity_manipulator()


def test_manipulator_points(tensegrity_data, manipulator):
    for i in range(3):
        get = lambda field, i=i: tensegrity_data[f"man/{field}"][i]
        mine = evaluate(manipulator, *(jnp.asarray(get(name)) for name in "qvu"))
        for field in ("M", "c", "p", "K", "qdd", "lam", "G", "g"):
            near(mine[field], get(field))
        if i > 0:  # at rest k is zero
            near(mine["k"], get("k"))
        assert np.abs(mine["phi"]).max() < 1e-12


def test_closure_of_the_strut_and_degrees_of_freedom(manipulator):
    machine = parts.single_strut()
    state = machine.state_at((0.3, -0.2), [0.01, 0.0, 0.02], rates=(0.5, 1.0), strain_rate=0.1)
    q, v = state.q, state.v
    terms = eqx.filter_jit(lambda m: m.structure().constraint_terms(0.0, q, v))(machine)
    assert np.abs(terms.phi).max() < 1e-14
    assert np.abs(terms.rate).max() < 1e-13
    found = machine.mobility(q)
    assert (found.dof, found.redundant, found.massless) == (5, (), ())
    prism = manipulator.default_state().q
    assert np.abs(constraint(manipulator, prism)).max() < 1e-14
    assert manipulator.mobility(prism).dof == 12


def test_assembly_from_a_rough_guess(tensegrity_data, manipulator):
    """Loops close to 1e-10 m from coordinates off by tenths, strut angles and strains kept."""
    angles, strain = tensegrity_data["man_eq/ang"], tensegrity_data["man_eq/eps"]
    closed = manipulator.state_at(angles, strain).q
    assert np.abs(constraint(manipulator, closed)).max() < 1e-10
    coordinates = eqx.filter_jit(lambda m: m.coordinates(closed))
    near(coordinates(manipulator), np.concatenate([angles, strain]), 1e-15)
    machine = parts.single_strut()
    right = np.array(machine.state_at((0.2, 0.1), 0.01).q)
    rng = np.random.default_rng(0)
    guess = right + 0.2 * rng.uniform(-1, 1, right.shape)
    kept = machine.independent
    index = [machine.coordinate_names.index(name) for name in kept]
    guess[index] = right[index]
    near(machine.assembled(guess, kept).q, right, 1e-10)


def test_manipulators_of_other_dimensions_have_the_wanted_angles_and_strains():
    """In all variants, which then differ in their own second coordinates alone."""
    rng = np.random.default_rng(1)
    angles, strain = rng.uniform(-0.15, 0.15, 6), rng.uniform(0.0, 0.02, 6)
    dimensions = {"length": 1.4, "pulley_radius": 0.03, "azimuth": 0.7}
    pulleys = []
    for variant in ("strain", "stretch", "length"):
        machine = parts.tensegrity_manipulator(variant, **dimensions)
        q = machine.state_at(angles, strain).q
        found, open_by = eqx.filter_jit(lambda m, q: (m.coordinates(q), m.constraint(0.0, q)))(
            machine, q
        )
        np.testing.assert_allclose(found, np.concatenate([angles, strain]), rtol=0, atol=1e-12)
        assert np.abs(open_by).max() < 1e-10
        pulleys.append(q[np.array([machine.coordinate_names.index("pulley_top1")])])
    np.testing.assert_allclose(pulleys[1:], np.tile(pulleys[0], (2, 1)), atol=1e-9)


def test_loops_close_in_single_precision():
    """To rounding: two cranks 1 m apart, joined at 0.9 m and 1.1 m by bars of 0.7 m and 1 m."""
    with jax.enable_x64(False):
        crank = lambda name, x: parts.Body(
            name, parts.Spherical(), at=(x, 0, 0), solids=parts.rod(1.0, mass=1.0)
        )
        bar = lambda length, z: parts.DistanceLoop("a", "b", length, (0.1, 0.2, z), (0, 0.3, z))
        machine = parts.Mechanism([crank("a", 0.0), crank("b", 1.0)], [bar(0.7, 0.9), bar(1, 1.1)])
        state = machine.assembled()
        open_by = machine.constraint(0.0, state.q)
    assert state.q.dtype == jnp.float32 and np.abs(open_by).max() < 1e-6


def test_loops_that_cannot_close_and_bodies_nothing_holds():
    bodies = [
        parts.Body("crank", parts.Revolute("y"), solids=parts.rod(1.0, mass=1.0)),
        parts.Body("rocker", parts.Revolute("y"), at=(5, 0, 0), solids=parts.rod(1.0, mass=1.0)),
    ]
    loop = parts.DistanceLoop("crank", "rocker", 1.0, (1, 0, 0), (1, 0, 0))
    with pytest.raises(ValueError, match=r"loops: cannot close .* crank-rocker length stays open"):
        parts.Mechanism(bodies, [loop]).assembled()
    loose = parts.Body("frame", parts.Revolute("y"), "crank")
    assert parts.Mechanism([*bodies, loose]).mobility().massless == ("frame",)


def test_redundant_constraints_are_named():
    """A plane four-bar with ball joints: the out-of-plane row does nothing new."""
    bar = parts.rod(1.0, mass=1.0, centre=(0.5, 0, 0))
    machine = parts.Mechanism(
        [
            parts.Body("a", parts.Revolute("y"), solids=bar, start=[-1.0]),
            parts.Body("b", parts.Revolute("y"), "a", at=(1, 0, 0), solids=bar, start=[1.0]),
            parts.Body("c", parts.Revolute("y"), at=(1, 0, 0), solids=bar, start=[-1.0]),
        ],
        [parts.SphericalLoop("b", "c", (1, 0, 0), (1, 0, 0))],
    )
    found = machine.mobility()
    assert (found.dof, found.rank, found.redundant) == (1, 2, ("b-c y",))
