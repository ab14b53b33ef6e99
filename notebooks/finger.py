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
# # A tendon-driven finger from nothing
#
# Three phalanges on hinges, a flexor and an extensor, each wound on the drum of a motor and led
# over three pins that do not turn: at every one of them the tendon loses tension by capstan
# friction, $T_2/T_1 \le e^{\mu\theta}$. We build it, move it, differentiate it, and find $\mu$ from
# a recording of its angles.

# %%
import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cordax
from cordax.plot import plot_fit, plot_snapshots
from cordax.systems import ElasticCables
from cordax.systems import mechanism as mech

cordax.enable_x64()

# %% [markdown]
# ## The machine
#
# The finger points along x; hinges turn about y, and positive angles curl it downwards. The
# extensor runs over pins on the hinges, the flexor over pins on the palm side of palm and
# phalanges, so that both pass all pins in the same sense. The motors have gears: their drums are
# heavy to turn.

# %%
LENGTHS, WIDTH, PALM = (0.08, 0.06, 0.045), 0.015, 0.02  # [m]
PHALANGES, MOTORS = ("proximal", "middle", "distal"), ("flexor", "extensor")
CURL = 0.3  # all hinges at the start [rad]

bodies, parent, x = [], "world", 0.0
for name, length in zip(PHALANGES, LENGTHS, strict=True):
    bone = mech.box((length, WIDTH, WIDTH), density=2700.0, centre=(0.5 * length, 0.0, 0.0))
    hinge = mech.Revolute("y")
    bodies.append(mech.Body(name, hinge, parent, at=(x, 0.0, 0.0), solids=bone, start=[CURL]))
    parent, x = name, length
geared = mech.Solid(0.1, (0.0, 0.0, 0.0), 5e-5 * np.eye(3))
for name, z in zip(MOTORS, (-PALM, 0.0), strict=True):
    bodies.append(mech.Body(name, mech.Revolute("y"), at=(-0.06, 0.0, z), solids=geared))

pin = lambda body, x, z, radius: mech.Pulley(body, (x, 0.0, z), radius, axis=(0.0, 1.0, 0.0))
flexor = [
    mech.Eyelet("world", (-0.06, 0.0, -2 * PALM)),
    pin("world", -0.02, -PALM, 0.005),
    pin("proximal", 0.5 * LENGTHS[0], -PALM, 0.005),
    pin("middle", 0.5 * LENGTHS[1], -PALM, 0.005),
    mech.Eyelet("distal", (0.02, 0.0, -PALM)),
]
extensor = [
    mech.Eyelet("world", (-0.06, 0.0, 0.0)),
    pin("world", 0.0, 0.0, 0.01),
    pin("proximal", LENGTHS[0], 0.0, 0.01),
    pin("middle", LENGTHS[1], 0.0, 0.01),
    mech.Eyelet("distal", (0.02, 0.0, 0.005)),
]


def finger(friction, rest=(1.0, 1.0)) -> mech.Mechanism:
    """`friction` of tendons on pins; `rest` (2,): lengths of the tendons with drums at zero [m]."""
    tendons = mech.CableSet(
        [flexor, extensor],
        ElasticCables(2e4, 20.0),
        rest,
        windings=MOTORS,
        radius=[-0.01, -0.01],  # positive angles wind in
        friction=friction,
        slip_width=5e-3,
        name="tendon",
    )
    springs = mech.JointSprings(PHALANGES, stiffness=0.05, damping=2e-3)
    bearings = mech.JointSprings(MOTORS, damping=1e-3)
    return mech.Mechanism(bodies, elements=[tendons, springs, bearings, mech.JointMotors(MOTORS)])


# %% [markdown]
# The tendons are cut so that they carry 4 N at the start.

# %%
MU = 0.25
cut = finger(MU).cable_lengths()["tendon"] - 4.0 / 2e4
truth = finger(MU, cut)
print(truth.coordinate_names, truth.input_names)

# %% [markdown]
# ## A motion
#
# The flexor pulls up to 12 N and lets go; the extensor holds 4 N. Everything slides one way
# and then the other.


