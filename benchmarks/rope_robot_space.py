"""Cable robots on ropes that sag: `python benchmarks/rope_robot_space.py [part ...]`.

Prints one JSON object. Parts: shift (how far ropes move the platform from where straight massless
cables of the same EA and unstretched length hold it), speed (time per step of platforms pulled
aside, over the number of segments).

Robots: the shipped `suspended` and `eight_cables`, their exits as points, on ropes of 6 mm
polyester (those of `RopeRobot`); and CoGiRo, 15 m wide, geometry and masses as in the model files
of CASPR (https://github.com/darwinlau/CASPR, commit a6971ee, BSD-3-Clause, CoGiRo_cables.xml, cable
set "original", after the description of CoGiRo by LIRMM and Tecnalia). Its cables are chosen here:
4 mm steel wire rope, 0.062 kg/m, EA 7e5 N (100 GPa on 7 mm^2 of wire), EI 0.02 N m^2."""

import argparse
import json

import cordax

cordax.enable_x64()

import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.control import BoundedTension, MeanTension  # noqa: E402
from cordax.io import example_path, read_machine  # noqa: E402
from cordax.systems import (  # noqa: E402
    CableRobot,
    NaturalBody,
    PointExit,
    ProgrammedLengths,
    ropes_for_cables,
)

POLYESTER = {"EA": 4.0e4, "line_density": 0.029, "EI": 0.01}
STEEL = {"EA": 7.0e5, "line_density": 0.062, "EI": 0.02}
COGIRO = {
    "mass": 91.058,
    "centre": [-0.034, -0.013, 0.264],
    "inertia": [[36.598, -0.453, 3.012], [-0.453, 35.982, -1.539], [3.012, -1.539, 25.439]],
}
COGIRO_EXITS = [
    [-7.1775, -5.4361, 5.3911],
    [-7.4594, -5.1504, 5.3999],
    [-7.3911, 5.1940, 5.3976],
    [-7.1026, 5.4753, 5.4094],
    [7.2398, 5.3759, 5.4093],
    [7.5208, 5.0851, 5.4200],
    [7.4461, -5.2539, 5.3874],
    [7.1608, -5.5342, 5.3973],
]
COGIRO_ATTACHMENTS = [
    [0.5032, -0.4928, 0.0],
    [-0.5097, 0.3508, 0.9976],
    [-0.5032, -0.2700, 0.0],
    [0.4960, 0.3561, 0.9996],
    [-0.5032, 0.4928, 0.0],
    [0.4998, -0.3404, 0.9991],
    [0.5021, 0.2750, -0.0007],
    [-0.5045, -0.3463, 0.9976],
]
NO_WRENCH, NO_PULL = jnp.zeros(6), jnp.zeros(6)


def on_points(robot: CableRobot) -> CableRobot:
    """The same platform on cables of constant length that leave at points."""
    exits = PointExit(robot.exits.points.position(0.0))
    drives = ProgrammedLengths(np.ones(robot.n_cables))
    return CableRobot(robot.platform, robot.attachments, exits, drives, position=robot.position)


def shipped(name: str) -> CableRobot:
    return on_points(read_machine(example_path(name)).experiment.system)


def cogiro() -> CableRobot:
    exits = PointExit(COGIRO_EXITS)
    drives = ProgrammedLengths(np.ones(8))
    body = NaturalBody(**COGIRO)
    return CableRobot(body, COGIRO_ATTACHMENTS, exits, drives, position=(0.0, 0.0, 2.0))


#: robot, rope, how tensions are chosen, and positions [m] of the platform's origin
CASES = {
    "suspended": (lambda: shipped("suspended"), POLYESTER, None, [(0.0, 0.25, 0.37)]),
    "eight_cables": (
        lambda: shipped("eight_cables"),
        POLYESTER,
        MeanTension(150.0),
        [(0.1, -0.05, 0.9), (0.6, 0.4, 0.9)],
    ),
    "cogiro": (
        cogiro,
        STEEL,
        BoundedTension(50.0, 5000.0, mean=300.0),
        [(0.0, 0.0, 2.0), (0.0, 0.0, 0.5), (4.0, 0.0, 1.0), (4.0, 3.0, 1.0)],
    ),
}


