"""How gradients grow with the length of a motion: `python examples/gradient_horizon.py [FIGURE]`.

Three machines, one number of each changed: a neck whose controller holds it, a spring without
damping, and a double pendulum that goes over the top, which is chaotic. For each horizon T, the
norm of d q(T) / d log(parameter) by forward mode through the simulation, and what a change of the
parameter by 1 % and by a millionth really does: where these differ, the derivative says nothing
about the change. Prints a table, writes the figure."""

import sys
from pathlib import Path

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from cordax.control import ComputedTorque, RaisedCosine  # noqa: E402
from cordax.parameters.parameter import collect, varied  # noqa: E402
from cordax.systems import Neck, Oscillator  # noqa: E402
from cordax.systems import mechanism as mech  # noqa: E402

#: relative changes of the parameter
LARGE, SMALL = 1e-2, 1e-6


def neck(duration: float) -> tuple[cordax.Experiment, str]:
    machine = Neck.default(3)
    control = ComputedTorque(machine, RaisedCosine([0.6, -0.8, 1.0]))
    experiment = cordax.Experiment(
        machine, control.start(), control, duration=duration, dt=2e-3, save_every=50
    )
    return experiment, "tendon.damping"


def spring(duration: float) -> tuple[cordax.Experiment, str]:
    machine = Oscillator(mass=1.0, stiffness=40.0, damping=0.0)
    start = cordax.State([1.0], [0.0])
    experiment = cordax.Experiment(
        machine, start, duration=duration, dt=5e-3, save_every=20, integrator="rk4"
    )
    return experiment, "stiffness"


def pendulum(duration: float) -> tuple[cordax.Experiment, str]:
    bar = mech.rod(0.5, mass=1.0, centre=(0.25, 0, 0))
    bodies = [
        mech.Body("upper", mech.Revolute("y"), solids=bar, start=[-1.5]),
        mech.Body("lower", mech.Revolute("y"), "upper", at=(0.5, 0, 0), solids=bar, start=[-0.5]),
    ]
    experiment = cordax.Experiment(
        mech.Mechanism(bodies=bodies), duration=duration, dt=2e-3, save_every=50, integrator="rk4"
    )
    return experiment, "gravity"


MACHINES = {
    "neck, held by its controller": neck,
    "spring without damping": spring,
    "double pendulum, chaotic": pendulum,
}


def growth(experiment: cordax.Experiment, name: str) -> dict[str, np.ndarray]:
    """Horizons `t` (k,) [s], and over them the `gradient` and the changes by `LARGE` and `SMALL`,
    both divided by how much the parameter changed."""
    value = collect([name], experiment).starts[0]

    def coordinates(log):
        run = cordax.simulate(varied(experiment, {name: value * jnp.exp(log)}), adjoint="forward")
        return run.q

    q, slope = jax.jvp(coordinates, (jnp.zeros(()),), (jnp.ones(()),))
    found = {"t": experiment.dt * experiment.save_every * np.arange(len(q)), "gradient": slope}
    found["large"] = (coordinates(jnp.asarray(LARGE)) - q) / LARGE
    found["small"] = (coordinates(jnp.asarray(SMALL)) - q) / SMALL
    size = lambda x: x if x.ndim == 1 else np.linalg.norm(x, axis=1)
    return {key: size(np.asarray(x))[1:] for key, x in found.items()}


def picture(found: dict[str, dict[str, np.ndarray]]):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        1, len(found), figsize=(3.4 * len(found), 3.2), layout="constrained", sharey=True
    )
    for one, (title, curves) in zip(np.atleast_1d(axes), found.items(), strict=True):
        one.semilogy(curves["t"], curves["gradient"], color="#0072B2", lw=2.2, label="gradient")
        one.semilogy(curves["t"], curves["small"], "--", color="#D55E00", label="change by 1e-6")
        one.semilogy(curves["t"], curves["large"], ":", color="#333333", label="change by 1 %")
        one.set(title=title, xlabel="horizon [s]", ylim=(1e-6, 1e8))
        one.grid(True, alpha=0.3)
    figure.axes[0].set_ylabel("|d q| for a relative change of one [rad, m]")
    figure.axes[-1].legend(frameon=False, loc="lower right")
    return figure


def main(path: Path = Path("outputs/gradient_horizon.png"), duration: float = 20.0) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from cordax.plot import save_figure

    found = {title: growth(*make(duration)) for title, make in MACHINES.items()}
    print(f"{'':30} horizon   gradient   change by 1e-6   change by 1 %")
    for title, curves in found.items():
        for share in (0.05, 0.25, 0.5, 1.0):
            i = round(share * len(curves["t"])) - 1
            numbers = [curves[key][i] for key in ("gradient", "small", "large")]
            row = "   ".join(f"{x:12.3g}" for x in numbers)
            print(f"{title:30} {curves['t'][i]:5.1f} s {row}")
    path.parent.mkdir(parents=True, exist_ok=True)
    print("wrote", save_figure(picture(found), path))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
