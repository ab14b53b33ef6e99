"""Form-finding of tensegrity structures: self-stress, mechanisms, stability, and simulation models.

A structure consists of nodes joined by bars and cables. If its equilibrium matrix has a null space,
member forces can be in equilibrium without a load. Force densities (force per length) in that null
space that are positive in cables and negative in bars hold the structure together. The computation
runs once, in NumPy."""

from typing import NamedTuple

import numpy as np

from ..._base.checks import require
from ..._base.precision import declare_units
from .body import Body
from .cables import CableSet, StrainLaw
from .guides import Eyelet
from .joints import Floating, rotation_between
from .mechanism import Mechanism
from .solids import cylinder

#: singular values below this fraction of the largest count as zero
_ZERO = 1e-9


class Structure(NamedTuple):
    """Tensegrity structure: `nodes` (n, 3) [m], and `bars` (b, 2) and `cables` (c, 2), the indices
    of the nodes that they join."""

    nodes: np.ndarray
    bars: np.ndarray
    cables: np.ndarray

    @property
    def members(self) -> np.ndarray:
        """Members of the structure: cables, then bars, shape (m, 2)."""
        return np.concatenate([self.cables, self.bars])


class SelfStress(NamedTuple):
    """Self-stress of a structure.

    - `states` (s, m): orthonormal basis of the force densities without load, cables first;
    - `mechanisms`: number of infinitesimal mechanisms besides the six rigid-body motions;
    - `densities`, shape (m,) [1/m]: if there is only one state, that state scaled to 1 in the first
      cable, else None;
    - `stable`: whether that state has the right signs and stiffens every mechanism."""

    states: np.ndarray
    mechanisms: int
    densities: np.ndarray | None
    stable: bool


def equilibrium_matrix(structure: Structure) -> np.ndarray:
    """Equilibrium matrix A (3n, m): force densities q exert the forces `A q` on the nodes."""
    nodes, members = structure.nodes, structure.members
    A = np.zeros((len(nodes), 3, len(members)))
    for k, (i, j) in enumerate(members):
        A[i, :, k] = nodes[j] - nodes[i]
        A[j, :, k] = nodes[i] - nodes[j]
    return A.reshape(-1, len(members))


def self_stress(structure: Structure) -> SelfStress:
    """Compute self-stress, mechanisms and stability of a structure from its geometry."""
    A = equilibrium_matrix(structure)
    U, s, Vt = np.linalg.svd(A)
    rank = int(np.sum(s > _ZERO * s[0]))
    states = Vt[rank:]
    mechanisms = A.shape[0] - rank - 6
    if len(states) != 1:
        return SelfStress(states, mechanisms, None, False)
    q = states[0] / states[0][0]
    n_cables = len(structure.cables)
    signs = bool(np.all(q[:n_cables] > 0) and np.all(q[n_cables:] < 0))
    return SelfStress(states, mechanisms, q, signs and _stiffened(structure, q, U[:, rank:]))


def _stiffened(structure: Structure, q, free) -> bool:
    """Whether the self-stress `q` gives every mechanism (null vectors `free` (3n, k) without rigid
    motions) a positive stiffness."""
    nodes = structure.nodes
    centred = nodes - nodes.mean(axis=0)
    rigid = [np.tile(e, (len(nodes), 1)) for e in np.eye(3)]
    rigid += [np.cross(e, centred) for e in np.eye(3)]
    R = np.linalg.qr(np.stack([r.reshape(-1) for r in rigid], axis=1))[0]
    left = free - R @ (R.T @ free)
    U, s, _ = np.linalg.svd(left, full_matrices=False)
    modes = U[:, s > 1e-6]
    if modes.shape[1] == 0:
        return True
    K = np.kron(density_matrix(structure, q), np.eye(3))
    return bool(np.linalg.eigvalsh(modes.T @ K @ modes).min() > 0)


def density_matrix(structure: Structure, q) -> np.ndarray:
    """Force density matrix D (n, n), with `A q = -D nodes`."""
    C = np.zeros((len(structure.members), len(structure.nodes)))
    for k, (i, j) in enumerate(structure.members):
        C[k, i], C[k, j] = 1.0, -1.0
    return C.T @ (np.asarray(q)[:, None] * C)


