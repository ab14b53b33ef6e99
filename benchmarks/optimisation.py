"""A move without swing by gradients and by finite differences: `python benchmarks/optimisation.py`.

The problem of notebooks/optimisation.py: a plate on four cables is moved by half a metre, twelve
numbers of its path, three masses at once, tensions within bounds. Prints one JSON object of all or
some (`python benchmarks/optimisation.py gradients mujoco`) of these parts: gradients (the search
with derivatives through the simulation), differences (the same search, simulator and solver with
forward differences, one run for each number), mujoco (forward differences over MuJoCo, where it is
installed: one point with its derivatives, and twenty of them, as many as the search takes),
searches (points of four searches with derivatives, one after the other, as `searches=4` does, and
as one batch), and solvers (of a smaller problem: SciPy's SLSQP, slsqp-jax, where it is
installed, and an augmented Lagrangian around optimistix' BFGS). First calls, which compile, are
apart. Processor seconds: other programs disturb them less."""

import time
from importlib.metadata import version
from types import SimpleNamespace

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402
import optimistix as optx  # noqa: E402

from cordax.control import BSpline, InputPath, Quintic, Shaped  # noqa: E402
from cordax.io import example_path, read_machine  # noqa: E402
from cordax.optimisation import scipy_slsqp as search_module  # noqa: E402
from cordax.optimisation.problem import Problem, linearised  # noqa: E402
from cordax.parameters.parameter import collect_box  # noqa: E402
from cordax.systems import Oscillator, PointExit, ProgrammedLengths  # noqa: E402

#: from rest to rest by half a metre [m], [s], watched for some time after arrival
WAY, TIME, AFTER, DT = jnp.array([0.5, 0.0, 0.0]), 1.2, 0.4, 0.01


def given() -> SimpleNamespace:
    """The experiment, what to change and what to keep."""
    hung = read_machine(example_path("suspended")).experiment.system
    hung = eqx.tree_at(lambda r: r.exits, hung, PointExit(hung.exits.points))
    begin = hung.position
    path = Shaped(Quintic(begin, WAY[None], [[0.0, TIME]]), [0.0, TIME], np.zeros((4, 3)))
    held = lambda lengths: eqx.tree_at(lambda r: r.drives, hung, ProgrammedLengths(lengths))
    goal = eqx.tree_at(lambda r: r.position, held(hung.lengths(begin + WAY)), begin + WAY)
    rest = cordax.equilibrium(goal)

    def swing(run):
        """Energy that is left after arrival [mJ]."""
        machine, t, q, v = run.system, run.t[-1], run.q[-1], run.v[-1]
        above = machine.potential_energy(t, q) - machine.potential_energy(t, rest.q)
        return 1e3 * (machine.kinetic_energy(q, v) + above)

    pull = lambda run: run.outputs["tension"][::4]
    mass = float(hung.platform.mass)
    robot = held(hung.length_reference(path))
    return SimpleNamespace(
        hung=hung,
        begin=begin,
        path=path,
        move=cordax.Experiment(robot, duration=TIME + AFTER, dt=DT, integrator="rk4"),
        bumps=cordax.Parameter("drives.lengths.path.bumps", bounds=(-0.1, 0.1)),
        cost=swing,
        pull=cordax.Constraint(pull, low=10.0, high=100.0, name="tension", scale=10.0),
        masses={"platform.mass": mass * np.array([0.9, 1.0, 1.1])},
    )


