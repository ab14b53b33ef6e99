"""Any diffrax solver and step-size controller on a machine."""

import diffrax
import jax
import jax.numpy as jnp

from .._checks import require
from .._fields import count_field, part_field
from .base import Integrator


class Diffrax(Integrator):
    """Adaptive and high-order integration by diffrax: `Diffrax(diffrax.Dopri8(),
    diffrax.PIDController(rtol, atol))`.

    `simulate` saves at the same instants as with a fixed step; `dt` is then the first step tried.
    Controllers must be memoryless and are evaluated in every stage."""

    solver: diffrax.AbstractSolver = part_field(default_factory=diffrax.Dopri8)
    controller: diffrax.AbstractStepSizeController = part_field(
        default_factory=lambda: diffrax.PIDController(rtol=1e-9, atol=1e-9)
    )
    max_steps: int = count_field(default=1_000_000)

    explicit = False
    new_steps = False
    whole_runs = True

    def check(self, dynamics):
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

    def solve(self, dynamics, times, dt, state, u, adjoint: diffrax.AbstractAdjoint):
        """States at `times`, shape (k,), and the diffrax solution's result code."""

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
        return (q, v), finite[0] & finite[1], solution.result
