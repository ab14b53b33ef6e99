"""Bad input of the neck: the message names the field, what was given and what is expected."""

import re

import jax.numpy as jnp
import numpy as np
import pytest

from cordax.systems.neck import Bars, Neck, Springs
from cordax.systems.neck.tendons import ElasticTendon, Motors, RigidTendon, Routing

GOOD = {
    "bars": (Bars, {"width": 0.05, "diagonal": 0.1, "top_mass": 0.03, "diagonal_mass": 0.06}),
    "springs": (Springs, {"stiffness": 600.0, "rest_length": 0.046}),
    "motors": (
        Motors,
        {
            "inertia": 5e-5,
            "drum_radius": 0.02,
            "gear_ratio": 25.0,
            "dry_friction": 0.008,
            "friction_slope": 0.5,
        },
    ),
    "tendon": (ElasticTendon, {"stiffness": 1e5, "damping": 100.0}),
}


def build(part=None, field=None, value=None, **own):
    """A three-joint neck, one field of one part replaced."""
    parts = {
        name: make(**(numbers | {field: value} if name == part else numbers))
        for name, (make, numbers) in GOOD.items()
    }
    return Neck(**({"routing": Routing.named("single", 3)} | parts | own))


def complains(*words):
    return pytest.raises(ValueError, match=".*".join(re.escape(word) for word in words))


def test_the_good_one_is_accepted():
    assert build().n_q == 7
    assert build("bars", "diagonal", [0.1, 0.11, 0.12]).n_joints == 3
    assert build("motors", "inertia", [1e-5] * 4).n_tendons == 4
    assert build(gravity=-9.81).gravity == -9.81


@pytest.mark.parametrize("width", [0.1, 0.2])
def test_top_bar_must_be_shorter_than_diagonals(width):
    with complains("bars.width", f"got {width}", "less than bars.diagonal = 0.1"):
        build("bars", "width", width)
    with complains("bars.width", "got 0.05", "less than bars.diagonal"):
        build("bars", "diagonal", [0.1, 0.04, 0.1])


STRICT = {"bars": GOOD["bars"][1], "motors": ("inertia", "drum_radius", "gear_ratio")}
POSITIVE = [(part, field) for part, fields in STRICT.items() for field in fields]
POSITIVE += [("tendon", "stiffness")]
NOT_NEGATIVE = [
    ("springs", "stiffness"),
    ("springs", "rest_length"),
    ("motors", "dry_friction"),
    ("motors", "friction_slope"),
    ("tendon", "damping"),
]


@pytest.mark.parametrize(("part", "field"), POSITIVE + NOT_NEGATIVE)
def test_signs(part, field):
    strict = (part, field) in POSITIVE
    for bad in (-0.5, np.nan, np.inf, *([0.0] if strict else [])):
        with complains(
            f"{part}.{field}", f"got {bad}", f"finite values {'>' if strict else '>='} 0"
        ):
            build(part, field, bad)
    if not strict:
        build(part, field, 0.0)


@pytest.mark.parametrize(
    ("part", "field"), [(p, f) for p, (_, fields) in GOOD.items() for f in fields if f != "width"]
)
def test_shapes(part, field):
    size = 3 if part in ("bars", "springs") else 4
    value = GOOD[part][1][field]
    build(part, field, [value] * size)
    for bad in (2, 5, (size, 1)):
        given = np.full(bad, value)
        each = f"a scalar or shape ({size},)" if given.ndim == 1 else "one number, or one for each"
        with complains(f"{part}.{field}", f"got shape {given.shape}", each):
            build(part, field, given)


def test_scalars_of_the_neck():
    with complains("bars.width", "got shape (3,)", "a scalar"):
        build("bars", "width", [0.05] * 3)
    with complains("gravity", "got shape (2,)", "a scalar"):
        build(gravity=[0.0, -9.81])
    with complains("gravity", "got nan", "finite values"):
        build(gravity=np.nan)
    with complains("pivot_friction", "got -0.001", "finite values >= 0"):
        build(pivot_friction=-0.001)


def test_routing():
    with complains("routing", "'spiral'", "one of single, cumulative"):
        Neck.default(3, routing="spiral")
    with complains("routing.left", "got shape (3,)", "shape (n_tendons, n_joints)"):
        Routing(np.ones(3), np.ones(3))
    with complains("routing.right", "got shape (3, 3)", "shape (4, 3)"):
        Routing(np.zeros((4, 3)), np.zeros((3, 3)))
    for bad in (2.0, -1.0, 0.5, np.nan, np.inf):
        with complains("routing.left", f"{bad}", "entries 0 (not along it) or 1 (along it)"):
            Routing([[1.0, bad]], [[0.0, 0.0]])
        with complains("routing.right", f"{bad}", "entries 0"):
            Routing([[0.0, 1.0]], [[bad, 1.0]])


def test_other_fields():
    for joints in (0, -1, 2.5, "three"):
        with complains("joints", f"got {joints}", "a whole number >= 1"):
            Neck.default(joints)
    with complains("tendon", "got soft", "an ElasticTendon or a RigidTendon"):
        Neck.default(3, tendon="soft")


def test_states():
    neck = Neck.default(3)
    with complains("alpha", "got shape (2,)", "shape (3,)"):
        neck.state_at([0.1, 0.2])
    with complains("rate", "got shape (4,)", "shape (3,)"):
        neck.state_at(jnp.zeros(3), jnp.zeros(4))
    with complains("tension", "got shape (3,)", "shape (4,)"):
        neck.state_at(jnp.zeros(3), tension=jnp.full(3, 20.0))
    Neck.default(3, tendon=RigidTendon()).state_at([0.1, 0.2, 0.3])
