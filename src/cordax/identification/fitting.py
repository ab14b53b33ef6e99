"""From a recording to parameters."""

from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._checks import known_values, require, require_instance, require_number, require_whole
from ..experiment import Experiment
from ..formulations import Formulation
from ..integrators import Integrator
from ..mechanics import System
from ..parameters import Parameter, collect
from ..recording import Recording
from .first_order import FORWARD_LIMIT, first_order
from .grid import Grid, grid
from .least_squares import levenberg_marquardt
from .numerics import other_numerics, prediction_change
from .problem import Problem, noise_levels
from .report import Fit
from .stopping import CONVERGED, MISFIT, MISFIT_LIMIT, Search
from .uncertainty import Uncertainty


def identify(
    system: System | Experiment,
    recording: Recording,
    parameters: Sequence[str | Parameter],
    *,
    noise: Any = None,
    state0: Any = None,
    control: Any = None,
    dt: float | None = None,
    t0: float | None = None,
    integrator: Integrator | str | None = None,
    formulation: Formulation | None = None,
    method: Literal["levenberg-marquardt"] | optax.GradientTransformation = "levenberg-marquardt",
    max_steps: int = 100,
    tolerance: float = 1e-8,
    check_step: bool = True,
) -> Fit:
    """Find the numbers of a machine with which its simulation matches a recording best.

    **Arguments:**

    - `system`: the machine; its numbers are the start of the search. Or an `Experiment`, with its
      start, inputs, step, integrator and formulation, which are then not given again.
    - `recording`: what was measured. Its instants lie on the grid `t0 + n dt`.
    - `parameters`: what to fit, names such as `"tendon.stiffness"` or `Parameter`s.
    - `noise`: standard deviation of the recorded values, one number or numbers by name, in their
      units. It weighs quantities of different units and precision against each other; only ratios
      matter for the estimates and their covariance. Residuals far above it are no success (see
      `Fit.reason`). None: all alike, and not known.
    - `state0`: the start, or a function from the machine to it (an elastic machine starts from a
      stretch that depends on its stiffness); the machine's default state if not given.
    - `control`: as in `simulate`, or a function of one argument, from the machine to any of these.
    - `dt`: step [s]; by default the largest up to `system.default_dt` that divides the sampling
      interval. `t0` [s]: when the run starts; by default at the first recorded instant.
    - `integrator`: Rosenbrock2 unless told otherwise: stable at any stiffness the search may try,
      and of order 2. The numerical damping of a first-order method would be mistaken for the
      machine's.
    - `method`: "levenberg-marquardt", with Jacobians by forward mode, or any optax optimiser, such
      as `optax.adam(0.05)`, acting on the search coordinates (logarithms for positive numbers).
    - `max_steps`, `tolerance`: at most so many iterations; stop when parameters, relatively, and
      misfit change by less.
    - `check_step`: repeat the run at the optimum with half the step and see how far this would move
      the estimates (`Fit.step_shift`); where residuals are not noise also with the machine's
      default method at the sampling interval and with recorded inputs read differently, to see
      whether that is their size (`Fit.numerics`).

    Warns if the search did not converge, if parameters cannot be told apart, if the time step
    biases the estimates by more than half a standard error, or if residuals are not noise: smooth
    residuals are errors of the model, and intervals are then widened by their correlation.

    Composes with `jax.jit` and `jax.vmap` over numbers of the machine and recorded values: in a
    batch no warnings are given; look at `code`, `singular_values` and `step_shift`.
    """
    require(isinstance(recording, Recording), "recording", type(recording).__name__, "a Recording")
    require_instance("system", system, System, Experiment)
    require_whole("max_steps", max_steps, 1)
    require_number("tolerance", tolerance)
    if t0 is not None:
        require_number("t0", t0, positive=False)
    require(isinstance(check_step, bool), "check_step", check_step, "True or False")
    lm = isinstance(method, str) and method == "levenberg-marquardt"
    require(
        lm or isinstance(method, optax.GradientTransformation),
        "method",
        method,
        "'levenberg-marquardt' or an optax optimiser",
    )
    experiment = _experiment(
        system,
        {"state0": state0, "control": control, "integrator": integrator, "dt": dt, "t0": t0},
        formulation,
    )
    whole = experiment.integrator is not None and experiment.integrator.whole_runs
    found = collect(parameters, experiment)
    forward = lm or found.size <= FORWARD_LIMIT
    problem = Problem(
        experiment,
        found,
        grid(
            recording.t,
            experiment.dt,
            experiment.t0 if isinstance(system, Experiment) else t0,
            experiment.system.default_dt,
        ),
        recording.values,
        noise_levels(noise, recording),
        noise is not None,
        # a method with its own time loop has a mode for forward derivatives; ours needs none
        "forward" if whole and forward else "scan" if forward else "checkpointed",
    )
    problem.check()
    fit = _solve(problem, recording, None if lm else method, max_steps, tolerance)
    if check_step:
        change, shift = _step_shift(_refined(problem), problem, fit)
        fit = eqx.tree_at(lambda f: f.step_shift, fit, shift)
    if known_values(fit.values) is not None and known_values(fit.step_shift) is not None:
        if check_step and fit.coloured():
            found = {"half the time step": change} | other_numerics(problem, fit)
            fit = eqx.tree_at(lambda f: f.numerics, fit, found, is_leaf=_is_empty)
        fit.warn()
    return fit


