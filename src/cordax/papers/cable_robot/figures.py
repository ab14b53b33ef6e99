"""Figures and films of the study."""

from pathlib import Path

import numpy as np

from .experiments import FREE, MODELS, PICK, Study
from .setup import STORED


def write(study: Study, folder: Path) -> list[Path]:
    """Write all figures, as PNG files in `folder`, and films of the pick and of the overturning."""
    import matplotlib

    matplotlib.use("Agg")  # writes files only, so no display is needed
    import matplotlib.pyplot as plt

    from ...plot import animate, plot_snapshots, save_figure
    from ...plot.style import FONT

    written = [
        save_figure(plot_snapshots(run, times), folder / f"cable_robot_{name}.png")
        for name, run, times in (
            ("picking", study.pick_off, [0.0, PICK, 20.0]),
            ("overturned", study.unilateral, [0.0, 7.6, 7.8, 14.0]),
        )
    ]
    with plt.rc_context(FONT):
        for name, draw in (
            ("push", _push),
            ("swivel", _swivel),
            ("pick", _pick),
            ("overturning", _overturning),
            ("drift", _drift),
        ):
            written.append(save_figure(draw(study), folder / f"cable_robot_{name}.png"))
    films = {"picking": study.pick_off, "overturned": study.unilateral}
    return written + [
        animate(run, folder / f"cable_robot_{name}.gif", fps=15.0, speed=2.0, title=name)
        for name, run in films.items()
    ]


def _push(study: Study):
    """Plot the displacement of the plate with each model of exit points, and its distance from that
    of Model 2."""
    figure, axes = _panels(3, 2, shared=False)
    two = study.impulse[2]
    t = np.asarray(two.t)
    for row, axis in enumerate("xyz"):
        for model, style in zip(MODELS, ("-", "-", "--"), strict=True):
            p = 1e3 * np.asarray(study.impulse[model]["position"])[:, row]
            q = 1e3 * np.asarray(two["position"])[:, row]
            look = {"color": _colour(model - 1), "ls": style, "label": f"Model {model}"}
            axes[row, 0].plot(t, p - p[0], lw=1.2, **look)
            if model != 2:
                axes[row, 1].semilogy(t, np.abs(p - q), lw=1.0, **look)
        axes[row, 0].set(ylabel=f"{axis} [mm]", xlim=(0.0, 5.0))
        axes[row, 1].set_ylim(1e-5, 50.0)
    axes[0, 0].set_title("displacement")
    axes[0, 1].set_title("distance from Model 2 [mm]")
    axes[0, 0].legend(loc="upper right", ncols=3)
    axes[0, 0].set_ylim(_room(axes[0, 0], 0.25))
    for one in axes[-1]:
        one.set_xlabel("time [s]")
    figure.suptitle("A plate hung from four exits, pushed at 0.51 s")
    return figure


def _swivel(study: Study):
    """Plot the swivel angles of Models 2 and 3."""
    figure, axes = _panels(2, 1)
    two, three = (np.asarray(study.impulse[m]["swivel"]) for m in (2, 3))
    t = np.asarray(study.impulse[2].t)
    for i in range(two.shape[1]):
        look = {"color": _colour(i), "lw": 1.2}
        axes[0, 0].plot(t, np.degrees(two[:, i] - two[0, i]), label=f"pulley {i + 1}", **look)
        axes[1, 0].plot(t, 1e3 * (three - two)[:, i], **look)
    axes[0, 0].set(ylabel="Model 2, change [deg]")
    axes[1, 0].set(ylabel="Model 3 minus\nModel 2 [mrad]", xlabel="time [s]", xlim=(0.0, 5.0))
    axes[0, 0].legend(loc="upper right", ncols=4)
    axes[0, 0].set_ylim(_room(axes[0, 0], 0.25))
    figure.suptitle("Swivel angles after the push")
    return figure


