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
# # A cable robot, from its geometry to a pick and place
#
# A cube hangs on four cables whose lengths are set by winches on a frame. With four cables for six
# degrees of freedom it can swing: kinematics alone do not give its pose. Model and notation follow
# Piva, Richiedei and Trevisani, "Using differential-algebraic equations and natural coordinates for
# modelling and simulating cable-driven parallel robots" (2024).

# %%
import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cordax
from cordax.control import Pulses, Quintic
from cordax.plot import plot_pose, plot_snapshots
from cordax.systems import (
    CableRobot,
    ElasticCables,
    NaturalBody,
    PointExit,
    ProgrammedLengths,
    ServoWinches,
    Winches,
    box_inertia,
)

cordax.enable_x64()

# %% [markdown]
# ## Geometry
#
# Where cables are fixed on the platform, where they leave the frame, and the platform's mass. The
# platform is kept in natural coordinates: two of its points and two of its vectors, twelve numbers
# in which every point of the body is linear, and in which no orientation is singular.

# %%
cube = NaturalBody(62.8, box_inertia(62.8, [0.2, 0.2, 0.2]))
corners = np.array([[-1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, -1.0, 0.0]])
up = np.array([0.0, 0.0, 1.0])
frame = PointExit(corners + 2.0 * up)
height = 1.5
robot = CableRobot(cube, 0.1 * corners, frame, ProgrammedLengths(np.ones(4)), position=height * up)

# %% [markdown]
# ## Kinematics and statics
#
# The lengths that belong to a pose, and the tensions that hold it. `structure_matrix` maps tensions
# to the force and moment on the platform. It has rank 3 here: the four tensions of this symmetric
# robot balance forces, but a moment about the vertical they cannot.

# %%
lengths = robot.lengths()
tension = robot.static_tensions()
W = robot.structure_matrix()
print("lengths [m] ", np.round(lengths, 4))
print("tensions [N]", np.round(tension, 3))
print("rank of the structure matrix:", np.linalg.matrix_rank(W))
hung = eqx.tree_at(lambda r: r.drives, robot, ProgrammedLengths(lengths))

# %% [markdown]
# ## Small motions
#
# With exact lengths the constraint rows of this robot depend on each other at the symmetric pose,
# and a rod in place of a cable would be over-determined. With winches each cable has a coordinate
# of its own, and the trouble is gone. The modes are those of the platform on its drums, under a
# servo drive that holds them.

# %%
drum = {"zero_length": lengths, "radius": 0.05, "rotor_inertia": 0.01}
winches = eqx.tree_at(lambda r: r.drives, robot, Winches(**drum))
gains = {"K_p": 400.0, "K_i": 400.0, "K_d": 10.0, "feedforward": -0.05 * tension}
held = eqx.tree_at(lambda r: r.drives, robot, ServoWinches(**drum, reference=np.zeros(4), **gains))
found = cordax.modes(held)
swings = np.unique(np.round(found.frequency[(found.frequency > 0.1) & (found.damping < 0.2)], 4))
print("swinging modes [Hz]:", swings)

# %% [markdown]
# ## Pick and place
#
# The nominal pose goes down, waits, and goes up again; the drums follow the lengths that belong to
# it. At 4 s the platform picks up a plate which lies a little off its middle: one list of phases,
# the second a function of the state. The joint captures the relative pose at that instant, and the
# velocities jump so that momentum is conserved.

# %%
path = Quintic(
    [0.0, 0.0, height],
    moves=[[0.0, 0.0, -1.395], [0.0, 0.0, 0.6]],
    times=[[0.2, 3.6], [4.6, 6.8]],
)
servo = ServoWinches(**drum, reference=winches.winch_reference(path), **gains)
plate = NaturalBody(6.28, box_inertia(6.28, [0.2, 0.4, 0.01]))
worker = eqx.tree_at(lambda r: r.drives, robot, servo)
worker = worker.with_payload(plate, position=[0.02, -0.03, 0.0])
picking = cordax.simulate([(worker, 4.0), (worker.pick, 8.0)], dt=2e-3, save_every=10)
print(picking.summary())
tensions = np.asarray(picking["tension"])
before, after = (tensions[np.argmin(np.abs(picking.t - t))] for t in (3.9, 4.5))
print("tensions before", np.round(before, 2), "and after the pick", np.round(after, 2))
plot_snapshots(picking, [0.0, 4.0, 8.0])
plot_pose(picking)
plt.show()

