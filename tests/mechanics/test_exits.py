"""Pulleys whose axis is not vertical: a turned frame sees the same lengths."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax.math import rotations
from cordax.mechanics.parts.exits import PulleyExit, SwivelPulleyExit

POINTS = np.array([[0.0, 0.0, 2.0], [0.3, -0.2, 1.8]])
ENDS = np.array([[1.0, 0.4, 0.5], [-0.7, 0.9, 0.2]])
TURNS = [np.array([0.4, -0.3, 0.9]), np.array([0.0, 0.5 * np.pi, 0.0]), np.array([np.pi, 0.0, 0.0])]


def of(kind, points, axis=None):
    more = {} if kind is PulleyExit else {"pulley_inertia": 0.01}
    return kind(points, np.array([0.05, 0.08]), axis=axis, **more)


@eqx.filter_jit
def look(exits, ends, rate):
    t = jnp.zeros(())
    y, y_rate = exits.start(t, ends, rate)
    return {
        "rate": y_rate,
        "length": exits.length(t, ends, y),
        "reach": exits.reach(t, ends, y),
        "pull": jax.grad(lambda b: jnp.sum(exits.length(t, b, y)))(ends),
        "path": exits.path(t, ends, y, 200),
    }


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("kind", [PulleyExit, SwivelPulleyExit])
def test_a_turned_frame_sees_the_same_lengths(kind, turn):
    R = np.asarray(jax.jit(rotations.exponential_matrix)(turn))
    rate = np.array([[0.3, -0.1, 0.2], [0.1, 0.5, -0.4]])
    upright = look(of(kind, POINTS), ENDS, rate)
    turned = look(of(kind, POINTS @ R.T, axis=R[:, 2]), ENDS @ R.T, rate @ R.T)
    np.testing.assert_allclose(turned["length"], upright["length"], rtol=1e-13)
    np.testing.assert_allclose(turned["rate"], upright["rate"], atol=1e-13)
    np.testing.assert_allclose(turned["reach"], upright["reach"], rtol=1e-12)
    np.testing.assert_allclose(turned["pull"], upright["pull"] @ R.T, atol=1e-13)
    # what is drawn is the cable, and turns with the frame
    drawn = np.asarray(turned["path"])
    np.testing.assert_allclose(drawn, upright["path"] @ R.T, atol=1e-12)
    long = np.sum(np.linalg.norm(np.diff(drawn, axis=1), axis=2), axis=1)
    np.testing.assert_allclose(long, turned["length"], rtol=1e-5)


def test_an_axis_is_a_direction():
    with pytest.raises(ValueError, match=r"axis: got .* expected a direction, not zero"):
        of(PulleyExit, POINTS, axis=np.zeros(3))
    with pytest.raises(ValueError, match=r"axis: got shape \(3, 3\), expected shape \(3,\) or"):
        of(PulleyExit, POINTS, axis=np.eye(3))
