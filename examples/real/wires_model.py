"""Markers of a real wire as a `DiscreteRod`: what a rollout needs, rollouts and two baselines.

Arrays of markers have shape (frames, markers, 3) [m], 100 Hz, z up; see `wires.py`."""

import dataclasses
import functools
import itertools

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from scipy.interpolate import CubicSpline  # noqa: E402
from scipy.signal import savgol_filter  # noqa: E402

from cordax.control import Hermite  # noqa: E402
from cordax.systems import DiscreteRod, Gripper  # noqa: E402

FRAME, STEP, SEGMENTS = 0.01, 5e-3, 10
#: fitted: EI, GJ [m^4/s^2], damping of bending [s] and of the air [1/s], all per mass per length,
#: the size of rest curvatures [1/m], and the length of the chain of segments over that measured
#: along splines through the markers (a chain cuts corners; 1 is no change)
NAMES = ("EI", "GJ", "bending_time", "drag", "curvature", "length")
unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)


# --- from markers to what a rod needs
def stations(runs) -> np.ndarray:
    """Where markers sit along the wire [m]: mean arc lengths of splines through them."""
    shapes, lengths = runs[:, ::50].reshape(-1, *runs.shape[2:]), []
    for m in shapes:
        s = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(m, axis=0), axis=1))])
        fine = CubicSpline(s, m)(np.linspace(s[:-1], s[1:], 21))  # (21, segments, 3)
        lengths.append(np.linalg.norm(np.diff(fine, axis=0), axis=2).sum(0))
    return np.concatenate([[0.0], np.cumsum(np.mean(lengths, axis=0))])


def carried(tangents, first):
    """Directors (k, 3) that turn no more than their tangents (k, 3), from the first on."""
    found = [first]
    for a, b in itertools.pairwise(tangents):
        axis, c, x = np.cross(a, b), a @ b, found[-1]
        found.append(unit(c * x + np.cross(axis, x) + axis * (axis @ x) / (1.0 + c)))
    return np.array(found)


def prepared(run, places) -> dict[str, np.ndarray]:
    """Inputs and start of a run, from its grippers and the first two frames of other markers."""
    window = min(9, len(run) - (len(run) + 1) % 2)
    smooth = savgol_filter(run[:, [0, 1, -2, -1]], window, 3, axis=0)
    ends, along = smooth[:, 1:3], unit(smooth[:, [1, 3]] - smooth[:, [0, 2]])
    s = places[1:-1] - places[1]
    at = np.linspace(0.0, s[-1], SEGMENTS + 1)

    def shape(i):
        points = np.concatenate([ends[i, :1], run[i, 2:-2], ends[i, 1:]])
        return CubicSpline(s, points, bc_type=((1, along[i, 0]), (1, along[i, 1])))(at)

    nodes = shape(0)
    chain = np.concatenate([along[0, :1], unit(np.diff(nodes, axis=0)), along[0, 1:]])
    across = carried(chain, unit(np.cross(chain[0], np.eye(3)[np.argmin(abs(chain[0]))])))
    directors = np.stack([carried(along[:, i], across[-i]) for i in (0, 1)], axis=1)
    wide = min(15, window)
    bend = savgol_filter(run[:, [1, -2]], wide, 3, deriv=2, delta=FRAME, axis=0)[0]
    share = (at / at[-1])[:, None]
    held = np.stack([ends, along, directors], axis=1)  # (frames, 3 kinds, 2 ends, 3)
    return {
        "nodes": nodes,
        "speed": (shape(1) - nodes)[1:-1] / FRAME,
        "acceleration": (1 - share) * bend[0] + share * bend[1],
        "held": held,
        "rates": np.gradient(held, FRAME, axis=0, edge_order=2),
        "length": s[-1],
    }


