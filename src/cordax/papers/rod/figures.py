"""Figures of the study, and a film."""

from pathlib import Path

import jax.numpy as jnp
import numpy as np

from ...simulation._simulate import simulate
from .experiments import FOLLOWED_STEP, Study
from .march import Run
from .paper import CONTROL_POINTS
from .schemes import COMPARED_AT, LABELS
from .setup import DURATION, GRID_STEP, STEP, push_of, soft_rod

_SCHEME_STYLE = {
    # colour index and marker
    "symplectic_euler": (4, "s"),
    "stormer_verlet": (2, "^"),
    "forest_ruth_4": (0, "o"),
    "suzuki_4": (3, "D"),
    "rk4": (1, "P"),
    "zhai": (5, "v"),
    "implicit_midpoint": (6, "X"),
}
#: end of the sequence of shapes by load [s]
_SEQUENCE = {"gravity": 0.6, "forced": 1.2}
_TITLES = {"gravity": "gravity alone", "forced": "with a force along y at the middle"}
#: duration of the film [s]
_FILMED = 6.0


def write(study: Study, folder: Path) -> list[Path]:
    """Write all figures, as PNG files, and a GIF film, in `folder`."""
    import matplotlib

    matplotlib.use("Agg")  # writes files only, so no display is needed
    import matplotlib.pyplot as plt

    from ...plot import animate, save_figure
    from ...plot.style import FONT

    written = []
    with plt.rc_context(FONT):
        for name, draw in (
            ("control_points", _control_points),
            ("shapes", _shapes),
            ("energy", _energy),
            ("schemes", _schemes),
            ("errors", _errors),
        ):
            written.append(save_figure(draw(study), folder / f"rod_{name}.png"))
    return [*written, animate(_film_run(), folder / "rod_forced.gif", title="soft rod, forced")]


def _film_run():
    options = {"dt": STEP, "duration": _FILMED, "integrator": "forest_ruth_4", "save_every": 10}
    return simulate(soft_rod(), control=push_of("forced"), **options)


