"""What methods that solve the equations of motion by Newton's method share."""

import equinox as eqx
import jax.numpy as jnp

from .._base.types import InputFunction
from .._jax.dependence import depends
from ..formulations import Dynamics
from ..mechanics import State


def holds_equations(dynamics: Dynamics) -> bool:
    """Whether `M a = f - Phi_q^T lambda` and, if any, `Phi = 0` are all there is to solve: no
    formulation has turned the constraints into accelerations."""
    return dynamics.formulation.keeps_constraints or dynamics.system.n_constraints == 0


def linearisation_suffices(dynamics: Dynamics, t, state: State, u: InputFunction) -> bool:
    """Whether the machine's own linearisation holds all derivatives that Newton's method needs:
    it says so, inputs do not feed the state back, and positions add."""
    system, q, v = dynamics.system, state.q, state.v
    if not system.flat or depends(lambda q, v: u(t, q, v), q, v):
        return False

    def linearise(v):
        multipliers = jnp.zeros(system.n_constraints, v.dtype)
        inputs = u(t, q, v)
        return system.structure().linearise(
            t, q, v, inputs, acceleration=v, multipliers=multipliers, hold=False
        )

    return eqx.filter_eval_shape(linearise, v).exact
