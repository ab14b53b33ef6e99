"""Fit the parameters of a machine to recordings."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from .._base.checks import known_values, require, require_number, require_whole
from .._jax.identity import filter_jit
from ..formulations import Formulation
from ..integrators import Integrator
from ..mechanics import System
from ..parameters.built_parameters import built_parameters
from ..parameters.parameter import Parameter, ParameterSet, collect
from ..recordings.recording import Recording
from ..simulation.experiment import Experiment
from .fit import Fit
from .initial_guess import approach, with_recorded_start
from .least_squares import levenberg_marquardt
from .loss import LossName, loss_of
from .optax_search import FORWARD_LIMIT, first_order
from .problem import Problem, Trial, noise_levels
from .resample import filters_of
from .step_sensitivity import other_numerics, prediction_change, refined
from .termination import CONVERGED, MISFIT, MISFIT_LIMIT, Search
from .time_grid import grid
from .uncertainty import Uncertainty

#: function from parameter values by name and a recording to the experiment that predicts it
Build = Callable[[dict[str, Any], Recording], Experiment]


def identify(
    system: System | Experiment | Sequence[Experiment] | Build,
    recording: Recording | Sequence[Recording],
    parameters: Sequence[str | Parameter] | Mapping[str, Any],
    *,
    noise: Any = None,
    loss: LossName = "linear",
    loss_scale: float | None = None,
    state0: Any = None,
    control: Any = None,
    dt: float | None = None,
    t0: float | None = None,
    integrator: Integrator | str | None = None,
    formulation: Formulation | None = None,
    method: Literal["levenberg-marquardt"] | optax.GradientTransformation = "levenberg-marquardt",
    starts: int = 1,
    horizons: int = 1,
    segments: int = 1,
    seed: int = 0,
    max_steps: int = 100,
    tolerance: float = 1e-8,
    check_step: bool = True,
    progress: bool = False,
) -> Fit:
    """Fit the parameters of a machine so that its simulation matches a recording best.

    **Arguments:**

    - `system`: the machine; its parameter values are the starting point of the search. Or an
      `Experiment` with its initial state, inputs, time step, integrator and formulation, which are
      then not given again. Or a list of experiments, one for each recording, that differ in initial
      state and inputs. Or a function `build(values, recording)` that returns the `Experiment` of a
      recording from a dictionary of parameter values (arrays) by name, so that rest shapes, lengths
      and initial states may depend on them.
    - `recording`: one recording or a list of several. Recordings that differ in numerical values
      only are simulated as one batch. The simulation is interpolated between steps, so any sampling
      is allowed; for sensors with separate clocks see `Recording.join`.
    - `parameters`: parameters to fit, names such as `"tendon.stiffness"` or `Parameter`s. With
      several recordings, parameters of the initial state and those with `Parameter(each=True)` have
      one value for each recording. With a build function: initial values by name, or Parameters
      with `start=`.
    - `noise`: standard deviation of the recorded values, one number or numbers by name (also one
      for each sample), in their units, or a list of these for several recordings. It weights
      quantities of different units and precision against each other. Without priors, only ratios
      affect the estimates and their covariance. A fit whose residuals are far above the noise does
      not count as successful (see `Fit.reason`). None: equal weights, unknown noise.
    - `loss`: "linear" (least squares), or a robust loss, which reduces the weight of outliers:
      "soft_l1", "huber" or "cauchy" (in order of robustness; "cauchy" can have several minima).
      `loss_scale`: multiple of the noise beyond which residuals have less weight, by default 1.345
      ("soft_l1", "huber") or 2.385 ("cauchy"). Without `noise` it is required, in the units of the
      recorded values.
      Intervals and tests of residuals take the loss into account. Priors are not robust.
    - `state0`: the initial state, or a function from the machine to it (for example a static
      stretch that depends on the stiffness); by default the machine's default state. With that
      default, coordinates and velocities that are parameters start at their first recorded values.
    - `control`: as in `simulate`, or a function from the machine to any of these.
    - `dt`: time step [s]; by default the largest up to `system.default_dt` that divides the
      (median) sampling interval. `t0` [s]: start time of the run; by default the first recorded
      instant.
    - `integrator`: Rosenbrock2 by default. It is stable at any stiffness that the search may try,
      and of order 2. The numerical damping of a first-order method would be mistaken for the
      machine's.
    - `method`: "levenberg-marquardt", with Jacobians by forward mode, or any optax optimiser, such
      as `optax.adam(0.05)`, applied to the search coordinates (logarithms of positive parameters).
    - `starts`: number of further starting points, spread evenly (a Latin hypercube by `seed`)
      within bounds, or by a factor of ten (log) and by their size (linear) around the initial
      values. They are simulated in one batch; the search begins at the best.
    - `horizons`: number of successive searches. The first fits a short part from the beginning,
      each further one twice as much, and the last everything: for long motions and poor initial
      values.
    - `segments`: multiple shooting: split recordings into this many segments with free initial
      states, and close the gaps between them step by step, before the whole recording is fitted.
      For long, unstable or chaotic motions of machines without constraints.
    - `max_steps`, `tolerance`: largest number of iterations; stop when the relative changes of the
      parameters and the change of the misfit are below the tolerance.
    - `check_step`: repeat the run at the optimum with half the time step and estimate how far this
      would move the estimates (`Fit.step_shift`). If residuals are not noise, also repeat it with
      the machine's default integrator at the sampling interval and with recorded inputs
      interpolated differently, and compare the change with the residuals (`Fit.numerics`).
    - `progress`: print a line for each iteration.
    Warns if the search did not converge, if parameters cannot be identified separately, if the time
    step biases the estimates by more than half a standard error, or if residuals are not noise.
    Smooth residuals are errors of the model; intervals are then widened by their correlation.

    Composes with `jax.jit` and `jax.vmap` over parameters of the machine and recorded values.
    Batches give no warnings; check `code`, `singular_values` and `step_shift`.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    import numpy as np
    from cordax.systems import Pendulum

    truth = cordax.simulate(Pendulum(length=0.8), dt=0.01, duration=1.0)
    noise = 1e-3 * np.random.default_rng(0).normal(size=101)  # rad
    recording = cordax.Recording(truth.t, {"angle": truth["angle"] + noise})
    fit = cordax.identify(Pendulum(length=1.0), recording, ["length"])
    print(fit.summary())  # 0.8 m
    ```
    """
    recordings = [recording] if isinstance(recording, Recording) else recording
    given = isinstance(recordings, Sequence) and len(recordings) > 0
    given = given and all(isinstance(r, Recording) for r in recordings)
    require(given, "recording", type(recording).__name__, "a Recording, or a list of them")
    counts = {"starts": starts, "horizons": horizons, "segments": segments, "max_steps": max_steps}
    for name, count in counts.items():
        require_whole(name, count, 1)
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
    settings = {"state0": state0, "control": control, "integrator": integrator, "dt": dt, "t0": t0}
    found = None
    if callable(system) and not isinstance(system, (System, Experiment)):
        _require_none(settings | {"formulation": formulation}, "a build function")
        found = built_parameters(system, recordings, parameters)
        experiments = [found.build(found.origin, i) for i in range(len(recordings))]
    else:
        experiments = _experiments(system, settings, formulation, len(recordings))
        pairs = zip(experiments, recordings, strict=True)
        experiments = [_with_start(e, parameters, r) for e, r in pairs]
    times = [_begin(system, e, t0) for e in experiments]
    robust = loss_of(loss, loss_scale, noise is not None)
    found = collect(parameters, experiments) if found is None else found  # pyright: ignore
    problem = problem_of(experiments, recordings, found, noise=noise, times=times, lm=lm)
    problem = dataclasses.replace(problem, loss=robust)
    options = {"max_steps": max_steps, "tolerance": tolerance, "progress": progress}
    y0 = approach(problem, starts, horizons, segments, seed, options)
    if horizons > 1:  # the program that has fitted parts is reused for the whole
        problem = dataclasses.replace(problem, horizon=jnp.asarray(1.0))
    fit = _solve(problem, y0, None if lm else method, **options)
    if check_step:
        change, shift = _step_shift(refined(problem), problem, fit)
        fit = eqx.tree_at(lambda f: f.step_shift, fit, shift)
    if known_values(fit.values) is not None and known_values(fit.step_shift) is not None:
        if check_step and fit.coloured():
            found = {"half the time step": change} | other_numerics(problem, fit)
            fit = eqx.tree_at(lambda f: f.numerics, fit, found, is_leaf=_is_empty)
        fit.warn()
    return fit


_is_empty = lambda x: isinstance(x, dict) and not x


def problem_of(
    experiments, recordings, parameters, *, noise=None, times=None, lm: bool = True
) -> Problem:
    """Build the least-squares problem from experiments that have an integrator, one for each
    recording. Runs begin at `times` [s], by default at the start times of the experiments."""
    built = isinstance(parameters, ParameterSet)
    found = parameters if built else collect(parameters, experiments)
    require(
        noise is not None or not any(found.priors),
        "noise",
        noise,
        "the standard deviation of the recorded values: priors are weighted against the data by it",
    )
    forward = lm or found.size <= FORWARD_LIMIT
    whole = any(
        e.integrator is not None and e.integrator.traits.owns_time_loop for e in experiments
    )
    times = [e.t0 for e in experiments] if times is None else times
    trials = [
        Trial(e, r, grid(r.t, e.dt, begin, e.system.default_dt), levels, filters_of(e, r))
        for e, r, begin, levels in zip(
            experiments, recordings, times, _noises(noise, recordings), strict=True
        )
    ]
    # an integrator with a built-in time loop has a forward-derivative mode; the cordax loop needs
    # none
    adjoint = "forward" if whole and forward else "scan" if forward else "checkpointed"
    problem = Problem(tuple(trials), found, noise is not None, adjoint)
    problem.check()
    return problem


def _experiments(system, settings: dict[str, Any], formulation, count: int) -> list[Experiment]:
    """Build experiments from a machine and settings, or take the given ones, and set integrators
    that suit a search."""
    given = {name: x for name, x in settings.items() if x is not None}
    if isinstance(system, System):
        given.pop("t0", None)
        given = {"integrator": "rosenbrock_2", **given}
        return [Experiment(system, formulation=formulation, **given)] * count
    given |= {} if formulation is None else {"formulation": formulation}
    require(not given, ", ".join(given), "a value", "nothing: the experiment has them")
    several = [system] * count if isinstance(system, Experiment) else system
    expected = "a System, an Experiment or a list of Experiments"
    listed = isinstance(several, Sequence) and all(isinstance(e, Experiment) for e in several)
    require(listed, "system", system, expected)
    said = f"{len(several)} experiments", f"one for each of the {count} recordings"
    require(len(several) == count, "system", *said)
    return [e if e.integrator else e.replace(integrator="rosenbrock_2") for e in several]


def _require_none(settings: dict[str, Any], owner: str) -> None:
    given = [name for name, x in settings.items() if x is not None]
    if given:
        raise ValueError(
            f"{', '.join(given)} cannot be given together with {owner}; set it in the experiments"
        )


def _begin(system, experiment: Experiment, t0: float | None) -> float | None:
    return t0 if isinstance(system, System) else experiment.t0


def _with_start(experiment: Experiment, parameters, recording: Recording) -> Experiment:
    """Turn the machine's default initial state into parameters if part of it is fitted. The search
    starts from recorded values where the recording contains them."""
    given = parameters if isinstance(parameters, (list, tuple)) else ()  # `collect` rejects others
    names = [getattr(p, "name", p) for p in given]
    wanted = any(isinstance(n, str) and n.startswith("state0") for n in names)
    if not wanted or experiment.state0 is not None:
        return experiment
    experiment = experiment.replace(state0=experiment.start)
    return with_recorded_start(experiment, parameters, recording)


def _noises(noise, recordings: Sequence[Recording]) -> list[dict[str, Any]]:
    several = list(noise) if isinstance(noise, (list, tuple)) else [noise] * len(recordings)
    said = f"{len(several)} entries", f"one for each of the {len(recordings)} recordings"
    require(len(several) == len(recordings), "noise", *said)
    recorded = {name for r in recordings for name in r.names}
    for one in several:
        unknown = sorted(set(one) - recorded) if isinstance(one, dict) else []
        known = ", ".join(sorted(recorded))
        require(not unknown, "noise", ", ".join(unknown), f"exactly {known}")
    return [noise_levels(one, r) for one, r in zip(several, recordings, strict=True)]


def refit(fit: Fit, recordings: Sequence[int], **options) -> Fit:
    """Repeat a fit with some of its recordings, by their indices, from its optimum."""
    problem = fit.problem
    loss = problem.loss
    if loss is not None:
        loss = eqx.tree_at(lambda x: x.gain, loss, jnp.ones_like(loss.gain))
    smaller = dataclasses.replace(
        problem,
        trials=tuple(problem.trials[i] for i in recordings),
        parameters=problem.parameters.subset(recordings),
        loss=loss,
    )
    options = {"max_steps": 100, "tolerance": 1e-8, "progress": False} | options
    return _solve(smaller, fit.y[problem.parameters.rows(recordings)], None, **options)


@filter_jit
def _solve(problem: Problem, y0, optimiser, **options) -> Fit:
    if optimiser is None:
        search = levenberg_marquardt(problem, y0, **options)
    else:
        search = first_order(problem, y0, optimiser=optimiser, **options)
    return _fit(problem, search)


@filter_jit
def _step_shift(refined: Problem, problem: Problem, fit: Fit):
    """Change of the simulation at the optimum with the refined problem, relative to the residuals,
    and the shift of the estimates that it causes, to first order."""
    change = prediction_change(refined, problem, fit)
    shift = -fit.about.inverse @ (fit.about.jacobian.T @ change)
    least = jnp.finfo(change.dtype).tiny
    share = jnp.sqrt(jnp.sum(change**2) / jnp.maximum(fit.cost, least))
    return share, jax.jacfwd(fit.parameters.values)(fit.y) @ shift


def _fit(problem: Problem, search: Search) -> Fit:
    parameters, y = problem.parameters, search.y
    residuals, jacobian, cost = search.residuals, search.jacobian, jnp.sum(search.residuals**2)
    freedom = problem.count() - parameters.size
    if problem.loss is not None:
        priors = len(parameters.prior_residuals(y))
        plain = problem.weighed(y, problem.differences(y, search.trajectories))
        seen = jnp.concatenate([t.seen_rows for t in problem.trials] + [jnp.ones(priors, bool)])
        plain = jnp.where(jnp.isfinite(plain), plain, 0.0)
        residuals, jacobian, loss = problem.loss.linearised(plain, jacobian, seen, priors)
        problem = dataclasses.replace(problem, loss=loss)
        cost = cost * loss.gain**2
    variance = jnp.sum(residuals**2) / jnp.maximum(freedom, 1)
    about = Uncertainty(jacobian, residuals, variance, problem)
    far = problem.noise_given & (variance > MISFIT_LIMIT**2)
    slope = jax.jacfwd(parameters.values)(y)  # dp/dy: natural units
    return Fit(
        names=parameters.names,
        values=parameters.values(y),
        start=parameters.values(jnp.zeros_like(y)),
        covariance=slope @ about.covariance @ slope.T,
        differences=problem.differences(y, search.trajectories),
        trajectories=search.trajectories,
        experiments=problem.experiments(y),
        cost=cost,
        noise_scale=jnp.sqrt(variance),
        freedom=freedom,
        iterations=search.iterations,
        code=jnp.where(far & (search.code == CONVERGED), MISFIT, search.code),
        step_shift=jnp.full_like(y, jnp.nan),
        numerics={},
        y=y,
        problem=problem,
        about=about,
    )
