"""The stored reference of rope robots (`tests/data/rope_robot.npz`) as machines and inputs, and the
equations in their textbook form: dense matrices from the positions of all rods."""

from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from cordax import Index3, State, simulate
from cordax.control import InputPath, Quintic
from cordax.systems import Platform, RopeRobot
from helpers.stored import stored


def fields(case: str) -> SimpleNamespace:
    """Everything stored of a case or group of points."""
    prefix = case + "/"
    data = stored("rope_robot")
    found = {k.removeprefix(prefix): data[k] for k in data if k.startswith(prefix)}
    return SimpleNamespace(**found)


def pulses(start, rows) -> Quintic:
    """`start` plus pulses: rows of four times and sizes like `start`."""
    start = np.asarray(start, float)
    times = np.concatenate([rows[:, :2], rows[:, 2:4]])
    sizes = np.concatenate([rows[:, 4:], -rows[:, 4:]])
    return Quintic(start, sizes.reshape(-1, *start.shape), times)


def robot_of(case: str, **changes) -> RopeRobot:
    s = fields(case)
    roots, cab = s.cab[:, :2], s.cab
    held = {}
    if s.mode == 1:
        held["platform"] = Platform(*s.plat, cab[:, 10:])
    if s.mode == 2:
        held["end_point"] = pulses(cab[:, 10:], s.pul[:, :6])
    numbers = (cab[:, i] for i in range(2, 10))
    return RopeRobot(roots, *numbers, **held, **{"count": int(s.s), "gravity": s.g, **changes})


def inputs_of(case: str):
    """Inputs as a function of time."""
    s = fields(case)
    if s.mode != 1:
        return lambda t: jnp.zeros(robot_of(case).n_u)
    return pulses(np.zeros(3), s.pul).position


def control_of(case: str) -> InputPath | None:
    """The same as numbers, not as a function: runs of one machine share what is compiled."""
    s = fields(case)
    return InputPath(pulses(np.zeros(3), s.pul)) if s.mode == 1 else None


@eqx.filter_jit
def _by_positions(robot: RopeRobot, q, v):
    """M, and what weight and inertia add to f."""
    s, m = robot.count, robot.n_ropes
    l0 = jnp.broadcast_to(robot.length, (m,)) / s
    mass = 0.5 * robot.line_density * l0
    spin = mass * (0.5 * l0) ** 2 / 12.0

    def places(q):
        D, phi = q[: 2 * s * m].reshape(m, s, 2).transpose(2, 0, 1)
        u = jnp.stack([jnp.sin(phi), -jnp.cos(phi)], axis=-1)
        ends = robot.roots[:, None] + jnp.cumsum((l0[:, None] + D)[..., None] * u, axis=1)
        starts = ends - (l0[:, None] + D)[..., None] * u
        quarter = 0.25 * l0[:, None, None] * u
        rods = jnp.stack([starts + quarter, ends - quarter])  # (2, m, s, 2)
        return rods, phi

    def weighted(q):
        rods, phi = places(q)
        ropes = [jnp.sqrt(mass)[None, :, None, None] * rods, jnp.sqrt(2 * spin)[:, None] * phi]
        flat = jnp.concatenate([x.reshape(-1) for x in ropes])
        if robot.platform is None:
            return flat
        return jnp.concatenate([flat, jnp.sqrt(robot.platform.inertias) * q[-3:]])

    def weight(q):
        total = robot.gravity * jnp.sum(mass[:, None] * places(q)[0][..., 1])
        plate = 0.0 if robot.platform is None else robot.platform.mass * q[-2]
        return total + robot.gravity * plate

    A = jax.jacfwd(weighted)(q)
    rate = lambda q: jax.jvp(weighted, (q,), (v,))[1]
    bias = jax.jvp(rate, (q,), (v,))[1]
    return A.T @ A, -jax.grad(weight)(q), -A.T @ bias


def textbook(robot: RopeRobot, t, q, v):
    """M, and what weight, elasticity with damping, and inertia add to f: from positions of rods and
    their angles, differentiated as they stand."""
    M, weight, inertia = _by_positions(robot, jnp.asarray(q), jnp.asarray(v))
    s, m = robot.count, robot.n_ropes
    l0 = np.broadcast_to(robot.length, (m,)) / s
    elastic = np.zeros(len(q))
    x, y = np.asarray(q), np.asarray(v)
    numbers = (robot.EA, robot.EI, robot.axial_time, robot.bending_time)
    EA, EI, tau_a, tau_b = (np.broadcast_to(n, (m,)) for n in numbers)
    first, angle0 = (np.broadcast_to(n, (m,)) for n in (robot.root_stiffness, robot.root_angle))
    for j in range(m):
        at = slice(2 * s * j, 2 * s * (j + 1))
        D, phi, dD, dphi = x[at][::2], x[at][1::2], y[at][::2], y[at][1::2]
        c, k = EA[j] / l0[j], EI[j] / l0[j] * np.where(np.arange(s) == 0, first[j], 1.0)
        elastic[at][::2] = -c * (D + tau_a[j] * dD)
        mu = k * np.diff(np.append(angle0[j], phi)) + tau_b[j] * k * np.diff(np.append(0.0, dphi))
        elastic[at][1::2] = np.append(mu[1:], 0.0) - mu
    return M, weight, elastic, inertia


def relative(a, b) -> float:
    """Largest difference over the largest entry of b."""
    difference = np.max(np.abs(np.asarray(a) - np.asarray(b)), initial=0.0)
    return 0.0 if difference == 0 else float(difference / np.max(np.abs(np.asarray(b))))


def run(case: str, dt: float, *, until=None, formulation=None, **options):
    """`simulate` a case from its stored start, storing the instants of the reference."""
    s = fields(case)
    return simulate(
        robot_of(case),
        State(s.q0, s.v0),
        dt=dt,
        duration=float(s.t[-1]) if until is None else until,
        save_every=round((s.t[1] - s.t[0]) / dt),
        control=control_of(case),
        formulation=Index3() if formulation is None else formulation,
        **options,
    )


def errors(case: str, trajectory) -> SimpleNamespace:
    """Against the reference: relative space-time error of q, largest error of the platform, also
    before 5.5 s, and error of its motion relative to the motion."""
    s = fields(case)
    pose = np.asarray(trajectory.q)[:, -3:]
    k = len(pose)
    off = np.abs(pose - s.qp[:k])
    norm = lambda t, x: np.sqrt(np.trapezoid(np.sum(x**2, axis=1), t))
    q = np.asarray(trajectory.q)[::4]
    t, ref = s.t_q32[: len(q)], s.q32[: len(q)].astype(float)
    return SimpleNamespace(
        space_time=norm(t, q - ref) / norm(t, ref),
        platform=off.max(),
        platform_early=off[s.t[:k] < 5.5].max(),
        motion=norm(s.t[:k], off) / norm(s.t[:k], s.qp[:k] - s.qp[0]),
    )
