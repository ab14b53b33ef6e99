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
# # How stiff are the tendons?
#
# A neck of three X-joints is pulled by four elastic tendons. Joint and motor angles are recorded
# for 2 s at 1 kHz, with a noise of 1e-4 rad. From this we find the stiffness $k_c$ and the damping
# $d_c$ of the tendons, starting a factor of five off in both.

# %%
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cordax
from cordax import Recording, identify
from cordax.plot import plot_fit
from cordax.systems import Neck

cordax.enable_x64()

truth = Neck.default(3)

# %% [markdown]
# ## An experiment that can tell
#
# Stiffness shows at rest: under a known tension $T$ the tendon is stretched by $T/k_c$, so the
# motor stands at another angle. Damping does not show at rest, nor in slow motion: its share of the
# tendon force is $\omega d_c/k_c$, one thousandth at 1 rad/s. It governs amplitude and phase near a
# resonance of the tendons. Where are they?

# %%
tension = jnp.full(4, 50.0)  # [N]
holding = -truth.motors.travel * tension  # motor torques [N m] that carry it


def at_rest(neck):
    """Upright; the motor angles depend on the stiffness of the tendons."""
    return neck.state_at(jnp.zeros(3), tension=tension)


modes = cordax.modes(truth, at_rest(truth), holding)
resonance = modes.frequency[np.argmin(np.where(modes.frequency > 0, modes.damping, np.inf))]
print(f"least damped mode: {resonance:.1f} Hz")

# %% [markdown]
# The arm swings on its tendons at 20 Hz. So every motor is shaken by four sinusoids between 10 and
# 25 Hz, different ones for each motor. The torques, 3 mN m each, are small against the 40 mN m that
# hold the tension: no tendon comes near slackness, and the motion stays gentle enough for the
# search to find its way from far off.

# %%
frequency = 2 * jnp.pi * jnp.array([[10 + i + 4 * k for k in range(4)] for i in range(4)])


def torque(t, state):
    return holding + 3e-3 * jnp.sum(jnp.sin(frequency * t), axis=1)


# %% [markdown]
# The recording is made with another integrator and another step than the fit will use: what we find
# must not depend on how we simulate.

# %%
run = cordax.simulate(
    truth, at_rest(truth), dt=1e-4, duration=2.0, integrator="zhai", control=torque, save_every=10
)
sigma = 1e-4  # [rad]
noisy = run.q + sigma * jax.random.normal(jax.random.key(0), run.q.shape)
recording = Recording(run.t, dict(zip(truth.coordinate_names, noisy.T, strict=True)))
print(f"tension {float(run['tension'].min()):.1f} to {float(run['tension'].max()):.1f} N")

# %% [markdown]
# ## The fit
#
# Both parameters are positive and are searched as logarithms. The start state is a function of the
# machine, since the stretch at rest depends on the stiffness. `identify` uses a second-order
# L-stable integrator: the search may try any stiffness, and the numerical damping of a first-order
# method would be mistaken for that of the tendons. It also reports how far half the step would move
# the estimates.

# %%
where = lambda neck: (neck.tendon.stiffness, neck.tendon.damping)
guess = eqx.tree_at(where, truth, (jnp.array(5e5), jnp.array(20.0)))
names = ["tendon.stiffness", "tendon.damping"]


def fit_from(neck, **options):
    return identify(
        neck, recording, names, state0=at_rest, control=torque, dt=5e-4, noise=sigma, **options
    )


fit = fit_from(guess)
print(fit.summary())

# %%
figure = plot_fit(fit)
plt.show()

# %% [markdown]
# The residuals look like noise and have its size. Once compiled, a fit from any other corner takes
# a fraction of a second, and ends at the same place.

# %%
corners = [(5e5, 500.0), (2e4, 20.0), (2e4, 500.0)]
others, seconds = [], []
for corner in corners:
    neck = eqx.tree_at(where, truth, tuple(jnp.array(x) for x in corner))
    begin = time.perf_counter()
    others.append(jax.block_until_ready(fit_from(neck, check_step=False).values))
    seconds.append(time.perf_counter() - begin)
    print(f"from k_c = {corner[0]:g}, d_c = {corner[1]:g}: {others[-1]} in {seconds[-1]:.2f} s")

# %% [markdown]
# How often the 95 % intervals contain the truth is counted over 100 noise draws by
# `benchmarks/identification.py`.

# %%
assert bool(fit.succeeded)
assert np.allclose(fit.values, [1e5, 100.0], rtol=0.01)
interval = np.asarray(fit.interval())
assert np.all((interval[:, 0] < [1e5, 100.0]) & (interval[:, 1] > [1e5, 100.0]))
assert np.all(np.abs(fit.step_shift) < 0.5 * fit.standard_errors)
assert np.allclose(others, fit.values, rtol=1e-5)
assert abs(float(fit.noise_scale) - 1.0) < 0.03
assert 19.0 < resonance < 20.5
