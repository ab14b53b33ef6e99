"""Fields of ropes in space, with their checks, and the layout of their coordinates."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...._base.checks import (
    known_values,
    require,
    require_finite,
    require_positive,
    require_rotation,
    require_shape,
    require_values,
)
from ...._base.fields import count_field, part_field
from ...._base.precision import float_field
from ....mechanics.parts.line_contact import LineContact, LineContacts
from ....mechanics.residual_linearisation import ResidualSystem
from ...cable_robot.natural import NaturalBody, place
from ..laws import LinearRope, RopeLaw
from ..segments import is_reached
from .segments import Ropes, Segments, ropes


class RopesInSpace(ResidualSystem):
    """Fields and coordinates of `SpatialRopeRobot`."""

    roots: Float[Array, "m 3"] = float_field(unit="m")
    length: Float[Array, "..."] = float_field(unit="m")
    line_density: Float[Array, "..."] = float_field(unit="kg/m", default=0.029)
    EA: Float[Array, "..."] = float_field(unit="N", default=4.0e4)
    EI: Float[Array, "..."] = float_field(unit="N m^2", default=0.01)
    axial_time: Float[Array, "..."] = float_field(unit="s", default=2e-3)
    bending_time: Float[Array, "..."] = float_field(unit="s", default=0.05)
    root_stiffness: Float[Array, "..."] = float_field(unit="-", default=0.0)
    root_direction: Float[Array, "... 3"] = float_field(default=(0.0, 0.0, -1.0))
    platform: NaturalBody | None = part_field(default=None)
    attachments: Float[Array, "m 3"] | None = float_field(unit="m", default=None)
    position: Float[Array, " 3"] = float_field(unit="m", default=(0.0, 0.0, 0.0))
    rotation: Float[Array, "3 3"] = float_field(
        default=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    )
    end_point: Float[Array, "m 3"] | None = float_field(unit="m", default=None)
    linear_damping: Float[Array, ""] = float_field(unit="N s/m", default=0.0)
    angular_damping: Float[Array, ""] = float_field(unit="N m s", default=0.0)
    law: RopeLaw = part_field(default_factory=LinearRope)
    count: int = count_field(default=10)
    gravity: Float[Array, ""] = float_field(unit="m/s^2", default=9.81)
    contact: tuple[LineContact, ...] = part_field(default=())

    def __check_init__(self):
        ok = len(getattr(self.roots, "shape", (1, 3))) == 2
        require(ok, "roots", f"shape {getattr(self.roots, 'shape', None)}", "shape (m, 3)")
        m = self.n_ropes
        require_shape("roots", self.roots, (m, 3))
        require_finite("roots", self.roots)
        for name in ("length", "line_density", "EA"):
            require_shape(name, getattr(self, name), (), (m,))
            require_positive(name, getattr(self, name))
        for name in ("EI", "axial_time", "bending_time", "root_stiffness"):
            require_shape(name, getattr(self, name), (), (m,))
            require_positive(name, getattr(self, name), zero_allowed=True)
        require_shape("root_direction", self.root_direction, (3,), (m, 3))
        _check_unit("root_direction", self.root_direction)
        both = self.platform is not None and self.end_point is not None
        require(not both, "end_point", "points and a platform", "one of them")
        alone = (self.platform is None) == (self.attachments is None)
        require(alone, "attachments", "one without the other", "a platform and its attachments")
        require_positive("linear_damping", self.linear_damping, zero_allowed=True)
        require_positive("angular_damping", self.angular_damping, zero_allowed=True)
        held = self.platform is not None or self.end_point is not None
        least = 2 if held else 1
        require(self.count >= least, "count", self.count, f"{least} or more segments")
        if self.platform is not None:
            require_shape("attachments", self.attachments, (m, 3))
            require_finite("attachments", self.attachments)
            require_shape("position", self.position, (3,))
            require_finite("position", self.position)
            require_rotation("rotation", self.rotation)
        if self.end_point is not None:
            require_shape("end_point", self.end_point, (m, 3))
            require_finite("end_point", self.end_point)
        LineContacts(self.contact)
        self._check_reach()

    def _check_reach(self):
        """Of what ropes must reach: points, or a platform where it begins."""
        if self.n_nodes == self.count:
            return
        name = "position" if self.end_point is None else "end_point"
        numbers = self._there().T, self.roots, self.length
        there, roots, length = (known_values(x) for x in numbers)
        if there is None or roots is None or length is None:
            require_values(name, is_reached, *numbers, expected="ends that ropes reach")
            return
        gap = np.linalg.norm(there - roots, axis=1) / length - 1.0
        j = int(np.argmax(gap))
        far = f"end of rope {j + 1} is {100 * gap[j]:.3g} % of its length too far from the root"
        require(gap[j] <= 0.5, name, far, "ends that ropes reach, stretched by half or less")

    # --- names
    @property
    def n_ropes(self) -> int:
        return self.roots.shape[0]

    @property
    def n_nodes(self) -> int:
        """Number of nodes of each rope whose positions are coordinates."""
        free = self.platform is None and self.end_point is None
        return self.count if free else self.count - 1

    @property
    def coordinate_names(self):
        nodes = tuple(
            f"{c}_{j + 1}_{i + 1}"
            for j in range(self.n_ropes)
            for i in range(self.n_nodes)
            for c in "xyz"
        )
        if self.platform is None:
            return nodes
        return nodes + tuple(f"{p}_{c}" for p in ("r_i", "r_j", "v_i", "v_j") for c in "xyz")

    @property
    def input_names(self):
        if self.platform is not None:
            return tuple(f"{kind}_{c}" for kind in ("force", "torque") for c in "xyz")
        if self.end_point is not None:
            return ()
        return tuple(f"force_{c}_{j + 1}" for j in range(self.n_ropes) for c in "xyz")

    @property
    def n_q(self):
        return 3 * self.n_nodes * self.n_ropes + (0 if self.platform is None else 12)

    @property
    def n_v(self):
        return self.n_q

    @property
    def n_constraints(self):
        return 0 if self.platform is None else 6

    # --- parts
    def split(self, x) -> tuple[Float[Array, "3 k m"], Float[Array, " p"]]:
        """Split coordinates, velocities or forces into those of nodes, and those of the platform,
        shape (12,) or (0,)."""
        n = 3 * self.n_nodes * self.n_ropes
        return x[:n].reshape(self.n_ropes, self.n_nodes, 3).transpose(2, 1, 0), x[n:]

    def join(self, nodes: Float[Array, "3 s m"], platform=None) -> Float[Array, " n"]:
        """Inverse of `split`; ends that are not coordinates are left out."""
        flat = nodes[:, : self.n_nodes].transpose(2, 1, 0).reshape(-1)
        return flat if platform is None else jnp.concatenate([flat, platform])

    def with_ends(self, nodes, ends=None) -> Float[Array, "3 s m"]:
        """Append the `ends` (3, m), zero by default, to the nodes if they are not coordinates."""
        if self.n_nodes == self.count:
            return nodes
        ends = jnp.zeros_like(nodes[:, 0]) if ends is None else ends
        return jnp.concatenate([nodes, ends[:, None]], axis=1)

    def weights(self) -> Float[Array, "m 4"]:
        """Weights of the natural coordinates of the platform at the attachments."""
        assert self.platform is not None
        return self.platform.weights(self.attachments)

    def ropes(self) -> Ropes:
        each = lambda x: jnp.broadcast_to(x, (self.n_ropes,))
        numbers = (self.EA, self.EI, self.axial_time, self.bending_time)
        first = (self.length, self.line_density, self.root_stiffness)
        return ropes(*map(each, first), self.count, *map(each, numbers), self.law)

    def places(self, q) -> Float[Array, "3 s m"]:
        """Positions [m] of all nodes except the roots."""
        nodes, platform = self.split(q)
        if self.platform is not None:
            return self.with_ends(nodes, place(self.weights(), platform).T)
        return self.with_ends(nodes, None if self.end_point is None else self.end_point.T)

    def rates(self, v) -> Float[Array, "3 s m"]:
        """Velocities or accelerations of all nodes except the roots."""
        nodes, platform = self.split(v)
        ends = None if self.platform is None else place(self.weights(), platform).T
        return self.with_ends(nodes, ends)

    def segments(self, q, v, a) -> Segments:
        """Segments in motion."""
        root = jnp.broadcast_to(self.root_direction, (self.n_ropes, 3)).T[:, None]
        d = jnp.diff(self.places(q), axis=1, prepend=self.roots.T[:, None])
        rate, second = (jnp.diff(self.rates(x), axis=1, prepend=0.0 * root) for x in (v, a))
        above = lambda x, root: jnp.concatenate([root, x[:, :-1]], axis=1)
        return Segments(above(d, root), above(rate, 0.0 * root), d, rate, second)

    def _there(self) -> Float[Array, "3 m"]:
        """Points at which ends are held, or those of the platform in its initial pose."""
        if self.platform is None:
            assert self.end_point is not None
            return self.end_point.T
        body = self.platform.coordinates(self.position, self.rotation)[0]
        return place(self.weights(), body).T


def _check_unit(field: str, x) -> None:
    unit = lambda x: abs((x * x).sum(-1) - 1.0) < 1e-6
    require_values(field, unit, x, expected="vectors of length 1")
