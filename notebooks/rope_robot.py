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
# # Ropes: from one that hangs to a robot and its reduction
#
# A rope is a row of segments that stretch and joints that bend (docs/rope-robot.md), after Tempel,
# Schmidt, Haasdonk and Pott, "Application of the rigid finite element method to the simulation of
# cable-driven parallel robots" (2017).

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import jn_zeros

import cordax
from cordax.control import Constant, Quintic
from cordax.plot import plot_snapshots, plot_states
from cordax.systems import AxialRopes, RopeRobot, two_rope_robot

cordax.enable_x64()

# %% [markdown]
# ## A rope between two points
#
# Hinged at its root, without stiffness against bending: at rest it is a catenary. Its lowest point
# and its ends tell the parameter of the curve, and every other node lies on it.

# %%
rope = RopeRobot(
    [[0.0, 0.0]], 1.5, EA=1e5, EI=0.0, root_stiffness=0.0, end_point=Constant([[1.2, 0.0]])
)
nodes = np.asarray(rope.nodes(rope.rest().q))[0]
a = 0.6  # length = 2 a sinh(span / 2a), by fixed-point steps
for _ in range(200):
    a = 0.6 / np.arcsinh(0.75 / a)
curve = a * (np.cosh((nodes[:, 0] - 0.6) / a) - np.cosh(0.6 / a))
off_catenary = np.abs(nodes[:, 1] - curve).max()

figure, axes = plt.subplots(figsize=(5, 3))
axes.plot(nodes[:, 0], curve, label="catenary")
axes.plot(*nodes.T, "o", ms=4, label="nodes")
axes.set(xlabel="x [m]", ylabel="z [m]", aspect="equal")
axes.legend()

# %% [markdown]
# ## A hanging chain
#
# With a free end, small motions have the frequencies $j_{0,n}/2\ \sqrt{g/L}$, zeros of a Bessel
# function. Forces are functions, so the stiffness is a derivative.

# %%
chain = RopeRobot([[0.0, 0.0]], 2.0, EA=1e7, EI=0.0, root_stiffness=0.0)
at = chain.rest().q
still, none, now = jnp.zeros_like(at), jnp.zeros(2), jnp.zeros(())
K = -jax.jacfwd(lambda q: chain.force(now, q, still, none))(at)
squares = np.linalg.eigvals(np.linalg.solve(chain.mass_matrix(at), K))
frequencies = np.sqrt(np.sort(squares.real))[:3]
theory = jn_zeros(0, 3) / 2.0 * np.sqrt(9.81 / 2.0)
for found, wanted in zip(frequencies, theory, strict=True):
    print(f"{found:.4f} rad/s, theory {wanted:.4f}")

# %% [markdown]
# ## A platform on two ropes
#
# Four segments each, to be quick. A force that grows beyond the weight lifts the platform, and the
# ropes get slack: there is no law for that, they buckle.

# %%
robot = two_rope_robot(4)
start = robot.rest()
force = Quintic(jnp.zeros(3), [[0.0, 52.0, 0.0]], [[0.5, 2.0]])


def lift(t, state):
    return force.position(t)


options = {"duration": 2.5, "control": lift}
run = cordax.simulate(
    robot, start, dt=1e-3, save_every=25, integrator="generalised_alpha", **options
)
figure = plot_states(run, ["z", "tension", "force_z"])
figure = plot_snapshots(run, [0.0, 2.0, 2.5])

# %% [markdown]
# ## A reduced robot
#
# Fast axial waves make the ropes stiff and carry next to nothing. Elongations that are constant and
# linear along each rope leave them out; then explicit steps may be much longer. With 20 segments
# its error is a fifth of that of the whole robot computed in the same time (docs/rope-robot.md).

# %%
small = AxialRopes(robot)
reduced = cordax.simulate(
    small,
    small.project(start),
    dt=5e-4,
    save_every=50,
    integrator="rk4",
    formulation=cordax.Baumgarte(20.0, 20.0),
    **options,
)
height = lambda r: np.asarray(r.outputs["pose"])[:, 1]
rise = np.ptp(height(run))
off_full = np.abs(height(reduced) - height(run)).max()
print(f"{small.n_q} coordinates instead of {robot.n_q}; rise {rise:.4f} m, {off_full:.1e} m off")

# %%
assert off_catenary < 2e-3
np.testing.assert_allclose(frequencies, theory, rtol=0.015)
tension = np.asarray(run.outputs["tension"])
assert tension[0].min() > 20.0 and np.abs(tension[-1]).max() < 2.0
assert rise > 5e-3 and off_full < 0.02 * rise
