"""Markers of a real wire as a `DiscreteRod`: what a rollout needs, rollouts and two baselines.

Arrays of markers have shape (frames, markers, 3) [m], 100 Hz, z up; see `wires.py`."""

import dataclasses
import functools
import itertools
import os

# on few cores LAPACK for batches of runs may wait for itself: docs/faq.md, "It stands still"
os.environ.setdefault("PJRT_NPROC", "8")

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from scipy.interpolate import CubicSpline  # noqa: E402
from scipy.signal import savgol_filter  # noqa: E402

from cordax.control import Hermite  # noqa: E402
from cordax.systems import DiscreteRod, Gripper, StrandSlip  # noqa: E402

FRAME, SEGMENTS = 0.01, 10
#: per frame
STEPS = 2
#: fitted: EI per mass per length [m^4/s^2], damping of bending [s], curvature at which friction
#: within the wire slips [1/m], length of the chain of segments over that measured along splines
#: through the markers (1 is no change), and by how much markers in the grippers point beside the
#: wire, across their own direction and the line between the robots [rad]
NAMES = ("EI", "bending_time", "slip", "length", "left_tilt", "right_tilt")
#: the same for all wires: friction stiffens bending threefold until it slips, and twist is as
#: stiff as in a round rod that keeps its volume and slips nowhere, 2/3 of that; resistance of the
#: air over mass [1/s]
STICK, TWIST, DRAG = 2.0, 2.0, 0.2
#: rest curvatures: their size times sqrt(EI), and their size in the grippers [1/m]
BENT, BENT_IN_GRIPPERS = 0.6, 0.3
#: half waves along the wire that initial accelerations of markers may differ by from those between
#: the grippers [m/s^2]: about what training runs of all wires show
WAVES = 5.0 * np.arange(1, SEGMENTS) ** -1.5 + 0.1
#: from the robot with the first markers to the other, in all runs
BASELINE = np.array([-1.0, 0.0, 0.0])
ENDS = np.array([0, -1])
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
    whole = len(run) - (len(run) + 1) % 2  # frames, an odd number
    window, wide = min(9, whole), min(15, whole)
    smooth = savgol_filter(run[:, [0, 1, -2, -1]], window, 3, axis=0)
    ends, along = smooth[:, 1:3], unit(smooth[:, [1, 3]] - smooth[:, [0, 2]])
    s = places[1:-1] - places[1]
    at = np.linspace(0.0, s[-1], SEGMENTS + 1)

    def shape(i):
        points = np.concatenate([ends[i, :1], run[i, 2:-2], ends[i, 1:]])
        return CubicSpline(s, points, bc_type=((1, along[i, 0]), (1, along[i, 1])))(at)

    nodes = shape(0)
    chain = np.concatenate([along[0, :1], unit(np.diff(nodes, axis=0)), along[0, 1:]])
    beside = lambda tangent: unit(np.cross(tangent, BASELINE))
    across = carried(chain, beside(chain[0]))
    right = np.array([across[-1], np.cross(chain[-1], across[-1])]) @ beside(chain[-1])
    directors = np.stack([carried(along[:, i], across[-i]) for i in (0, 1)], axis=1)
    bend = savgol_filter(run[:, [1, -2]], wide, 3, deriv=2, delta=FRAME, axis=0)[0]
    share = (at / at[-1])[:, None]
    held = np.stack([ends, along, directors], axis=1)  # (frames, 3 kinds, 2 ends, 3)
    return {
        "nodes": nodes,
        "ends": np.gradient(ends, FRAME, axis=0, edge_order=2)[0],
        "speed": (shape(1) - nodes)[1:-1] / FRAME,
        "right": right,
        "acceleration": (1 - share) * bend[0] + share * bend[1],
        "held": held,
        "rates": np.gradient(held, FRAME, axis=0, edge_order=2),
        "length": s[-1],
    }


# --- the model
#: how many times slower than recorded grippers move, drag [1/s], whether nodes begin with a speed
AS_RECORDED = np.array([1.0, DRAG, 1.0])
#: the first of quasi-static runs
CALM = (5.0, 3.0, 2.0)


def started(data, spacing):
    """Nodes and speeds of those between the ends, moved as little as leaves all segments as long as
    they are: a chain that begins compressed by a few percent would fling itself apart."""
    nodes, ends, whole = (jnp.asarray(data[name]) for name in ("nodes", "ends", "speed"))
    first, last = nodes[0], nodes[-1]

    def excess(x):
        edges = jnp.diff(jnp.concatenate([first[None], x.reshape(-1, 3), last[None]]), axis=0)
        return 0.5 * (jnp.sum(edges * edges, axis=1) / spacing - spacing)

    def nearer(_, x):
        J = jax.jacfwd(excess)(x)
        return x - J.T @ jnp.linalg.solve(J @ J.T, excess(x))

    x = jax.lax.fori_loop(0, 8, nearer, nodes[1:-1].reshape(-1))
    J, v = jax.jacfwd(excess)(x), whole.reshape(-1)
    edges = jnp.stack([x[:3] - first, last - x[-3:]]) / spacing
    growth = J @ v
    growth = growth.at[0].add(-edges[0] @ ends[0]).at[-1].add(edges[1] @ ends[1])
    v = v - J.T @ jnp.linalg.solve(J @ J.T, growth)
    nodes = jnp.concatenate([first[None], x.reshape(-1, 3), last[None]])
    return nodes, v.reshape(-1, 3)


