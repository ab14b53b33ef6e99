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
# # Rods: integrators compared, a real wire, two hands
#
# A rod is a cubic spline in x, y, z and twist (docs/spline-rod.md), after Khalifa and Palli,
# "Symplectic integration for multivariate dynamic spline-based model of deformable linear objects"
# (2022).

# %%
import sys

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cordax
from cordax.systems import End, SplineRod

cordax.enable_x64()
sys.path += ["examples", "../examples"]  # from the repository's top, or from notebooks/
import two_hands  # noqa: E402

# %% [markdown]
# ## Three integrators on a soft rod
#
# 2 m long, 2 mm thick, E = 2.5 MPa, its ends slide against springs: it falls from straight. No
# damping, so energy should stay. The reference is a run at an eighth of the step.

# %%
spring = End.sliding(50.0)
soft = SplineRod(young=2.5e6, left=spring, right=spring)
STEP, HORIZON = 2e-3, 0.8


def fall(integrator, dt):
    options = {"dt": dt, "duration": HORIZON, "save_every": round(2e-2 / dt)}
    return cordax.simulate(soft, integrator=integrator, **options)


def off(run):
    """Largest distance [m] of the middle from the reference."""
    return float(jnp.linalg.norm(run["centre"] - exact["centre"], axis=1).max())


exact = fall("forest_ruth_4", STEP / 8)
errors, drifts = {}, {}
for name in ("forest_ruth_4", "rk4", "implicit_midpoint"):
    run = fall(name, STEP)
    energy = np.asarray(run.energy()["total"])
    errors[name], drifts[name] = off(run), np.abs(energy - energy[0]).max()
    print(f"{name:18} off by {1e3 * errors[name]:.4f} mm, energy by {drifts[name]:.1e} J")

# %% [markdown]
# Half the step divides the error of a method of order 4 by 16, or a little more. Explicit methods
# have a largest step, set by the fastest wave of the rod.

# %%
halved = errors["forest_ruth_4"] / off(fall("forest_ruth_4", STEP / 2))
limit = cordax.ForestRuth4.traits.oscillator_limit / soft.structure().fastest_frequency()
print(f"forest_ruth_4: half the step, 1/{halved:.1f} of the error; limit {1e3 * limit:.2f} ms")

# %% [markdown]
# ## A real wire
#
# Aluminium, E = 70 GPa, between supports 1.6 m apart. Explicit steps end at 15 microseconds;
# linearly implicit ones of 10 ms take it to rest from a circular arc. An independent elastica sags
# by 0.5325 m.

# %%
wire = SplineRod(young=70e9, control_points=25, right=End.pinned([1.6, 0.0, 0.0]))
HALF = 1.1311  # sin(a)/a = 0.8: half the angle of an arc 2 m long over 1.6 m [rad]


def arc(u):
    angle = (u - 1.0) * HALF
    drop = (jnp.cos(angle) - np.cos(HALF)) / HALF
    return jnp.stack([0.8 + jnp.sin(angle) / HALF, 0.0 * u, -drop], axis=1)


run = cordax.simulate(
    wire, wire.state_of(arc), dt=1e-2, duration=10.0, integrator="linearly_implicit_euler"
)
sag = float(run["sag"][-1])
print(run.summary())
print(f"sag {sag:.4f} m, the elastica 0.5325 m")

# %% [markdown]
# Its modes about that shape: it swings out of plane like a pendulum, and bends.

# %%
rest = cordax.State(run.q[-1], jnp.zeros_like(run.q[-1]))
frequencies = cordax.modes(wire, rest).frequency
print("slowest modes [Hz]:", np.round(frequencies[:8:2], 3))
print(f"fastest mode {frequencies[-1]:.0f} Hz")

figure, axes = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
for i in (0, 2, 5, 1000):
    shape = wire.shape(run["control"][i].T)
    axes.plot(shape[:, 0], shape[:, 2], label=f"{run.t[i]:.2f} s")
axes.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="aluminium wire, 2 m")
axes.legend(frameon=False, ncols=2)
plt.show()

# %% [markdown]
# ## Two hands
#
# `examples/two_hands.py`: the left hand holds half a metre of wire, the right one bends it beyond
# yield and lets go. The wire springs back. A hand that goes to the end of the wanted hook leaves it
# far too open; Gauss-Newton with the Jacobian of the whole simulation finds where it has to go.

# %%
tried, distances, stories = two_hands.fit(two_hands.HOOK, iterations=3)
for curvature, distance in zip(tried, distances, strict=True):
    turned = np.rad2deg(two_hands.turn(curvature, 1.0))
    print(f"hand turned by {turned:6.1f} deg: the wire is off by {1e3 * distance:7.3f} mm")
two_hands.picture(two_hands.HOOK, stories)
plt.show()

# %%
assert 14.0 < halved < 25.0
assert errors["rk4"] < errors["forest_ruth_4"] < errors["implicit_midpoint"]
assert max(drifts.values()) < 1e-5
assert 2.0e-3 < limit < 2.2e-3
assert abs(sag / 0.5325 - 1.0) < 2e-3
assert distances[0] > 0.05 and distances[-1] < 5e-4
