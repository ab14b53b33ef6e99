"""Solve the equations of a cable robot by their block structure.

In natural coordinates, a platform with 6 degrees of freedom has 12 unknowns and 6 rigidity
constraints. For *any* X, on or off the constraints, the rigidity rows allow the accelerations

    X'' = X^-T B + w x X,    2 B = -2 X'^T X' - 2 alpha d(X^T X)/dt - beta^2 (X^T X - G)

with a free vector w (on the constraints, the angular acceleration) in addition to the acceleration
of the centre of mass. The index-1 equations, stabilisation included, therefore reduce exactly to 6
unknowns with a block-diagonal inertia and to one n x n system for the cables. `tests/systems`
compares the result with the dense equations.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._jax.materialise import materialise
from ...math.linalg import gram, inverse, inverse3, matmul, matvec, vecmat
from ...mechanics import Structure
from ...mechanics.constraints import ConstraintTerms, Stabilisation
from ...mechanics.saddle import solve_active
from .natural import PAIRS, NaturalBody, axes, place, rigidity

_ROWS, _COLUMNS = (np.array(side) for side in zip(*PAIRS, strict=True))


class Parts(NamedTuple):
    """Coordinates or velocities, split by platform, payload, exits and drives."""

    platform: Float[Array, " 12"]
    payload: Any  # Float[Array, " 12"], or None without a payload
    exits: Float[Array, "n e"]
    drives: Float[Array, "n e"]


class BodyConstants(eqx.Module):
    """Constant quantities of a body."""

    mass_weights: Float[Array, "4 4"]
    inverse_weights: Float[Array, "4 4"]
    centre: Float[Array, " 4"]
    second_moment: Float[Array, "3 3"]
    gram: Float[Array, "3 3"]


class Constants(eqx.Module):
    """Constant quantities of a robot."""

    platform: BodyConstants
    payload: Any  # BodyConstants, or None without a payload
    attachments: Float[Array, "n 4"]
    joint: Float[Array, " 4"] | None
    own_inertia: Float[Array, " k"]
    exit_mobility: Float[Array, "n e"]
    drive_mobility: Float[Array, "n e"]


def constants(robot) -> Constants:
    exits, drives = robot.exits.inertia(), robot.drives.inertia()
    load = robot.payload
    return Constants(
        _body(robot.platform),
        None if load is None else _body(load.body),
        robot.platform.weights(robot.attachments),
        None if load is None else load.body.weights(load.joint),
        jnp.concatenate([exits.T.reshape(-1), drives.T.reshape(-1)]),
        1.0 / exits,
        1.0 / drives,
    )


def _body(body: NaturalBody) -> BodyConstants:
    K = body.mass_weights
    return BodyConstants(K, inverse(K), body.weights(body.centre), body.second_moment, body.gram)


class CableTerms(NamedTuple):
    """Terms of the cable equations at a state, for `gap = L^2 - l^2` (n,) [m^2]: its value, rate
    and bias; its derivatives by attachment point (n, 3) and by exit and drive coordinates (n, e);
    `length` L and `wound` l [m]; `stretch_rate` d(L - l)/dt [m/s]."""

    gap: Float[Array, " n"]
    rate: Float[Array, " n"]
    bias: Float[Array, " n"]
    gradient: Float[Array, "n 3"]
    by_exit: Float[Array, "n e"]
    by_drive: Float[Array, "n e"]
    length: Float[Array, " n"]
    wound: Float[Array, " n"]
    stretch_rate: Float[Array, " n"]


def cable_terms(robot, c: Constants, t, parts: Parts, rates: Parts) -> CableTerms:
    """Compute the cable terms: lengths from the exit and drive models, all other terms by
    differentiation. Attachment points are linear in the coordinates and add nothing to the bias."""
    b = place(c.attachments, parts.platform)
    b_rate = place(c.attachments, rates.platform)
    one = jnp.ones_like(t)

    def lengths(t, b, y, z):
        return robot.exits.length(t, b, y), robot.drives.length(t, z)

    def gap(*x):
        L, wound = lengths(*x)
        return L * L - wound * wound, (L, wound)

    x = (t, b, parts.exits, parts.drives)
    dx = (one, b_rate, rates.exits, rates.drives)
    move = lambda s: tuple(a + s * da for a, da in zip(x, dx, strict=True))
    along = lambda s: lengths(*move(s))
    first = lambda s: jax.jvp(along, (s,), (jnp.ones_like(s),))
    zero = jnp.zeros_like(t)
    ((L, wound), (L1, wound1)), (_, (L2, wound2)) = jax.jvp(first, (zero,), (one,))
    _, pull, _ = jax.vjp(gap, *x, has_aux=True)
    _, gradient, by_exit, by_drive = pull(jnp.ones_like(L))
    return materialise(
        CableTerms(
            L * L - wound * wound,
            2.0 * (L * L1 - wound * wound1),
            2.0 * (L * L2 + L1 * L1 - wound * wound2 - wound1 * wound1),
            gradient,
            by_exit,
            by_drive,
            L,
            wound,
            L1 - wound1,
        )
    )


def at_points(weights, forces) -> Float[Array, " 12"]:
    """Generalised force of forces (n, 3) at body points with weights (n, 4)."""
    return gram(weights, forces).reshape(12)


def rigidity_terms(q, v, gram):
    """Value, Jacobian (6, 12), rate and bias of the rigidity constraints of a body."""
    X, dX = axes(q), axes(v)
    pair = lambda A, B: jnp.sum(A[:, _ROWS] * B[:, _COLUMNS], axis=0)
    rate = pair(X, dX) + pair(dX, X)
    return rigidity(q, gram), rigidity_jacobian(X), rate, 2.0 * pair(dX, dX)


def rigidity_jacobian(X) -> Float[Array, "6 12"]:
    """Jacobian (6, 12) of the rigidity constraints. Row (a, b) has x_b at column a of X and x_a at
    column b; column 0 of X is r_j - r_i."""
    on = np.zeros((2, 6, 3))
    on[0, np.arange(6), _ROWS] = 1.0
    on[1, np.arange(6), _COLUMNS] = 1.0
    D = on[0][:, :, None] * X.T[_COLUMNS][:, None] + on[1][:, :, None] * X.T[_ROWS][:, None]
    return jnp.concatenate([-D[:, :1], D], axis=1).reshape(6, 12)


def constraint_terms(robot, c: Constants, t, q, v) -> ConstraintTerms:
    """All constraints with their dense Jacobian, which is assembled from blocks."""
    parts, rates = robot.split(q), robot.split(v)
    n, own = robot.n_cables, q.shape[0] - c.own_inertia.shape[0]
    rows = []
    if robot.cables.rigid:
        cable = cable_terms(robot, c, t, parts, rates)
        ee = (c.attachments[:, :, None] * cable.gradient[:, None, :]).reshape(n, 12)
        diagonal = lambda d: (d.T[:, None, :] * jnp.eye(n)[None]).transpose(1, 0, 2).reshape(n, -1)
        J = jnp.concatenate(
            [ee, jnp.zeros((n, own - 12)), diagonal(cable.by_exit), diagonal(cable.by_drive)],
            axis=1,
        )
        rows.append((cable.gap, J, cable.rate, cable.bias))
    pad = lambda J, before: jnp.pad(J, ((0, 0), (before, q.shape[0] - before - J.shape[1])))
    phi, J, rate, bias = rigidity_terms(parts.platform, rates.platform, c.platform.gram)
    rows.append((phi, pad(J, 0), rate, bias))
    if robot.payload is not None:
        phi, J, rate, bias = rigidity_terms(parts.payload, rates.payload, c.payload.gram)
        rows.append((phi, pad(J, 12), rate, bias))
        if robot.payload.held_by != "nothing":
            rows.append(_joint_terms(robot, c, q, v))
    phi, J, rate, bias = (jnp.concatenate(column) for column in zip(*rows, strict=True))
    return materialise(ConstraintTerms(phi, J, rate, bias))


def _joint_terms(robot, c: Constants, q, v):
    joint = lambda x: robot.payload.constraint(x[:12], x[12:24], c.joint)
    x, dx = q[:24], v[:24]
    first = lambda s: jax.jvp(lambda s: joint(x + s * dx), (s,), (jnp.ones_like(s),))
    zero = jnp.zeros((), q.dtype)
    (phi, rate), (_, bias) = jax.jvp(first, (zero,), (jnp.ones_like(zero),))
    J = jax.jacfwd(joint)(x)
    return phi, jnp.pad(J, ((0, 0), (0, q.shape[0] - 24))), rate, bias


def acceleration(robot, c: Constants, t, q, v, u, stabilisation: Stabilisation):
    """Acceleration and multipliers of a robot without payload; see the module docstring."""
    alpha, beta, active = stabilisation
    parts, rates = robot.split(q), robot.split(v)
    n = robot.n_cables
    m, a = robot.platform.mass, c.platform.centre[1:]
    X, dX = axes(parts.platform), axes(rates.platform)
    Y = inverse3(X)  # rows y_k
    # rigidity: a particular X'', column k
    error = gram(X, X) - c.platform.gram
    mixed = gram(X, dX)
    B = -gram(dX, dX) - alpha * (mixed + mixed.T) - 0.5 * beta**2 * error
    ddX = gram(Y, B)
    X, Y, ddX = materialise((X, Y, ddX))
    # inertia about the centre of mass, and the moment of the particular motion
    XZ = matmul(X, c.platform.second_moment)
    P = matmul(XZ, X.T)
    J_inverse = inverse3(jnp.trace(P) * jnp.eye(3) - P)
    moment = -jnp.sum(jnp.cross(XZ.T, ddX.T), axis=0)
    # applied loads
    drive_input, exit_input, force, torque = robot.inputs(u)
    centre = place(c.platform.centre, parts.platform)
    speed = place(c.platform.centre, rates.platform)
    spin = 0.5 * jnp.sum(jnp.cross(Y, dX.T), axis=0)
    weight = jnp.stack([0.0 * m, 0.0 * m, -m * robot.gravity])
    F = weight + force - robot.linear_damping * speed
    N = moment + torque - robot.angular_damping * spin
    f_exit = robot.exits.force(t, parts.exits, rates.exits, exit_input)
    f_drive = robot.drives.force(t, parts.drives, rates.drives, drive_input)

    cable = cable_terms(robot, c, t, parts, rates)
    arms = place(c.attachments, parts.platform) - centre
    levers = jnp.cross(arms, cable.gradient)
    g, by_exit, by_drive = cable.gradient, cable.by_exit, cable.by_drive
    if robot.cables.rigid:
        levers, J_inverse, F, N = materialise((levers, J_inverse, F, N))
        turned = matmul(levers, J_inverse)
        # acceleration of the gaps without cable forces; attachments follow the particular X''
        free = (
            matvec(g, F / m)
            + matvec(turned, N)
            + jnp.sum(g * (matmul(c.attachments[:, 1:] - a, ddX.T)), axis=1)
            + jnp.sum(by_exit * f_exit * c.exit_mobility, axis=1)
            + jnp.sum(by_drive * f_drive * c.drive_mobility, axis=1)
        )
        own = jnp.sum(by_exit**2 * c.exit_mobility, axis=1) + jnp.sum(
            by_drive**2 * c.drive_mobility, axis=1
        )
        A = matmul(g, g.T) / m + matmul(turned, levers.T) + jnp.diag(own)
        wanted = -cable.bias - 2.0 * alpha * cable.rate - beta**2 * cable.gap
        multipliers = solve_active(A, free - wanted, None if active is None else active[:n])
        along = multipliers
        drum = multipliers
    else:
        T = robot.cables.tension(cable.length - cable.wound, cable.stretch_rate)
        multipliers = jnp.zeros(0, q.dtype)
        along, drum = T / (2.0 * cable.length), T / (2.0 * cable.wound)
    F = F - vecmat(along, g)
    N = N - vecmat(along, levers)
    f_exit = f_exit - along[:, None] * by_exit
    f_drive = f_drive - drum[:, None] * by_drive

    turn = matvec(J_inverse, N)
    ddX = ddX + jnp.cross(turn, X.T).T
    r_i = F / m - matvec(ddX, a)
    platform = jnp.stack([r_i, r_i + ddX[:, 0], ddX[:, 1], ddX[:, 2]]).reshape(12)
    own = (f_exit * c.exit_mobility, f_drive * c.drive_mobility)
    acceleration = jnp.concatenate([platform, *(x.T.reshape(-1) for x in own)])

    # The remaining forces on the columns of X are X L. The symmetric matrix L holds the multipliers
    # of the rigidity rows (off-diagonal rows act on two columns).
    f = robot.force(t, q, v, u)[:12]
    if robot.cables.rigid:
        f = f - at_points(c.attachments, along[:, None] * g)
    rest = (f.reshape(4, 3) - matmul(c.platform.mass_weights, platform.reshape(4, 3)))[1:]
    L = matmul(Y, rest.T)
    scale = np.where(_ROWS == _COLUMNS, 0.5, 1.0)
    rigid = scale * 0.5 * (L[_ROWS, _COLUMNS] + L[_COLUMNS, _ROWS])
    return acceleration, jnp.concatenate([multipliers, rigid])


class BlockStructure(Structure):
    """Structure of a `CableRobot`."""

    def mass_solve(self, q, B):
        c, k = self.system._constants(), B.shape[1]
        bodies = [c.platform] if c.payload is None else [c.platform, c.payload]
        parts = [
            matmul(body.inverse_weights, B[12 * i : 12 * i + 12].reshape(4, 3 * k))
            for i, body in enumerate(bodies)
        ]
        own = B[12 * len(bodies) :] / c.own_inertia[:, None]
        return jnp.concatenate([*(part.reshape(12, k) for part in parts), own])

    def constraint_terms(self, t, q, v):
        return constraint_terms(self.system, self.system._constants(), t, q, v)

    def constrained_acceleration(self, t, q, v, u, stabilisation):
        robot = self.system
        if robot.payload is not None:
            return super().constrained_acceleration(t, q, v, u, stabilisation)
        return acceleration(robot, robot._constants(), t, q, v, u, stabilisation)