def _pick(study: Study):
    """Plot tensions and displacements around the time of the pick, with the payload in the middle
    and beside it."""
    figure, axes = _panels(3, 2)
    for column, (name, run) in enumerate(
        (("payload in the middle", study.pick), ("payload 2 and 3 cm off", study.pick_off))
    ):
        t, f = np.asarray(run.t), np.asarray(run["tension"])
        p, load = np.asarray(run["position"]), np.asarray(run["payload_position"])
        for i in range(f.shape[1]):
            axes[0, column].plot(t, f[:, i], color=_colour(i), lw=1.2, label=f"cable {i + 1}")
        axes[1, column].plot(t, p[:, 2], color=_colour(0), label="platform")
        axes[1, column].plot(t, load[:, 2], color=_colour(1), label="payload")
        for i, axis in enumerate("xy"):
            axes[2, column].plot(t, 1e3 * p[:, i], color=_colour(i), lw=1.2, label=axis)
        axes[0, column].set_title(name)
        axes[2, column].set_xlabel("time [s]")
        for one in axes[:, column]:
            one.axvline(PICK, color="#777777", lw=0.8, ls=":")
    for row, text in enumerate(("tension [N]", "height [m]", "platform sideways [mm]")):
        axes[row, 0].set_ylabel(text)
        axes[row, 0].legend(loc="upper right", ncols=2)
    figure.suptitle("The pick at 11 s")
    return figure


def _overturning(study: Study):
    """Plot Euler angles and tensions, for rods (which can push) and for cables."""
    figure, axes = _panels(2, 2)
    for column, (name, run) in enumerate(
        (("rods: tensions may be negative", study.overturn), ("cables", study.unilateral))
    ):
        t, f = np.asarray(run.t), np.asarray(run["tension"])
        angles = np.degrees(np.asarray(run["euler"]))
        for i, angle in enumerate(("roll", "pitch", "yaw")):
            axes[0, column].plot(t, angles[:, i], color=_colour(i), lw=1.2, label=angle)
        for i in range(f.shape[1]):
            style = {"color": _colour(i), "lw": 1.2, "ls": "--" if i == 1 else "-"}
            axes[1, column].plot(t, f[:, i], label=f"cable {i + 1}", **style)
        axes[0, column].set_title(name)
        axes[0, column].axvline(study.overturned.flip, color="#777777", lw=0.8, ls=":")
        axes[1, column].set(xlabel="time [s]", ylim=(-50.0, 120.0))
    axes[0, 0].set_ylabel("Z-Y-X Euler angles [deg]")
    axes[1, 0].set_ylabel("tension [N]")
    axes[0, 0].legend(loc="lower left")
    axes[1, 0].legend(loc="upper left")
    figure.suptitle("Overturning by a moving exit")
    return figure


def _drift(study: Study):
    """Plot the violation of the constraints over time for each formulation."""
    figure, axes = _panels(1, 1, height=3.6)
    for i, (name, d) in enumerate(study.drift.items()):
        t = STORED * np.arange(len(d.violation))
        look = {"color": _colour(i), "lw": 1.0, "label": f"{name}, {1e3 * d.dt:g} ms"}
        axes[0, 0].semilogy(t, np.maximum(d.violation, 1e-16), **look)
    axes[0, 0].axvline(FREE, color="#777777", lw=0.8, ls=":")
    axes[0, 0].set(xlabel="time [s]", ylabel="largest |Phi| [m$^2$]", ylim=(1e-16, None))
    figure.legend(loc="outside right center", frameon=False)
    figure.suptitle("Section 4.3, Model 2")
    return figure


def _panels(rows: int, columns: int, height: float = 2.1, shared: bool = True):
    import matplotlib.pyplot as plt

    return plt.subplots(
        rows,
        columns,
        figsize=(5.0 * columns + 2.5 * (columns == 1), 0.7 + height * rows),
        sharex="col",
        sharey="row" if shared else False,
        squeeze=False,
        layout="constrained",
    )


def _colour(i: int) -> str:
    from ...plot.style import COLOURS

    return COLOURS[i % len(COLOURS)]


def _room(axes, share: float) -> tuple[float, float]:
    """Axis limits with space for a legend at the top."""
    low, high = axes.get_ylim()
    return low, high + share * (high - low)
