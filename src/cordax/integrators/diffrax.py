"""Time integration by any solver and step-size controller of Diffrax.

Diffrax is imported only when it is used, because its import takes half as long as that of JAX."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from .._base.checks import require, require_instance
from .._base.fields import count_field
from .._base.results import Result
from .base import Integrator, Traits


def _usual_solver():
    import diffrax

    return diffrax.Dopri8()


def _usual_controller():
    import diffrax

    return diffrax.PIDController(rtol=1e-9, atol=1e-9)


class Diffrax(Integrator):
    """Adaptive and high-order integration by Diffrax: `Diffrax(diffrax.Dopri8(),
    diffrax.PIDController(rtol, atol))`.

    `simulate` stores states at the same instants as with a fixed step; `dt` is the first step size
    that is tried. Controllers of the machine must be memoryless; they are evaluated in every
    stage."""

    solver: Any = eqx.field(default_factory=_usual_solver)
    controller: Any = eqx.field(default_factory=_usual_controller)
    max_steps: int = count_field(default=1_000_000)

    traits = Traits(order=None, explicit=False, variable_step=False, owns_time_loop=True)

    def __check_init__(self):
        import diffrax

        require_instance("solver", self.solver, diffrax.AbstractSolver)
        require_instance("controller", self.controller, diffrax.AbstractStepSizeController)

    def check(self, dynamics):
        import diffrax

        super().check(dynamics)
        given = type(dynamics.formulation).__name__
        steps = not dynamics.formulation.projects
        require(steps, "formulation", given, "one without projection after steps, with Diffrax")
        symplectic = (diffrax.SemiImplicitEuler, diffrax.LeapfrogMidpoint, diffrax.ReversibleHeun)
        if isinstance(self.solver, symplectic) and not isinstance(
            self.controller, diffrax.ConstantStepSize
        ):
            raise ValueError(
                f"integrator: {type(self.solver).__name__} keeps its structure only with a "
                f"constant step, "
                f"got controller {type(self.controller).__name__}; use diffrax.ConstantStepSize()"
            )

    def step(self, dynamics, t, dt, state, u, carry):
        raise NotImplementedError("Diffrax has its own time loop: call solve")

    def solve(self, dynamics, times, dt, state, u, forward: bool):
        """Integrate over `times`, shape (k,). Returns q and v at these times, whether each state is
        finite, and the result code. `forward`: support forward mode instead of reverse mode."""
        import diffrax

        adjoint = diffrax.ForwardMode() if forward else diffrax.RecursiveCheckpointAdjoint()

        def field(t, y, args):
            dynamics, u = args
            q, v = dynamics.normalise(y[0]), y[1]
            return dynamics.rate(q, v), dynamics.acceleration(t, q, v, u(t, q, v))

        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            self.solver,
            times[0],
            times[-1],
            dt,
            (state.q, state.v),
            (dynamics, u),
            saveat=diffrax.SaveAt(ts=times),
            stepsize_controller=self.controller,
            adjoint=adjoint,
            max_steps=self.max_steps,
            throw=False,
        )
        assert solution.ys is not None
        q, v = jax.vmap(dynamics.normalise)(solution.ys[0]), solution.ys[1]
        finite = [jnp.all(jnp.isfinite(y), axis=-1) for y in (q, v)]
        return (q, v), finite[0] & finite[1], _reason(solution.result)


def _reason(result):
    """`Result` with the same name as a result of Diffrax; a result without such a name, from
    another version of Diffrax, counts as an internal error."""
    import diffrax

    code = jnp.int32(Result.INTERNAL_ERROR)
    for ours in Result:
        theirs = getattr(diffrax.RESULTS, ours.label, None)
        if theirs is not None:
            code = jnp.where(result == theirs, jnp.int32(ours), code)
    return code
