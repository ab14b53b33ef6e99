"""Result codes of a simulation, each with a message that describes the cause and a remedy."""

import enum

import jax.numpy as jnp
from jaxtyping import Array, Int


class Result(enum.IntEnum):
    """Result code of a step, a projection, a controller or a run.

    Compiled loops and `Trajectory.result` hold its number. `message` describes the cause and a
    remedy."""

    message: str

    def __new__(cls, value: int, message: str):
        """Create a member with its message."""
        member = int.__new__(cls, value)
        member._value_, member.message = value, message
        return member

    @property
    def label(self) -> str:
        """Name in lower case, as written in files and tables."""
        return self.name.lower()

    SUCCESSFUL = 0, ""
    NONFINITE_STATE = (
        1,
        "The state became infinite or NaN. Try a smaller dt, or an A-stable integrator such as "
        "cordax.LinearlyImplicitEuler or cordax.Rosenbrock2; cordax.step_limit predicts the "
        "largest stable explicit step.",
    )
    RUNAWAY_STATE = (
        2,
        "The state left the range in which the model is valid (System.valid), or its speeds "
        "grew beyond any bound. Either the step is too large for the integrator (try a smaller "
        "dt or an A-stable integrator; cordax.step_limit predicts the limit) or the machine "
        "itself is unstable (check gains and prestress; cordax.modes shows growing modes).",
    )
    NEWTON_NOT_CONVERGED = (
        3,
        "The Newton iteration of an implicit step did not converge. Try a smaller dt, accuracy "
        "in place of dt (a step without solution is then repeated smaller), or a linearly "
        "implicit integrator. Stiff machines without damping gain energy under methods that "
        "damp nothing, such as ImplicitMidpoint: use cordax.GeneralisedAlpha.",
    )
    CONSTRAINT_DRIFT = (
        4,
        "The constraints drifted further than allowed. Try a smaller dt, stronger stabilisation"
        " or a projected formulation.",
    )
    SINGULAR_CONSTRAINTS = (
        5,
        "The constraint Jacobian lost rank. Remove redundant constraints or use a formulation "
        "that accepts them: cordax.Penalty or cordax.UdwadiaKalaba.",
    )
    QP_INFEASIBLE = (
        6,
        "No cable tensions within the bounds produce the wanted force. Relax the tension bounds"
        " or change the motion.",
    )
    ACCURACY_NOT_REACHED = (
        7,
        "The wanted accuracy was not reached within the number of steps allowed between two "
        "instants. Try a smaller dt, a larger accuracy, or an integrator that suits the "
        "machine.",
    )
    INVALID_NUMBERS = (
        8,
        "A number of the machine, its controller or the method is not allowed: negative where "
        "it must be positive, or not finite. Construct the machine outside of jit and vmap to "
        "see which parameter.",
    )
    DEAD_CENTRE = (
        9,
        "The independent coordinates reached a dead centre, where they do not determine the "
        "others. Choose other independent coordinates, or use the formulation cordax.Baumgarte.",
    )
    # results of Diffrax, under its names
    MAX_STEPS_REACHED = (
        10,
        "Diffrax reached the largest number of steps allowed. Try a larger max_steps, or a "
        "solver that suits the machine.",
    )
    MAX_STEPS_REJECTED = 11, "Diffrax rejected too many steps. Try larger tolerances."
    DT_MIN_REACHED = (
        12,
        "Diffrax reached its smallest step. Try larger tolerances, or a solver that suits the "
        "machine.",
    )
    NONLINEAR_MAX_STEPS_REACHED = (
        13,
        "The equations of an implicit step of Diffrax were not solved within the iterations "
        "allowed. Try a smaller first step, or a solver that is not implicit.",
    )
    NONLINEAR_DIVERGENCE = (
        14,
        "The equations of an implicit step of Diffrax have no solution that was found. Try a "
        "smaller first step, or a solver that is not implicit.",
    )
    NONFINITE = 15, "Diffrax met numbers that are infinite or NaN. Try a smaller first step."
    NONFINITE_INPUT = 16, "A linear solver of Diffrax was given numbers that are infinite or NaN."
    SINGULAR = 17, "A linear solver of Diffrax met a singular matrix."
    BREAKDOWN = 18, "A linear solver of Diffrax broke down. Try another one."
    STAGNATION = 19, "A linear solver of Diffrax came to a halt. Try another one."
    CONLIM = 20, "A linear solver of Diffrax met a matrix that is too badly conditioned."
    EVENT_OCCURRED = 21, "An event of Diffrax ended the run."
    INTERNAL_ERROR = 22, "Diffrax failed for a reason of its own. Try another solver."


GOOD = Result.SUCCESSFUL
#: names in lower case, in the order of the codes
LABELS = [result.label for result in Result]
MESSAGES = [result.message for result in Result]


def code_unless(ok, code: Result) -> Int[Array, ""]:
    """Return `code`, or the code of success where `ok`."""
    return jnp.where(ok, jnp.int32(GOOD), jnp.int32(code))


def first_code(*codes) -> Int[Array, ""]:
    """Return the first of `codes` that is not success; success if there is none."""
    first = jnp.int32(GOOD)
    for code in reversed(codes):
        first = jnp.where(jnp.asarray(code) == GOOD, first, jnp.asarray(code, jnp.int32))
    return first
