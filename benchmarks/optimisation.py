"""A move without swing by gradients and by finite differences: `python benchmarks/optimisation.py`.

The problem of notebooks/optimisation.py: a plate on four cables is moved by half a metre, twelve
numbers of its path, three masses at once, tensions within bounds. Prints one JSON object: the
search with derivatives through the simulation; the same search, simulator and solver with forward
differences, one run for each number; and MuJoCo with forward differences, where it is installed:
the time of one point with its derivatives, and of as many of them as the search took. First calls,
which compile, are apart. Processor seconds; other programs beside it disturb them less."""

import json
import time

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.control import Quintic, Shaped  # noqa: E402
from cordax.io import example_path, read_robot  # noqa: E402
from cordax.optimisation import search as search_module  # noqa: E402
from cordax.systems import PointExit, ProgrammedLengths  # noqa: E402

WAY, TIME, AFTER, DT = jnp.array([0.5, 0.0, 0.0]), 1.2, 0.4, 0.01
HUNG = read_robot(example_path("suspended")).robot
HUNG = eqx.tree_at(lambda r: r.exits, HUNG, PointExit(HUNG.exits.points))
BEGIN, MASS = HUNG.position, float(HUNG.platform.mass)
PATH = Shaped(Quintic(BEGIN, WAY[None], [[0.0, TIME]]), [0.0, TIME], np.zeros((4, 3)))
MASSES = MASS * np.array([0.9, 1.0, 1.1])


def given() -> tuple:
    """Arguments of `optimise`."""
    robot = eqx.tree_at(lambda r: r.drives, HUNG, ProgrammedLengths(HUNG.length_reference(PATH)))
    move = cordax.Experiment(robot, duration=TIME + AFTER, dt=DT, integrator="rk4")
    goal = eqx.tree_at(
        lambda r: (r.position, r.drives),
        HUNG,
        (BEGIN + WAY, ProgrammedLengths(HUNG.lengths(BEGIN + WAY))),
    )
    rest = cordax.equilibrium(goal)

    def swing(run):
        """Energy that is left after arrival [mJ]."""
        machine, t, q, v = run.system, run.t[-1], run.q[-1], run.v[-1]
        above = machine.potential_energy(t, q) - machine.potential_energy(t, rest.q)
        return 1e3 * (machine.kinetic_energy(q, v) + above)

    bumps = cordax.Parameter("drives.lengths.path.bumps", bounds=(-0.1, 0.1))
    pull = cordax.Constraint(
        lambda run: run.outputs["tension"][::4], low=10.0, high=100.0, name="tension", scale=10.0
    )
    return move, [bumps], swing, [pull]


def search(problem: tuple) -> cordax.optimisation.Optimum:
    options = {"scenarios": {"platform.mass": MASSES}, "max_steps": 40, "tolerance": 1e-7}
    return cordax.optimise(*problem, **options)


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


def timed(problem: tuple) -> dict:
    """The search, first with compilation, then without."""
    out = {}
    for name in ("first_processor_s", "processor_s"):
        start, wall = time.process_time(), time.perf_counter()
        found = search(problem)
        out[name] = round(time.process_time() - start, 3)
        out[name.replace("processor_s", "s")] = round(time.perf_counter() - wall, 3)
    out |= {"evaluations": found.evaluations, "cost_mJ": found.cost, "succeeded": found.succeeded}
    return out | {"start_mJ": found.start_cost}


def by_differences(problem: tuple) -> dict:
    usual, search_module.linearised = search_module.linearised, differenced
    try:
        return timed(problem)
    finally:
        search_module.linearised = usual


def mujoco(evaluations: int) -> dict | None:
    """One point with its derivatives: 13 runs for each of three masses, at 1 ms. Cables are servos
    of 1e5 N/m that follow the programmed lengths."""
    try:
        import mujoco as mj
    except ImportError:
        return None
    dt, steps = 1e-3, round((TIME + AFTER) / 1e-3)
    exits, ends = np.asarray(HUNG.exits.points.position(0.0)), np.asarray(HUNG.attachments)
    sites = "".join(f'<site name="e{i}" pos="{_text(p)}"/>' for i, p in enumerate(exits))
    held = "".join(f'<site name="a{i}" pos="{_text(p)}"/>' for i, p in enumerate(ends))
    cables = "".join(
        f'<spatial name="c{i}"><site site="e{i}"/><site site="a{i}"/></spatial>' for i in range(4)
    )
    servos = "".join(
        f'<general tendon="c{i}" gainprm="1e5" biastype="affine" biasprm="0 -1e5 -300"/>'
        for i in range(4)
    )
    inertia = np.diagonal(np.asarray(HUNG.platform.inertia))
    made = lambda mass: mj.MjModel.from_xml_string(
        f'<mujoco><option timestep="{dt}" gravity="0 0 -9.81" integrator="implicitfast"/>'
        f'<worldbody>{sites}<body name="plate" pos="{_text(BEGIN)}"><freejoint/>'
        f'<inertial pos="0 0 0" mass="{mass}" diaginertia="{_text(inertia)}"/>{held}'
        "</body></worldbody>"
        f"<tendon>{cables}</tendon><actuator>{servos}</actuator></mujoco>"
    )
    models = [made(mass) for mass in MASSES]
    times = dt * np.arange(steps)

    @jax.jit
    def lengths(bumps):
        path = eqx.tree_at(lambda p: p.bumps, PATH, bumps)
        return jax.vmap(HUNG.length_reference(path).position)(times)

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
        "as_many_points_processor_s": round(evaluations * seconds, 2),
    }


def _text(x) -> str:
    return " ".join(f"{float(v):.9g}" for v in x)


def main() -> None:
    problem = given()
    out: dict = {"about": measure.about(), "gradients": timed(problem)}
    out["differences"] = by_differences(problem)
    out["mujoco"] = mujoco(out["gradients"]["evaluations"])
    ratio = lambda other: round(other / out["gradients"]["processor_s"], 1)
    out["times_faster"] = {"than_differences": ratio(out["differences"]["processor_s"])}
    if out["mujoco"]:
        out["times_faster"]["than_mujoco"] = ratio(out["mujoco"]["as_many_points_processor_s"])
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
