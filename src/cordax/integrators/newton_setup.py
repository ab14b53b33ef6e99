"""Checks shared by the methods that solve the equations of motion by Newton's method."""

import equinox as eqx
import jax.numpy as jnp

from .._base.types import InputFunction
from .._jax.dependence import depends
from ..formulations import Dynamics
from ..mechanics import State


def holds_equations(dynamics: Dynamics) -> bool:
    """Whether the equations to solve are `M a = f - Phi_q^T lambda` and, with constraints,
    `Phi = 0`: no formulation replaces the constraints by accelerations."""
    return dynamics.formulation.keeps_constraints or dynamics.system.n_constraints == 0


def linearisation_suffices(dynamics: Dynamics, t, state: State, u: InputFunction) -> bool:
    """Whether the machine's linearisation contains all derivatives that Newton's method needs.

    This requires that the linearisation is `exact`, that inputs do not depend on the state, and
    that coordinates are `flat`."""
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
