"""Deformable rods as dynamic splines: cables, wires, sutures.

The rod is a cubic B-spline in (x, y, z, theta) with stretch, twist and bending energy, after
Khalifa and Palli, "Symplectic integration for multivariate dynamic spline-based model of deformable
linear objects" (2022). It has a consistent mass matrix and a torsion that is finite at straight
states (docs/spline-rod.md)."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ..._base.checks import is_number, require, require_positive, require_values
from ..._base.fields import count_field, flag_field, part_field
from ..._base.precision import as_float_array, float_field
from ..._jax.materialise import materialise
from ...math import bsplines
from ...mechanics import Presentation, Scene, State, System
from ...mechanics.parts.line_contact import Line, LineContact, LineContacts, line
from . import energy as elastic
from . import kelvin_voigt, stiffness
from .end_supports import End
from .layout import Layout, layout
from .quadrature import Quadrature, Spans, check_rule, overlap, pieces, quadrature, times_gram
from .structure import SplineStructure

#: segments of each span that touch as capsules
_PIECES = 4


class SplineRod(System):
    """A deformable rod between two ends.

    - `length` L [m], `diameter` D [m], `density` [kg/m^3];
    - `young` E [Pa], and `shear` G [Pa] or, if None, `poisson` nu: G = E/(2 (1 + nu));
    - `left`, `right`: supports of its ends (`End`);
    - `control_points` n_u >= 5 of the spline; `quadrature`: ("gauss", points per span) or ("trap",
      points in all);
    - `torsion_width` delta_t [1/m] (None: 2/L): curvatures well below it count as straight, where
      the torsion of the centre line is undefined; `bending_width` delta_b [1/m]: rounds the cusp of
      the energy at straight states of a rod with plastic curvature;
    - `rest_strain` (3,): plastic compression [-], twist [1/m] and curvature [1/m];
    - `damping` [s]: Kelvin-Voigt damping of a `viscous` rod; each strain resists its rate with this
      time times its stiffness;
    - `loads`: points, as fractions of L, at which inputs act: three forces [N] each;
    - `contact`: one or several `LineContact`s with obstacles and with itself, as capsules, four for
      each span of the spline;
    - `plastic`: whether the plastic curvature at each quadrature point [1/m], added to that of
      `rest_strain`, is an input, for `PlasticFlow`;
    - `gravity` [m/s^2] along -z.

    Coordinates: x, y, z, theta of the control points that are not held."""

    length: Float[Array, ""] = float_field(unit="m", default=2.0)
    diameter: Float[Array, ""] = float_field(unit="m", default=2e-3)
    density: Float[Array, ""] = float_field(unit="kg/m^3", default=2700.0)
    young: Float[Array, ""] = float_field(unit="Pa", default=69e9)
    poisson: Float[Array, ""] = float_field(default=0.33)
    shear: Float[Array, ""] | None = float_field(unit="Pa", default=None)
    left: End = part_field(default_factory=End.pinned)
    right: End = part_field(default_factory=End.pinned)
    control_points: int = count_field(5, default=9)
    quadrature: tuple[str, int] = eqx.field(static=True, default=("gauss", 4))
    torsion_width: Float[Array, ""] | None = float_field(unit="1/m", default=None)
    bending_width: Float[Array, ""] = float_field(unit="1/m", default=0.05)
    rest_strain: Float[Array, " 3"] = float_field(unit="-", default=(0.0, 0.0, 0.0))
    damping: Float[Array, ""] = float_field(unit="s", default=0.0)
    viscous: bool = flag_field(default=False)
    loads: tuple[float, ...] = eqx.field(
        static=True, converter=lambda x: tuple(x) if isinstance(x, list) else x, default=()
    )
    contact: tuple[LineContact, ...] = part_field(default=())
    plastic: bool = flag_field(default=False)
    gravity: Float[Array, ""] = float_field(unit="m/s^2", default=9.81)
    closed_form: bool = flag_field(default=True)

    #: implicit midpoint keeps the energy of vibrations that the time step does not resolve; on
    #: stiff undamped wires this energy grows without bound
    default_integrator: ClassVar[str] = "generalised_alpha"
    default_dt: ClassVar[float] = 2e-3

    def __check_init__(self):
        for name in ("length", "diameter", "density", "young"):
            require_positive(name, getattr(self, name))
        for name in ("shear", "torsion_width"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))
        possible = lambda nu: (nu > -1) & (nu < 0.5)
        require_values("poisson", possible, self.poisson, expected="a number between -1 and 0.5")
        check_rule(self.quadrature, self.control_points)
        require_positive("bending_width", self.bending_width)
        require_positive("damping", self.damping, zero_allowed=True)
        if not self.viscous:
            expected = "0.0 for a rod without viscous=True"
            require_values("damping", lambda d: d <= 0, self.damping, expected=expected)
        fraction = lambda x: is_number(x) and 0.0 <= x <= 1.0
        fractions = isinstance(self.loads, tuple) and all(fraction(x) for x in self.loads)
        require(fractions, "loads", self.loads, "a tuple of fractions of the length")
        self.contacts_of_line()

    # --- names and layout
    @property
    def layout(self) -> Layout:
        return layout(self.control_points, self.left.held(), self.right.held())

    @property
    def coordinate_names(self):
        free = self.layout.free
        return tuple(
            f"{name}_{i}" for c, name in enumerate(("x", "y", "z", "theta")) for i in free[c]
        )

    def presentation(self):
        return Presentation(
            units=dict.fromkeys(("centre", "sag"), "m")
            | {"stretch": "1", "load": "N"}
            | self.contacts_of_line().units(),
            warnings=self.contacts_of_line().warnings,
            components={"centre": ("x", "y", "z")},
            plots=("centre", "sag"),
            summary=_summary,
            geometry=self.geometry,
        )

    @property
    def input_names(self):
        loads = tuple(f"load_{i + 1}_{c}" for i in range(len(self.loads)) for c in "xyz")
        if not self.plastic:
            return loads
        return (*loads, *(f"plastic_{j + 1}" for j in range(self.points.weights.size)))

    @property
    def span(self) -> Float[Array, ""]:
        """Length h of a knot span [m]."""
        return self.length / (self.control_points - 3)

    # --- material
    @property
    def line_density(self):
        """Mass per length mu [kg/m] and polar moment of inertia per length I [kg m]."""
        area = jnp.pi * self.diameter**2 / 4.0
        return self.density * area, self.density * jnp.pi * self.diameter**4 / 32.0

    @property
    def elasticity(self) -> elastic.Stiffness:
        """Stiffnesses H_s [N], H_t [N m^2], H_b [N m^2] and the two widths [1/m]."""
        shear = self.young / (2.0 * (1.0 + self.poisson)) if self.shear is None else self.shear
        d4 = jnp.pi * self.diameter**4
        width = 2.0 / self.length if self.torsion_width is None else self.torsion_width
        return elastic.Stiffness(
            self.young * jnp.pi * self.diameter**2 / 4.0,
            shear * d4 / 32.0,
            self.young * d4 / 64.0,
            width,
            self.bending_width,
        )

    # --- control points
    def ends_at(self, t):
        """Outermost and next control points (4,) of both ends as they are held at time `t`."""
        zero = 0.0 * self.length
        ahead = jnp.stack([1.0 + zero, zero, zero])
        start, stop = jnp.stack([zero, zero, zero]), jnp.stack([self.length, zero, zero])
        third = self.span / 3.0  # r' at a clamped end is 3/h times the first difference
        p, d, a = self.left.place(t, start, ahead, zero)
        first, second = jnp.append(p, a), jnp.append(p + third * d, a)
        p, d, a = self.right.place(t, stop, ahead, zero)
        return first, second, jnp.append(p - third * d, a), jnp.append(p, a)

    def control(self, t, q) -> Float[Array, "4 n"]:
        """All control points, x, y, z and theta, including held ones."""
        return self.layout.join(q, *self.ends_at(t))

    def control_rate(self, t, v) -> Float[Array, "4 n"]:
        """Velocities of all control points."""
        if not (self.left.moves or self.right.moves):
            zero = jnp.zeros(4, v.dtype)
            return self.layout.join(v, zero, zero, zero, zero)
        return self.layout.join(v, *self._end_rates(t)[0])

    def _end_rates(self, t):
        """Velocities and accelerations of held control points."""
        one = jnp.ones_like(t)
        rate = lambda t: jax.jvp(self.ends_at, (t,), (one,))[1]
        return jax.jvp(rate, (t,), (one,))

    # --- equations
    def elastic_energy(self, P, u=None) -> elastic.Energies:
        """Stretch, torsion and bending energy [J] of control points (4, n)."""
        return elastic.energies(P, self.points, self.span, self.elasticity, self._rest(u))

    def _rest(self, u):
        """Rest strains (3,), or (3, k) if plastic curvatures are among the inputs."""
        if not self.plastic or u is None:
            return self.rest_strain
        plastic = self.points.spread(u[3 * len(self.loads) :])
        zero = jnp.zeros_like(plastic)
        rest = self.rest_strain.reshape(3, *(1,) * plastic.ndim)
        return rest + jnp.stack([zero, zero, plastic])

    @property
    def points(self) -> Quadrature:
        """Quadrature points at which the energy is summed."""
        return quadrature(self.control_points, self.quadrature)

    def springs_energy(self, t, P):
        """Energy [J] of the springs at both ends."""
        first, _, _, last = self.ends_at(t)
        pull = lambda end, p, anchor: 0.5 * jnp.sum(end.stiffness * (p[:3] - anchor[:3]) ** 2)
        return pull(self.left, P[:, 0], first) + pull(self.right, P[:, -1], last)

    def weight(self) -> Float[Array, " n"]:
        """Weight of each control point [N]."""
        return (
            self.line_density[0]
            * self.gravity
            * self.span
            * bsplines.integrals(self.control_points)
        )

    def potential_energy(self, t, q):
        P = self.control(t, q)
        e = self.elastic_energy(P)
        total = e.stretch + e.torsion + e.bending + jnp.sum(self.weight() * P[2])
        if self.contact:
            total = total + self.contacts_of_line().energy(self.line(P, jnp.zeros_like(P)))
        return total + self.springs_energy(t, P)

    def energies(self, t, q, v):
        """Kinetic and potential energy, including the held control points, which grippers move."""
        dP = self.control_rate(t, v)
        momentum = (self.densities() * self.span)[:, None] * times_gram(dP)
        return 0.5 * jnp.sum(dP * momentum), self.potential_energy(t, q)

    def control_forces(self, t, q, v, u) -> Float[Array, "4 n"]:
        """Generalised forces on all control points, including held ones."""
        P = self.control(t, q)
        if self.closed_form:
            F = elastic.forces(P, self.points, self.span, self.elasticity, self._rest(u))
        else:
            total = lambda P: sum(self.elastic_energy(P, u))
            F = -jax.grad(total)(P)
        first, _, _, last = self.ends_at(t)
        left = self.left.stiffness * (first - P[:, 0])[:3]
        right = self.right.stiffness * (last - P[:, -1])[:3]
        ends = jnp.pad(left[:, None], ((0, 1), (0, self.control_points - 1)))
        ends = ends + jnp.pad(right[:, None], ((0, 1), (self.control_points - 1, 0)))
        F = F + ends - jnp.pad(self.weight()[None], ((2, 1), (0, 0)))
        if self.loads:
            places = np.array(self.loads) * (self.control_points - 3)
            b = bsplines.basis(self.control_points, places)[0]
            pushed = u[: 3 * len(self.loads)].reshape(-1, 3).T @ b
            F = F + jnp.pad(pushed, ((0, 1), (0, 0)))
        if self.contact:
            push = self.contacts_of_line().forces(self.line(P, self.control_rate(t, v)))
            F = F + jnp.pad(self._at_control(push), ((0, 1), (0, 0)))
        if self.viscous:
            F = F + kelvin_voigt.forces(
                P, self.control_rate(t, v), self.points, self.span, self.elasticity, self.damping
            )
        return F

    def force(self, t, q, v, u):
        F = self.layout.split(self.control_forces(t, q, v, u))
        if self.left.moves or self.right.moves:
            _, accelerations = self._end_rates(t)
            A = self.layout.join(jnp.zeros_like(q), *accelerations)
            inertia = self.densities()[:, None] * self.span * times_gram(A)
            F = F - self.layout.split(inertia)
        return F

    def densities(self) -> Float[Array, " 4"]:
        """Inertia per length of x, y, z [kg/m] and theta [kg m]."""
        mu, polar = self.line_density
        return jnp.stack([mu, mu, mu, polar])

    def mass_matrix(self, q):
        J = self.densities() * self.span
        return jax.scipy.linalg.block_diag(
            *(J[c] * G for c, G in enumerate(self.layout.gram_blocks))
        )

    def structure(self) -> SplineStructure:
        return SplineStructure(self)

    def _span_matrices(self, P, dP, u):
        """Span matrices of minus the derivatives of all forces along the rod by control points, and
        by their velocities or None."""
        points, h, H = self.points, self.span, self.elasticity
        assert isinstance(points, Spans)
        at = materialise(points.local(P, h))
        D = held = more = None
        if self.viscous:
            rate = materialise(points.local(dP, h))
            held = materialise(kelvin_voigt.stresses(at, rate, H, self.damping))
            by_rate, more = kelvin_voigt.derivatives(at, rate, H, self.damping)
            D = stiffness.span_matrices(materialise(by_rate), points, h)
        W = stiffness.second_derivatives(at, H, self._rest(u), held)
        W = W if more is None else W + more
        K = stiffness.span_matrices(materialise(W), points, h)
        contacts = self.contacts_of_line()
        if contacts and not contacts.self_contact:
            basis, s = pieces(self.control_points, _PIECES), self.control_points - 3
            each = contacts.segment_jacobians(self.line(P, dP))
            spread = lambda W: W.transpose(1, 2, 0).reshape(6, 6, s, _PIECES).swapaxes(2, 3)
            pressed, rubbed = (stiffness.contact_matrices(-spread(W), basis) for W in each)
            K = K + pressed
            D = rubbed if D is None else D + rubbed
        return K, D

    # --- contact
    def contacts_of_line(self) -> LineContacts:
        """Contacts of the rod, with its radius."""
        return LineContacts(self.contact, 0.5 * self.diameter)

    def line(self, P, dP) -> Line:
        """The rod as a polygon, for control points (4, n) and their velocities."""
        basis, s = pieces(self.control_points, _PIECES), self.control_points - 3

        def points(P):
            terms = [P[:3, None, i : i + s] * basis[i, :-1] for i in range(4)]
            inner = sum(terms[1:], terms[0]).transpose(2, 1, 0).reshape(-1, 3)
            return jnp.concatenate([inner, P[None, :3, -1]])

        return line(points(P), points(dP), self.span / _PIECES)

    def _at_control(self, push) -> Float[Array, "3 n"]:
        """Forces on control points for forces (k, 3) on the points of `line`."""
        basis, s = pieces(self.control_points, _PIECES), self.control_points - 3
        inner = push[:-1].reshape(s, _PIECES, 3).transpose(2, 1, 0)
        total = overlap([jnp.sum(inner * b[:-1], axis=1) for b in basis])
        return total + jnp.pad(push[-1][:, None], ((0, 0), (self.control_points - 1, 0)))

    def valid(self, t, q, v):
        """Whether no part of the control polygon is stretched to ten times its length. Explicit
        steps that diverge stop there, long before they overflow."""
        legs = jnp.diff(self.control(t, q)[:3], axis=1)
        rest = np.diff(bsplines.greville(self.control_points))
        return jnp.max(jnp.sum(legs * legs, axis=0) / rest**2) < (10.0 * self.span) ** 2

    # --- states and outputs
    def state_of(self, curve, twist=None, t: float = 0.0) -> State:
        """State at rest along a curve, by interpolation. The curve is a function from material
        coordinates (k,) from 0 to L [m] to positions (k, 3) [m]; `twist`: likewise to angles (k,)
        [rad]."""
        n = self.control_points
        x = bsplines.greville(n)
        collocation = bsplines.basis(n, x)[0]
        u = jnp.asarray(x) * self.span
        angles = jnp.zeros((n, 1)) if twist is None else as_float_array(twist(u))[:, None]
        values = jnp.concatenate([as_float_array(curve(u)), angles], axis=1)
        P = jnp.linalg.solve(jnp.asarray(collocation), values).T
        q = self.layout.split(P)
        return State(q, jnp.zeros_like(q))

    def default_state(self):
        """Straight state along x, from the point that holds the left end, or to that of the right
        end."""
        angle = jnp.zeros((self.control_points, 1)) * self.length
        x = bsplines.greville(self.control_points) * self.span
        line = jnp.stack([x, 0.0 * x, 0.0 * x], axis=1)
        zero = jnp.zeros(())
        if self.left.point is not None:
            line = line + self.left.point.position(zero)
        elif self.right.point is not None and not any(self.left.holds):
            line = line + self.right.point.position(zero) - self.length * jnp.array([1.0, 0, 0])
        q = self.layout.split(jnp.concatenate([line, angle], axis=1).T)
        return State(q, jnp.zeros_like(q))

    def shape(self, P, count: int = 101) -> Float[Array, "count 3"]:
        """Positions along the rod, equally spaced in material length."""
        b = bsplines.basis(self.control_points, np.linspace(0, self.control_points - 3, count))[0]
        return b @ P[:3].T

    def rod_point(self, t, q, station: float) -> Float[Array, " 3"]:
        """Position (3,) [m] of the centre line at a fraction of the length."""
        b = bsplines.basis(self.control_points, [station * (self.control_points - 3)])[0][0]
        return b @ self.control(t, q)[:3].T

    def outputs(self, t, q, v, u, multipliers):
        P = self.control(t, q)
        b = bsplines.basis(self.control_points, [(self.control_points - 3) / 2])[0][0]
        ends = jnp.min(jnp.stack([P[2, 0], P[2, -1]]))
        curve = self.shape(P)
        found = {
            "control": P.T,
            "centre": b @ P[:3].T,
            "sag": ends - jnp.min(curve[:, 2]),
            "stretch": elastic.largest_stretch(P, self.points, self.span),
        }
        if self.contact:
            found |= self.contacts_of_line().outputs(self.line(P, self.control_rate(t, v)))
        return found

    def geometry(self, t, q):
        """Scene at time `t` [s] and coordinates `q`."""
        P = self.control(t, q)
        return Scene(
            lines={"rod": self.shape(P)[None]}, points={"end": P[:3, jnp.array([0, -1])].T}
        )


def _summary(run) -> dict[str, str]:
    sag, stretch = np.asarray(run.outputs["sag"]), np.asarray(run.outputs["stretch"])
    return {
        "sag": f"{1e3 * sag.min():.2f} to {1e3 * sag.max():.2f} mm",
        "largest stretch": f"{100 * stretch.max():.4f} %",
    }