def ropes(name: str, position, count: int, **changes):
    make, rope, choose, _ = CASES[name]
    robot = make()
    q = robot.platform.coordinates(jnp.asarray(position), jnp.eye(3))[0]
    W, wrench = robot.structure_matrix(q), robot.static_wrench()
    tension = np.linalg.lstsq(W, wrench)[0] if choose is None else np.asarray(choose(W, wrench))
    fields = {**rope, "position": position, "tension": tension, **changes}
    return tension, ropes_for_cables(robot, count, **fields)


def sag(nodes) -> float:
    """Largest distance [m] of nodes (k, 3) from their chord."""
    chord = nodes[-1] - nodes[0]
    along = chord / np.linalg.norm(chord)
    arm = nodes - nodes[0]
    return float(np.linalg.norm(arm - np.outer(arm @ along, along), axis=1).max())


def shift(count: int = 10) -> dict:
    """Of the centre of mass [mm] and of the axes [mrad], with the sag of the ropes [mm] and
    tensions [N] at the platform."""
    out = {}
    for name, (*_, positions) in CASES.items():
        rows = []
        for position in positions:
            tension, robot = ropes(name, position, count)
            state = robot.rest()
            at = robot.outputs(0.0, state.q, state.v, NO_WRENCH, NO_PULL)
            before = np.asarray(robot.platform.centre) + position
            moved = 1e3 * (np.asarray(at["position"]) - before)
            nodes = np.asarray(robot.nodes(state.q))
            rows.append(
                {
                    "position": list(position),
                    "shift_mm": moved.round(4).tolist(),
                    "distance_mm": round(float(np.linalg.norm(moved)), 4),
                    "turn_mrad": (1e3 * np.asarray(at["euler"])).round(4).tolist(),
                    "sag_mm": [round(1e3 * sag(x), 2) for x in nodes],
                    "straight_N": tension.round(1).tolist(),
                    "rope_N": np.asarray(at["tension"]).round(1).tolist(),
                }
            )
        out[name] = rows
    return {"segments": count, **out}


def speed(dt: float = 1e-3, steps: int = 300) -> dict:
    """Linearly implicit steps of 1 ms from rest, the platform pulled aside by a tenth of its
    weight: processor time per step [us], how far it has moved [mm], tensions [N] on the way, drift
    of its rigidity."""
    out = {}
    for name, count in (("suspended", 10), ("eight_cables", 10), ("cogiro", 10), ("cogiro", 40)):
        _, robot = ropes(name, CASES[name][3][0], count)
        state = robot.rest()
        pull = 0.1 * float(robot.platform.mass * robot.gravity) * np.eye(6)[0]
        go = lambda robot=robot, state=state, pull=pull: cordax.simulate(
            robot, state, dt=dt, duration=steps * dt, save_every=30, control=jnp.asarray(pull)
        )
        run = go()
        place, tension = np.asarray(run["position"]), np.asarray(run["tension"])
        out[f"{name}_{count}"] = {
            "ropes": robot.n_ropes,
            "coordinates": robot.n_q,
            "us_per_step": round(1e6 * measure.processor(go, repeats=8) / steps, 1),
            "moved_mm": (1e3 * (place[-1] - place[0])).round(3).tolist(),
            "tension_N": [round(float(tension.min()), 1), round(float(tension.max()), 1)],
            "drift": float(np.max(run.drift())),
        }
    return out


PARTS = {"shift": shift, "speed": speed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=list(PARTS), default=list(PARTS))
    parts = parser.parse_args().parts
    print(json.dumps({"about": measure.about()} | {p: PARTS[p]() for p in parts}, indent=2))


if __name__ == "__main__":
    main()
