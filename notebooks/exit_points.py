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
# # Where the cables of a robot should leave
#
# Eight cables hold a platform against loads from all sides, each with a tension between 10 and
# 400 N. The poses at which that is possible are its wrench-feasible workspace. How large it is
# depends on where the cables leave, the exit points: 24 numbers, found by gradients.

# %%
import time
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter

import cordax
from cordax.control import Constant
from cordax.io import example_path, read_machine
from cordax.plot import plot_workspace
from cordax.statics import workspace
from cordax.systems import PointExit

cordax.enable_x64()

# %% [markdown]
# ## The robot, its task and its workspace
#
# Loads: the corners of a box of forces of 60 N and the moments of 6 N m about each axis. Tasks: a
# grid of positions through the middle of the frame.

# %%
robot = read_machine(example_path("eight_cables")).experiment.system
points = np.asarray(robot.exits.points.position(0.0))
robot = eqx.tree_at(lambda r: r.exits, robot, PointExit(points))
LIMITS = {"minimum": 10.0, "maximum": 400.0}
corners = np.array(np.meshgrid(*[[-60.0, 60.0]] * 3)).reshape(3, -1).T
forces = np.hstack([corners, np.zeros((8, 3))])
moments = np.hstack([np.zeros((6, 3)), 6.0 * np.vstack([np.eye(3), -np.eye(3)])])
LOADS = np.vstack([forces, moments])
low, high = points.min(axis=0), points.max(axis=0)
middle, half = 0.5 * (low + high), 0.5 * (high - low)
LOW, HIGH = middle - 0.75 * half, middle + 0.75 * half
TASK = workspace.box_grid(LOW, HIGH, (4, 4, 3))
FINE = workspace.box_grid(LOW, HIGH, (9, 9, 7))
feasible = lambda robot, where: workspace.wrench_feasible(robot, where, LOADS, **LIMITS)
before = feasible(robot, FINE)
print(before.summary())

# %% [markdown]
# ## Moving the exit points
#
# The share of poses inside jumps from pose to pose and has no useful gradient. How far a pose is
# from being inside, the `shortfall` of the worst load [N], has: poses count as outside by s/(s + 20
# N). A design has no motion, so `optimise` is given the machine itself. Each exit point may move by
# 0.4 m along each axis.


# %%
def outside(robot):
    """Share of the task that is outside, smoothed [%]."""
    short = feasible(robot, TASK).shortfall
    return 100.0 * jnp.mean(short / (short + 20.0))


FREE = 0.4
names = [(f"exits.points.value[{i},{j}]", float(points[i, j])) for i in range(8) for j in range(3)]
numbers = [cordax.Parameter(name, bounds=(x - FREE, x + FREE)) for name, x in names]
clock = time.perf_counter()
found = cordax.optimise(robot, numbers, outside, max_steps=15, tolerance=1e-4)
print("\n".join(found.summary().splitlines()[:2]))
print(f"{time.perf_counter() - clock:.1f} s, {found.evaluations} evaluations")
after = feasible(found.experiment, FINE)
print(after.summary())
plot_workspace(before, robot)
plot_workspace(after, found.experiment)
plt.show()

# %% [markdown]
# ## How it grew
#
# A horizontal cut through the middle, one picture for each iteration.

# %%
CUT = workspace.box_grid(
    [*(middle - half)[:2], middle[2]], [*(middle + half)[:2], middle[2]], (17, 17, 1)
)
ways = [points, *(x.reshape(8, 3) for x in found.history["values"])]
figure, axes = plt.subplots(figsize=(4.6, 4.2), layout="constrained")


def show(i):
    robot_i = eqx.tree_at(lambda r: r.exits.points, robot, Constant(ways[i]))
    inside = np.asarray(feasible(robot_i, CUT).inside)
    axes.clear()
    axes.scatter(*np.asarray(CUT)[inside, :2].T, color="#0072B2", s=14.0, label="inside")
    axes.scatter(*np.asarray(CUT)[~inside, :2].T, color="#CCCCCC", s=5.0)
    axes.plot(*ways[i][:, :2].T, "s", color="#D55E00", label="exit points")
    reach = (middle - half - FREE)[:2] - 0.15, (middle + half + FREE)[:2] + 0.15
    axes.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", title=f"iteration {i}")
    axes.set(xlim=(reach[0][0], reach[1][0]), ylim=(reach[0][1], reach[1][1]))
    axes.legend(loc="upper center", frameon=False, ncols=2)


Path("outputs").mkdir(exist_ok=True)
FuncAnimation(figure, show, range(len(ways))).save("outputs/exit_points.gif", PillowWriter(3))
plt.show()

# %%
print(f"{100 * before.share:.1f} % of the task before, {100 * after.share:.1f} % after")
assert after.share > before.share + 0.1
moved = np.abs(np.asarray(found.experiment.exits.points.value) - points)
assert moved.max() <= FREE + 1e-9
f = np.asarray(after.tensions)[np.asarray(after.inside)]
assert f.min() > 10.0 - 1e-3 and f.max() < 400.0 + 1e-3
