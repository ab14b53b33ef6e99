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
# over three pulleys that do not turn: at every one of them the tendon loses tension by capstan
# friction, $T_2/T_1 \le e^{\mu\theta}$. We build it, move it, differentiate it, and find $\mu$ from
# a recording of the joint angles.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import cordax
from cordax.systems import ElasticCables
from cordax.plot import plot_snapshots
from cordax.systems.mechanism import (
    Body,
    CableSet,
    Eyelet,
    JointMotors,
    JointSprings,
    Mechanism,
    Pulley,
    Revolute,
    box,
    cylinder,
)

cordax.enable_x64()

# %% [markdown]
# ## The machine
#
# The finger points along x; hinges turn about y and positive angles curl it downwards. Extensor
# pulleys sit on the hinges, flexor pulleys on the palm side of palm and phalanges, so both tendons
# pass over their pulleys in the same sense.

# %%
LENGTHS, WIDTH = (0.08, 0.06, 0.045), 0.015  # [m]
PHALANGES = ("proximal", "middle", "distal")
PALM = 0.02  # how far below the hinges the flexor's pulleys are [m]


def finger(friction, rest=(0.0, 0.0)) -> Mechanism:
    """`friction`: of tendons on pulleys; `rest` (2,): lengths of the tendons [m]."""
    at_hinges = [("world", 0.0), ("proximal", LENGTHS[0]), ("middle", LENGTHS[1])]
    below = [("world", -0.02), ("proximal", 0.5 * LENGTHS[0]), ("middle", 0.5 * LENGTHS[1])]
    pulley = lambda body, x, z, radius: Pulley(body, (x, 0.0, z), radius, axis=(0.0, 1.0, 0.0))
    flexor = [
        Eyelet("world", (-0.06, 0.0, -PALM - 0.02)),
        *(pulley(body, x, -PALM, 0.005) for body, x in below),
        Eyelet("distal", (0.02, 0.0, -PALM)),
    ]
    extensor = [
        Eyelet("world", (-0.06, 0.0, 0.0)),
        *(pulley(body, x, 0.0, 0.01) for body, x in at_hinges),
        Eyelet("distal", (0.02, 0.0, 0.005)),
    ]
    drum = cylinder(0.01, 0.02, density=7800.0, axis="y")
    bodies, parent, x = [], "world", 0.0
    for name, length in zip(PHALANGES, LENGTHS, strict=True):
        bone = box((length, WIDTH, WIDTH), density=2700.0, centre=(0.5 * length, 0.0, 0.0))
        hinge = Body(name, Revolute("y"), parent, at=(x, 0.0, 0.0), solids=bone, start=[0.4])
        bodies, parent, x = [*bodies, hinge], name, length
    bodies += [
        Body("flexor", Revolute("y"), at=(-0.06, 0.0, -PALM), solids=drum),
        Body("extensor", Revolute("y"), at=(-0.06, 0.0, PALM), solids=drum),
    ]
    tendons = CableSet(
        [flexor, extensor],
        ElasticCables(2e4, 20.0),
        rest,
        windings=["flexor", "extensor"],
        radius=[-0.01, -0.01],  # positive angles wind in
        friction=friction,
        slip_width=5e-3,
        name="tendon",
    )
    return Mechanism(
        bodies,
        elements=[
            tendons,
            JointSprings(PHALANGES, stiffness=0.05, damping=2e-3),
            JointSprings(["flexor", "extensor"], damping=1e-4),
            JointMotors(["flexor", "extensor"]),
        ],
    )
