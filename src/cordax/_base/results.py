"""Result codes of a simulation: one sentence each, ending with what to try."""

import enum
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int


class Code(enum.IntEnum):
    """How a step, a projection or a controller ended, as the number that travels through compiled
    loops; names are those of `RESULTS`."""

    SUCCESSFUL = 0
    NONFINITE_STATE = 1
    RUNAWAY_STATE = 2
    NEWTON_NOT_CONVERGED = 3
    CONSTRAINT_DRIFT = 4
    SINGULAR_CONSTRAINTS = 5
    QP_INFEASIBLE = 6
    ACCURACY_NOT_REACHED = 7
    INVALID_NUMBERS = 8
    DEAD_CENTRE = 9


GOOD = Code.SUCCESSFUL


def code_unless(ok, code: Code) -> Int[Array, ""]:
    """`code`, or good where `ok`."""
    return jnp.where(ok, jnp.int32(GOOD), jnp.int32(code))


def first_code(*codes) -> Int[Array, ""]:
    """The first of `codes` that is not good."""
    first = jnp.int32(GOOD)
    for code in reversed(codes):
        first = jnp.where(jnp.asarray(code) == GOOD, first, jnp.asarray(code, jnp.int32))
    return first


class RESULTS(eqx.Enumeration):
    """How a run ended. The second half is what Diffrax may say, under its names."""

    successful = ""
    nonfinite_state = (
        "The state became infinite or NaN. Try a smaller dt, or an A-stable integrator such as "
        "cordax.LinearlyImplicitEuler or cordax.Rosenbrock2; cordax.step_limit predicts the "
        "largest stable "
        "explicit step."
    )
    runaway_state = (
        "The state left the range in which the model is valid (System.valid), or its speeds grew "
        "beyond any bound. Either the step is too large for "
        "the integrator (try a smaller dt or an A-stable integrator; cordax.step_limit predicts "
        "the limit) or "
        "the machine itself is unstable (check gains and prestress; cordax.modes shows growing "
        "modes)."
    )
    newton_not_converged = (
        "The Newton iteration of an implicit step did not converge. Try a smaller dt, accuracy "
        "in place of dt (a step without solution is then repeated smaller), or a linearly "
        "implicit integrator. Stiff machines without damping gain energy under methods that damp "
        "nothing, such as ImplicitMidpoint: use cordax.GeneralisedAlpha."
    )
    constraint_drift = (
        "The constraints drifted further than allowed. Try a smaller dt, stronger stabilisation "
        "or a "
        "projected formulation."
    )
    singular_constraints = (
        "The constraint Jacobian lost rank. Remove redundant constraints or use a formulation "
        "that accepts them: cordax.Penalty or cordax.UdwadiaKalaba."
    )
    dead_centre = (
        "The independent coordinates reached a dead centre, where they do not determine the "
        "others. Choose other independent coordinates, or use the formulation cordax.Baumgarte."
    )
    accuracy_not_reached = (
        "The wanted accuracy was not reached within the number of steps allowed between two "
        "instants. Try a smaller dt, a larger accuracy, or an integrator that suits the machine."
    )
    invalid_numbers = (
        "A number of the machine, its controller or the method is not allowed: negative where it "
        "must be positive, or not finite. Construct the machine outside of jit and vmap to see "
        "which parameter."
    )
    qp_infeasible = (
        "No cable tensions within the bounds produce the wanted force. Relax the tension bounds "
        "or change the motion."
    )
    max_steps_reached = (
        "Diffrax reached the largest number of steps allowed. Try a larger max_steps, or a solver "
        "that suits the machine."
    )
    max_steps_rejected = "Diffrax rejected too many steps. Try larger tolerances."
    dt_min_reached = (
        "Diffrax reached its smallest step. Try larger tolerances, or a solver that suits the "
        "machine."
    )
    nonlinear_max_steps_reached = (
        "The equations of an implicit step of Diffrax were not solved within the iterations "
        "allowed. Try a smaller first step, or a solver that is not implicit."
    )
    nonlinear_divergence = (
        "The equations of an implicit step of Diffrax have no solution that was found. Try a "
        "smaller first step, or a solver that is not implicit."
    )
    nonfinite = "Diffrax met numbers that are infinite or NaN. Try a smaller first step."
    nonfinite_input = "A linear solver of Diffrax was given numbers that are infinite or NaN."
    singular = "A linear solver of Diffrax met a singular matrix."
    breakdown = "A linear solver of Diffrax broke down. Try another one."
    stagnation = "A linear solver of Diffrax came to a halt. Try another one."
    conlim = "A linear solver of Diffrax met a matrix that is too badly conditioned."
    event_occurred = "An event of Diffrax ended the run."
    internal_error = "Diffrax failed for a reason of its own. Try another solver."


def result_of(code) -> Any:
    """The `RESULTS` of a code."""
    result: Any = RESULTS.successful
    for value in Code:
        result = RESULTS.where(code == value, getattr(RESULTS, value.name.lower()), result)
    return result
