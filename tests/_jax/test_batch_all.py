"""One decision for all members of a batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from cordax._jax.batch_all import everywhere

XS = jnp.array([1.0, 4.0, 9.0])


def branch(x):
    """Both branches are the square root; the second one works for all members."""
    return jax.lax.cond(everywhere(x < 5.0), jnp.sqrt, lambda x: x / jnp.sqrt(x), x)


def test_a_condition_of_one_run_is_itself():
    assert bool(everywhere(True)) and not bool(jax.jit(everywhere)(False))


def test_a_condition_of_a_batch_holds_in_all_members():
    every = jax.jit(jax.vmap(lambda x: everywhere(x < 5.0), out_axes=None))
    assert bool(every(XS[:2])) and not bool(every(XS))


@pytest.mark.parametrize("xs", [XS, XS[:2]])
def test_both_ways_agree(xs, monkeypatch):
    """The batch keeps its conditional, which becomes a selection without the feature."""
    program = lambda: str(jax.make_jaxpr(jax.vmap(branch))(xs))
    values = lambda: np.asarray(jax.vmap(branch)(xs))
    with_feature, kept = values(), program()
    monkeypatch.setenv("CORDAX_BATCH_CONDITIONS", "0")
    np.testing.assert_allclose(values(), with_feature, rtol=1e-15)
    assert "cond[" in kept and "cond[" not in program()
