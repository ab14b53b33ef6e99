"""Force law of elastic cables that are wound on pulleys by involute joints."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import require, require_positive, require_shape
from ..._base.fields import names_field
from ..._base.precision import float_field
from ..._jax.constant_gather import take
from .elements import Effort, Element, Instant, spread
from .involute import CableState, Involute, RigidInvolute
from .tree import Tree


class CableTerms(NamedTuple):
    """Terms of n cables for controllers: `strain` (n,), `stiffness` E A (n,) [N], and
    `columns` (n_v, n), the joint forces that resist a unit tension. If the strains are not
    coordinates, their accelerations are `rows` (n, n_v) times the joint accelerations plus
    `bias` (n,) [1/s^2]."""

    strain: Float[Array, " n"]
    stiffness: Float[Array, " n"]
    columns: Float[Array, "n_v n"]
    rows: Float[Array, "n n_v"] | None = None
    bias: Float[Array, " n"] | None = None


class WoundCables(Element):
    """Tension `F = A (E eps + mu deps/dt)` of taut cables (eps > 0), zero for slack ones. `cables`
    are names of bodies on elastic involute joints of one kind.

    `modulus` E [Pa], `viscosity` mu [Pa s] and `area` A [m^2] have shape (n,) or are one value for
    all cables. This is the unmodified law of the thesis: a cable that goes slack quickly pushes for
    an instant. The unstretched length changes while the cable winds, so the law is not
    conservative. The energy balance is `d(T + V)/dt = sum u theta' - sum F du/dt`."""

    cables: tuple[str, ...] = names_field()
    modulus: Float[Array, " n"] = float_field(unit="Pa")
    viscosity: Float[Array, " n"] = float_field(unit="Pa s")
    area: Float[Array, " n"] = float_field(unit="m^2")

    def __check_init__(self):
        for name in ("modulus", "viscosity", "area"):
            require_shape(name, getattr(self, name), (), (len(self.cables),))
            require_positive(name, getattr(self, name), zero_allowed=name == "viscosity")

    @property
    def output_names(self):
        return ("strain", "cable_length", "cable_power")

    def check(self, tree: Tree):
        kinds = {tree.kinds[tree.body(name, "WoundCables: cables")] for name in self.cables}
        ok = len(kinds) == 1 and all(
            issubclass(k, Involute) and not issubclass(k, RigidInvolute) for k in kinds
        )
        names = ", ".join(sorted(k.__name__ for k in kinds))
        require(ok, "WoundCables: cables", names, "bodies on elastic involute joints of one kind")

    def _rows(self, tree: Tree) -> np.ndarray:
        """Indices in v of the two coordinates of each cable, shape (n, 2)."""
        start = np.array([tree.velocities(name).start for name in self.cables])
        return start[:, None] + np.arange(2)

    def state(self, at: Instant) -> CableState:
        """Lengths and strains of all cables, shape (n,) each."""
        tree = at.tree
        start = np.array([tree.coordinates(name).start for name in self.cables])
        q, v = take(at.q, start[:, None] + np.arange(2)), take(at.v, self._rows(tree))
        joints = at.joints_of(self.cables)
        return jax.vmap(lambda joint, q, v: joint.cable(q, v))(joints, q, v)

    def tension(self, cable: CableState) -> Float[Array, " n"]:
        """Tension of each cable [N]."""
        stress = self.modulus * cable.strain + self.viscosity * cable.strain_rate
        return jnp.where(cable.strain > 0, self.area * stress, 0.0)

    def effort(self, at, u):
        cable = self.state(at)
        force = -self.tension(cable)[:, None] * cable.by_q
        places = self._rows(at.tree).reshape(-1)
        return Effort(joint=spread(places, at.tree.n_v, force.reshape(-1)))

    def terms(self, at: Instant) -> CableTerms:
        """Strain, stiffness and force columns of the cables for controllers."""
        cable, n = self.state(at), len(self.cables)
        places = self._rows(at.tree)
        onto = np.zeros((at.tree.n_v, n, 2))
        onto[places, np.arange(n)[:, None], np.arange(2)] = 1.0
        resisting = jnp.where((cable.strain > 0)[:, None], cable.by_q, 0.0)
        columns = jnp.sum(jnp.asarray(onto, at.q.dtype) * resisting, axis=2)
        stiffness = jnp.broadcast_to(self.modulus * self.area, (n,))
        return CableTerms(cable.strain, stiffness, columns)

    def outputs(self, at, u):
        cable = self.state(at)
        tension = self.tension(cable)
        rate = jnp.sum(cable.by_q * take(at.v, self._rows(at.tree)), axis=1)
        return {
            "tension": tension,
            "strain": cable.strain,
            "cable_length": cable.rest + cable.stretch,
            "cable_power": tension * rate,
        }
