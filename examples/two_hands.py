"""Two robot hands bend an aluminium wire into a hook, and let go: `python examples/two_hands.py`.

Half a metre of wire, 2 mm thick, lies between two hands. The left one rests, the right one moves in
the x-z plane, turns, and bends the wire beyond yield. Then it lets go, gently: the wire springs
back and hangs from the left hand. Where must the right hand go for the wire that *hangs there in
the end* to have a given shape? Gauss-Newton on the distance to that shape, with the Jacobian of
the whole simulation, both phases, in forward mode.

Prints each iteration; writes two_hands.png and two_hands.gif to outputs/."""

from pathlib import Path
from typing import NamedTuple

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from cordax.control import Quintic, Reference  # noqa: E402
from cordax.systems import End, PlasticFlow, SplineRod  # noqa: E402

LENGTH = 0.5  # [m]
#: 0.15 % strain at the surface of a wire 2 mm thick [1/m]
YIELD = 2.0 * 1.5e-3 / 2e-3
#: of the bending stiffness beyond yield: a round section yields from the surface inwards
HARDENING = 0.2
WIRE = {
    "length": LENGTH,
    "diameter": 2e-3,
    "young": 70e9,
    "control_points": 13,
    "quadrature": ("gauss", 3),
    "plastic": True,
    "left": End.clamped(),
}
#: of the hands' motion and of the wire after it [s]
MOTION, REST = 1.0, 2.0
#: curvature of the wanted hook at its left end, middle and right end [1/m]
HOOK = np.array([1.0, 4.5, 8.0])

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NODES, _WEIGHTS = 0.5 + 0.5 * _NODES, 0.5 * _WEIGHTS


# --- shapes: plane curves of the wire's length, which begin in the left hand and bend down
def turn(curvature, s):
    """How far the tangent of a curve has turned at fractions `s` of its length [rad]; `curvature`
    (3,) [1/m] at its left end, middle and right end, a parabola in between."""
    a, m, b = curvature
    linear, square = 4.0 * m - 3.0 * a - b, 2.0 * (a + b) - 4.0 * m
    return LENGTH * s * (a + s * (linear / 2.0 + s * square / 3.0))


def curve(curvature, s):
    """Positions x, z [m] at fractions `s` (k,) of its length, shape (k, 2)."""
    angle = turn(curvature, s[:, None] * _NODES)
    mean = jnp.stack([jnp.cos(angle), -jnp.sin(angle)], 1) @ _WEIGHTS
    return LENGTH * s[:, None] * mean


# --- the right hand: at the end of a curve that bends more and more, so that it never pulls
class HandPoint(Reference):
    bending: Quintic

    def position(self, t):
        x, z = curve(self.bending.position(t), jnp.ones(1))[0]
        return jnp.stack([x, 0.0 * x, z])


class HandTangent(Reference):
    bending: Quintic

    def position(self, t):
        angle = turn(self.bending.position(t), 1.0)
        return jnp.stack([jnp.cos(angle), 0.0 * angle, -jnp.sin(angle)])


class Story(NamedTuple):
    """Shapes of the wire, x and z [m]: `held` (51, 41, 2) in the hands, every 20 ms, `released`
    (41, 2) at rest after that; `speed`: how fast it still is [m/s]."""

    held: jax.Array
    released: jax.Array
    speed: jax.Array


def bend(curvature) -> Story:
    """The right hand goes to the end of the curve with this curvature (3,) [1/m], and lets go."""
    bending = Quintic(jnp.zeros(3), jnp.asarray(curvature)[None], [[0.0, MOTION]])
    wire = SplineRod(right=End.clamped(HandPoint(bending), HandTangent(bending)), **WIRE)
    held = cordax.simulate(
        wire,
        dt=2e-3,
        duration=MOTION,
        save_every=10,
        # slow motion: fast waves should die; stiff metal leaves no digits below 1e-9 m/s
        integrator=cordax.ImplicitEuler(tolerance=1e-9),
        control=PlasticFlow(wire, YIELD, hardening=HARDENING),
        adjoint="forward",
    )
    wire = SplineRod(right=End.free(), **WIRE)
    q = wire.layout.split(held["control"][-1].T)
    released = cordax.simulate(
        wire,
        cordax.State(q, jnp.zeros_like(q)),
        dt=2e-2,
        duration=REST,
        save_every=round(REST / 2e-2),
        integrator="linearly_implicit_euler",  # damps: only where the wire comes to rest matters
        control=held.u[-1],  # the plastic curvature stays: springback is elastic
        adjoint="forward",
    )
    return Story(shapes(held), shapes(released)[-1], jnp.abs(released.v[-1]).max())


def shapes(run):
    """Of the wire at all instants of a run, shape (k, 41, 2)."""
    return jax.vmap(lambda control: run.system.shape(control.T, 41)[:, ::2])(run["control"])


