"""A real robot on four cables: about which axis do its pulleys swivel?

    python examples/real/uacdpr.py DATA

DATA: the folder with `free_motion_25s.npz` (25 s of free swinging: motion capture, swivel angles,
lengths) and `static_selfcalibration_27.npz` (27 poses at rest), made from the repository
fzoffoli/UACDPR_SelfCalibration (University of Bologna, IRMA L@B). It has no licence and is not
part of cordax.

Nothing is fitted. The measured poses go through the exits of `CableRobot`, for each axis about
which the pulleys might swivel: lengths of locked cables must stay constant, lengths at rest must be
those measured, and the angles of the pulleys must be those of their encoders."""

import argparse
import sys
from pathlib import Path

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from cordax.systems import PulleyExit  # noqa: E402

RADIUS = 0.03  # [m]
#: where cables enter the pulleys, and where they are fixed to the platform, in its axes [m]
CORNERS = np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
FREE = np.column_stack([CORNERS * [1.068, 1.155], np.full(4, 1.839)])
STILL = FREE.copy()
STILL[:, 0] = [1.065, 1.066, -1.066, -1.065]
attachments = lambda z: np.column_stack([0.075 * CORNERS, np.full(4, z)])
OUT = np.column_stack([CORNERS[:, 0], np.zeros((4, 2))])
UP = np.tile([0.0, 0.0, 1.0], (4, 1))
#: axis about which pulleys swivel, in the direction in which cables come
AXES = {
    "vertical, from below": UP,
    "vertical, from above": -UP,
    "x, outwards": OUT,
    "x, inwards": -OUT,
}


def turned(angles):
    """Axes (3, 3) of the platform at roll, pitch, yaw (3,) [rad]: R_z R_y R_x."""
    (cx, cy, cz), (sx, sy, sz) = jnp.cos(angles), jnp.sin(angles)
    return jnp.array(
        [
            [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx],
            [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx],
            [-sy, cy * sx, cy * cx],
        ]
    )


def points(pose, local):
    """Attachments (k, 4, 3) [m] of poses (k, 6): position [m]; roll, pitch, yaw [rad]."""
    return np.asarray(jax.vmap(lambda p: p[:3] + local @ turned(p[3:]).T)(jnp.asarray(pose)))


@jax.jit
def lengths(exits, axis, b):
    """Of cables (k, 4) [m] from exits (4, 3) about axes (4, 3) to points (k, 4, 3)."""
    pulleys = PulleyExit(exits, RADIUS * jnp.ones(4), axis)
    return jax.vmap(lambda b: pulleys.length(0.0, b, jnp.zeros((4, 0))))(b)


def angles(exits, axis, b):
    """How pulleys stand about their axes [rad], (k, 4), up to a constant and a sign."""
    delta = b - exits
    first = np.where(np.abs(axis[:, 2:]) > 0.5, [1.0, 0.0, 0.0], [0.0, 0.0, -1.0])
    return np.unwrap(np.arctan2(delta[..., 1], np.sum(delta * first, axis=-1)), axis=0)


def asked(text: str, **more: dict) -> dict:
    """What was given on the command line: `folder`, and options, as argparse takes them."""
    ask = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    ask.add_argument("folder", metavar="DATA", help="folder with the recordings (.npz)")
    for name, option in more.items():
        ask.add_argument(f"--{name}", **option)
    given = vars(ask.parse_args())
    if not Path(given["folder"]).is_dir():
        ask.error(f"DATA: {given['folder']} is not a folder")
    return given


def main(folder: str) -> dict[str, dict[str, np.ndarray]]:
    names = ("free_motion_25s.npz", "static_selfcalibration_27.npz")
    files = [Path(folder) / name for name in names]
    if not all(file.exists() for file in files):
        sys.exit(f"{folder}: {' and '.join(f.name for f in files)} are not there.\n\n{__doc__}")
    free, still = (np.load(file) for file in files)
    pose = free["vicon_pose_mm_rad"] * [1e-3, 1e-3, 1e-3, 1, 1, 1]
    moving = points(pose, attachments(0.280))
    resting = points(still["zeta_0_real"][None], attachments(0.266))
    turned = free["swivel_rel"][free["vicon_index"]]
    found = {}
    for name, axis in AXES.items():
        constant = np.asarray(lengths(FREE, axis, moving)).std(axis=0)
        off = np.asarray(lengths(STILL, axis, resting))[0] - still["cable_length_meas"][:, 0]
        swivel = angles(FREE, axis, moving)
        pairs = zip(swivel.T, turned.T, strict=True)
        alike = np.array([np.corrcoef(a, b)[0, 1] for a, b in pairs])
        found[name] = {"constant": constant, "off": off, "alike": alike}
        print(
            f"{name}: locked lengths vary by {np.round(1e3 * constant, 2)} mm (1 sigma), "
            f"lengths at rest are off by {np.round(1e3 * off, 1)} mm, swivel angles correlate "
            f"{np.round(alike, 3)}"
        )
    return found


if __name__ == "__main__":
    main(**asked(__doc__))
