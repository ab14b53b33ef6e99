"""Workspaces against linear programmes of another solver."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

from cordax.io import example_path, read_machine
from cordax.plot import plot_workspace
from cordax.statics import workspace
from cordax.systems import Oscillator

LOW, HIGH = 1.0, 500.0
POSITIONS = workspace.box_grid((-1.0, -0.8, 0.2), (1.0, 1.0, 1.8), (3, 3, 4))
PUSHES = np.array([[50.0, 0, 0, 0, 0, 0], [0, -40.0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 5.0]])


@pytest.fixture(scope="module")
def robot():
    return read_machine(example_path("eight_cables")).experiment.system


@eqx.filter_jit
def at_poses(robot, positions):
    """Structure matrices and wrenches of the weight."""
    at = lambda p: (lambda q: (robot.structure_matrix(q), robot.static_wrench(q)))(
        robot.state_at(p).q
    )
    return jax.vmap(at)(positions)


@pytest.fixture(scope="module")
def matrices(robot):
    return jax.tree.map(np.asarray, at_poses(robot, POSITIONS))


def feasible(W, wrench, bounds) -> bool:
    return linprog(np.zeros(W.shape[1]), A_eq=W, b_eq=wrench, bounds=bounds).status == 0


def test_the_weight_can_be_held(robot, matrices):
    found = workspace.static(robot, POSITIONS, minimum=LOW, maximum=HIGH)
    expected = [feasible(W, w, (LOW, HIGH)) for W, w in zip(*matrices, strict=True)]
    assert found.inside.tolist() == expected and 0 < sum(expected) < len(expected)
    assert found.share == pytest.approx(np.mean(expected))
    for W, w, f, inside in zip(*matrices, found.tensions, found.inside, strict=True):
        if inside:
            np.testing.assert_allclose(W @ f, w, atol=1e-3)
            assert f.min() >= LOW - 1e-6 and f.max() <= HIGH + 1e-6
    assert np.all(np.asarray(found.shortfall)[~np.asarray(found.inside)] > 0)
    assert "poses inside" in found.summary()
    figure = plot_workspace(found, robot)
    assert f"{sum(expected)} of {len(expected)}" in figure.axes[0].get_title()


@pytest.mark.parametrize("high", [1e4, 1e9])
def test_large_bounds(robot, high):
    """Which poses are inside is as a linear programme says, also for bounds that no tension
    reaches."""
    wide = 2.5 * POSITIONS
    found = workspace.static(robot, wide, minimum=LOW, maximum=high)
    expected = [feasible(W, w, (LOW, high)) for W, w in zip(*at_poses(robot, wide), strict=True)]
    assert found.inside.tolist() == expected and 0 < sum(expected) < len(expected)


def test_wrenches_besides(robot, matrices):
    options = {"minimum": LOW, "maximum": HIGH}
    found = workspace.wrench_feasible(robot, POSITIONS, PUSHES, **options)
    expected = [
        all(feasible(W, w + push, (LOW, HIGH)) for push in PUSHES)
        for W, w in zip(*matrices, strict=True)
    ]
    assert found.inside.tolist() == expected
    inside = workspace.static(robot, POSITIONS, **options).inside
    assert 0 < sum(expected) < int(inside.sum())


def test_any_wrench(robot, matrices):
    found = workspace.wrench_closure(robot, POSITIONS)
    expected = [feasible(W, np.zeros(6), (1.0, None)) for W in matrices[0]]
    assert found.tolist() == expected
    four = read_machine(example_path("suspended")).experiment.system
    assert not workspace.wrench_closure(four, POSITIONS[:2]).any()


def test_the_shortfall_has_a_gradient(robot):
    """By where cables leave the frame: what a design is improved by."""
    where = lambda r: r.exits.points.value
    outside = jnp.array([[1.0, 1.0, 1.8]])

    @jax.jit
    def short(points):
        changed = eqx.tree_at(where, robot, points)
        return workspace.static(changed, outside, minimum=LOW, maximum=HIGH).shortfall[0]

    points, h = where(robot), 1e-5
    move = jnp.zeros_like(points).at[2, 0].set(1.0).at[7, 2].set(-0.5)
    expected = (short(points + h * move) - short(points - h * move)) / (2 * h)
    assert abs(expected) > 1e-2
    assert jax.jvp(short, (points,), (move,))[1] == pytest.approx(float(expected), rel=1e-5)
    assert jnp.vdot(jax.grad(short)(points), move) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"minimum": -1.0}, "minimum"),
        ({"maximum": 0.5}, "maximum"),
        ({"positions": jnp.zeros((2, 2))}, "positions"),
        ({"positions": jnp.zeros(3)}, r"positions: got shape \(3,\), expected shape \(k, 3\)"),
        ({"positions": jnp.full((1, 3), jnp.nan)}, "positions: got .*nan.*, expected finite"),
        ({"rotation": 2.0 * np.eye(3)}, "rotation: got .*, expected a rotation"),
        ({"rotation": np.diag([1.0, 1.0, -1.0])}, "rotation: got .*, expected a rotation"),
        ({"rotation": np.zeros((3, 3))}, "rotation: got .*, expected a rotation"),
        ({"rotation": np.eye(3) + 0.1 * np.eye(3, k=1)}, "rotation: got .*, expected a rotation"),
        ({"robot": Oscillator()}, "robot: got Oscillator without state_at"),
    ],
)
def test_bad_input_is_named(robot, change, words):
    given = {"robot": robot, "positions": POSITIONS, "minimum": LOW, "maximum": HIGH} | change
    with pytest.raises(ValueError, match=words):
        workspace.static(**given)
    with pytest.raises(ValueError, match="count"):
        workspace.box_grid((0, 0, 0), (1, 1, 1), 2.5)
