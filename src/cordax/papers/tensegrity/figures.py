"""Figures of the study, as in the thesis, and films."""

from pathlib import Path

import numpy as np

from .experiments import Study
from .manipulator import ASIDE, STILL, UP
from .setup import TABLE_5_7
from .strut import PLAIN, VARIANTS

_CABLES = [f"{side}{i}" for i in (1, 2, 3) for side in ("top ", "bottom ")]


def write(study: Study, folder: Path) -> list[Path]:
    """Write all figures, as PNG files, and GIF films, in `folder`."""
    import matplotlib

    matplotlib.use("Agg")  # writes files only, so no display is needed
    import matplotlib.pyplot as plt

    from ...plot import animate, plot_snapshots, save_figure
    from ...plot.style import FONT

    place = lambda name: folder / f"tensegrity_{name}"
    with plt.rc_context(FONT):
        written = [
            save_figure(spline(study), place("spline.png")),
            save_figure(variants(study), place("variants.png")),
            save_figure(tracking(study), place("tracking.png")),
            *(
                save_figure(manipulator(study, case), place(f"{case}.png"))
                for case in (STILL, UP, ASIDE)
                if case in study.moved
            ),
        ]
    films = {"strut": study.followed[2e9, PLAIN].run}
    films |= {case: study.moved[case].run for case in (UP, ASIDE) if case in study.moved}
    for name, run in films.items():
        if run is None:
            continue
        times = sorted({0.0, min(5.0, float(run.t[-1])), min(15.0, float(run.t[-1]))})
        written += [
            save_figure(plot_snapshots(run, times), place(f"{name}_shapes.png")),
            animate(run, place(f"{name}.gif"), fps=12.5, speed=2.0, title=f"tensegrity, {name}"),
        ]
    return written


def spline(study: Study):
    """Plot figure 4.1: the curve in its plane, values and rates over time."""
    import matplotlib.pyplot as plt

    s = study.spline
    figure, (plane, time) = plt.subplots(1, 2, figsize=(9.0, 3.6), layout="constrained")
    plane.plot(*s.values.T, lw=1.2)
    plane.set(xlabel="x", ylabel="y", title="curve")
    for values, style, mark in ((s.values, "-", ""), (s.rates, "--", "d")):
        for i, name in enumerate("xy"):
            time.plot(s.t, values[:, i], style, color=f"C{i}", lw=1.2, label=mark + name)
    time.set(xlabel="time [s]", title="values and rates")
    time.legend(frameon=False)
    return figure


def variants(study: Study):
    """Plot figures 5.5 and 5.6: motion of the eps variant, and deviations of the other variants."""
    import matplotlib.pyplot as plt

    reference = study.variants["strain"]
    figure, axes = plt.subplots(2, 2, sharex=True, figsize=(9.0, 5.5), layout="constrained")
    _curves(axes[0, 0], reference.t, reference.angles, ["phi", "psi"], "angle [rad]")
    _curves(axes[0, 1], reference.t, reference.strain, ["1", "2", "3"], "strain")
    for i, (name, letter) in enumerate((n, x) for n, x in VARIANTS.items() if n != "strain"):
        m = study.variants[name]
        for one, mine, wanted in (
            (axes[1, 0], m.angles, reference.angles),
            (axes[1, 1], m.strain, reference.strain),
        ):
            off = np.abs(mine - wanted).max(axis=1)
            one.plot(m.t, off, lw=1.0, color=f"C{i}", label=letter)
            _named(one)
    axes[1, 0].set(ylabel="angles: off the eps variant", xlabel="time [s]")
    axes[1, 1].set(ylabel="strains: off the eps variant", xlabel="time [s]")
    figure.suptitle("Constant torques")
    return figure


def tracking(study: Study):
    """Plot figures 5.8 to 5.11: the path, deviations and strains by modulus."""
    import matplotlib.pyplot as plt

    moduli = [E for E in TABLE_5_7 if (E, PLAIN) in study.followed]
    figure, axes = plt.subplots(
        len(moduli) + 1,
        2,
        sharex=True,
        figsize=(9.0, 2.2 * (len(moduli) + 1)),
        layout="constrained",
    )
    first = study.followed[moduli[0], PLAIN]
    _curves(axes[0, 0], first.t, first.angles - first.deviation, ["phi", "psi"], "path [rad]")
    axes[0, 1].set_axis_off()
    for row, E in zip(axes[1:], moduli, strict=True):
        m = study.followed[E, PLAIN]
        _curves(row[0], m.t, m.deviation, ["phi", "psi"], f"deviation [rad]\nE = {E / 1e6:g} MPa")
        _curves(row[1], m.t, m.strain, ["1", "2", "3"], "strain")
        row[1].axhline(m.least, color="k", lw=0.8, ls=":")
    for one in axes[-1]:
        one.set_xlabel("time [s]")
    figure.suptitle("The strut along its path; dotted: smallest allowed strain")
    return figure


def manipulator(study: Study, case: str):
    """Plot figures 5.12 to 5.14: position, deviation and strains."""
    import matplotlib.pyplot as plt

    m = study.moved[case]
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(8.0, 7.0), layout="constrained")
    _curves(axes[0], m.t, m.place, list("xyz"), "end effector [m]")
    _curves(axes[1], m.t, 1e3 * m.deviation, list("xyz"), "deviation [mm]")
    _curves(axes[2], m.t, m.strain, _CABLES, "strain")
    axes[2].set_xlabel("time [s]")
    figure.suptitle(f"Manipulator, {case}")
    return figure


def _curves(axes, t, values, names, title: str) -> None:
    from ...plot.lines import draw_curves

    draw_curves(axes, t, {name: values[:, i] for i, name in enumerate(names)})
    axes.set_ylabel(title)


def _named(axes) -> None:
    """Add a legend beside the curves, where it covers none of them."""
    axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
