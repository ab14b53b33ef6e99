"""A real robot on four cables: where was it, from what its sensors say after it has moved?

    python examples/real/uacdpr_poses.py DATA

DATA: as for `uacdpr.py`. Encoders of cables and swivels count from where they were switched on, so
that lengths and angles of all poses are known up to a constant each. The first of 27 poses at rest
is found, with all others, by least squares over any of

- lengths and swivel angles of the pulleys, each with an unknown constant,
- balance: the weight lies in the span of the cables, which pull,
- the inclinometer, its yaw with an unknown constant, and the load cells.

Poses couple only through the constants: each step eliminates them one by one, so that hundreds of
problems (starts, draws of a bootstrap) are solved in one batch."""

import sys
import time
from pathlib import Path
from typing import NamedTuple

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from uacdpr import CORNERS, OUT, RADIUS, STILL, attachments, turned  # noqa: E402

from cordax.systems import CableRobot, NaturalBody, ProgrammedLengths, PulleyExit  # noqa: E402

MASS, CENTRE = 12.992, (0.0, 0.0, 0.173)  # [kg], [m]
INERTIA = np.diag([0.18396111, 0.11544751, 0.1864344])  # [kg m^2], of no weight at rest
ARM = 0.3  # [m], moments over it are compared with forces
#: sense in which encoders count
SENSE = CORNERS[:, 0]
#: assumed precision: [m], [rad], [N], [rad], [N]
INCREMENTS = {"length": 1e-3, "swivel": np.radians(0.4)}
BALANCED = INCREMENTS | {"balance": 1.0}
#: what the authors use, with their weights
AUTHORS = {"length": 0.01, "swivel": np.radians(1), "tilt": np.radians(2), "tension": 10.0}

ROBOT = CableRobot(
    NaturalBody(MASS, INERTIA, CENTRE),
    attachments(0.266),
    PulleyExit(STILL, RADIUS * np.ones(4), OUT),
    ProgrammedLengths(np.ones(4)),
    position=(0.0, 0.0, 0.8),
)


def axes(angles):
    """Of the platform (3, 3) at roll, pitch, yaw (3,) [rad] as the authors turn it: R_x R_y R_z."""
    return turned(-angles).T


class Seen(NamedTuple):
    """Sensors at K poses: lengths [m] and swivel angles [rad] (K, 4) up to a constant each; roll,
    pitch and, up to a constant, yaw [rad] (K, 3); tensions [N] (K, 4), NaN where not read."""

    length: jax.Array
    swivel: jax.Array
    tilt: jax.Array
    tension: jax.Array


def model(pose) -> tuple[Seen, jax.Array]:
    """What sensors would read at a pose (6,), with the tensions that hold the weight best, and the
    force and moment over `ARM` that these leave (6,) [N]."""
    q = ROBOT.state_at(pose[:3], axes(pose[3:])).q
    W = ROBOT.structure_matrix(q) / jnp.array([1.0, 1, 1, ARM, ARM, ARM])[:, None]
    weight = ROBOT.static_wrench()
    tension = jnp.linalg.solve(W.T @ W, W.T @ weight)
    b = pose[:3] + ROBOT.attachments @ axes(pose[3:]).T
    delta = b - STILL
    swivel = SENSE * jnp.arctan2(delta[:, 1], -delta[:, 2])
    length = ROBOT.exits.length(0.0, b, jnp.zeros((4, 0)))
    return Seen(length, swivel, pose[3:], tension), W @ tension - weight


def rows(pose, constants, seen: Seen, noise) -> jax.Array:
    """Differences at one pose over their noise: `constants` (9,) of lengths, angles, yaw."""
    read, left = model(pose)
    yaw = jnp.zeros(3).at[2].set(constants[8])
    parts = {
        "length": read.length - constants[:4] - seen.length,
        "swivel": read.swivel - constants[4:8] - seen.swivel,
        "balance": left,
        "tilt": read.tilt - yaw - seen.tilt,
        "tension": jnp.where(jnp.isnan(seen.tension), 0.0, read.tension - seen.tension),
    }
    if "balance" in noise:  # cables pull
        parts["balance"] = jnp.concatenate([left, jax.nn.relu(5.0 - read.tension)])
    found = [parts[name] / level for name, level in noise.items()]
    if "tilt" not in noise:  # a constant that nothing asks for
        found.append(constants[8:])
    return jnp.concatenate(found)