# %%
def torque(t, state):
    """Of both motors [N m]."""
    pull = 0.08 * jnp.sin(2.0 * jnp.pi * t / 0.4) ** 2
    return jnp.stack([0.04 + pull, 0.04 + 0.0 * t])


options = {"dt": 2.5e-4, "duration": 0.2, "integrator": "rk4"}
run = cordax.simulate(truth, control=torque, save_every=8, **options)
print(run.summary())
figure = plot_snapshots(run, [0.0, 0.05, 0.1])
plt.show()

# %% [markdown]
# Friction shows where tensions along one tendon differ: the flexor pulls with 12 N at its motor and
# with less at the tip.

# %%
tension = np.asarray(run["tendon_tension"])  # instants, tendons, segments
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
axes[0].plot(run.t, np.degrees(run.q[:, :3]), label=PHALANGES)
axes[0].set(xlabel="time [s]", ylabel="angle [degrees]")
axes[1].plot(run.t, tension[:, 0, [0, -1]], label=["at the motor", "at the tip"])
axes[1].set(xlabel="time [s]", ylabel="tension of the flexor [N]")
for ax in axes:
    ax.legend()
plt.show()

# %% [markdown]
# ## Its gradient
#
# How far the fingertip gets down in 0.1 s depends on friction, on the tendons' stiffness and on the
# springs in the hinges. One derivative in forward mode, beside central differences.

# %%
where = lambda m: (m.elements[0].friction, m.elements[0].law.stiffness, m.elements[1].stiffness)


def depth(scales):
    """Of the tip [m] after 0.1 s, with three numbers of the finger scaled."""
    numbers = tuple(s * x for s, x in zip(scales, where(truth), strict=True))
    machine = eqx.tree_at(where, truth, numbers)
    short = options | {"duration": 0.1, "save_every": 400}
    end = cordax.simulate(machine, control=torque, **short).q[-1]
    return machine.position(end, "distal", (LENGTHS[2], 0.0, 0.0))[2]


@jax.jit
def along(scales, direction):
    """The depth and its derivative."""
    return jax.jvp(depth, (scales,), (direction,))


ones, h = jnp.ones(3), 1e-4
gradient = jnp.stack([along(ones, e)[1] for e in jnp.eye(3)])
beside = lambda e: (along(ones + h * e, e)[0] - along(ones - h * e, e)[0]) / (2 * h)
differences = jnp.stack([beside(e) for e in jnp.eye(3)])
for name, a, b in zip(("friction", "tendons", "springs"), gradient, differences, strict=True):
    print(f"{name:9} {1e3 * a:9.5f} mm, by differences {1e3 * b:9.5f} mm per relative change")

# %% [markdown]
# ## How much friction is there?
#
# Angles of hinges and motors are recorded every 2 ms with a noise of 0.5 mrad. We know neither the
# friction nor how stiff the hinges are.

# %%
sigma = 5e-4
noisy = run.q + sigma * jax.random.normal(jax.random.key(1), run.q.shape)
recording = cordax.Recording(run.t, dict(zip(truth.coordinate_names, noisy.T, strict=True)))
guess = eqx.tree_at(where, truth, (jnp.array(0.1), jnp.array(2e4), jnp.array(0.03)))
names = ["elements[0].friction", "elements[1].stiffness"]
fit = cordax.identify(
    guess, recording, names, control=torque, noise=sigma, integrator="rk4", dt=2.5e-4,
    check_step=False,
)  # fmt: skip
print(fit.summary())

# %%
figure = plot_fit(fit)
plt.show()

# %%
assert np.ptp(run.q[:, 0]) > 0.3
assert tension.min() > 0.1  # nothing goes slack
assert tension[50, 0, 0] > 1.2 * tension[50, 0, -1]
assert np.allclose(gradient, differences, rtol=1e-5, atol=1e-9)
assert bool(fit.succeeded)
interval = np.asarray(fit.interval())
assert np.all((interval[:, 0] < [MU, 0.05]) & (interval[:, 1] > [MU, 0.05]))
assert np.allclose(fit.values, [MU, 0.05], rtol=0.03)
