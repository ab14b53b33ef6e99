"""Result codes of a simulation: one sentence each, ending with what to try."""

import diffrax


class RESULTS(diffrax.RESULTS):  # pyright: ignore[reportGeneralTypeIssues]
    nonfinite_state = (
        "The state became infinite or NaN. Try a smaller dt, or an A-stable integrator such as "
        "cordax.LinearlyImplicitEuler or cordax.Rosenbrock2; cordax.step_limit predicts the "
        "largest stable "
        "explicit step."
    )
    runaway_state = (
        "The state left the range in which the model is valid (System.valid). Either the step is "
        "too large for "
        "the integrator (try a smaller dt or an A-stable integrator; cordax.step_limit predicts "
        "the limit) or "
        "the machine itself is unstable (check gains and prestress; cordax.modes shows growing "
        "modes)."
    )
    newton_not_converged = (
        "The Newton iteration of an implicit step did not converge. Try a smaller dt, more "
        "iterations "
        "(max_iterations) or a linearly implicit integrator."
    )
    constraint_drift = (
        "The constraints drifted further than allowed. Try a smaller dt, stronger stabilisation "
        "or a "
        "projected formulation."
    )
    singular_constraints = (
        "The constraint Jacobian lost rank. Remove redundant constraints or use a formulation "
        "that accepts them."
    )
    qp_infeasible = (
        "No cable tensions within the bounds produce the wanted force. Relax the tension bounds "
        "or change the motion."
    )
