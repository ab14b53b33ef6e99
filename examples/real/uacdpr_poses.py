"""A real robot on four cables: where was it, from what its sensors say after it has moved?

    python examples/real/uacdpr_poses.py DATA

DATA: as for `uacdpr.py`. Encoders of cables and swivels count from where they were switched on, so
that lengths and angles of all poses are known up to a constant each. The first of 27 poses at rest
is found, with all others, by least squares over any of

- lengths and swivel angles of the pulleys, each with an unknown constant,
- balance: the weight lies in the span of the cables, which stretch under their tension,
- the inclinometer, its yaw with an unknown constant and drift, and the load cells.

The authors' reference is the pose that cables of the counted lengths would hold if they did not
stretch: estimates are compared with it in these terms.

Poses couple only through the constants: each step eliminates them one by one, so that hundreds of
problems (starts, draws of a bootstrap) are solved in one batch. Balance is tightened little by
little: asked for at once, it has many minima."""

import sys
import time
from pathlib import Path
from typing import NamedTuple

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from uacdpr import CORNERS, OUT, RADIUS, STILL, asked, attachments, turned  # noqa: E402

from cordax.math.linalg import inverse as inverted  # noqa: E402
from cordax.math.linalg import pivoted  # noqa: E402
from cordax.math.linalg import solve as solved  # noqa: E402
from cordax.systems import CableRobot, NaturalBody, ProgrammedLengths, PulleyExit  # noqa: E402

