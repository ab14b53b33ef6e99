# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Two grippers bend a wire, quickly
#
# A rubber cord, 0.6 m long and 6 mm thick, lies straight between two grippers on a smooth table (x
# and z lie in it). Its slowest vibration takes 0.8 s. 0.8 s later it shall have a given shape and
# rest, and it may not be bent much more on the way than in the end. Grippers that go straight where
# they have to leave it swinging by centimetres. Gradients through the motion find a better way.

# %%
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import least_squares

import cordax
from cordax.control import Quintic, Reference, Shaped
from cordax.systems import End, SplineRod

cordax.enable_x64()

# %% [markdown]
# ## Wire and grippers
#
# The left gripper turns, the right one moves and turns. The wire hardly stretches: poses that pull
# at it are useless. So the grippers' poses are described by four numbers of a curve of the wire's
# length that joins them: its angle at the left [rad] and its curvature [1/m] at the left, in the
# middle and at the right, with a parabola in between. These follow a polynomial from rest to rest,
# with bumps on the way, none at first.

# %%
LENGTH, TIME, AFTER, DT, STORE = 0.6, 0.8, 0.2, 1e-3, 20
NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


def angle(hands, s):
    """Of the curve's tangent at fractions `s` of its length [rad]."""
    start, a, m, b = hands
    return start + LENGTH * s * (a + s * ((4 * m - 3 * a - b) / 2 + s * 2 * (a + b - 2 * m) / 3))


def place(hands, s):
    """Of the curve at fractions `s` (k,) of its length [m], shape (k, 3)."""
    along = angle(hands, 0.5 * s[:, None] * (1 + NODES))
    x, z = (0.5 * LENGTH * s * (f(along) @ WEIGHTS) for f in (jnp.cos, jnp.sin))
    return jnp.stack([x, 0.0 * x, z], axis=1)


class Point(Reference):
    """Where the curve is at its end."""

    hands: Reference

    def position(self, t):
        return place(self.hands.position(t), jnp.ones(1))[0]


class Tangent(Reference):
    """Which way the curve goes at a fraction of its length."""

    hands: Reference
    at: float = eqx.field(static=True)

    def position(self, t):
        a = angle(self.hands.position(t), self.at)
        return jnp.stack([jnp.cos(a), 0.0 * a, jnp.sin(a)])


def wire(hands):
    """Whose grippers follow `hands`, a motion of the four numbers."""
    return SplineRod(
        length=LENGTH,
        diameter=6e-3,
        density=1200.0,
        young=8e6,
        gravity=0.0,
        control_points=8,
        quadrature=("gauss", 3),
        left=End.clamped(jnp.zeros(3), Tangent(hands, 0.0)),
        right=End.clamped(Point(hands), Tangent(hands, 1.0)),
    )


def moved(end):
    path = Quintic(jnp.zeros(4), jnp.asarray(end)[None], [[0.0, TIME]])
    return wire(Shaped(path, [0.0, TIME], np.zeros((3, 4))))


# %% [markdown]
# ## The shape
#
# An asymmetric arch: that of the wire at rest with the grippers at a pose that the search does not
# know.

# %%
HIDDEN = np.array([0.8, 1.0, -6.0, -2.0])
fractions = jnp.linspace(0.0, 1.0, 31)
still = wire(Quintic(HIDDEN, jnp.zeros((1, 4)), [[0.0, TIME]]))
rest = cordax.equilibrium(still, guess=still.state_of(lambda u: place(HIDDEN, u / LENGTH)))


def shapes(run):
    """Of the wire at all stored instants, 31 points each [m]."""
    return jax.vmap(lambda control: run.system.shape(control.T, 31))(run["control"])


def curvature(points):
    """Of curves (..., 31, 3) at 29 points [1/m]."""
    turn = jnp.diff(points, n=2, axis=-2)
    return jnp.sqrt(jnp.sum(turn**2, axis=-1) + 1e-12) / (LENGTH / 30) ** 2


TARGET = still.shape(still.control(0.0, rest.q), 31)
LARGEST = 1.08 * float(jnp.max(curvature(TARGET)))
print(f"the target bends by up to {LARGEST / 1.08:.2f} 1/m, {LARGEST:.2f} 1/m are allowed")