def small() -> SimpleNamespace:
    """A mass on a spring pushed to another place of rest, six values of the force, three masses,
    bounds on its speed: 36 rows, so that every solver ends."""
    push = InputPath(BSpline([0.0, 1.0], jnp.linspace(0.0, 2.0, 6)[:, None]))
    rest, machine = cordax.State([0.0], [0.0]), Oscillator(stiffness=10.0)

    def swing(run):
        """Energy about the place where the spring holds 2 N [mJ]."""
        x, v = run.q[-1, 0], run.v[-1, 0]
        return 1e3 * (0.5 * run.system.mass * v**2 + 0.5 * run.system.stiffness * (x - 0.2) ** 2)

    speed = lambda run: run["d_x"][::10]
    return SimpleNamespace(
        move=cordax.Experiment(machine, rest, push, duration=1.0, dt=0.02),
        bumps=cordax.Parameter("control.path.values", bounds=(-5.0, 5.0)),
        cost=swing,
        pull=cordax.Constraint(speed, low=-1.0, high=0.36, name="speed", scale=0.01),
        masses={"mass": np.array([0.9, 1.0, 1.1])},
    )


def search(at: SimpleNamespace) -> cordax.optimisation.Optimum:
    how = {"scenarios": at.masses, "max_steps": 40, "tolerance": 1e-7}
    return cordax.optimise(at.move, [at.bumps], at.cost, [at.pull], **how)


@eqx.filter_jit
def _evaluated(problem, y):
    return problem.evaluate(y)


def differenced(problem, y, step: float = 1e-6):
    """What `linearised` returns, by forward differences, one run after the other."""
    here = _evaluated(problem, y)
    names = ("cost", "rows", "gaps")
    columns = []
    for i in range(len(y)):
        there = _evaluated(problem, y.at[i].add(step))
        columns.append({name: (there[name] - here[name]) / step for name in names})
    return here, jax.tree.map(lambda *xs: jnp.stack(xs, axis=-1), *columns)


def timed(at: SimpleNamespace) -> dict:
    """The search, first with compilation, then without."""
    out = {}
    for name in ("first_processor_s", "processor_s"):
        start, wall = time.process_time(), time.perf_counter()
        found = search(at)
        out[name] = round(time.process_time() - start, 3)
        out[name.replace("processor_s", "s")] = round(time.perf_counter() - wall, 3)
    out |= {"evaluations": found.evaluations, "cost_mJ": found.cost, "succeeded": found.succeeded}
    return out | {"start_mJ": found.start_cost}


def by_differences(at: SimpleNamespace) -> dict:
    usual, search_module.linearised = search_module.linearised, differenced
    try:
        return timed(at)
    finally:
        search_module.linearised = usual


class Alone:
    """The same problem for other solvers. Cost and rows (not negative where kept), in scales, are
    one function of JAX that calls the compiled problem, once for each point, so that no solver
    compiles the simulation into itself."""

    def __init__(self, at: SimpleNamespace):
        numbers = {name: jnp.asarray(x) for name, x in at.masses.items()}
        parameters = collect_box([at.bumps], at.move)
        problem = Problem(at.move, parameters, at.cost, (at.pull,), numbers, "mean")
        self.search = search_module.Search(problem, progress=False)
        self.start = jnp.zeros(parameters.size)
        self.search.begin(np.asarray(self.start))  # compiles
        self.scale, self.box = self.search.scale, self.search.box()
        shapes = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), self._at(self.start)
        )
        at_point = lambda y: jax.pure_callback(self._at, shapes, y)

        @jax.custom_vjp
        def both(y):
            return at_point(y)[:2]

        def forward(y):
            cost, rows, *slopes = at_point(y)
            return (cost, rows), slopes

        def back(slopes, ct):
            return (ct[0] * slopes[0] + ct[1] @ slopes[1],)

        both.defvjp(forward, back)
        self.both = both

    def _at(self, y):
        """Cost, rows (m,) and their slopes."""
        y, (found,) = np.asarray(y), self.search.rows()
        cost, slope = self.search.cost(y), self.search.cost_slope(y)
        numbers = cost / self.scale, found["fun"](y), slope / self.scale, found["jac"](y)
        return tuple(np.asarray(x, float) for x in numbers)

    def timed(self, search) -> dict:
        """Of `search() -> y, facts`, first with compilation of the solver, then without."""
        out: dict = {}
        for name in ("first_processor_s", "processor_s"):
            start, before = time.process_time(), self.search.evaluations
            y, facts = jax.block_until_ready(search())
            out[name] = round(time.process_time() - start, 3)
        cost, rows, *_ = self._at(y)
        out |= facts | {"evaluations": self.search.evaluations - before}
        out |= {"cost_mJ": float(cost * self.scale)}
        return out | {"out_of_bounds": max(0.0, -float(np.min(rows)))}