def solve(seen: Seen, noise, start, counts, steps: int = 60):
    """Poses (K, 6), constants (9,), sum of squares and covariance (6, 6) of the first pose for unit
    noise; each pose counts so many times. Levenberg-Marquardt, poses eliminated."""
    one = lambda pose, constants, seen: rows(pose, constants, seen, noise)
    values = jax.vmap(one, (0, None, 0))
    slopes = jax.vmap(jax.jacfwd(one, (0, 1)), (0, None, 0))
    root = jnp.sqrt(jnp.maximum(counts, 1e-9))[:, None]
    first = jax.vmap(lambda pose: model(pose)[0])(start)
    offsets = [jnp.mean(a - b, 0) for a, b in zip(first[:3], seen[:3], strict=True)]
    constants = jnp.concatenate([offsets[0], offsets[1], offsets[2][2:]])

    def normal(poses, constants, damping):
        r = root * values(poses, constants, seen)
        A, C = (root[..., None] * s for s in slopes(poses, constants, seen))
        more = lambda H: H + damping * jnp.einsum("...ii,ij->...ij", H, jnp.eye(H.shape[-1]))
        H, B = more(jnp.einsum("kna,knb->kab", A, A)), jnp.einsum("kna,knm->kam", A, C)
        D, g = more(jnp.einsum("knm,knl->ml", C, C)), jnp.einsum("kna,kn->ka", A, r)
        X = jnp.linalg.solve(H, jnp.concatenate([g[..., None], B], axis=2))
        S = D - jnp.einsum("kam,kal->ml", B, X[..., 1:])
        shared = jnp.einsum("knm,kn->m", C, r) - jnp.einsum("kam,ka->m", B, X[..., 0])
        return H, X, S, shared

    def step(_, state):
        poses, constants, cost, damping = state
        _, X, S, shared = normal(poses, constants, damping)
        move = -jnp.linalg.solve(S, shared)
        tried = poses - X[..., 0] - X[..., 1:] @ move, constants + move
        new = jnp.sum((root * values(*tried, seen)) ** 2)
        good = new < cost
        pick = lambda a, b: jnp.where(good, a, b)
        damping = jnp.where(good, 0.2 * damping, 4.0 * damping)
        return pick(tried[0], poses), pick(tried[1], constants), pick(new, cost), damping

    cost = jnp.sum((root * values(start, constants, seen)) ** 2)
    state = (start, constants, cost, jnp.asarray(1e-2))
    poses, constants, cost, _ = jax.lax.fori_loop(0, steps, step, state)
    H, X, S, _ = normal(poses, constants, 0.0)
    coupled = X[0, :, 1:]
    covariance = jnp.linalg.inv(H[0]) + coupled @ jnp.linalg.solve(S, coupled.T)
    return poses, constants, cost, covariance


def freedom(seen: Seen, noise) -> int:
    """Equations less unknowns; the weight is out of the span of four cables in two directions."""
    k, cells = len(seen.length), int(jnp.isfinite(seen.tension).sum())
    equations = {
        "length": 4 * k,
        "swivel": 4 * k,
        "balance": 2 * k,
        "tilt": 3 * k,
        "tension": cells,
    }
    return sum(equations[name] for name in noise) - 6 * k - (9 if "tilt" in noise else 8)


