"""Linear systems assembled along a chain of overlapping elements.

Element e joins the nodes e to e + k - 1, each with m unknowns; spans of a rod are such elements.
The frontal method adds one element at a time to a small dense matrix, the front, and eliminates the
node that no later element contains. The work is proportional to the number of nodes. There are no
LAPACK calls, so that XLA can compile the time loop into one function."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._jax.materialise import materialise
from .linalg import matmul, matvec


class ChainFactor(eqx.Module):
    """Factorisation of a chain of n nodes.

    For each node at its elimination: `inverse` of its diagonal block (m, m), its coupling to the
    w = (k - 1) m following unknowns, `ahead` (m, w), and their coupling to it, `behind` (w, m)."""

    inverse: Float[Array, "n m m"]
    ahead: Float[Array, "n m w"]
    behind: Float[Array, "n w m"]

    def solve(self, b: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """Solve the system for a right-hand side `b`."""
        m, w = self.ahead.shape[1:]
        zero = jnp.zeros(m, b.dtype)

        def forward(carry, node):
            inverse, behind, b = node
            x = matvec(inverse, b + carry[:m])
            return materialise((jnp.concatenate([carry[m:], zero]) - matvec(behind, x), x))

        def backward(carry, node):
            inverse, ahead, x = node
            x = x - matvec(inverse, matvec(ahead, carry))
            return materialise((jnp.concatenate([x, carry[:-m]]), x))

        start = jnp.zeros(w, b.dtype)
        _, x = lax.scan(forward, start, (self.inverse, self.behind, b))
        return lax.scan(backward, start, (self.inverse, self.ahead, x), reverse=True)[1]

    def transposed(self) -> "ChainFactor":
        """Factorisation of the transposed matrix."""
        turn = lambda x: x.swapaxes(1, 2)
        return ChainFactor(turn(self.inverse), turn(self.behind), turn(self.ahead))


def factor_chain(elements: Float[Array, "n km km"], m: int) -> ChainFactor:
    """Factorise the sum of all elements, one per node.

    The last k - 1 elements reach beyond the end of the chain and must be zero there. There is no
    pivoting between nodes, which suits matrices such as `M - h D - h^2 K`."""
    w = elements.shape[-1] - m

    def eliminate(rest, element):
        front = materialise(element + jnp.pad(rest, ((0, m), (0, m))))
        inverse = materialise(small_inverse(front[:m, :m]))
        ahead, behind = front[:m, m:], front[m:, :m]
        solved = materialise(matmul(inverse, ahead))
        rest = front[m:, m:] - matmul(behind, solved)
        return materialise(rest), (inverse, ahead, behind)

    _, parts = lax.scan(eliminate, jnp.zeros((w, w), elements.dtype), elements)
    return ChainFactor(*parts)


def small_inverse(A: Float[Array, "m m"]) -> Float[Array, "m m"]:
    """Invert a small matrix by recursive halving into blocks, without pivoting."""
    m = A.shape[0]
    if m == 1:
        return 1.0 / A
    k = m // 2
    P, Q, R, S = A[:k, :k], A[:k, k:], A[k:, :k], A[k:, k:]
    p = small_inverse(P)
    RP = matmul(R, p)
    s = small_inverse(S - matmul(RP, Q))
    PQ = matmul(p, Q)
    upper = jnp.concatenate([p + matmul(PQ, matmul(s, RP)), -matmul(PQ, s)], axis=1)
    return jnp.concatenate([upper, jnp.concatenate([-matmul(s, RP), s], axis=1)])