def slsqp_jax(at: SimpleNamespace) -> dict | None:
    """The solver of slsqp-jax, where it is installed."""
    try:
        from slsqp_jax import SLSQP, SLSQPConfig, ToleranceConfig
    except ImportError:
        return None
    alone = Alone(at)
    cost, rows = (lambda y, _, i=i: alone.both(y)[i] for i in (0, 1))
    solver = SLSQP(
        config=SLSQPConfig(tolerance=ToleranceConfig(rtol=1e-7, atol=1e-6, max_steps=40)),
        ineq_constraint_fn=rows,
        n_ineq_constraints=eqx.filter_eval_shape(rows, alone.start, None).size,
        bounds=jnp.asarray(alone.box),
        obj_grad_fn=jax.grad(cost),
        ineq_jac_fn=jax.jacrev(rows),
    )

    def search():
        found = optx.minimise(cost, solver, alone.start, max_steps=40, throw=False)
        ended = bool(found.result == optx.RESULTS.successful)
        facts = {"iterations": int(found.stats["num_steps"]), "succeeded": ended}
        return found.value, facts

    return {"version": version("slsqp-jax")} | alone.timed(search)


def lagrangian(at: SimpleNamespace, rounds: int = 8) -> dict:
    """An augmented Lagrangian around optimistix' BFGS: each round minimises the cost plus squares
    of what is violated, with the multipliers of the round before; bounds are rows, too."""
    alone = Alone(at)
    low, high = (jnp.asarray(x) for x in zip(*alone.box, strict=True))
    solver = optx.BFGS(rtol=1e-7, atol=1e-7)

    def whole(y):
        cost, rows = alone.both(y)
        return cost, jnp.concatenate([rows, y - low, high - y])

    def augmented(y, given):
        multipliers, weight = given
        cost, rows = whole(y)
        missing = jnp.maximum(multipliers - weight * rows, 0.0)
        return cost + jnp.sum(missing**2 - multipliers**2) / (2 * weight)

    @eqx.filter_jit
    def inner(y, given):
        found = optx.minimise(augmented, solver, y, given, max_steps=60, throw=False)
        return found.value, whole(found.value)[1], found.stats["num_steps"]

    def search():
        y, weight, steps = alone.start, 1.0, 0
        multipliers = jnp.zeros(eqx.filter_eval_shape(whole, y)[1].shape)
        for _ in range(rounds):
            y, rows, more = inner(y, (multipliers, jnp.asarray(weight)))
            steps += int(more)
            multipliers = jnp.maximum(multipliers - weight * rows, 0.0)
            if jnp.min(rows) < -1e-6:
                weight *= 4.0
        return y, {"iterations": steps}

    return {"version": version("optimistix")} | alone.timed(search)


