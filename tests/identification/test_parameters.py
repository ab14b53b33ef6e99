"""Finding parameters in a machine, and the coordinates in which they are searched."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax import Experiment, Parameter, State
from cordax.parameters.parameter import collect
from cordax.systems import Neck

NECK = Neck.default(3)
EXPERIMENT = Experiment(NECK, NECK.default_state())


def test_paths_indices_and_functions_lead_to_the_same_numbers():
    friction = Parameter("friction", lambda neck: neck.motors.dry_friction)
    found = collect(["springs.stiffness", "state0.q[3]", friction], EXPERIMENT)
    entries = [f"springs.stiffness[{i}]" for i in range(3)]
    assert found.names == (*entries, "state0.q[3]", "friction")
    numbers = found.values(found.origin)
    expected = [600.0, 600.0, 200.0, EXPERIMENT.state0.q[3], 0.008]
    assert np.allclose(numbers, expected, rtol=1e-14)


def test_places_are_equal_where_names_and_functions_are():
    """A second fit is then not compiled again."""
    friction = Parameter("friction", lambda neck: neck.motors.dry_friction)
    other = Parameter("friction", lambda neck: neck.motors.friction_slope)
    places = lambda parameter: collect(["state0.q[3]", parameter], EXPERIMENT).places
    structure = lambda parameter: jax.tree.structure(places(parameter))
    assert structure(friction) == structure(friction) != structure(other)


def test_values_are_written_where_they_were_read():
    found = collect(["springs.stiffness[1]", "tendon.damping", "state0.q[0]"], EXPERIMENT)
    changed = found.insert(EXPERIMENT, jnp.array([np.log(2.0), np.log(0.5), 0.25]))
    assert np.allclose(changed.system.springs.stiffness, [600.0, 1200.0, 200.0], rtol=1e-14)
    assert np.allclose(changed.system.tendon.damping, 50.0, rtol=1e-14)
    assert np.allclose(changed.state0.q[0], 0.25)  # zero at the start: searched as it is
    assert np.array_equal(changed.state0.q[1:], EXPERIMENT.state0.q[1:])
    assert np.array_equal(changed.system.tendon.stiffness, NECK.tendon.stiffness)


def test_the_start_is_the_origin_of_every_kind_of_coordinate():
    state = State(jnp.array([-2.0]), jnp.array([0.0]))
    found = collect(
        [
            Parameter("tendon.stiffness", transform="linear"),
            Parameter("tendon.damping", bounds=(10.0, 500.0)),
            "gravity",
            "state0.q",
            "state0.v",
        ],
        Experiment(NECK, state),
    )
    assert found.kinds == ("linear", "bounded", "log", "linear", "linear")
    assert np.allclose(found.values(found.origin), [1e5, 100.0, 9.81, -2.0, 0.0], rtol=1e-12)
    far = np.asarray(found.values(jnp.array([0.1, 30.0, -30.0, 0.5, 0.5])))
    assert np.allclose(far[[0, 3, 4]], [1.1e5, -1.0, 0.5])
    assert 499.9 < far[1] <= 500.0 and 0.0 < far[2] < 1e-10


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (["tendon.stifness"], "'stifness'.*one of stiffness, damping of ElasticTendon"),
        (["rope"], "'rope'.*one of bars, springs, motors, tendon"),
        (["tendon"], "tendon.*ElasticTendon.*one of stiffness, damping"),
        (["springs.stiffness[3]"], r"\[3\].*an index into \(3,\)"),
        (["tendon.stiffness[0]"], r"an index into \(\)"),
        (["tendon..stiffness"], "a dotted path"),
        (["control.K_p"], "a module with parameters; NoneType has none"),
        (["tendon.stiffness", "tendon.stiffness"], "each name once"),
        ("tendon.stiffness", "a list of names"),
        ([], "a list of names"),
        ([Parameter("tendon.stiffness", bounds=(1.0, 10.0))], "between its bounds 1 and 10"),
        ([Parameter("state0.v[0]", transform="log")], "positive start"),
        ([Parameter("k", lambda neck: neck.n_joints)], "int.*floating-point"),
    ],
)
def test_what_cannot_be_fitted_is_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        collect(parameters, EXPERIMENT)


def test_bad_bounds_and_transforms_are_refused():
    with pytest.raises(ValueError, match="low < high"):
        Parameter("x", bounds=(2.0, 1.0))
    with pytest.raises(ValueError, match="one of log, linear"):
        Parameter("x", transform="square")  # pyright: ignore
    with pytest.raises(ValueError, match="none with bounds"):
        Parameter("x", transform="log", bounds=(1.0, 2.0))
