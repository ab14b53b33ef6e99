"""What machines say of themselves (units, components, summaries), and shapes that are wrong."""

import jax.numpy as jnp
import numpy as np
import pytest

import cordax
from cordax import Presentation, simulate, simulate_batch
from cordax.mechanics.units import unit_of
from cordax.systems import Neck, Oscillator, SplineRod
from cordax.systems import mechanism as mech

RUN = {"dt": 0.01, "duration": 0.05, "integrator": "rk4"}


def test_units_are_the_machines_own_first():
    neck, rod = Neck.default(1), SplineRod()
    assert unit_of(neck, "alpha_1") == "rad" and unit_of(neck, "d_alpha_1") == "rad/s"
    assert unit_of(neck, "tension") == "N" and unit_of(neck, "tip_position") == "m"
    assert unit_of(rod, "sag") == "m" and unit_of(rod, "load_1_x") is None
    assert unit_of(None, "torque_2") == "N m" and unit_of(None, "colour") is None

    class Cooled(Oscillator):
        def presentation(self):
            return Presentation(units={"x": "K"})

    assert unit_of(Cooled(), "x") == "K" and unit_of(Cooled(), "d_x") == "K/s"


class Told(Oscillator):
    """Has an output, a summary of its own and a limit."""

    def presentation(self):
        return Presentation(
            units={"pull": "N"},
            warnings=lambda outputs: {"pulls_hard": outputs["pull"] > 60.0},
            summary=lambda run: {"largest pull": f"{np.asarray(run.outputs['pull']).max():.1f} N"},
        )

    def outputs(self, t, q, v, u, multipliers):
        return {"pull": self.stiffness * q[0]}

    def valid(self, t, q, v):
        return q[0] < 2.0


def test_a_summary_is_the_machines():
    run = simulate(Told(2.0, 50.0, 0.8), **RUN)
    assert "largest pull: 50.0 N" in run.summary().splitlines()
    assert run.to_xarray()["pull"].attrs == {"units": "N"}


def test_a_batch_has_a_summary():
    """Three springs: one pulls hard, one drives the mass out of the range of the model."""

    def build(k):
        return Told(2.0, k, 0.8), cordax.State(jnp.ones(1), jnp.where(k < 1.0, 1e3, 0.0)[None])

    said = simulate_batch(build, jnp.array([50.0, 70.0, 0.5]), **RUN).summary()
    assert "batch of 3: 0 to 0.05 s, 6 stored instants\nfinished: 2 of 3" in said
    assert "failed: 1, first at t = 0.01 s, such as member 2: The state left the range" in said
    assert "warning: pulls hard in 1, first at t = 0 s" in said


class Broken(Oscillator):
    """With something wrong in one place."""

    part: str = "nothing"

    def outputs(self, t, q, v, u, multipliers):
        return {"list": [q], "words": {"a": "b"}}.get(self.part, {"x2": q})

    def inertial_weights(self):
        return jnp.ones(3) if self.part == "weights" else self.mass[None]

    def applied_force(self, t, q, v, u):
        return jnp.concatenate([u, u]) if self.part == "force" else u


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("list", r"Broken\.outputs: got list, expected a dictionary from names to arrays"),
        ("words", r"Broken\.outputs: got "),
        ("weights", r"Broken\.inertial_weights: got shape \(3,\), .* against shape \(1,\)"),
        ("force", r"Broken\.force: got shape \(2,\), expected shape \(1,\)"),
    ],
)
def test_wrong_shapes_are_named(part, message):
    with pytest.raises(ValueError, match=message):
        simulate(Broken(part=part), **RUN)
    assert simulate(Broken(), **RUN).succeeded


def test_mechanisms_have_the_units_of_their_joints():
    bodies = [
        mech.Body("arm", mech.Revolute("y"), solids=mech.rod(1.0, mass=1.0, centre=(0.5, 0, 0))),
        mech.Body("slide", mech.Prismatic("x"), "arm", solids=mech.rod(0.1, mass=1.0)),
        mech.Body("drone", mech.Floating(), solids=mech.rod(0.1, mass=1.0)),
    ]
    machine = mech.Mechanism(bodies=bodies)
    assert unit_of(machine, "arm") == "rad" and unit_of(machine, "d_slide") == "m/s"
    assert unit_of(machine, "drone_z") == "m" and unit_of(machine, "drone_qw") is None
    strut = mech.single_strut()
    assert unit_of(strut, "cross") == "rad" and unit_of(strut, "cable1_strain") is None
    assert strut.presentation().plots == ("cross", "strut", "tension")