def find_form(structure: Structure, *, iterations: int = 1000, tolerance=1e-13) -> Structure:
    """Find nodes near the given ones at which the structure has a self-stress with cables in
    tension and bars in compression.

    The iteration alternates between two steps: force densities nearest to equilibrium at the
    current nodes, and the nearest nodes in equilibrium under these densities. Raises if it does not
    converge."""
    n_cables = len(structure.cables)
    sign = np.concatenate([np.ones(n_cables), -np.ones(len(structure.bars))])
    size = np.linalg.norm(structure.nodes)
    for _ in range(iterations):
        _, s, Vt = np.linalg.svd(equilibrium_matrix(structure))
        if s[-1] <= tolerance * s[0] or len(s) < Vt.shape[0]:
            break
        q = Vt[-1] * np.sign(Vt[-1] @ sign)
        require(
            bool(np.all(q * sign > 0)),
            "structure",
            "members that would have to change from pulling to pushing",
            "nodes nearer to a tensegrity",
        )
        _, vectors = np.linalg.eigh(_square(density_matrix(structure, q)))
        basis = vectors[:, :4]
        nodes = basis @ (basis.T @ structure.nodes)
        structure = structure._replace(nodes=nodes * size / np.linalg.norm(nodes))
    else:
        raise ValueError("structure: no self-stress found near the given nodes")
    return structure


def _square(D):
    return D @ D


@declare_units(radius="m", height="m", twist="rad")
def prism(n: int, *, radius=0.5, height=1.0, twist=None) -> Structure:
    """Tensegrity prism: n bars between two n-gons of a `radius` [m] at a `height` [m], cables along
    both n-gons (bottom first) and n upright cables.

    `twist` [rad] is the rotation of the top relative to the bottom along the bars. The default is
    pi/2 + pi/n, the only twist with a self-stress."""
    require(n >= 3, "n", n, "3 or more bars")
    twist = np.pi / 2 + np.pi / n if twist is None else twist
    corner = 2 * np.pi / n * np.arange(n)
    ring = lambda shift, z: np.stack(
        [radius * np.cos(corner + shift), radius * np.sin(corner + shift), np.full(n, z)], axis=1
    )
    i = np.arange(n)
    following = (i + 1) % n
    cables = [
        np.stack([i, following], axis=1),
        np.stack([n + i, n + following], axis=1),
        np.stack([following, n + i], axis=1),
    ]
    nodes = np.concatenate([ring(0.0, 0.0), ring(twist, height)])
    return Structure(nodes, np.stack([i, n + i], axis=1), np.concatenate(cables))


@declare_units(length="m")
def expanded_octahedron(length=1.0) -> Structure:
    """Expanded octahedron: six bars of a `length` [m] in three parallel pairs half a length apart,
    and 24 cables."""
    a, b = 0.5 * length, 0.25 * length
    nodes, bars = [], []
    for axis in range(3):
        for side in (-b, b):
            ends = np.zeros((2, 3))
            ends[:, axis] = -a, a
            ends[:, (axis + 1) % 3] = side
            bars.append((len(nodes), len(nodes) + 1))
            nodes += list(ends)
    nodes = np.array(nodes)
    gap = np.linalg.norm(nodes[:, None] - nodes, axis=2)
    short = np.sqrt(6.0) / 4.0 * length
    cables = np.argwhere(np.triu(np.abs(gap - short) < 1e-9 * length))
    return Structure(nodes, np.array(bars), cables)


@declare_units(
    prestress="N",
    stiffness="N",
    viscosity="N s",
    bar_radius="m",
    density="kg/m^3",
    gravity="m/s^2",
)
def as_mechanism(
    structure: Structure,
    *,
    prestress=100.0,
    stiffness=1e5,
    viscosity=0.0,
    bar_radius=0.01,
    density=2700.0,
    gravity=(0.0, 0.0, 0.0),
) -> Mechanism:
    """Mechanism of the structure: bars are free bodies, with cables between their ends.

    `prestress` [N]: force of the first cable in the self-stress that determines the unstretched
    cable lengths; `stiffness` E A [N] and `viscosity` mu A [N s] of the cables. Bars are solid
    cylinders."""
    found = self_stress(structure)
    require(found.densities is not None, "structure", "no single self-stress", "exactly one")
    nodes, ends, bodies = structure.nodes, {}, []
    for k, (i, j) in enumerate(structure.bars):
        along = nodes[j] - nodes[i]
        length = float(np.linalg.norm(along))
        R = np.asarray(rotation_between((0.0, 0.0, 1.0), along))
        rod = cylinder(bar_radius, length, density=density)
        middle = 0.5 * (nodes[i] + nodes[j])
        bodies.append(Body(f"bar{k + 1}", Floating(), solids=rod, at=middle, turned=R))
        ends[i] = Eyelet(f"bar{k + 1}", (0.0, 0.0, -0.5 * length))
        ends[j] = Eyelet(f"bar{k + 1}", (0.0, 0.0, 0.5 * length))
    lengths = np.linalg.norm(nodes[structure.cables[:, 0]] - nodes[structure.cables[:, 1]], axis=1)
    assert found.densities is not None
    q = found.densities[: len(lengths)] * prestress / lengths[0]
    rest = lengths / (1.0 + q * lengths / stiffness)
    cables = CableSet(
        [[ends[i], ends[j]] for i, j in structure.cables], StrainLaw(stiffness, viscosity), rest
    )
    return Mechanism(bodies, elements=[cables], gravity=gravity)
