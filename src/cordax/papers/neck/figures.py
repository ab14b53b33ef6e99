"""Figures of the study."""

from pathlib import Path

import numpy as np

from .experiments import COMPARED_AT, JOINTS, Study

_SCHEME_STYLE = {
    # colour index and marker; two methods whose curves are far apart share a colour
    "explicit_euler": (0, "o"),
    "symplectic_euler": (4, "s"),
    "linearly_implicit_euler": (1, "D"),
    "implicit_euler": (5, "v"),
    "zhai": (2, "^"),
    "rosenbrock_2": (3, "P"),
    "implicit_midpoint": (6, "X"),
    "rk4": (0, "*"),
    "generalised_alpha": (4, "h"),
}


def write(study: Study, folder: Path) -> list[Path]:
    """Write all figures, as PNG files in `folder`."""
    import matplotlib

    matplotlib.use("Agg")  # writes files only, so no display is needed
    import matplotlib.pyplot as plt

    from ...plot import plot_snapshots, save_figure
    from ...plot.style import FONT

    written = []
    for n in JOINTS:
        picture = plot_snapshots(study.runs[n, "elastic", "implicit"].trajectory)
        written.append(save_figure(picture, folder / f"neck_robot_{n}.png"))
    with plt.rc_context(FONT):
        for name, draw in (
            ("angles", _angles),
            ("tendons", _tendons),
            ("differences", _differences),
            ("schemes", _schemes),
            ("limits", _limits),
        ):
            written.append(save_figure(draw(study), folder / f"neck_{name}.png"))
    return written


def _angles(study: Study):
    """Plot the joint angles and the desired ones."""
    figure, axes = _panels(1, 2)
    for one, n in zip(axes[0], JOINTS, strict=True):
        run = study.runs[n, "elastic", "implicit"]
        _curves(one, run.t, "alpha", run.alpha, run.desired)
        one.set(title=f"{n} joints", xlabel="time [s]")
    axes[0, 0].set_ylabel("joint angle [rad]")
    figure.suptitle("Elastic tendons, implicit scheme, 2 ms")
    return figure


def _tendons(study: Study):
    """Plot elongations and tensions of both robots."""
    figure, axes = _panels(2, 2)
    for column, n in enumerate(JOINTS):
        run = study.runs[n, "elastic", "implicit"]
        for row, (output, scale) in enumerate((("elongation", 1e3), ("tension", 1.0))):
            values = scale * run.series(lambda p, name=output: p.outputs[name])
            _curves(axes[row, column], run.t, "tendon", values)
        axes[0, column].set_title(f"{n} joints")
        axes[1, column].set_xlabel("time [s]")
    axes[0, 0].set_ylabel("elongation [mm]")
    axes[1, 0].set_ylabel("tension [N]")
    figure.suptitle("Elastic tendons, implicit scheme, 2 ms")
    return figure


def _differences(study: Study):
    """Plot tracking errors, and differences between elastic and rigid tendons, for both schemes
    with 3 joints."""
    figure, axes = _panels(2, 2)
    elastic = {"implicit, 2 ms": study.runs[3, "elastic", "implicit"]}
    elastic["explicit, 0.4 ms"] = study.runs_at_04["elastic"]
    rigid = {"implicit, 2 ms": study.runs[3, "rigid", "implicit"]}
    rigid["explicit, 0.4 ms"] = study.runs_at_04["rigid"]
    for column, name in enumerate(elastic):
        run, stiff = elastic[name], rigid[name]
        _curves(axes[0, column], run.t, "alpha", 1e3 * (run.alpha - run.desired))
        _curves(axes[1, column], run.t, "alpha", 1e3 * (run.alpha - stiff.alpha))
        axes[0, column].set_title(name)
        axes[1, column].set_xlabel("time [s]")
    axes[0, 0].set_ylabel("tracking error,\nelastic tendons [mrad]")
    axes[1, 0].set_ylabel("elastic minus\nrigid tendons [mrad]")
    figure.suptitle("3 joints")
    return figure