_is_empty = lambda x: isinstance(x, dict) and not x


def _experiment(system, settings: dict[str, Any], formulation) -> Experiment:
    """Of a machine and settings, or the one given, with an integrator that suits a search."""
    given = {name: x for name, x in settings.items() if x is not None}
    if isinstance(system, Experiment):
        given |= {} if formulation is None else {"formulation": formulation}
        require(not given, ", ".join(given), "a value", "nothing: the experiment has them")
        return system if system.integrator else system.replace(integrator="rosenbrock_2")
    require(isinstance(system, System), "system", system, "a System or an Experiment")
    given.pop("t0", None)
    return Experiment(system, formulation=formulation, **{"integrator": "rosenbrock_2", **given})


@eqx.filter_jit
def _solve(problem: Problem, recording, optimiser, max_steps: int, tolerance: float) -> Fit:
    options = {"max_steps": max_steps, "tolerance": tolerance}
    if optimiser is None:
        search = levenberg_marquardt(problem, **options)
    else:
        search = first_order(problem, optimiser=optimiser, **options)
    return _fit(problem, recording, search)


def _refined(problem: Problem) -> Problem:
    """The same problem with half the step."""
    g = problem.grid
    half = Grid(g.t0, 0.5 * g.dt, 2 * g.steps, 2 * g.save_every, g.rows)
    return eqx.tree_at(lambda p: p.grid, problem, half)


@eqx.filter_jit
def _step_shift(refined: Problem, problem: Problem, fit: Fit):
    """How much the simulation at the optimum changes when it becomes the refined one, over the
    residuals, and how far, to first order, this moves the estimates."""
    change = prediction_change(refined, problem, fit)
    shift = -fit.about.inverse @ (fit.about.jacobian.T @ change)
    least = jnp.finfo(change.dtype).tiny
    share = jnp.sqrt(jnp.sum(change**2) / jnp.maximum(fit.cost, least))
    return share, jax.jacfwd(fit.parameters.values)(fit.y) @ shift


def _fit(problem: Problem, recording: Recording, search: Search) -> Fit:
    parameters = problem.parameters
    y = search.y
    cost = jnp.sum(search.residuals**2)
    freedom = problem.count() - parameters.size
    variance = cost / jnp.maximum(freedom, 1)
    about = Uncertainty(search.jacobian, search.residuals, variance, problem.values)
    far = problem.noise_given & (variance > MISFIT_LIMIT**2)
    slope = jax.jacfwd(parameters.values)(y)  # dp/dy: natural units
    return Fit(
        names=parameters.names,
        values=parameters.values(y),
        start=parameters.values(jnp.zeros_like(y)),
        covariance=slope @ about.covariance @ slope.T,
        residuals=problem.differences(search.trajectory),
        trajectory=search.trajectory,
        experiment=parameters.insert(problem.experiment, y),
        recording=recording,
        noise=problem.noise,
        cost=cost,
        noise_scale=jnp.sqrt(variance),
        freedom=freedom,
        iterations=search.iterations,
        code=jnp.where(far & (search.code == CONVERGED), MISFIT, search.code),
        step_shift=jnp.full_like(y, jnp.nan),
        numerics={},
        y=y,
        parameters=parameters,
        about=about,
    )
