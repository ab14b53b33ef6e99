"""Random open trees, as a `Mechanism` and as a model of Pinocchio."""

import jax.numpy as jnp
import numpy as np

from cordax.systems import mechanism as parts

KINDS = ("revolute", "prismatic", "universal", "spherical", "floating")


def random_rotation(rng):
    q = rng.normal(size=4)
    return np.array(parts.Spherical().motion(jnp.asarray(q / np.linalg.norm(q)), None).R)


def random_tree(rng, n: int):
    """Bodies with every kind of joint, their parents anywhere before them."""
    bodies = []
    for i in range(n):
        kind = KINDS[i % len(KINDS)]
        axis = rng.normal(size=3)
        joint = {
            "revolute": lambda: parts.Revolute(axis),  # noqa: B023
            "prismatic": lambda: parts.Prismatic(axis),  # noqa: B023
            "universal": parts.Universal,
            "spherical": parts.Spherical,
            "floating": parts.Floating,
        }[kind]()
        A = rng.normal(size=(3, 3))
        E = A @ A.T  # second moments of the mass
        inertia = np.trace(E) * np.eye(3) - E
        solid = parts.Solid(rng.uniform(0.5, 2.0), rng.normal(size=3), inertia)
        parent = "world" if i == 0 else f"b{rng.integers(0, i)}"
        bodies.append(
            parts.Body(f"b{i}", joint, parent, rng.normal(size=3), random_rotation(rng), solid)
        )
    return parts.Mechanism(bodies)


def random_state(machine, rng):
    q = np.array(machine.normalise(jnp.asarray(rng.normal(size=machine.n_q))))
    return q, rng.normal(size=machine.n_v)


class PinocchioTree:
    """The same bodies in Pinocchio, with its coordinates reordered to those of `machine`."""

    def __init__(self, pin, machine):
        self.pin, model = pin, pin.Model()
        model.gravity = pin.Motion(np.array(machine.gravity), np.zeros(3))
        ids = {"world": 0}
        q_order, v_order = [], []
        for body in machine.bodies:
            kind = type(body.joint).__name__
            joint = {
                "Revolute": lambda b: pin.JointModelRevoluteUnaligned(np.array(b.joint.axis)),
                "Prismatic": lambda b: pin.JointModelPrismaticUnaligned(np.array(b.joint.axis)),
                "Universal": lambda b: pin.JointModelUniversal(np.eye(3)[0], np.eye(3)[1]),
                "Spherical": lambda b: pin.JointModelSpherical(),
                "Floating": lambda b: pin.JointModelFreeFlyer(),
            }[kind](body)
            place = pin.SE3(np.array(body.turned), np.array(body.at))
            ids[body.name] = model.addJoint(ids[body.parent], joint, place, body.name)
            solid = body.inertia()
            inertia = pin.Inertia(
                float(solid.mass), np.array(solid.centre), np.array(solid.inertia)
            )
            model.appendBodyToJoint(ids[body.name], inertia, pin.SE3.Identity())
            nq, nv = len(body.joint.coordinates), len(body.joint.velocities)
            # Pinocchio: position, then quaternion with w last; linear before angular velocity
            q_local = {4: [3, 0, 1, 2], 7: [6, 3, 4, 5, 0, 1, 2]}.get(nq, list(range(nq)))
            v_local = [3, 4, 5, 0, 1, 2] if nv == 6 else list(range(nv))
            q_order.append((ids[body.name], q_local))
            v_order.append((ids[body.name], v_local))
        self.model, self.data = model, model.createData()
        self.q = np.concatenate([model.idx_qs[i] + np.array(x, int) for i, x in q_order])
        self.v = np.concatenate([model.idx_vs[i] + np.array(x, int) for i, x in v_order])

    def _state(self, q, *vs):
        there = np.zeros(self.model.nq)
        there[self.q] = q
        out = [there]
        for v in vs:
            w = np.zeros(self.model.nv)
            w[self.v] = v
            out.append(w)
        return out

    def mass_matrix(self, q):
        """Column by column: the composite-body algorithm wants bodies in depth-first order."""
        columns = []
        for e in np.eye(self.model.nv)[self.v]:
            there, rest, a = self._state(q)[0], np.zeros(self.model.nv), e
            force = self.pin.rnea(self.model, self.data, there, rest, a)
            columns.append(
                np.array(force) - self.pin.rnea(self.model, self.data, there, rest, rest)
            )
        return np.stack(columns, axis=1)[self.v]

    def bias(self, q, v):
        return np.array(self.pin.nonLinearEffects(self.model, self.data, *self._state(q, v)))[
            self.v
        ]

    def acceleration(self, q, v, tau):
        return np.array(self.pin.aba(self.model, self.data, *self._state(q, v, tau)))[self.v]
