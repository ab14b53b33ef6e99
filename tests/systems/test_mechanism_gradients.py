"""Derivatives of mechanisms in both modes against central differences: through the programme of
the torques, and by friction and geometry of cables over guides."""

import jax
import jax.numpy as jnp
import numpy as np

import cordax
from cordax.control import Hermite, NearRigidQP
from cordax.formulations import Dynamics, Minimal
from cordax.mechanics.cables import ElasticCables
from cordax.systems import mechanism as parts


def check(function, names, h=1e-4):
    """Of a number, by relative changes of its arguments; each must matter."""
    ones = jnp.ones(len(names))
    both = jax.jit(lambda p, e: jax.jvp(function, (p,), (e,)))
    slopes = np.array([both(ones, e)[1] for e in jnp.eye(len(names))])
    ahead, behind = ([both(ones + s * e, e)[0] for e in jnp.eye(len(names))] for s in (h, -h))
    differences = (np.array(ahead) - np.array(behind)) / (2 * h)
    # differences are off by h^2 of the third derivative, and by round-off over h
    least = 1e-7 * np.abs(slopes).max()
    np.testing.assert_allclose(slopes, differences, rtol=1e-5, atol=least)
    reverse = np.array(jax.jit(jax.grad(function))(ones))
    np.testing.assert_allclose(reverse, slopes, rtol=1e-9, atol=1e-9 * np.abs(slopes).max())
    for name, slope in zip(names, slopes, strict=True):
        assert abs(slope) > 100 * least, name


def test_through_the_programme():
    """The torques of the strut by its cables, masses, sizes, the bound and the spline."""
    state = parts.single_strut().state_at((0.1, -0.05), 0.011, (0.2, 0.1), 0.02)
    q, v = np.array(state.q), np.array(state.v)

    def torques(p):
        machine = parts.single_strut(
            modulus=2e9 * p[0], viscosity=1e6 * p[1], density=2700.0 * p[2], diameter=0.04 * p[3],
            friction=0.5 * p[6],
        )  # fmt: skip
        values = jnp.stack([jnp.zeros(2), jnp.stack([0.3 * p[5], 0.1 * p[5]])])
        path = Hermite([0.0, 1.0], values, np.zeros((2, 2)))
        control = NearRigidQP(machine, path, 0.01 * p[4], followed=("cross", "strut"))
        u, _, _ = control.solve(0.3, cordax.State(q, v))
        return jnp.sum(u * jnp.array([1.0, -2.0, 0.5]))

    check(
        torques,
        ("modulus", "viscosity", "density", "diameter", "least strain", "spline", "joint friction"),
    )


def test_by_friction_and_geometry_of_guides():
    """Loads on a cable over a post that slips: 20 steps, by capstan friction, the post's radius and
    height, the cable and a mass."""

    def fallen(p):
        load = lambda name, x, m: parts.Body(
            name, parts.Prismatic("z"), at=(x, 0.0, 0.0), solids=parts.point_mass(m)
        )
        post = parts.Pulley("world", jnp.array([0.0, 0.0, 1.0]) * p[2], 0.1 * p[1], axis=(0, 1, 0))
        way = [parts.Eyelet("a"), post, parts.Eyelet("b")]
        cables = parts.CableSet(
            [way], ElasticCables(2e3 * p[3][None], 6.0 * p[4][None]), [2.0 + np.pi * 0.1 - 0.01],
            friction=0.3 * p[0], slip_width=1e-2 * p[6],
        )  # fmt: skip
        machine = parts.Mechanism(
            [load("a", -0.1, 1.0), load("b", 0.1, 3.0 * p[5])], elements=[cables]
        )
        dynamics = Dynamics(machine.prepare(), Minimal())
        step = lambda s, _: (
            cordax.RK4().step(dynamics, 0.0, 2e-3, s, lambda t, q, v: jnp.zeros(0), ()).state, None
        )  # fmt: skip
        start = cordax.State(jnp.zeros(2), jnp.array([0.01, -0.02]))
        return 1e2 * jax.lax.scan(step, start, length=20)[0].q[1]

    names = ("friction", "radius", "height", "stiffness", "damping", "mass", "slip width")
    check(fallen, names)
