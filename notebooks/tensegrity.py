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
# # Tensegrity: a structure, its equilibrium, a path
#
# Bars that touch nothing but cables hold their shape by prestress alone. We find the shape of such
# a structure, look at the forces in it, then put a mast on four cables that winches wind, find out
# how it stands at a slant, and let it go round in a circle.

# %%
import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cordax
from cordax.control import NearRigidQP, Sinusoid
from cordax.plot import plot_snapshots
from cordax.systems import mechanism as mech
from cordax.systems import single_strut

cordax.enable_x64()

# %% [markdown]
# ## A structure
#
# Three bars between two triangles. At a twist of 140 degrees cables and bars cannot balance: there
# is no self-stress. `find_form` moves the nodes to a shape near by that has one.

# %%
rough = mech.prism(3, twist=np.radians(140.0))
print(len(mech.self_stress(rough).states), "states of self-stress at 140 degrees")
form = mech.find_form(rough)
stress = mech.self_stress(form)
print(f"{len(stress.states)} in the form found, {stress.mechanisms} mechanism, {stress.stable=}")
print("force densities of cables, then bars:", np.round(stress.densities, 4))

# %% [markdown]
# Cut for a prestress of 100 N, the structure is a machine like any other, and at rest: upright
# cables and bars carry sqrt(3) times the force densities of the triangles.

# %%
prism = mech.as_mechanism(mech.prism(3), prestress=100.0)
state = prism.default_state()
force = eqx.filter_jit(lambda m, s: m.force(0.0, s.q, s.v, jnp.zeros(0)))(prism, state)
print(f"{len(prism.bodies)} bars, {prism.n_v} degrees of freedom")
print(f"largest force that is left: {np.abs(force).max():.1e} N")

# %% [markdown]
# ## An equilibrium
#
# A mast of one metre stands on a cross shaft, held by four cables. Each is wound on a pulley whose
# block turns about an upright axis. At a slant of 0.2 rad cables must carry the weight; the least
# torques that do so with no cable below 20 MPa solve a quadratic programme. It says which tensions
# it expects. Given these as strains, and asked again, it has nothing left to change: that is the
# equilibrium.

# %%
MODULUS, LEAST, SLANT = 2e9, 0.01, 0.2  # [Pa], smallest strain, [rad]
AREA = np.pi * 1e-6
mast = single_strut(n_cables=4, modulus=MODULUS, viscosity=1e7, azimuth=np.pi / 4)
still = NearRigidQP(mast, cordax.control.Constant([SLANT, 0.0]), LEAST, followed=("cross", "strut"))
solve = eqx.filter_jit(lambda law, state: law.solve(0.0, state))
strain = jnp.full(4, LEAST)
for _ in range(3):
    start = mast.state_at((SLANT, 0.0), strain)
    torque, change, solved = solve(still, start)
    print(f"strains {np.round(strain, 6)}, tensions to change by at most {abs(change).max():.1e} N")
    strain = strain + change / (MODULUS * AREA)
acceleration = eqx.filter_jit(
    lambda m, s, u: cordax.Baumgarte().acceleration(m, 0.0, s.q, s.v, u)[0]
)
left = acceleration(mast, start, torque)
print(
    f"torques {np.round(torque, 3)} N m; angles accelerate by {np.abs(left[:2]).max():.1e} rad/s^2"
)

# %% [markdown]
# ## A path
#
# Once round a cone in 2 s. The mast is an inverted pendulum without feedback: what the law computes
# must be right. It takes the cables as rigid, so the error shrinks with their compliance.

# %%
circle = Sinusoid([SLANT, SLANT], np.pi, phase=[np.pi / 2, 0.0])
law = eqx.tree_at(lambda c: c.reference, still, circle)
_, rate, _ = circle(0.0)
moving = mast.state_at((SLANT, 0.0), strain, rate)
run = cordax.simulate(mast, moving, duration=2.0, dt=1e-3, save_every=20, control=law)
print(run.summary())
wanted = jax.vmap(circle.position)(run.t)
off = np.abs(run["angles"] - wanted).max()
print(f"off the path by at most {off:.1e} rad; strains from {float(run['strain'].min()):.5f} on")

# %%
figure = plot_snapshots(run, [0.0, 0.5, 1.0])
plt.show()

# %%
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
axes[0].plot(*np.asarray(wanted).T, "k:", *np.asarray(run["angles"]).T)
axes[0].set(xlabel="phi [rad]", ylabel="psi [rad]", aspect="equal")
axes[1].plot(run.t, run["tension"])
axes[1].set(xlabel="time [s]", ylabel="tension [N]")
axes[2].plot(run.t, run.u)
axes[2].set(xlabel="time [s]", ylabel="torque [N m]")
plt.show()

# %%
assert stress.stable and np.allclose(stress.densities[6:9], -stress.densities[9:], rtol=1e-6)
ratio = mech.self_stress(mech.prism(3)).densities[6]
assert np.isclose(ratio, np.sqrt(3.0), rtol=1e-12)
assert np.abs(force).max() < 1e-8
assert bool(solved) and np.abs(change).max() < 1e-6
assert np.abs(left).max() < 1e-8
assert off < 5e-3
assert run["strain"].min() > 0.9 * LEAST