def estimate(seen: Seen, noise, plan, starts: int = 20, draws: int = 100, seed: int = 0):
    """The best of `starts` around planned poses (K, 6), standard deviations (6,) scaled by the
    residuals, and first poses (draws, 6) with poses drawn anew (bootstrap)."""
    random = np.random.default_rng(seed)
    spread = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    begin = plan + spread * random.uniform(-1, 1, (starts, *plan.shape)) * (
        np.arange(starts) > 0
    ).reshape(-1, 1, 1)
    k = len(plan)
    many = jax.jit(jax.vmap(lambda s, c: solve(seen, noise, s, c), (0, 0)))
    poses, constants, cost, covariance = many(begin, jnp.ones((starts, k)))
    best = int(jnp.nanargmin(cost))
    scale = cost[best] / freedom(seen, noise)
    others = np.asarray(poses[:, 0])[np.asarray(cost) < cost[best] + 4.0 * scale]
    counts = random.multinomial(k, np.full(k, 1 / k), draws)
    counts[:, 0] = np.maximum(counts[:, 0], 1)
    again = jax.jit(jax.vmap(lambda c: solve(seen, noise, poses[best], c, 30)[0][0]))
    return {
        "pose": np.asarray(poses[best, 0]),
        "constants": np.asarray(constants[best]),
        "scale": float(jnp.sqrt(scale)),
        "deviation": np.sqrt(np.diag(np.asarray(covariance[best] * scale))),
        "as good": others,
        "bootstrap": np.asarray(again(jnp.asarray(counts, float))) if draws else None,
    }


def errors(pose, reference) -> tuple[float, float, float]:
    """Distance [mm], angle of the rotation between both [deg], and difference of their angles from
    upright [deg], which the authors call the error of orientation."""
    R, S = (np.asarray(axes(jnp.asarray(p[3:]))) for p in (pose, reference))
    angle = lambda R: np.degrees(np.arccos(np.clip((np.trace(R) - 1) / 2, -1, 1)))
    between = angle(R @ S.T), abs(angle(R) - angle(S))
    return 1e3 * float(np.linalg.norm(pose[:3] - reference[:3])), *map(float, between)


def read(folder: str):
    file = Path(folder) / "static_selfcalibration_27.npz"
    if not file.exists():
        sys.exit(f"{folder}: {file.name} is not there.\n\n{__doc__}")
    data = np.load(file)
    since = lambda name: data[name].T - data[name].T[0]
    tilt = data["epsilon_meas"].T * 1.0
    tilt[:, 2] -= tilt[0, 2]
    tension = np.vstack([np.full(4, np.nan), data["loadcell_meas"].T])
    seen = Seen(since("cable_length_meas"), since("swivel_meas"), tilt, tension)
    return data, Seen(*map(jnp.asarray, seen))


def main(folder: str) -> dict[str, dict]:
    data, seen = read(folder)
    reference, plan = data["zeta_0_real"], data["opt_meas_config"].T
    row = "{}: {:.1f} mm, {:.2f} deg between rotations, {:.2f} deg between angles"
    print(row.format("the authors, 294.7 s", *errors(data["X_sol"][:6], reference)))
    sets = {"increments": INCREMENTS, "and balance": BALANCED, "all, authors' weights": AUTHORS}
    found = {}
    for name, noise in sets.items():
        begin = time.perf_counter()
        result = found[name] = estimate(seen, noise, plan)
        took = time.perf_counter() - begin
        print(row.format(f"{name}, {took:.1f} s", *errors(result["pose"], reference)))
        off = (result["pose"] - reference) * np.array([1e3] * 3 + [180 / np.pi] * 3)
        unit = np.array([1e3] * 3 + [180 / np.pi] * 3)
        low, high = np.percentile(result["bootstrap"] - reference, [2.5, 97.5], axis=0) * unit
        print(f"    off by {off.round(1)} mm, deg; 1 sigma {(result['deviation'] * unit).round(1)}")
        print(f"    95 % of bootstrap: from {low.round(1)} to {high.round(1)}")
        span = np.ptp(result["as good"], axis=0) * unit
        print(f"    {len(result['as good'])} of 20 starts within 2 sigma, apart {span.round(1)}")
        homing = result["constants"][:4] - data["cable_length_meas"][:, 0]
        print(f"    cables longer than absolute ones by {(1e3 * homing).round(1)} mm")
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
