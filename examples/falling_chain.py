"""A hanging chain is released above a scale: the scale shows three times its weight at the end.

    python examples/falling_chain.py [--quick] [FOLDER]

The chain hangs just above the scale and is released. What has not landed falls freely, so the scale
carries what lies on it and stops what arrives: F = 3 m g x / L after a fall by x."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import cordax
from cordax.systems import ContactLaw, End, LineContact, Plane, SplineRod

LENGTH = 1.0  # [m]
MASS = 0.1  # [kg]
DIAMETER = 1e-3  # [m]


def chain(control_points: int = 63) -> SplineRod:
    """A chain with free ends that hardly resists bending, over a scale at z = 0."""
    law = ContactLaw(stiffness=3e4, width=5e-5, damping=1.0, friction=0.3, slip_speed=1e-2)
    return SplineRod(
        length=LENGTH,
        diameter=DIAMETER,
        density=MASS / LENGTH / (np.pi * DIAMETER**2 / 4),
        young=2e7,
        left=End.free(),
        right=End.free(),
        control_points=control_points,
        quadrature=("gauss", 3),
        torsion_width=100.0,
        viscous=True,
        damping=2e-3,
        contact=LineContact(Plane(), law),
    )


def hanging(u):
    """Straight down, a little crooked so that it folds, for places u (k,) [m]."""
    aside = 2e-3 * jnp.sin(2 * jnp.pi * u / 0.08)
    return jnp.stack([aside, 0 * u, DIAMETER + u], axis=1)


def scale_force(control_points: int = 63, dt: float = 5e-4):
    """Times [s], force on the scale [N] and the textbook's."""
    rod = chain(control_points)
    fall = dt * int(np.sqrt(2 * LENGTH / rod.gravity) / dt)
    run = cordax.simulate(rod, rod.state_of(hanging), dt=dt, duration=fall)
    force = np.asarray(run["contact_force"])[:, :, 2].sum(axis=1)
    t = np.asarray(run.t)
    return run, t, force, 1.5 * MASS * float(rod.gravity) ** 2 * t**2 / LENGTH


def main(quick: bool, folder: Path) -> None:
    cordax.enable_x64()
    run, t, force, textbook = scale_force(33 if quick else 63, 1e-3 if quick else 5e-4)
    weight = MASS * 9.81
    # impacts of single folds: means over a tenth of the fall
    parts = np.array_split(np.arange(len(t)), 10)
    print("   t [s]   scale / weight   3 x / L")
    for part in parts:
        print(
            f"{t[part].mean():8.3f} {force[part].mean() / weight:12.3f} "
            f"{textbook[part].mean() / weight:12.3f}"
        )
    impulse = np.trapezoid(force, t) / np.trapezoid(textbook, t)
    print(f"impulse over that of the textbook: {impulse:.4f}")
    if not quick:
        draw(run, t, force / weight, textbook / weight, folder)


def draw(run, t, force, textbook, folder: Path) -> None:
    import matplotlib.pyplot as plt

    smooth = np.convolve(force, np.ones(40) / 40, "same")
    shape = jax.jit(jax.vmap(lambda P: run.system.shape(P.T, 401)))
    curves = np.asarray(shape(run["control"]))
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4))
    for k, i in enumerate(np.linspace(0, len(t) - 1, 5).astype(int)):
        left.plot(curves[i, :, 0] + 0.15 * k, curves[i, :, 2], lw=1)
    left.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="the chain at five instants")
    right.plot(t, smooth, label="scale, mean over 20 ms")
    right.plot(t, textbook, "k--", label="3 x / L")
    right.set(xlabel="t [s]", ylabel="force / weight")
    right.legend()
    figure.tight_layout()
    figure.savefig(folder / "falling_chain.png", dpi=110)
    print("picture:", folder / "falling_chain.png")


if __name__ == "__main__":
    given = [a for a in sys.argv[1:] if a != "--quick"]
    main("--quick" in sys.argv, Path(given[0]) if given else Path())