def rod(numbers, data):
    """The wire in its grippers, and speeds of its nodes; `numbers` as `NAMES`."""
    t = FRAME * jnp.arange(data["held"].shape[0])
    path = lambda kind, end: Hermite(t, data["held"][:, kind, end], data["rates"][:, kind, end])
    left, right = (Gripper(*(path(kind, end) for kind in range(3))) for end in (0, 1))
    EI, bending_time, slip, scale, left_tilt, right_tilt = numbers
    nodes, speed = started(data, scale * data["length"] / SEGMENTS)
    wire = DiscreteRod(
        nodes,
        left,
        right,
        scale * data["length"],
        EI=EI,
        GJ=TWIST * EI,
        bending_time=bending_time,
        drag=DRAG,
        axial_time=5e-3,
        stick=STICK,
        slip=slip,
    )
    tilts = jnp.stack([left_tilt * jnp.array([1.0, 0.0]), right_tilt * data["right"]])
    rest = wire.balanced_rest(
        data["acceleration"],
        speed=speed,
        acceleration_error=WAVES,
        curvature=(BENT / jnp.sqrt(EI) * jnp.ones(SEGMENTS + 1)).at[ENDS].set(BENT_IN_GRIPPERS),
        mean=jnp.zeros((SEGMENTS + 1, 2)).at[ENDS].set(tilts / wire.shares[ENDS, None]),
    )
    return dataclasses.replace(wire, rest_curvature=rest), speed


def slowed(wire, slow, drag):
    """The same wire, in grippers that move `slow` times slower through air of another `drag`, in
    units of time in which they take as long as before."""
    return dataclasses.replace(
        wire,
        line_density=wire.line_density / slow**2,
        gravity=wire.gravity * slow**2,
        bending_time=wire.bending_time / slow,
        axial_time=wire.axial_time / slow,
        drag=drag / slow,
    )


def rollout(numbers, data, pace=AS_RECORDED, every=STEPS):
    """Nodes (frames, s + 1, 3) [m] and whether the run went through, by `every` steps per frame."""
    slow, drag, moving = pace
    wire, speed = rod(numbers, data)
    wire = slowed(wire, slow, drag)
    q = wire.default_state().q
    v = jnp.zeros_like(q).at[: speed.size].set(moving * speed.reshape(-1))
    run = cordax.simulate(
        wire,
        cordax.State(q, v),
        control=StrandSlip(wire),
        dt=FRAME / every,
        duration=(data["held"].shape[0] - 1) * FRAME,
        save_every=every,
        integrator=cordax.GeneralisedAlpha(0.3, tolerance=1e-6, max_iterations=30),
        throw=False,
        adjoint="forward",
    )
    return run["nodes"], run.succeeded


def at_markers(places) -> np.ndarray:
    """What nodes, and tangents in the grippers after them, contribute to free markers, by cubic
    splines, shape (markers, s + 3)."""
    s, count = np.linspace(places[1], places[-2], SEGMENTS + 1), SEGMENTS + 1
    of = np.eye(count + 2)
    ends = ((1, of[count]), (1, of[count + 1]))
    return CubicSpline(s, of[:count], bc_type=ends)(places[2:-2])


def markers(places, nodes, data) -> np.ndarray:
    """Free markers (frames, markers, 3) [m]."""
    return at_markers(places) @ np.concatenate([nodes, data["held"][:, 1]], axis=1)


# compiled once for all runs of a length, the quasi-static ones too
fast = jax.jit(rollout, static_argnums=3)


@jax.jit
@functools.partial(jax.vmap, in_axes=(None, 0))
def sensitivity(numbers, data):
    """Of several runs of one length: nodes (runs, frames, s + 1, 3) [m], whether each went through,
    and derivatives (runs, frames, s + 1, 3, numbers) of nodes, forward with the motion."""

    def found(numbers):
        nodes, good = rollout(numbers, data)
        return nodes, (nodes, good)

    by, (nodes, good) = jax.jacfwd(found, has_aux=True)(numbers)
    return nodes, good, by


def predicted(numbers, run, places) -> tuple[np.ndarray, bool]:
    """Free markers (frames, markers, 3) [m], and whether the run went through; if it does not, it
    is repeated with a quarter of the step."""
    data, y = prepared(run, places), jnp.asarray([float(numbers[name]) for name in NAMES])
    nodes, good = fast(y, data, AS_RECORDED, STEPS)
    if not good:
        nodes, good = fast(y, data, AS_RECORDED, 4 * STEPS)
    return markers(places, np.asarray(nodes), data), bool(good)


# --- baselines
def resting(numbers, run, places) -> tuple[np.ndarray, bool]:
    """Free markers of the wire moved so slowly, in thick air, that nothing swings, and whether the
    run went through; not as slowly if it does not (a wire that snaps does so at any pace)."""
    data, y = prepared(run, places), jnp.asarray([float(numbers[name]) for name in NAMES])
    for slow in CALM:
        nodes, good = fast(y, data, np.array([slow, 5.0, 0.0]), STEPS)
        if good:
            break
    return markers(places, np.asarray(nodes), data), bool(good)


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
