"""The pictures of README and docs: `python docs/images/make.py [FOLDER]`, beside this file by
default. Films for the gallery too with `--films`."""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import cordax
from cordax._jax.xla_flags import compile_quickly
from cordax.io import experiment_of
from cordax.plot import animate, plot_scene, save_figure
from cordax.plot.scene import dimension, line_values, norm_of, scenes_of

#: machine, title, instant that is shown [s] (None: of the largest sag), options of the picture, and
#: of the film
MACHINES = [
    ("neck", "tendon-driven neck", 2.6, {}, {}),
    ("eight_cables", "platform on cables", 0.5, {"view": (22.0, -50.0)}, {}),
    ("rod", "falling wire", None, {}, {"speed": 0.5}),
    ("rope_robot", "ropes that sag and snap", 5.55, {}, {}),
    ("strut", "tensegrity strut", 0.7, {"view": (24.0, -50.0)}, {}),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).parent)
    parser.add_argument("--films", action="store_true", help="write the films of the gallery too")
    asked = parser.parse_args()
    plt.switch_backend("Agg")
    compile_quickly()
    cordax.enable_x64()
    cordax.enable_cache()
    runs = {name: cordax.simulate(experiment_of(name)) for name, *_ in MACHINES}
    print("wrote", save_figure(five(runs), asked.folder / "machines.png", dpi=110))
    if asked.films:
        for name, title, _, look, options in MACHINES:
            path = asked.folder / f"{name}.gif"
            print(
                "wrote", animate(runs[name], path, title=title, fps=15, dpi=60, **look, **options)
            )


def five(runs: dict) -> plt.Figure:
    """All machines side by side, cables coloured by tension, each on a scale of its own."""
    figure = plt.figure(figsize=(15.0, 3.9), layout="constrained")
    for i, (name, title, time, look, _) in enumerate(MACHINES):
        run = runs[name]
        late = run["sag"] if time is None else -np.abs(np.asarray(run.t) - time)
        row = int(np.argmax(np.asarray(late)))
        (scene,) = scenes_of(run.system, np.asarray(run.t)[[row]], np.asarray(run.q)[[row]])
        values = line_values(run, scene)
        flat = dimension(scene) == 2
        axes = figure.add_subplot(1, 5, i + 1, **({} if flat else {"projection": "3d"}))
        plot_scene(
            run.system,
            np.asarray(run.q)[row],
            t=float(run.t[row]),
            values={kind: x[row] for kind, x in values.items()},
            norm=norm_of(*values.values()) if values else None,
            axes=axes,
            title=title,
            **look,
        )
        axes.set_axis_off()
        if not flat:  # without its frame the machine may be larger
            size = [np.ptp(x) for x in (axes.get_xlim(), axes.get_ylim(), axes.get_zlim())]
            axes.set_box_aspect(size, zoom=1.12)
    return figure


if __name__ == "__main__":
    main()