MASS, CENTRE = 12.992, (0.0, 0.0, 0.173)  # [kg], [m]
INERTIA = np.diag([0.18396111, 0.11544751, 0.1864344])  # [kg m^2], of no weight at rest
ARM = 0.3  # [m], moments over it are compared with forces
#: sense in which encoders count
SENSE = CORNERS[:, 0]
#: tensions that are expected: where balance leaves their pattern (-, +, -, +) open [N]
USUAL, SPREAD = 90.0, 60.0
#: assumed precision: [m], [rad], [N], [rad], [N]
INCREMENTS = {"length": 1e-3, "swivel": np.radians(0.4)}
BALANCED = INCREMENTS | {"balance": 1.0}
ALL = BALANCED | {"tilt": np.radians(0.3), "tension": 10.0}
HOMED = BALANCED | {"tilt": np.radians(0.3)}
#: what the authors use, with their weights
AUTHORS = {"length": 0.01, "swivel": np.radians(1), "tilt": np.radians(2), "tension": 10.0}
#: how much a cable gives [1e-5 m/N] and its standard deviation: not, and as fitted to swinging
#: (`uacdpr_swing.py`: 26.9 +- 1.7 kN/m, rounded up)
RIGID, ELASTIC = (0.0, 1e-6), (3.7, 0.3)
#: balance counts so many times less, one after the other
EASE = (100.0, 30.0, 10.0, 3.0)
UNIT = np.array([1e3] * 3 + [180 / np.pi] * 3)  # [mm], [deg]

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
    pitch and, up to a constant and a drift, yaw [rad] (K, 3); tensions [N] (K, 4), NaN where not
    read; when (K,), from 0 at the first pose to 1 at the last."""

    length: jax.Array
    swivel: jax.Array
    tilt: jax.Array
    tension: jax.Array
    when: jax.Array | float = 0.0


class Constants(NamedTuple):
    """Shared by all poses, or how well they are known: of lengths [m] and swivels [rad] (4,), of
    the inclinometer's yaw [rad] and its drift until the last pose [rad], and what a cable gives
    [1e-5 m/N]."""

    length: jax.Array
    swivel: jax.Array
    yaw: jax.Array
    drift: jax.Array
    gives: jax.Array

    def vector(self):
        return jnp.concatenate([jnp.atleast_1d(x) for x in self])

    @classmethod
    def of(cls, x):
        return cls(x[:4], x[4:8], x[8], x[9], x[10])


class Solution(NamedTuple):
    """Poses (K, 6), `constants` (11,), the first pose as it is and `as_counted` (12,), sum of
    squares, covariance (12, 12) of the first pose and (11, 11) of the constants; residuals and how
    far each fits itself (K, n)."""

    poses: jax.Array
    constants: jax.Array
    first: jax.Array
    cost: jax.Array
    covariance: jax.Array
    shared: jax.Array
    residual: jax.Array
    leverage: jax.Array


def model(pose, gives, noise, ease) -> tuple[Seen, jax.Array]:
    """What sensors would read at a pose (6,), under the tensions that hold the weight best, and
    what says how well they hold it."""
    q = ROBOT.state_at(pose[:3], axes(pose[3:])).q
    level = noise["balance"] * ease if "balance" in noise else 1.0
    W = ROBOT.structure_matrix(q) / (level * jnp.array([1.0, 1, 1, ARM, ARM, ARM]))[:, None]
    weight = ROBOT.static_wrench() / level
    if "balance" in noise:
        W = jnp.concatenate([W, jnp.eye(4) / SPREAD])
        weight = jnp.concatenate([weight, jnp.full(4, USUAL / SPREAD)])
    tension = solved(W.T @ W, W.T @ weight, spd=True)
    b = pose[:3] + ROBOT.attachments @ axes(pose[3:]).T
    delta = b - STILL
    swivel = SENSE * jnp.arctan2(delta[:, 1], -delta[:, 2])
    length = ROBOT.exits.length(0.0, b, jnp.zeros((4, 0))) - 1e-5 * gives * tension
    return Seen(length, swivel, pose[3:], tension), W @ tension - weight


def as_counted(pose, counted):
    """The pose (6,) of the same orientation that cables of the lengths counted there (4,) hold best
    if they do not stretch: what the authors call the pose."""
    b = ROBOT.attachments @ axes(pose[3:]).T
    length = lambda place: ROBOT.exits.length(0.0, place + b, jnp.zeros((4, 0)))

    def step(_, place):
        J = jax.jacfwd(length)(place)
        return place + solved(J.T @ J, J.T @ (counted - length(place)), spd=True)

    return jnp.concatenate([jax.lax.fori_loop(0, 5, step, pose[:3]), pose[3:]])


def rows(pose, constants, seen: Seen, noise, ease) -> jax.Array:
    """Differences at one pose over their noise, lengths and swivels first."""
    shared = Constants.of(constants)
    read, balance = model(pose, shared.gives, noise, ease)
    away = read.tension - seen.tension
    yaw = shared.yaw + seen.when * shared.drift
    parts = {
        "length": lambda: read.length - shared.length - seen.length,
        "swivel": lambda: read.swivel - shared.swivel - seen.swivel,
        "balance": lambda: noise["balance"] * balance,
        "tilt": lambda: read.tilt - seen.tilt - jnp.zeros(3).at[2].set(yaw),
        "tension": lambda: jnp.where(jnp.isnan(away), 0.0, away),
    }
    return jnp.concatenate([part() / noise[name] for name, part in parts.items() if name in noise])


def solve(seen: Seen, noise, known, start, counts, eases, steps: int = 30) -> Solution:
    """Levenberg-Marquardt from poses (K, 6), for each of `eases`, poses eliminated; each
    pose counts so many times. `known`: what is known of the constants, and its deviations."""
    mean, weight = known[0].vector(), known[1].vector() ** -2
    root = jnp.sqrt(jnp.maximum(counts, 1e-9))[:, None]
    one = lambda pose, constants, seen, ease: rows(pose, constants, seen, noise, ease)
    values = jax.vmap(one, (0, None, 0, None))
    slopes = jax.vmap(jax.jacfwd(one, (0, 1)), (0, None, 0, None))
    read = jax.vmap(lambda pose: model(pose, 0.0, noise, eases[0])[0])(start)
    offsets = [jnp.mean(a - b, 0) for a, b in zip(read[:3], seen[:3], strict=True)]
    guess = jnp.concatenate([offsets[0], offsets[1], offsets[2][2:], mean[9:]])

    def size(poses, constants, ease):
        r = root * values(poses, constants, seen, ease)
        return jnp.sum(r**2) + jnp.sum(weight * (constants - mean) ** 2)

    def normal(poses, constants, ease, damping):
        r = root * values(poses, constants, seen, ease)
        A, C = (root[..., None] * s for s in slopes(poses, constants, seen, ease))
        more = lambda H: H + damping * jnp.einsum("...ii,ij->...ij", H, jnp.eye(H.shape[-1]))
        H, B = more(jnp.einsum("kna,knb->kab", A, A)), jnp.einsum("kna,knm->kam", A, C)
        D, g = jnp.einsum("knm,knl->ml", C, C) + jnp.diag(weight), jnp.einsum("kna,kn->ka", A, r)
        X = jax.vmap(pivoted)(H, jnp.concatenate([g[..., None], B], axis=2))
        S = more(D) - jnp.einsum("kam,kal->ml", B, X[..., 1:])
        shared = jnp.einsum("knm,kn->m", C, r) - jnp.einsum("kam,ka->m", B, X[..., 0])
        return r, A, C, H, X, S, shared + weight * (constants - mean)

    def tighten(at, ease):
        def step(state):
            i, poses, constants, cost, damping, _ = state
            *_, X, S, shared = normal(poses, constants, ease, damping)
            move = -pivoted(S, shared)
            tried = poses - X[..., 0] - X[..., 1:] @ move, constants + move
            new = size(*tried, ease)
            good = new < cost
            pick = lambda a, b: jnp.where(good, a, b)
            damping = jnp.where(good, 0.2 * damping, 5.0 * damping)
            over = (good & (cost - new < 1e-7 * cost)) | (damping > 1e6)
            kept = pick(tried[0], poses), pick(tried[1], constants), pick(new, cost)
            return i + 1, *kept, damping, over

        state = (0, *at, size(*at, ease), jnp.asarray(1e-2), jnp.asarray(False))
        going = lambda state: (state[0] < steps) & ~state[-1]
        _, poses, constants, cost, *_ = jax.lax.while_loop(going, step, state)
        return (poses, constants), cost

    (poses, constants), cost = jax.lax.scan(tighten, (start, guess), eases)
    r, A, C, H, X, S, _ = normal(poses, constants, eases[-1], 0.0)
    inverse, coupled, shared = jax.vmap(inverted)(H), X[..., 1:], inverted(S)

    def both(pose, constants):
        read, _ = model(pose, Constants.of(constants).gives, noise, eases[-1])
        return jnp.concatenate([pose, as_counted(pose, read.length)])

    own, through = jax.jacfwd(both, (0, 1))(poses[0], constants)
    through = through - own @ coupled[0]
    covariance = own @ inverse[0] @ own.T + through @ shared @ through.T
    rest = C - A @ coupled
    leverage = jnp.einsum("kna,kab,knb->kn", A, inverse, A)
    leverage += jnp.einsum("knm,ml,knl->kn", rest, shared, rest)
    first = both(poses[0], constants)
    return Solution(poses, constants, first, cost[-1], covariance, shared, r, leverage)


def estimate(seen: Seen, noise, gives, plan, *, starts=20, draws=95, homing=None):
    """The best of `starts` around planned poses (K, 6), and first poses (draws, 12), as they are
    and `as_counted`, with poses drawn anew (bootstrap). `homing`: lengths at the first pose (4,),
    where they are known. Deviations are scaled where residuals are larger than assumed."""
    random = np.random.default_rng(0)
    first = (np.arange(starts) > 0).reshape(-1, 1, 1)
    begin = plan + 0.1 * random.uniform(-1, 1, (starts, *plan.shape)) * first
    k, open_ = len(plan), np.full(4, 1e3)
    mean = Constants(np.zeros(4) if homing is None else homing, np.zeros(4), 0.0, 0.0, gives[0])
    sure = open_ if homing is None else np.full(4, 2e-4)
    known = mean, Constants(sure, open_, 1e3, 1e3, gives[1])
    run = lambda noise, s, c, eases: solve(seen, noise, known, s, c, eases)
    batch = jax.jit(jax.vmap(run, (None, 0, 0, None)))  # once for starts and draws
    noise = {name: jnp.asarray(level) for name, level in noise.items()}
    ones, tight = jnp.ones((starts, k)), jnp.ones(len(EASE))
    tried = batch(noise, batch(noise, begin, ones, jnp.array(EASE)).poses, ones, tight)
    best = int(jnp.nanargmin(tried.cost))
    reached = int(jnp.sum(jnp.abs(tried.poses[:, 0] - tried.poses[best, 0]).max(1) < 1e-4))
    found = jax.tree.map(lambda x: x[best], tried)
    size = float(jnp.sqrt(jnp.sum(found.residual**2) / jnp.sum(1.0 - found.leverage)))
    scale = max(1.0, size)  # balance is kept better than it is weighed: no reason to trust the rest
    drawn = []
    for _ in range(-(-draws // starts)):
        counts = random.multinomial(k, np.full(k, 1 / k), starts).astype(float)
        counts[:, 0] = np.maximum(counts[:, 0], 1)
        again = batch(noise, jnp.stack([found.poses] * starts), jnp.asarray(counts), tight)
        drawn.append(again.first)
    return {
        "first": np.asarray(found.first),
        "deviation": scale * np.sqrt(np.diag(np.asarray(found.covariance))),
        "bootstrap": np.concatenate(drawn),
        "drift": float(found.constants[9]),
        "gives": (float(found.constants[10]), scale * float(jnp.sqrt(found.shared[10, 10]))),
        "size": size,
        "swivels": float(jnp.sqrt(jnp.mean(found.residual[:, 4:8] ** 2)) * noise["swivel"]),
        "reached": reached,
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
    when = (data["meas_idx"] - data["meas_idx"][0]) / np.ptp(data["meas_idx"])
    seen = Seen(since("cable_length_meas"), since("swivel_meas"), tilt, tension, when)
    return data, Seen(*map(jnp.asarray, seen))


def tell(name, result, references) -> None:
    """One estimate: how far it is from each reference, and whether that lies in its interval.
    References are of the pose `as_counted`, or of the pose as it is."""
    print(f"{name}: {result['reached']} of 20 starts end there")
    print(f"    residuals {result['size']:.2f} times what was assumed", end="")
    print(f", of swivels {np.degrees(result['swivels']):.2f} deg", end="")
    print(", cables give {:.1f} +- {:.1f} um/N".format(*(10 * x for x in result["gives"])), end="")
    print(f", yaw drifts by {np.degrees(result['drift']):.1f} deg")
    for label, (part, reference) in references.items():
        pose, spread = result["first"][part], UNIT * result["deviation"][part]
        off = UNIT * (pose - reference)
        far = "{:.1f} mm, {:.2f} deg between rotations, {:.2f} deg between angles"
        print(f"    from {label}: {far.format(*errors(pose, reference))}")
        drawn = result["bootstrap"][:, part] - reference
        low, high = np.percentile(drawn, [2.5, 97.5], axis=0) * UNIT
        inside = np.abs(off) < 1.96 * spread
        print(f"        off by {off.round(1)} mm, deg; 1 sigma {spread.round(1)}", end="")
        print(f"; within 95 %: {inside.astype(int)}")
        print(f"        bootstrap from {low.round(1)} to {high.round(1)}")


def main(folder: str) -> dict[str, dict]:
    data, seen = read(folder)
    plan, homing = data["opt_meas_config"].T, data["cable_length_meas"][:, 0]
    authors = slice(6, 12), data["zeta_0_real"]
    begin = time.perf_counter()
    stretched = estimate(seen, HOMED, (3.7, 5.0), plan, homing=homing)
    where = slice(0, 6), stretched["first"][:6]
    name = f"lengths since homing, stretched, {time.perf_counter() - begin:.1f} s"
    tell(name, stretched, {"the authors' reference": authors})
    lower = 1e3 * (authors[1] - where[1])[2]
    print(f"    where it was, on cables that stretch: {lower:.1f} mm below that reference")
    tell("the same, rigid", estimate(seen, HOMED, RIGID, plan, homing=homing), {})
    references = {"the authors' reference": authors, "where it was": where}
    print("the authors, 294.7 s:")
    for label, (_, reference) in references.items():
        row = "{:.1f} mm, {:.2f} deg between rotations, {:.2f} deg between angles"
        print(f"    from {label}: {row.format(*errors(data['X_sol'][:6], reference))}")
    sets = {
        "increments": (INCREMENTS, RIGID),
        "and balance": (BALANCED, RIGID),
        "and balance, stretched": (BALANCED, ELASTIC),
        "the same, swivels by 0.25 deg": (BALANCED | {"swivel": np.radians(0.25)}, ELASTIC),
        "all sensors, stretched": (ALL, ELASTIC),
        "all, authors' weights": (AUTHORS, RIGID),
    }
    found = {}
    for name, (noise, gives) in sets.items():
        begin = time.perf_counter()
        found[name] = estimate(seen, noise, gives, plan)
        tell(f"{name}, {time.perf_counter() - begin:.1f} s", found[name], references)
    return found


if __name__ == "__main__":
    main(**asked(__doc__))