# %% [markdown]
# ## The search
#
# Where the grippers go, four numbers, and three bumps of each on the way. The cost is the square of
# the distance from the shape plus that of the speed times 0.13 s, the slowest period over 2 pi, in
# the last 0.2 s. The search begins with the four numbers whose curve lies nearest to the shape:
# from a poor guess it may end in a worse optimum that is one all the same.

# %%
beside = lambda hands: (place(hands, fractions) - TARGET).ravel()
GUESS = least_squares(beside, [0.6, 0.0, -4.0, 0.0], jac=jax.jacfwd(beside)).x
move = cordax.Experiment(
    moved(GUESS), duration=TIME + AFTER, dt=DT, save_every=STORE, integrator="rk4"
)


def away(run):
    """Mean square of distance and of speed times 0.13 s, after arrival [mm^2]."""
    points = shapes(run)[-round(AFTER / DT) // STORE - 1 :]
    speed = jnp.diff(points, axis=0) / (STORE * DT)
    square = lambda x: jnp.mean(jnp.sum((1e3 * x) ** 2, axis=-1))
    return square(points - TARGET) + square(0.13 * speed)


bends = cordax.Constraint(
    lambda run: curvature(shapes(run))[2::2, ::2].ravel(), high=LARGEST, name="curvature [1/m]"
)
WHERE = ["left.tangent", "right.point", "right.tangent"]


def number(of, bounds):
    """A number of the hands' motion, which both grippers know."""
    names = [f"{part}.hands.{of}" for part in WHERE]
    return cordax.Parameter(names[0], bounds=bounds, tied=tuple(names[1:]))


BOUNDS = [(-1.5, 1.5)] + 3 * [(-12.0, 12.0)]
unknowns = [number(f"motion.moves[0,{i}]", BOUNDS[i]) for i in range(4)]
unknowns += [number(f"bumps[{k},{i}]", BOUNDS[i]) for k in range(3) for i in range(4)]
clock = time.perf_counter()
found = cordax.optimise(move, unknowns, away, [bends], max_steps=60, tolerance=1e-6)
print("\n".join(found.summary().splitlines()[:2] + found.summary().splitlines()[-1:]))
print(f"{time.perf_counter() - clock:.1f} s, {found.evaluations} evaluations")

# %% [markdown]
# Beside it: grippers that go straight to the hidden pose, in the same time. They know where to go,
# and the wire is not there yet.

# %%
straight = cordax.simulate(move.replace(system=moved(HIDDEN)))
runs = (("straight there", straight, "#D55E00"), ("found", found.trajectory, "#0072B2"))
figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.4), layout="constrained")
for label, run, colour in runs:
    points = np.asarray(shapes(run))
    axes[0].plot(points[-1, :, 0], points[-1, :, 2], color=colour, lw=2.0, label=label)
    off = np.sqrt(np.mean(np.sum((points - np.asarray(TARGET)) ** 2, axis=-1), axis=1))
    axes[1].semilogy(run.t, 1e3 * off, color=colour, label=label)
    axes[2].plot(run.t, np.max(curvature(points), axis=1), color=colour, label=label)
for points in np.asarray(shapes(found.trajectory))[:-1:6]:
    axes[0].plot(points[:, 0], points[:, 2], color="#BBBBBB", lw=0.8)
axes[0].plot(TARGET[:, 0], TARGET[:, 2], "--", color="#000000", lw=1.2, label="wanted")
axes[0].set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="at the end")
axes[1].set(xlabel="time [s]", ylabel="off the shape [mm]")
axes[2].axhline(LARGEST, color="#999999", ls=":", lw=1.0)
axes[2].set(xlabel="time [s]", ylabel="largest curvature [1/m]")
axes[1].axvline(TIME, color="#999999", lw=0.8)
axes[0].legend(frameon=False)
plt.show()
found.trajectory.animate("outputs/wire.gif", fps=20, speed=0.25)

# %%
left = {label: float(away(run)) for label, run, _ in runs}
bent = {label: float(jnp.max(curvature(shapes(run)))) for label, run, _ in runs}
print(f"cost [mm^2] {left}, largest curvature [1/m] {bent}, allowed {LARGEST:.2f}")
assert found.succeeded
assert left["found"] < 0.01 * left["straight there"]
assert bent["found"] < 1.01 * LARGEST < bent["straight there"]
