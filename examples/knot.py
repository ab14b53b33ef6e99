"""An overhand knot in an elastic rod is pulled tight; pull force against end shortening.

    python examples/knot.py [--quick] [FOLDER]

The ends of a thin elastic rod with an overhand knot are pulled apart without friction. The knot
tightens, and the rod does not pass through itself. For a thin rod the pull balances bending of a
loop of radius R: F = B / (2 R^2), and the ends are nearer by the loop, e = 2 pi R (Audoly,
Clauvelin and Neukirch, Elastic knots, Physical Review Letters 99, 164301, 2007). Hence
F e^2 / B = 2 pi^2. The example prints this product along the pull and draws the knot."""

import sys
from pathlib import Path

import numpy as np

import cordax
from cordax.control import Quintic
from cordax.systems import ContactLaw, DiscreteRod, Gripper, LineContact

RADIUS = 1.5e-3  # of the rod [m]
LOOP = 0.05  # radius of the loop at the start [m]
BRAID = 0.03  # half of the length over which both strands wind round each other [m]
BENDING = 4e-6  # B [N m^2]


def overhand(length: float, segments: int) -> np.ndarray:
    """Nodes (segments + 1, 3) of a rod of a `length` [m] with a loose overhand knot in its middle:
    two strands that wind round each other by one and a half turns, and a loop."""
    apart = 1.7 * RADIUS
    x = np.linspace(-BRAID, BRAID, 400)
    angle = -np.pi / 2 + 3 * np.pi * (x + BRAID) / (2 * BRAID)
    strand = np.stack([x, apart * np.cos(angle), apart * np.sin(angle)], axis=1)
    other = strand * [1.0, -1.0, -1.0]
    turn = np.linspace(0.0, 2 * np.pi, 1000)[1:-1]
    loop = np.stack(
        [
            LOOP * np.sin(turn) + BRAID * (1 - turn / np.pi),
            0 * turn,
            apart + LOOP * (1 - np.cos(turn)),
        ],
        axis=1,
    )
    curve = np.concatenate([strand, loop, other])
    arc = np.sum(np.linalg.norm(np.diff(curve, axis=0), axis=1))
    tail = 0.5 * (length - arc)
    before, after = curve[0] - [tail, 0, 0], curve[-1] + [tail, 0, 0]
    curve = np.concatenate([before[None], curve, after[None]])
    place = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
    share = np.linspace(0, place[-1], segments + 1)
    return np.stack([np.interp(share, place, c) for c in curve.T], axis=1)


def pulled_knot(length: float, segments: int, pull: float, duration: float) -> DiscreteRod:
    """The rod whose ends move apart by `pull` [m] in a `duration` [s]."""
    nodes = overhand(length, segments)
    along, across, aside = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), np.array([0.5 * pull, 0.0, 0.0])
    move = lambda point, sign: Quintic(point, [sign * aside], [[0.0, duration]])
    law = ContactLaw(stiffness=3e4, width=3e-5, damping=5.0)
    return DiscreteRod(
        nodes,
        Gripper(move(nodes[0], -1.0), along, across),
        Gripper(move(nodes[-1], 1.0), along, across),
        length,
        line_density=7e-3,
        EA=7.0,
        EI=BENDING,
        GJ=0.7 * BENDING,
        bending_time=0.02,
        axial_time=0.005,
        drag=2e-3,
        gravity=0.0,
        contact=LineContact(law=law, radius=RADIUS, self_contact=True),
    )


def tension(rod: DiscreteRod, run) -> np.ndarray:
    """Mean tension [N] of the outermost segments."""
    nodes = np.asarray(run["nodes"])
    ends = np.stack([nodes[:, 1] - nodes[:, 0], nodes[:, -1] - nodes[:, -2]])
    stretch = np.linalg.norm(ends, axis=-1) / float(rod.spacing) - 1.0
    return float(rod.EA) * stretch.mean(axis=0)


def shortening(rod: DiscreteRod, run) -> np.ndarray:
    """Length of the rod beyond the distance of its ends [m]."""
    nodes = np.asarray(run["nodes"])
    return float(rod.length) - np.linalg.norm(nodes[:, -1] - nodes[:, 0], axis=1)


def main(quick: bool, folder: Path) -> None:
    cordax.enable_x64()
    segments, duration = (80, 1.0) if quick else (80, 6.0)
    pull = 0.01 if quick else 0.18
    rod = pulled_knot(0.6, segments, pull, duration)
    run = cordax.simulate(
        rod, dt=2e-2, duration=duration, integrator="implicit_euler", save_every=3
    )
    e, F = shortening(rod, run), tension(rod, run)
    depth = np.asarray(run["contact_gap"]).min() / RADIUS
    print(f"smallest gap between segments: {depth:.2f} radii")
    print("   e [mm]   F [mN]   F e^2/B   (2 pi^2 = 19.7 for a thin rod)")
    for i in np.linspace(0, len(e) - 1, 13).astype(int)[1:]:
        print(f"{1e3 * e[i]:9.1f} {1e3 * F[i]:8.3f} {F[i] * e[i] ** 2 / BENDING:9.2f}")
    if depth < -1.0:
        raise SystemExit("the rod passed through itself")
    if quick:
        return
    draw(rod, run, e, F, folder)


def draw(rod, run, e, F, folder: Path) -> None:
    """Picture of the knot at four instants, and of the force."""
    import matplotlib.pyplot as plt

    nodes = 1e3 * np.asarray(run["nodes"])
    figure = plt.figure(figsize=(9, 6.5))
    for k, i in enumerate(np.linspace(0, len(nodes) - 1, 4).astype(int)):
        axes = figure.add_subplot(3, 2, k + 1)
        axes.plot(nodes[i, :, 0], nodes[i, :, 2], lw=4, color="0.2", solid_capstyle="round")
        axes.plot(nodes[i, :, 0], nodes[i, :, 2], lw=2.5, color="tab:orange")
        axes.set(aspect="equal", title=f"{run.t[i]:.1f} s", xlim=(-150, 150), ylim=(-20, 130))
        axes.set_xlabel("x [mm]")
    axes = figure.add_subplot(3, 1, 3)
    later = slice(len(e) // 6, None)
    axes.loglog(1e3 * e[later], 1e3 * F[later], ".-", label="cordax")
    axes.loglog(1e3 * e, 1e3 * 2 * np.pi**2 * BENDING / e**2, "k--", label="2 pi^2 B / e^2")
    axes.set(xlabel="end shortening e [mm]", ylabel="pull F [mN]")
    axes.legend()
    figure.tight_layout()
    figure.savefig(folder / "knot.png", dpi=110)
    print("picture:", folder / "knot.png")


if __name__ == "__main__":
    given = [a for a in sys.argv[1:] if a != "--quick"]
    main("--quick" in sys.argv, Path(given[0]) if given else Path())
