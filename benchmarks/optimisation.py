"""A move without swing by gradients and by finite differences: `python benchmarks/optimisation.py`.

The problem of notebooks/optimisation.py: a plate on four cables is moved by half a metre, twelve
numbers of its path, three masses at once, tensions within bounds. Prints one JSON object: the
search with derivatives through the simulation; the same search, simulator and solver with forward
differences, one run for each number; the solver of slsqp-jax in the place of SciPy's, where it is
installed; and MuJoCo with forward differences, where it is installed: the time of one point with
its derivatives, and of as many of them as the search took. First calls, which compile, are apart.
Processor seconds; other programs beside it disturb them less."""

import json
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

from cordax.optimisation import search as search_module  # noqa: E402
from cordax.optimisation.problem import Problem  # noqa: E402
from cordax.optimisation.unknowns import Unknowns  # noqa: E402

NOTEBOOK = measure.HERE.parent / "notebooks" / "optimisation.py"


def given() -> SimpleNamespace:
    """What the notebook has before it searches."""
    before, search, _ = NOTEBOOK.read_text().partition("# %%\nclock = ")
    assert search, f"{NOTEBOOK} has no cell that begins with clock ="
    names: dict = {}
    exec(compile(before, str(NOTEBOOK), "exec"), names)
    return SimpleNamespace(**names)


def search(at: SimpleNamespace) -> cordax.optimisation.Optimum:
    return cordax.optimise(at.move, [at.bumps], at.cost, [at.pull], **at.problem)


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


def slsqp_jax(at: SimpleNamespace) -> dict | None:
    """The same problem and derivatives with the solver of slsqp-jax, where it is installed."""
    try:
        from slsqp_jax import minimize_like_scipy
    except ImportError:
        return None
    numbers = {name: jnp.asarray(x) for name, x in at.masses.items()}
    unknowns = Unknowns.of([at.bumps], at.move)
    problem = Problem(at.move, unknowns, at.cost, (at.pull,), numbers, "mean")
    mine = search_module.Search(problem, progress=False)
    y0 = jnp.zeros(unknowns.size)
    mine.begin(np.asarray(y0))
    scale, ends = mine.scale, (jnp.asarray(mine.low), jnp.asarray(mine.high))

    def rows(y):
        x = problem.evaluate(y)["rows"]
        return jnp.concatenate([(x - ends[0]).ravel(), (ends[1] - x).ravel()])

    def row_slopes(y):
        x = problem.linear(y)[1]["rows"].reshape(-1, len(y))
        return jnp.concatenate([x, -x])

    def search():
        found = minimize_like_scipy(
            lambda y: problem.evaluate(y)["cost"] / scale,
            y0,
            jac=lambda y: problem.linear(y)[1]["cost"] / scale,
            bounds=mine.box(),
            constraints={"type": "ineq", "fun": rows, "jac": row_slopes},
            options={"rtol": 1e-7, "atol": 1e-6, "maxiter": 40},
        )
        return jax.block_until_ready(found.value), found

    out: dict = {"version": version("slsqp-jax")}
    for name in ("first_processor_s", "processor_s"):
        start = time.process_time()
        y, found = search()
        out[name] = round(time.process_time() - start, 3)
    out |= {"iterations": int(found.stats["num_steps"]), "result": str(found.result)}
    out["cost_mJ"] = float(_evaluated(problem, y)["cost"])
    out["out_of_bounds"] = float(jnp.max(-rows(y), initial=0.0))
    return out


def mujoco(at: SimpleNamespace, evaluations: int) -> dict | None:
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
        "as_many_points_processor_s": round(evaluations * seconds, 2),
    }


def _text(x) -> str:
    return " ".join(f"{float(v):.9g}" for v in x)


def main() -> None:
    at = given()
    out: dict = {"about": measure.about(), "gradients": timed(at)}
    out["differences"] = by_differences(at)
    out["slsqp_jax"] = slsqp_jax(at)
    out["mujoco"] = mujoco(at, out["gradients"]["evaluations"])
    ratio = lambda other: round(other / out["gradients"]["processor_s"], 1)
    out["times_faster"] = {"than_differences": ratio(out["differences"]["processor_s"])}
    if out["mujoco"]:
        out["times_faster"]["than_mujoco"] = ratio(out["mujoco"]["as_many_points_processor_s"])
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