# %% [markdown]
# ## Slack
#
# Rigid cables are constraints, their tensions signed multipliers. Every run says when a cable would
# have to push; what comes after is unphysical. Elastic cables go slack by themselves, at the price
# of short steps; `cordax.Unilateral()` keeps cables rigid, lets them go and catches them with an
# impact (`cordax run overturning`). A plate hung from a wider frame, struck
# sideways:

# %%
slab = NaturalBody(6.24, box_inertia(6.24, [0.2, 0.4, 0.01]))
arms = np.array([[-0.1, -0.2, 0.0], [-0.1, 0.2, 0.0], [0.1, 0.2, 0.0], [0.1, -0.2, 0.0]])
exits = PointExit(3.0 * corners + 2.0 * up)
light = CableRobot(slab, arms, exits, ProgrammedLengths(np.ones(4)), position=0.4 * up)
light = eqx.tree_at(lambda r: r.drives, light, ProgrammedLengths(light.lengths()))
blow = Pulses([[0.1, 0.12]], [[60.0, 300.0, 0.0, 0.0, 0.0, 0.0]], period=2e-4)
options = {"dt": 2e-4, "duration": 0.3, "control": blow}
rods = cordax.simulate(light, **options)
print(f"as rods: a cable would push from t = {float(rods.warnings['cable_pushes']):.3f} s,")
print(f"with up to {-float(rods['tension'].min()):.1f} N")
elastic = eqx.tree_at(lambda r: r.cables, light, ElasticCables(1e5))
# stretched by what the plate weighs
stretched = light.lengths() - light.static_tensions() / 1e5
elastic = eqx.tree_at(lambda r: r.drives, elastic, ProgrammedLengths(stretched))
cables = cordax.simulate(elastic, **options)
slack = np.asarray(cables.t)[np.asarray(cables["tension"])[:, 2] < 0.1]
print(f"elastic: cable 3 goes slack at t = {slack[0]:.3f} s")

# %% [markdown]
# ## A gradient
#
# How does the place of the plate one second after a blow depend on its mass and on the height of
# the frame? Through a whole simulation, constraints included.


# %%
def sway(mass, top):
    changed = eqx.tree_at(
        lambda r: (r.platform.mass, r.exits.points.value),
        light,
        (mass, light.exits.points.value + top * up),
    )
    changed = eqx.tree_at(lambda r: r.drives, changed, ProgrammedLengths(changed.lengths()))
    push = Pulses([[0.1, 0.12]], [[20.0, 40.0, 0.0, 0.0, 0.0, 0.0]], period=1e-2)
    run = cordax.simulate(changed, dt=1e-2, duration=1.0, control=push)
    return run["position"][-1, 1]


at = (jnp.array(6.24), jnp.array(0.0))
place = jax.jit(sway)
value = place(*at)
slopes = jax.jit(jax.grad(sway, argnums=(0, 1)))(*at)
step = 1e-4
differences = [
    (place(at[0] + step, at[1]) - place(at[0] - step, at[1])) / (2 * step),
    (place(at[0], at[1] + step) - place(at[0], at[1] - step)) / (2 * step),
]
print(f"y after 1 s: {1e3 * float(value):.3f} mm")
for name, slope, check in zip(("mass", "frame"), slopes, differences, strict=True):
    print(f"by the {name}: {float(slope):.6e}, by differences {float(check):.6e}")

# %%
assert np.allclose(np.asarray(W @ tension), np.asarray(robot.static_wrench()), atol=1e-9)
assert np.linalg.matrix_rank(W) == 3
assert bool(picking.succeeded) and float(picking.drift().max()) < 1e-8
assert abs(after.mean() / before.mean() - 69.08 / 62.8) < 2e-3
sideways = np.abs(np.asarray(picking["position"])[:, :2])
assert sideways[picking.t < 3.99].max() < 1e-9 < 1e-4 < sideways.max()
assert float(rods["tension"].min()) < -1.0 and float(cables["tension"].min()) >= 0.0
assert 0.1 <= slack[0] < 0.12
for slope, check in zip(slopes, differences, strict=True):
    assert abs(float(slope) / float(check) - 1.0) < 1e-5