# --- the model
def rod(numbers, data, slow=1.0) -> DiscreteRod:
    """The wire in grippers that move `slow` times slower than recorded; `numbers` as `NAMES`."""
    t = slow * FRAME * jnp.arange(data["held"].shape[0])
    path = lambda kind, end: Hermite(
        t, data["held"][:, kind, end], data["rates"][:, kind, end] / slow
    )
    left, right = (Gripper(*(path(kind, end) for kind in range(3))) for end in (0, 1))
    EI, GJ, bending_time, drag, curvature, scale = numbers
    wire = DiscreteRod(
        data["nodes"],
        left,
        right,
        scale * data["length"],
        EI=EI,
        GJ=GJ,
        bending_time=bending_time,
        drag=drag,
        axial_time=5e-3,
    )
    rest = wire.balanced_rest(data["acceleration"], curvature=curvature)
    return dataclasses.replace(wire, rest_curvature=rest)


def rollout(numbers, data, step=STEP):
    """Nodes (frames, s + 1, 3) [m] and whether the run went through."""
    wire, frames = rod(numbers, data), data["held"].shape[0]
    q = wire.default_state().q
    v = jnp.zeros_like(q).at[: data["speed"].size].set(data["speed"].reshape(-1))
    run = cordax.simulate(
        wire,
        cordax.State(q, v),
        dt=step,
        duration=(frames - 1) * FRAME,
        save_every=round(FRAME / step),
        integrator=cordax.GeneralisedAlpha(0.3, tolerance=1e-6, max_iterations=12),
        throw=False,
        adjoint="forward",
    )
    return run["nodes"], run.succeeded


def quasi_static(numbers, data, slow=10.0):
    """Nodes of the same wire moved so slowly, in thick air, that nothing swings."""
    calm = numbers.at[NAMES.index("drag")].set(5.0)
    run = cordax.simulate(
        rod(calm, data, slow),
        dt=0.25 * slow * FRAME,
        duration=slow * (data["held"].shape[0] - 1) * FRAME,
        save_every=4,
        integrator=cordax.GeneralisedAlpha(0.0, tolerance=1e-6, max_iterations=30),
        throw=False,
        adjoint="forward",
    )
    return run["nodes"], run.succeeded


def at_markers(places) -> np.ndarray:
    """What nodes contribute to free markers, by cubic splines, shape (markers, s + 1)."""
    s = np.linspace(places[1], places[-2], SEGMENTS + 1)
    return CubicSpline(s, np.eye(SEGMENTS + 1))(places[2:-2])


# compiled once for all runs of a length
fast, fine, slow = (
    jax.jit(f) for f in (rollout, functools.partial(rollout, step=0.25 * STEP), quasi_static)
)
sensitivity = jax.jit(jax.jacfwd(rollout, has_aux=True))


def predicted(numbers, run, places) -> tuple[np.ndarray, bool]:
    """Free markers (frames, markers, 3) [m], and whether the run went through; if it does not, it
    is repeated with a quarter of the step."""
    data, y = prepared(run, places), jnp.asarray([float(numbers[name]) for name in NAMES])
    nodes, good = fast(y, data)
    if not good:
        nodes, good = fine(y, data)
    return at_markers(places) @ np.asarray(nodes), bool(good)


# --- baselines
def resting(numbers, run, places) -> tuple[np.ndarray, bool]:
    """Free markers of the quasi-static wire, and whether the run went through."""
    y = jnp.asarray([float(numbers[name]) for name in NAMES])
    nodes, good = slow(y, prepared(run, places))
    return at_markers(places) @ np.asarray(nodes), bool(good)


def rigid(run) -> np.ndarray:
    """Free markers of the first shape carried between the ends: turned with their chord, the
    shortest way, and stretched along it."""
    first, last = run[:, :1], run[:, -1:]
    b = unit(last - first)
    a, x = b[:1], run[:1, 2:-2] - run[:1, :1]
    axis, c = np.cross(a, b), np.sum(a * b, -1, keepdims=True)
    turned = c * x + np.cross(axis, x) + axis * np.sum(axis * x, -1, keepdims=True) / (1.0 + c)
    size = np.linalg.norm(last - first, axis=-1)[..., None]
    along = np.sum(turned * b, -1, keepdims=True) * b
    return first + turned + (size / size[0] - 1.0) * along
