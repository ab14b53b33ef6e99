"""Linear systems assembled along a chain: elements that overlap in a row.

Element e joins the nodes e to e + k - 1, each with m unknowns; a rod's spans are such elements. The
frontal method adds one element at a time to a small dense matrix, the front, and eliminates the
node that no later element touches: the work grows with the number of nodes, and no LAPACK call
keeps the time loop from being compiled into one function."""

import equinox as eqx
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from .._jax.materialise import materialise
from .linalg import matmul, matvec


class ChainFactor(eqx.Module):
    """A factorised chain of n nodes. For each node, when its turn came: the inverse of its own
    block (m, m), its coupling to the w = (k - 1) m unknowns that follow, (m, w), and theirs to it,
    (w, m)."""

    inverse: Float[Array, "n m m"]
    ahead: Float[Array, "n m w"]
    behind: Float[Array, "n w m"]

    def solve(self, b: Float[Array, "n m"]) -> Float[Array, "n m"]:
        """The solution for a right-hand side."""
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
        """Of the transposed matrix."""
        turn = lambda x: x.swapaxes(1, 2)
        return ChainFactor(turn(self.inverse), turn(self.behind), turn(self.ahead))


def factor_chain(elements: Float[Array, "n km km"], m: int) -> ChainFactor:
    """Factorise the sum of all elements, one per node; the last k - 1, which reach beyond the end
    of the chain, are zero there. No pivoting between nodes: for matrices like `M - h D - h^2 K`."""
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
    """By halves, without pivoting."""
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
