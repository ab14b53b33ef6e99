"""A rope is thrown over a round bar, and the capstan ratio of a rope that slides over it.

    python examples/rope_over_bar.py [--quick] [FOLDER]

First a free rope falls on a fixed horizontal bar, slides and comes to rest or falls off, depending
on friction. Then a light rope over the bar is pulled at one end against a constant load at the
other. The ratio of both forces is compared with exp(mu theta). Nothing but contact of the rope's
segments with the bar acts between them."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import cordax
from cordax.control import Quintic
from cordax.systems import ContactLaw, Cylinder, End, LineContact, SplineRod

BAR = 0.05  # radius [m]
ROPE = 1e-3  # radius [m]
LENGTH = 0.9  # [m]
LOAD = 10.0  # [N]


def bar(law: ContactLaw) -> LineContact:
    """A bar along y through the origin."""
    return LineContact(Cylinder(BAR, None, (0, 0, 0), (0, 1, 0)), law)


def rope(law: ContactLaw, **fields) -> SplineRod:
    given = {
        "length": LENGTH,
        "diameter": 2 * ROPE,
        "density": 3e3,
        "young": 1e8,
        "control_points": 43,
        "quadrature": ("gauss", 3),
        "torsion_width": 20.0,
        "viscous": True,
        "damping": 1e-3,
        "contact": bar(law),
    }
    return SplineRod(**(given | fields))


def pulled(friction: float, speed: float, duration: float) -> SplineRod:
    """A rope over the bar whose left end is pulled down with a `speed` [m/s]."""
    law = ContactLaw(stiffness=2e6, width=2e-5, friction=friction, slip_speed=1e-3)
    arm = BAR + ROPE
    tail = 0.5 * (LENGTH - np.pi * arm)
    down = Quintic(
        (-arm, 0.0, -tail), [(0.0, 0.0, -speed * duration)], [(-0.5 * duration, 1.5 * duration)]
    )
    held = End((True, True, True), (False, False, False), True, point=down)
    return rope(law, left=held, right=End.free(), loads=(1.0,), gravity=0.0)


def over(u):
    """Half a turn about the bar with two straight tails, for places u (k,) [m]."""
    arm = BAR + ROPE
    tail = 0.5 * (LENGTH - np.pi * arm)
    angle = jnp.clip((u - tail) / arm, 0.0, np.pi)
    below = jnp.where(u < tail, u - tail, 0.0) - jnp.where(u > LENGTH - tail, u - LENGTH + tail, 0)
    return jnp.stack([-arm * jnp.cos(angle), 0.0 * u, arm * jnp.sin(angle) + below], axis=1)


def capstan(friction: float, duration: float = 0.6) -> tuple[float, float]:
    """Ratio of the pull to the load on a sliding rope, and exp(mu theta)."""
    rod = pulled(friction, 0.1, duration)
    start = rod.state_of(over)
    u = jnp.array([0.0, 0.0, -LOAD])
    run = cordax.simulate(rod, start, dt=1e-3, duration=duration, control=lambda t, x: u)
    # the gripper balances all forces on the held control point
    pull = jax.jit(jax.vmap(lambda t, q, v: rod.control_forces(t, q, v, u)[2, 0]))
    last = slice(2 * len(run.t) // 3, None)
    ratio = float(np.mean(pull(run.t[last], run.q[last], run.v[last]))) / LOAD
    return ratio, float(np.exp(friction * np.pi))


def thrown(friction: float, duration: float):
    """A free rope that falls on the bar, one end lower than the other by a tenth of its length."""
    law = ContactLaw(stiffness=2e4, width=1e-4, friction=friction, slip_speed=1e-3, damping=2.0)
    rod = rope(law, left=End.free(), right=End.free(), young=2e6, control_points=33)
    arch = lambda u: jnp.stack(
        [u - 0.47 * LENGTH, 0 * u, 0.12 + 0.0 * u + 1e-3 * jnp.sin(3 * u / LENGTH)], axis=1
    )
    return cordax.simulate(rod, rod.state_of(arch), dt=1e-3, duration=duration, save_every=20)


def main(quick: bool, folder: Path) -> None:
    cordax.enable_x64()
    print("  mu    pull/load   exp(mu pi)   difference")
    for friction in (0.2,) if quick else (0.1, 0.2, 0.3):
        ratio, textbook = capstan(friction, 0.2 if quick else 0.4)
        error = ratio / textbook - 1
        print(f"{friction:4.1f} {ratio:11.4f} {textbook:12.4f} {100 * error:10.2f} %")
        if abs(error) > 0.03:
            raise SystemExit("the capstan ratio differs by more than 3 %")
    if quick:
        return
    film(folder)


def film(folder: Path) -> None:
    """Film of two ropes, one with little and one with much friction."""
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation, PillowWriter

    frictions = (0.05, 0.6)
    runs = [thrown(friction, 1.6) for friction in frictions]
    shape = jax.jit(jax.vmap(lambda P: runs[0].system.shape(P.T)))
    curves = [np.asarray(shape(run["control"])) for run in runs]
    figure, axes = plt.subplots(1, 2, figsize=(8, 5))
    lines = []
    for one, friction in zip(axes, frictions, strict=True):
        one.add_patch(plt.Circle((0, 0), BAR, color="0.7"))
        lines.append(one.plot([], [], lw=2)[0])
        one.set(xlim=(-0.5, 0.5), ylim=(-0.9, 0.25), aspect="equal", title=f"friction {friction}")

    def show(i):
        for line, curve in zip(lines, curves, strict=True):
            line.set_data(curve[i, :, 0], curve[i, :, 2])
        return lines

    FuncAnimation(figure, show, len(curves[0])).save(
        folder / "rope_over_bar.gif", PillowWriter(fps=20)
    )
    print("film:", folder / "rope_over_bar.gif")


if __name__ == "__main__":
    given = [a for a in sys.argv[1:] if a != "--quick"]
    main("--quick" in sys.argv, Path(given[0]) if given else Path())
