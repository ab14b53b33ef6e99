"""Whether functions look at their arguments."""

import jax
import jax.numpy as jnp

from cordax._jax.dependence import depends


def test_seen_and_unseen_arguments():
    x = jnp.ones(3)
    assert depends(lambda x: 2.0 * x, x)
    assert depends(lambda x, y: y, x, x)
    assert not depends(lambda x: jnp.ones(3), x)
    assert not depends(lambda x: jnp.zeros_like(x), x)


def test_within_other_transformations():
    @jax.jit
    def outer(x):
        feedback, given = depends(lambda y: x + y, x), depends(lambda y: 2.0 * x, x)
        assert feedback
        assert not given
        return x

    jax.grad(lambda x: jnp.sum(outer(x)))(jnp.ones(2))