@jax.jit
def misses(curvature, hook):
    """Distances (82,) [m] of the wire at rest from the curve `hook`, their Jacobian (82, 3) by the
    hand's `curvature`, and the story."""

    def off(curvature):
        story = bend(curvature)
        return (story.released - curve(hook, jnp.linspace(0.0, 1.0, 41))).ravel(), story

    push = lambda direction: jax.jvp(off, (curvature,), (direction,), has_aux=True)
    r, columns, story = jax.lax.map(push, jnp.eye(3))  # one after the other: compiles faster
    return r[0], columns.T, jax.tree.map(lambda x: x[0], story)


def rms(r) -> float:
    """Root mean square distance [m] from 41 pairs of coordinates, shape (82,)."""
    return float(jnp.sqrt(jnp.sum(r**2) / 41))


def fit(hook, iterations: int = 5):
    """Where the hand must go for the wire to hang as `hook` (3,) [1/m]: the curvatures (3,) tried,
    the first being that of the hook itself, the distances [m] they end with, and the stories."""
    hook = jnp.asarray(hook)
    tried, found, stories = [hook], [], []
    for _ in range(iterations):
        r, J, story = misses(tried[-1], hook)
        found.append(rms(r))
        stories.append(story)
        tried.append(tried[-1] - jnp.linalg.lstsq(J, r)[0])
    return tried[:-1], found, stories


# --- pictures
def picture(hook, stories):
    """First and last story: the wire in the hands, after they let go, and as wanted."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.0, 3.6), layout="constrained", sharey=True)
    titles = ("hand goes to the end of the hook", "hand goes where gradients send it")
    for one, story, title in zip(axes, (stories[0], stories[-1]), titles, strict=True):
        for points in story.held[:-1:7]:
            one.plot(*points.T, color="#BBBBBB", lw=0.8)
        one.plot(*story.held[-1].T, color="#D55E00", lw=1.8, label="held")
        one.plot(*story.released.T, color="#0072B2", lw=2.4, label="released")
        _frame(one, hook, title)
    axes[0].set_ylabel("z [m]")
    axes[0].legend(frameon=False, loc="lower left")
    return figure


def _frame(axes, hook, title):
    target = curve(jnp.asarray(hook), jnp.linspace(0.0, 1.0, 41))
    axes.plot(*target.T, "--", color="#000000", lw=1.2, label="wanted")
    axes.plot(0.0, 0.0, "s", color="#333333", ms=9)
    axes.set(aspect="equal", xlim=(-0.03, 0.53), ylim=(-0.36, 0.04), xlabel="x [m]", title=title)


def film(hook, story, path: Path) -> Path:
    """The story as a GIF: the motion in real time, then the wire at rest for a second."""
    import matplotlib.pyplot as plt
    from matplotlib.animation import FuncAnimation, PillowWriter

    held, released = np.asarray(story.held[::2]), np.asarray(story.released)
    figure, axes = plt.subplots(figsize=(5.0, 3.8), layout="constrained")
    _frame(axes, hook, "two hands bend a wire")
    axes.set_ylabel("z [m]")
    (line,) = axes.plot([], [], color="#0072B2", lw=2.4)
    (hand,) = axes.plot([], [], "s", color="#333333", ms=9)

    figure.canvas.draw()
    figure.set_layout_engine("none")  # laid out once, not for every frame

    def show(i):
        holds = i < len(held)
        points = held[i] if holds else released
        line.set_data(*points.T)
        hand.set_data(*(points[-1:].T if holds else ([], [])))

    FuncAnimation(figure, show, len(held) + 25).save(path, PillowWriter(25))
    plt.close(figure)
    return path


def main(output: Path = Path("outputs"), iterations: int = 5) -> None:
    import matplotlib

    matplotlib.use("Agg")  # files only: no window system needed
    from cordax.plot import save_figure

    tried, found, stories = fit(HOOK, iterations)
    print("curvature the hand gives [1/m]   hand: x, z [m], turned    wire off the hook")
    for k, distance in zip(tried, found, strict=True):
        x, z = curve(k, jnp.ones(1))[0]
        angle = float(jnp.rad2deg(turn(k, 1.0)))
        numbers = "  ".join(f"{c:6.3f}" for c in k)
        print(f"  {numbers}        {x:6.3f} {z:6.3f} {angle:6.1f} deg   {1e3 * distance:8.3f} mm")
    print(f"the hook itself turns by {float(jnp.rad2deg(turn(HOOK, 1.0))):.1f} deg")
    output.mkdir(parents=True, exist_ok=True)
    print("wrote", save_figure(picture(HOOK, stories), output / "two_hands.png"))
    print("wrote", film(HOOK, stories[-1], output / "two_hands.gif"))


if __name__ == "__main__":
    main()