def mujoco(at: SimpleNamespace, evaluations: int = 20) -> dict | None:
    """One point with its derivatives: 13 runs for each of three masses, at 1 ms. Cables are servos
    of 1e5 N/m that follow the programmed lengths."""
    try:
        import mujoco as mj
    except ImportError:
        return None
    hung, dt, steps = at.hung, 1e-3, round(at.move.duration / 1e-3)
    exits, ends = np.asarray(hung.exits.points.position(0.0)), np.asarray(hung.attachments)
    sites = "".join(f'<site name="e{i}" pos="{_text(p)}"/>' for i, p in enumerate(exits))
    held = "".join(f'<site name="a{i}" pos="{_text(p)}"/>' for i, p in enumerate(ends))
    cables = "".join(
        f'<spatial name="c{i}"><site site="e{i}"/><site site="a{i}"/></spatial>' for i in range(4)
    )
    servos = "".join(
        f'<general tendon="c{i}" gainprm="1e5" biastype="affine" biasprm="0 -1e5 -300"/>'
        for i in range(4)
    )
    inertia = np.diagonal(np.asarray(hung.platform.inertia))
    made = lambda mass: mj.MjModel.from_xml_string(
        f'<mujoco><option timestep="{dt}" gravity="0 0 -9.81" integrator="implicitfast"/>'
        f'<worldbody>{sites}<body name="plate" pos="{_text(at.begin)}"><freejoint/>'
        f'<inertial pos="0 0 0" mass="{mass}" diaginertia="{_text(inertia)}"/>{held}'
        "</body></worldbody>"
        f"<tendon>{cables}</tendon><actuator>{servos}</actuator></mujoco>"
    )
    models = [made(mass) for mass in at.masses["platform.mass"]]
    times = dt * np.arange(steps)

    @jax.jit
    def lengths(bumps):
        path = eqx.tree_at(lambda p: p.bumps, at.path, bumps)
        return jax.vmap(hung.length_reference(path).position)(times)

    def run(model, wanted):
        data = mj.MjData(model)
        for row in wanted:
            data.ctrl[:] = row
            mj.mj_step(model, data)
        return data.qvel @ data.qvel

    def point():
        bumps = np.zeros((4, 3))
        total = []
        for i in range(13):
            moved = bumps.ravel().copy()
            if i:
                moved[i - 1] += 1e-6
            wanted = np.asarray(lengths(moved.reshape(4, 3)))
            total.append([run(model, wanted) for model in models])
        return np.array(total)

    assert np.all(np.isfinite(point())), "MuJoCo's plate flew away"
    seconds = measure.processor(point, repeats=2)
    return {
        "version": mj.__version__,
        "point_processor_s": round(seconds, 3),
        "points": evaluations,
        "points_processor_s": round(evaluations * seconds, 2),
    }


def _text(x) -> str:
    return " ".join(f"{float(v):.9g}" for v in x)


def searches(at: SimpleNamespace, count: int = 4) -> dict:
    """A point of each of `count` searches, one after the other and in a batch."""
    numbers = {name: jnp.asarray(x) for name, x in at.masses.items()}
    unknowns = Unknowns.of([at.bumps], at.move)
    problem = Problem(at.move, unknowns, at.cost, (at.pull,), numbers, "mean")
    ys = jnp.asarray(np.random.default_rng(0).normal(size=(count, unknowns.size), scale=1e-2))
    together = eqx.filter_jit(lambda problem, ys: jax.vmap(problem.linear)(ys))
    ways = {
        "one_by_one": lambda: [linearised(problem, y) for y in ys],
        "together": lambda: together(problem, ys),
    }
    out = {}
    for name, way in ways.items():
        start = time.process_time()
        jax.block_until_ready(way())
        out[f"{name}_first_processor_s"] = round(time.process_time() - start, 3)
        out[f"{name}_processor_s"] = measure.processor(way, repeats=10)
        begin = time.perf_counter()
        jax.block_until_ready(way())
        out[f"{name}_s"] = time.perf_counter() - begin
    return out


def solvers(_) -> dict:
    """SciPy's SLSQP, slsqp-jax and an augmented Lagrangian on the small problem."""
    at = small()
    ways = {"scipy": timed, "slsqp_jax": slsqp_jax, "lagrangian": lagrangian}
    return {name: way(at) for name, way in ways.items()}


def main() -> None:
    at = given()
    parts = {
        "gradients": timed,
        "differences": by_differences,
        "mujoco": mujoco,
        "searches": searches,
        "solvers": solvers,
    }
    measure.parts({name: lambda part=part: part(at) for name, part in parts.items()}, __doc__)


if __name__ == "__main__":
    main()
