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
# # A neck in many variants
#
# How stiff and how damped must the tendons of a neck be, for it to follow a motion without slack?
# One experiment, a table of numbers, a few measures of each motion. Nothing else is stored, what is
# found goes to disk shard by shard, and a sweep that is killed goes on where it was.

# %%
import shutil
from pathlib import Path

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cordax
from cordax.control import ComputedTorque, RaisedCosine
from cordax.sweeps import Sweep, grid, latin_hypercube
from cordax.systems import Neck

cordax.enable_x64()

# %% [markdown]
# ## A grid
#
# Stiffness and damping of all tendons over two decades each, in equal ratios. The controller is
# made once, for the expected neck: it does not know the variants. The start follows the machine:
# soft tendons are stretched more by the same tension.

# %%
WANTED = RaisedCosine([0.6, -0.8, 1.0], frequency=3.0)
neck = Neck.default(3)
control = ComputedTorque(neck, WANTED)
taut = lambda neck: ComputedTorque(neck, WANTED).start()
nod = cordax.Experiment(neck, taut, control, duration=1.0, dt=4e-3)
table = grid(
    {"tendon.stiffness": np.geomspace(1e4, 1e6, 9), "tendon.damping": np.geomspace(10.0, 1e3, 7)}
)


def tracking(run):
    """Root mean square of the joints' errors [rad]."""
    wanted = jnp.stack([WANTED.position(t) for t in np.linspace(0.0, 1.0, run.t.shape[0])])
    return jnp.sqrt(jnp.mean((run.q[:, :3] - wanted) ** 2))


folder = Path("outputs/neck_sweep")
shutil.rmtree(folder, ignore_errors=True)
found = cordax.sweep(
    nod, table, ["smallest tension", tracking], envelope=["tip_position"], folder=folder, shard=16
)
print(found.summary())
worst = found.worst("tracking", 1)[0]
print(f"worst: {worst['tendon.stiffness']:.0f} N/m, {worst['tendon.damping']:.0f} N s/m")

# %% [markdown]
# A variant that fails has its reason, and leaves the others alone. Any of them can be run again,
# whole.

# %%
again = cordax.simulate(found.experiment(worst["row"]), throw=False)
print(again.summary())
shape = (9, 7)
figure, axes = plt.subplots(1, 2, figsize=(9.0, 3.4), layout="constrained")
error = 1e3 * found.measures["tracking"].reshape(shape)
axis = [table[name].reshape(shape) for name in table]
shown = axes[0].pcolormesh(*axis, error, shading="nearest", norm="log")
axes[0].set(xscale="log", yscale="log", xlabel="stiffness [N/m]", ylabel="damping [N s/m]")
figure.colorbar(shown, ax=axes[0], label="tracking error [mrad]")
seen = found.envelope["tip_position"]
axes[1].fill_between(seen.t, seen.low[:, 0], seen.high[:, 0], alpha=0.3, label="all variants")
axes[1].plot(seen.t, seen.mean[:, 0], label="mean")
axes[1].set(xlabel="time [s]", ylabel="x of the tip [m]")
axes[1].legend(frameon=False)
plt.show()

# %% [markdown]
# ## Killed, and going on
#
# As if it had been killed in the middle: two of its files are gone. Started again it computes these
# and no others.

# %%
shards = sorted(folder.glob("shard-*.npz"))
times = {path.name: path.stat().st_mtime_ns for path in shards}
for path in shards[1:3]:
    path.unlink()
half = Sweep.load(folder)
print(half.summary().splitlines()[0])
whole = cordax.sweep(
    nod, table, ["smallest tension", tracking], envelope=["tip_position"], folder=folder, shard=16
)
new = [p.name for p in sorted(folder.glob("shard-*.npz")) if p.stat().st_mtime_ns != times[p.name]]
print("computed again:", ", ".join(new))

# %% [markdown]
# ## Numbers at random
#
# What friction and inertia of the motors do, over 32 rows spread evenly.

# %%
ranges = {"motors.dry_friction": (0.002, 0.02), "motors.inertia": (2e-5, 1e-4)}
spread = cordax.sweep(nod, latin_hypercube(ranges, 32), ["smallest tension", tracking])
print(spread.summary())
friction, error = spread.table["motors.dry_friction"], 1e3 * spread.measures["tracking"]
plt.figure(figsize=(4.6, 3.2), layout="constrained")
plt.plot(1e3 * friction, error, "o", ms=4)
plt.xlabel("dry friction [mN m]")
plt.ylabel("tracking error [mrad]")
plt.show()

# %%
assert found.finished.all() and found.succeeded.sum() > 50
assert half.finished.sum() == 63 - 32 and new == [path.name for path in shards[1:3]]
np.testing.assert_array_equal(whole.measures["tracking"], found.measures["tracking"])
assert np.corrcoef(friction, error)[0, 1] > 0.5
