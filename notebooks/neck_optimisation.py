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
# # A neck that reaches with little effort, and springs that spare its motors
#
# Two searches on the tendon-driven neck. The first one finds *inputs*: motor torques that bring the
# tip to a place, at rest, with tendons that never slacken. The second one finds a *design*: springs
# with which the motors need the least peak torque on a given motion.

# %%
import time

import equinox as eqx
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cordax
from cordax.control import (
    BSpline,
    ComputedTorque,
    InputPath,
    MeanTension,
    MinimumTension,
    Quintic,
    RaisedCosine,
)
from cordax.plot import plot_snapshots
from cordax.systems import Neck

cordax.enable_x64()

# %% [markdown]
# ## Reaching
#
# The tip of the upright neck should be at a place 0.6 s later, and rest. The usual way is a
# polynomial for the joints, all of them bent alike, followed by computed torque: with 50 N in the
# mean of the tendons, or, cleverer, with as little as it can, 6 N and more if tendons were rigid.

# %%
TIME, TARGET = 0.6, np.array([-0.10, 0.23])  # [s], [m]
neck = Neck.default(3)
bent = np.full((1, 3), 0.277)
bend = Quintic(np.zeros(3), bent, [[0.0, TIME]])


def followed(distribution):
    law = ComputedTorque(neck, bend, distribution=distribution)
    return cordax.simulate(neck, law.start(), control=law, duration=TIME, dt=4e-3), law.start()


usual, start = followed(MinimumTension(6.0))
tight, _ = followed(MeanTension(50.0))
tip = np.asarray(usual["tip_position"][-1])
print(f"the tip comes to {tip.round(4)} m, and should be at {TARGET} m")
print(f"tensions from {float(usual['tension'].min()):.2f} N")

# %% [markdown]
# The search may choose everything: a spline for each motor, twelve values between -80 and 30 mN m
# (a motor that pulls has a negative torque). Bounds on the values bound the spline. It starts from
# the splines nearest to the torques of the usual way.

# %%
SHAPE = BSpline([0.0, TIME], np.eye(12))
share = np.stack([np.asarray(SHAPE.position(t)) for t in np.asarray(usual.t)])
nearest = np.clip(np.linalg.lstsq(share, np.asarray(usual.u), rcond=None)[0], -0.079, 0.029)
torques = InputPath(BSpline([0.0, TIME], nearest))
reach = cordax.Experiment(neck, start, torques, duration=TIME, dt=4e-3)


def effort(run):
    """Mean square of the torques [mN^2 m^2]."""
    return jnp.mean((1e3 * run.u) ** 2)


arrives = cordax.Constraint(
    lambda run: 1e3 * (run.outputs["tip_position"][-1] - TARGET), 0.0, 0.0, name="tip [mm]"
)
rests = cordax.Constraint(lambda run: run.v[-1, :3], 0.0, 0.0, name="joints [rad/s]", scale=0.1)
# asked for at every sixth instant, with a little to spare for those in between
pull = cordax.Constraint(
    lambda run: run.outputs["tension"][::6], low=5.3, name="tension [N]", scale=10.0
)
clock = time.perf_counter()
found = cordax.optimise(
    reach,
    [cordax.Parameter("control.path.values", bounds=(-0.08, 0.03))],
    effort,
    [arrives, rests, pull],
    max_steps=80,
    tolerance=1e-6,
)
print(f"{time.perf_counter() - clock:.1f} s, {found.evaluations} evaluations")
print("\n".join(found.summary().splitlines()[:2] + found.summary().splitlines()[-3:]))

# %% [markdown]
# It reaches the place, which bending all joints alike misses by some millimetres, for about the
# effort of the clever way; tendons held at 50 N cost many times as much.

# %%
run = found.trajectory
efforts = {"found": run, "least tension": usual, "mean of 50 N": tight}
efforts = {name: float(effort(x)) for name, x in efforts.items()}
print(f"joints at the end {np.asarray(run.q[-1, :3]).round(3)} rad")
print("effort [mN^2 m^2]:", ", ".join(f"{name} {x:.1f}" for name, x in efforts.items()))
figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.2), layout="constrained")
axes[0].plot(run.t, run["tension"])
axes[0].axhline(5.0, color="#333333", ls="--", lw=1.0)
axes[0].set(xlabel="time [s]", ylabel="tension [N]", title="never below 5 N")
axes[1].plot(run.t, 1e3 * run.u, color="#0072B2")
axes[1].plot(usual.t, 1e3 * usual.u, ":", color="#333333")
axes[1].set(xlabel="time [s]", ylabel="torque [mN m]", title="found, and computed torque (dotted)")
plot_snapshots(run)
run.animate("outputs/neck_reach.gif", fps=20)
plt.show()

# %% [markdown]
# ## Springs for a motion
#
# With a head of 0.8 kg the neck bows slowly, controlled, in 2 s. Which stiffness of the springs of
# its three joints needs the least peak torque? The controller knows its machine, so it is made from
# it; so is the start. A peak has corners: the mean of a high power, here the 16th, comes close to
# it and is smooth.

# %%
heavy = eqx.tree_at(lambda n: n.bars.top_mass, neck, jnp.array([0.032, 0.032, 0.8]))
NOD = RaisedCosine([0.7, 0.7, 0.7], frequency=0.5 * np.pi)
controller = lambda neck: ComputedTorque(neck, NOD, distribution=MinimumTension(5.0))
nod = cordax.Experiment(
    heavy, lambda neck: controller(neck).start(), controller, duration=2.0, dt=4e-3, save_every=2
)


def peak(run):
    """Nearly the largest torque [mN m]."""
    return 50.0 * jnp.mean((1e3 * run.u / 50.0) ** 16) ** (1 / 16)


springs = cordax.Parameter("springs.stiffness", bounds=(50.0, 3000.0))
taut = cordax.Constraint(lambda run: run.outputs["tension"][::10], low=3.0, name="tension [N]")
clock = time.perf_counter()
design = cordax.optimise(nod, [springs], peak, [taut], max_steps=30, tolerance=1e-5)
print(design.summary())
print(f"{time.perf_counter() - clock:.1f} s, {design.evaluations} evaluations")
before, after = cordax.simulate(nod), design.trajectory
largest = lambda run: 1e3 * float(jnp.max(jnp.abs(run.u)))
print(f"peak torque {largest(before):.2f} mN m before, {largest(after):.2f} after")
figure, axes = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
axes.plot(before.t, 1e3 * before.u, ":", color="#333333")
axes.plot(after.t, 1e3 * after.u, color="#0072B2")
axes.set(xlabel="time [s]", ylabel="torque [mN m]", title="bowing, before (dotted) and after")
after.animate("outputs/neck_springs.gif", fps=15)
plt.show()

# %%
tension = np.asarray(run["tension"])
off = 1e3 * float(np.linalg.norm(run["tip_position"][-1] - TARGET))
print(f"tip off by {off:.4f} mm, tensions from {tension.min():.2f} N")
assert found.succeeded and design.succeeded
assert off < 0.01 and np.abs(run.v[-1, :3]).max() < 1e-5
assert tension.min() > 5.0
assert efforts["found"] < min(0.1 * efforts["mean of 50 N"], 1.2 * efforts["least tension"])
assert largest(after) < 0.6 * largest(before)