def _control_points(study: Study):
    """Plot the left control points over time for both loads."""
    figure, axes = _panels(3, 2)
    for column, (load, run) in enumerate(study.runs.items()):
        P = run.control
        for i in range((P.shape[1] + 1) // 2):
            curves = (1e3 * (P[:, i, 0] - P[0, i, 0]), P[:, i, 1], P[:, i, 2])
            for row, values in enumerate(curves):
                label = f"{i + 1}" if row == column == 0 else None
                axes[row, column].plot(run.t, values, label=label, color=_colour(i), lw=1.0)
        axes[0, column].set_title(_TITLES[load])
        axes[2, column].set(xlabel="time [s]", xlim=(0.0, DURATION))
    for row, text in enumerate(("x, change [mm]", "y [m]", "z [m]")):
        axes[row, 0].set_ylabel(text)
    figure.legend(loc="outside right center", frameon=False, title="control\npoint")
    figure.suptitle(
        "Soft rod, Forest-Ruth, 2 ms: the left half of the rod, which the right mirrors"
    )
    return figure


def _shapes(study: Study):
    """Plot the rod in space at equal time intervals after its release."""
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    from ...plot.style import SCALE

    figure, axes = plt.subplots(
        1, 2, figsize=(11.0, 3.6), layout="constrained", subplot_kw={"projection": "3d"}
    )
    for one, (load, run) in zip(axes, study.runs.items(), strict=True):
        norm = Normalize(0.0, _SEQUENCE[load])
        for t in np.linspace(0.0, _SEQUENCE[load], 13):
            curve = _curve(run, t)
            one.plot(*curve.T, color=SCALE(norm(t)), lw=1.4)
        one.set_title(_TITLES[load], y=0.98)
        one.set_xlabel("x [m]", labelpad=10)
        one.set_ylabel("y [m]", labelpad=4)
        one.set(xlim=(0.0, 2.0), ylim=(-0.35, 0.35), zlim=(-0.5, 0.05))
        one.set_zlabel("z [m]")
        one.set_box_aspect((2.0, 1.0, 0.8), zoom=1.08)
        one.view_init(elev=20.0, azim=-62.0)
        one.set_xticks([0.0, 0.5, 1.0, 1.5, 2.0])
        one.set_yticks([-0.3, 0.0, 0.3])
        one.set_zticks([-0.4, -0.2, 0.0])
        figure.colorbar(ScalarMappable(norm, SCALE), ax=one, label="time [s]", shrink=0.7, pad=0.12)
    figure.suptitle("Soft rod from its release on, Forest-Ruth, 2 ms")
    return figure


def _curve(run: Run, t: float) -> np.ndarray:
    """Positions along the rod at a time, shape (101, 3) [m]."""
    row = int(np.argmin(np.abs(run.t - t)))
    return np.asarray(run.rod.shape(jnp.asarray(run.control[row].T)))


def _energy(study: Study):
    """Plot the size of the energy error over time for both steps of the paper."""
    figure, axes = _panels(2, 1, height=3.0)
    for one, dt in zip(axes[:, 0], (STEP, GRID_STEP), strict=True):
        for name, scheme in study.schemes.items():
            if dt not in scheme.energy:
                continue
            e = scheme.energy[dt]
            # the envelope: the largest error of each quarter of a second
            edges = np.arange(0.0, e.t[-1], 0.25)
            part = np.searchsorted(edges, e.t, side="right") - 1
            top = [np.abs(e.error[part == i]).max() for i in range(len(edges))]
            label = LABELS[name] if dt == STEP else None
            one.semilogy(edges + 0.125, top, label=label, lw=1.4, color=_style(name)["color"])
        one.set(ylabel=f"energy error [J], {1e3 * dt:g} ms", xlim=(0.0, DURATION))
    axes[1, 0].set_xlabel("time [s]")
    figure.legend(loc="outside right center", frameon=False)
    figure.suptitle("Soft rod, gravity: largest error of the energy in each quarter of a second")
    return figure


def _schemes(study: Study):
    """Plot the position error against step and against force evaluations."""
    figure, axes = _panels(1, 2, height=4.2)
    for name, s in study.schemes.items():
        dt, error = np.array(list(s.errors)), np.array(list(s.errors.values()))
        good = np.isfinite(error)
        look = {**_style(name), "ms": 6, "lw": 1.4}
        axes[0, 0].loglog(1e3 * dt[good], error[good], label=LABELS[name], **look)
        axes[0, 1].loglog((s.evaluations * COMPARED_AT / dt)[good], error[good], **look)
    ticks = [2.0, 1.0, 0.5, 0.25]
    axes[0, 0].set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes[0, 0].minorticks_off()
    axes[0, 0].set(xlabel="step [ms]", ylabel=f"position error at {COMPARED_AT:g} s [m]")
    axes[0, 1].set(xlabel=f"force evaluations for {COMPARED_AT:g} s")
    figure.legend(loc="outside right center", frameon=False)
    figure.suptitle("Soft rod, gravity")
    return figure


def _errors(study: Study):
    """Plot the error of schemes over time, and the error of rods with fewer control points."""
    figure, axes = _panels(1, 2, height=4.0, shared=False)
    left, right = axes[0]
    for name, g in study.growth.items():
        label = f"{LABELS[name]}: power {g.exponent:.1f}"
        left.loglog(g.t, g.error, lw=1.4, color=_style(name)["color"], label=label)
    t = np.array([0.5, 5.0])
    for power in (1, 2):
        left.loglog(t, 1e-9 * (t / 0.5) ** power, color="#777777", lw=0.8, ls=":")
        left.text(
            5.2,
            1e-9 * 10.0**power,
            "t" if power == 1 else f"t$^{power}$",
            color="#555555",
            va="center",
        )
    left.set_xticks([0.5, 1.0, 2.0, 5.0], ["0.5", "1", "2", "5"])
    left.minorticks_off()
    left.set(xlabel="time [s]", ylabel="position error [m]", ylim=(3e-10, 3e-2))
    left.set_title(f"schemes at {1e3 * FOLLOWED_STEP:g} ms")
    left.legend(loc="upper left", frameon=False)
    for i, (load, errors) in enumerate(study.granularity.errors.items()):
        points = [n for n in CONTROL_POINTS if (n, 101) in errors]
        rms = [1e3 * errors[n, 101].rms for n in points]
        right.plot(points, rms, "o-", color=_colour(i), label=f"{load}, 101 samples")
        other = [1e3 * e.rms for (n, m), e in errors.items() if n == 9 and m != 101]
        # shifted sideways, because the points of 101 samples would hide them
        right.plot([9.4] * len(other), other, "x", color=_colour(i), label=f"{load}, 51 to 251")
    right.set(xlabel="control points", ylabel="distance from the finest, rms [mm]", ylim=(0, None))
    right.set_xticks(CONTROL_POINTS)
    right.set_title("granularity, 2 s at 0.8 ms")
    right.legend(loc="upper right", frameon=False)
    return figure


def _style(name: str) -> dict:
    colour, marker = _SCHEME_STYLE[name]
    return {"color": _colour(colour), "marker": marker}


def _panels(rows: int, columns: int, height: float = 2.1, shared: bool = True):
    import matplotlib.pyplot as plt

    return plt.subplots(
        rows,
        columns,
        figsize=(5.0 * columns + 3.0 * (columns == 1) + 1.0, 0.7 + height * rows),
        sharex="col",
        sharey="row" if shared else False,
        squeeze=False,
        layout="constrained",
    )


def _colour(i: int) -> str:
    from ...plot.style import COLOURS

    return COLOURS[i % len(COLOURS)]