def _schemes(study: Study):
    """Plot the error of every scheme against step and against computing time."""
    from ...plot.style import COLOURS

    figure, axes = _panels(1, 2, height=4.4, shared=True)
    for name, found in study.convergence.items():
        colour, marker = _SCHEME_STYLE[name]
        good = np.isfinite(found.error)
        style = {"color": COLOURS[colour], "marker": marker, "ms": 6, "lw": 1.4}
        axes[0, 0].loglog(found.dt[good] * 1e3, found.error[good], label=name, **style)
        spent = found.seconds_per_step * COMPARED_AT / found.dt
        axes[0, 1].loglog(spent[good] * 1e3, found.error[good], **style)
    lowest = min(found.error.min() for found in study.convergence.values())
    for slope, at in ((1, 1e-3), (2, 3e-6)):
        x = np.array([0.25, 1.0])
        axes[0, 0].loglog(x, at * x**slope, color="#777777", lw=0.8, ls=":")
        axes[0, 0].text(1.05, at, f"order {slope}", color="#555555", fontsize=8, va="center")
    ticks = next(iter(study.convergence.values())).dt * 1e3
    axes[0, 0].set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes[0, 0].minorticks_off()
    axes[0, 0].set(
        xlabel="step [ms]", ylabel=f"error of the joint angles at {COMPARED_AT:g} s [rad]"
    )
    axes[0, 1].set(xlabel=f"computing time of {COMPARED_AT:g} s of motion [ms]")
    for one in axes[0]:
        one.set_ylim(bottom=0.3 * lowest)
    figure.legend(loc="outside right center", frameon=False)
    figure.suptitle("3 joints, elastic tendons, controlled; steps at which a scheme fails left out")
    return figure


def _limits(study: Study):
    """Plot predicted limits of the explicit scheme along the motion, and observed limits."""
    from ...plot.style import COLOURS

    figure, axes = _panels(1, 2)
    for one, n in zip(axes[0], JOINTS, strict=True):
        found = study.limits[n]
        for name, colour, predicted, observed in (
            ("no control", COLOURS[0], found.predicted.open_loop, found.open_loop),
            ("controlled", COLOURS[1], found.predicted.closed_loop, found.closed_loop),
        ):
            label = f"{name}: predicted"
            if predicted.max() == 0:
                label += " none, the loop itself is unstable"
            one.plot(found.predicted.t, 1e3 * predicted, "o-", color=colour, label=label)
            if observed > 0:
                one.axhline(
                    1e3 * observed, color=colour, ls="--", lw=1.2, label=f"{name}: observed"
                )
        one.axhline(
            0.4 if n == 3 else 0.025, color="black", ls=":", lw=1.2, label="paper, controlled"
        )
        one.set(title=f"{n} joints", xlabel="time in the motion [s]", ylim=(-0.03, 1.9))
        one.legend(loc="upper left")
    axes[0, 0].set_ylabel("largest stable step [ms]")
    figure.suptitle("Explicit Euler, elastic tendons")
    return figure


def _panels(rows: int, columns: int, height: float = 3.0, shared: bool = False):
    import matplotlib.pyplot as plt

    return plt.subplots(
        rows,
        columns,
        figsize=(5.0 * columns, 0.6 + height * rows),
        sharex=rows > 1,
        sharey="row" if shared else False,  # names beside curves fit one scale
        squeeze=False,
        layout="constrained",
    )


def _curves(axes, t: np.ndarray, kind: str, values: np.ndarray, desired=None) -> None:
    """Plot the columns of `values` and `desired`, shape (k, n), with names beside their ends."""
    from ...plot.lines import draw_curves

    named = lambda x: {f"{kind}_{i + 1}": column for i, column in enumerate(x.T)}
    draw_curves(axes, t, named(values), None if desired is None else named(desired))
