"""Speed of rope robots: `python benchmarks/rope_robot.py [part ...] [--out FILE] [--figure FILE]`.

Prints one JSON object. Parts: paper (two ropes of 20 segments and a platform over 15 s, through
slack and snap: error against time over methods and steps, whole robot and without axial waves),
accuracy (the same with steps that adapt), scaling (one acceleration and one linearly implicit step,
5 to 160 segments), batch (256 robots with different ropes for 1 s), start (first call at 20 and 160
segments, each in a process of its own), reverse (a gradient beside the run), diffrax (an adaptive
stiff method through the snap), mujoco (the same robot in MuJoCo, where it is installed).

Seconds are those of the processor, the least of several runs; of scaling and batch those that pass,
so on idle cores only; of start both. Errors are those against stored trajectories
(`tests/data/rope_robot.npz`): of all coordinates in space and time, relative, and of the motion of
the platform relative to that motion. `--out`: a file that is written after each part, and keeps
the parts that it had. `--figure`: work and precision of all in it."""

import argparse
import json
import os
import time
from pathlib import Path

import cordax

cordax.enable_x64()

import diffrax as dfx  # noqa: E402
import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.control import Quintic  # noqa: E402
from cordax.mechanics.constraints import Stabilisation  # noqa: E402
from cordax.systems import AxialRopes, Platform, RopeRobot  # noqa: E402

DATA = Path(__file__).parents[1] / "tests" / "data" / "rope_robot.npz"
FORCE = Quintic(np.zeros(3), [[0.0, 52.0, 0.0], [0.0, -52.0, 0.0]], [[2.0, 4.5], [4.5, 7.0]])
PAPER_S = 39.1


def robot(count: int = 20, EA=4.0e4) -> RopeRobot:
    """Of section 4 of Tempel, Schmidt, Haasdonk and Pott (2017)."""
    plate = Platform.plate(5.0, (1.0, 0.3), [[-0.5, 0.15], [0.5, 0.15]])
    return RopeRobot([[0.0, 0.0], [1.0, -0.25]], 3.0, EA=EA, platform=plate, count=count)


def lift(t, state):
    return FORCE.position(t)


def errors(run) -> dict:
    with np.load(DATA) as file:
        ref = {k.split("/")[1]: file[k] for k in file.files if k.startswith("paper2/")}
    norm = lambda t, x: np.sqrt(np.trapezoid(np.sum(x**2, axis=1), t))
    q, pose = np.asarray(run.q)[::4], np.asarray(run.q)[:, -3:]
    q32 = ref["q32"].astype(float)
    return {
        "space_time": norm(ref["t_q32"], q - q32) / norm(ref["t_q32"], q32),
        "platform_motion": norm(ref["t"], pose - ref["qp"])
        / norm(ref["t"], ref["qp"] - ref["qp"][0]),
        "drift_m": float(jnp.max(run.violation)),
    }


ONCE = cordax.GeneralisedAlpha(corrections=1)
EXPLICIT = {"integrator": "rk4", "formulation": cordax.Baumgarte(20.0, 20.0)}
#: options and steps [s], of the whole robot and without axial waves
METHODS = {
    "linearly_implicit_euler": (
        {"integrator": "linearly_implicit_euler", "formulation": cordax.Index3()},
        (1e-3, 2.5e-4),
    ),
    "generalised_alpha": ({"integrator": "generalised_alpha"}, (1e-3, 2.5e-4)),
    "generalised_alpha_once": ({"integrator": ONCE}, (0.025 / 30, 6.25e-4, 2.5e-4)),
}
REDUCED = {"axial_rk4": (EXPLICIT, (0.025 / 60, 2.5e-4))}
STORED = 0.025


def tsitouras(tolerance: float) -> dict:
    """Explicit steps of order 5 that adapt. Stability limits them most of the time: a controller
    that also looks at the change of the error (Gustafsson's) refuses fewer of them, and takes a
    fifth less time."""
    steps = dfx.PIDController(rtol=tolerance, atol=tolerance, pcoeff=0.4, icoeff=0.3)
    return {**EXPLICIT, "integrator": cordax.Diffrax(dfx.Tsit5(), steps)}


def stored_start() -> cordax.State:
    with np.load(DATA) as file:
        return cordax.State(file["paper2/q0"], file["paper2/v0"])


def timed(machine, state, dt: float, **options) -> dict:
    """15 s of the paper's case: processor seconds and errors."""
    go = lambda: cordax.simulate(
        machine, state, dt=dt, duration=15.0, control=lift, throw=False, **options
    )
    run = go()
    seconds = measure.processor(lambda: go().q, repeats=3)
    q = run.q if isinstance(machine, RopeRobot) else jax.vmap(machine._whole)(run.q)
    whole = type("Run", (), {"q": q, "violation": run.violation})
    counted = {k: int(v) for k, v in run.statistics.items()}
    good = bool(run.result == cordax.RESULTS.successful)
    return {"s": seconds, "ended_well": good, **counted, **errors(whole)}


def paper() -> dict:
    """Error against time of the 15 s case."""
    state = stored_start()
    whole, axial = robot(), AxialRopes(robot())
    rows = []
    for machine, start, methods in (
        (whole, state, METHODS),
        (axial, axial.project(state), REDUCED),
    ):
        for name, (options, steps) in methods.items():
            for dt in steps:
                found = timed(machine, start, dt, save_every=round(STORED / dt), **options)
                rows.append({"method": name, "dt": dt, **found})
    found = timed(axial, axial.project(state), STORED, **tsitouras(1e-5))
    rows.append({"method": "axial_tsit5", "accuracy": 1e-5, **found})
    return {"rows": rows, "paper_s": PAPER_S}


def accuracy() -> dict:
    """Steps that adapt: shorter in the snap, longer in the rest."""
    state, axial = stored_start(), AxialRopes(robot())
    start, rows = axial.project(state), []
    for wanted in (1e-3, 1e-4, 2e-5, 2e-6):
        found = timed(robot(), state, STORED, accuracy=wanted, integrator=ONCE)
        rows.append({"method": "generalised_alpha_once_adaptive", "accuracy": wanted, **found})
    for tolerance in (1e-3, 1e-4, 1e-5):
        found = timed(axial, start, STORED, **tsitouras(tolerance))
        rows.append({"method": "axial_tsit5", "accuracy": tolerance, **found})
    found = timed(axial, start, STORED, accuracy=1e-4, **EXPLICIT)
    rows.append({"method": "axial_rk4_adaptive", "accuracy": 1e-4, **found})
    return {"rows": rows}


def reverse() -> dict:
    """A gradient by EA in reverse mode beside the run: 0.2 s at 1 ms, 20 segments."""
    state, EA, out = stored_start(), jnp.asarray(4.0e4), {}
    euler = {"integrator": cordax.LinearlyImplicitEuler(), "formulation": cordax.Index3()}
    methods = {
        "generalised_alpha": {"integrator": cordax.GeneralisedAlpha()},
        "once": {"integrator": ONCE},
        "linearly_implicit_euler": euler,
    }
    given = {"dt": 1e-3, "duration": 0.2, "save_every": 200, "control": lift, "throw": False}
    for name, method in methods.items():

        def place(EA, method=method):
            return cordax.simulate(robot(EA=EA), state, **given, **method).q[-1, -2]

        both = {"run_s": jax.jit(place), "reverse_s": jax.jit(jax.value_and_grad(place))}
        calls = {kind: lambda f=f: f(EA) for kind, f in both.items()}
        seconds = measure.in_turns(calls, repeats=25)
        out[name] = {**seconds, "ratio": seconds["reverse_s"] / seconds["run_s"]}
    return out


def diffrax() -> dict:
    """From the stored state at 5.5 s through the snap at 5.75 s to 6 s: an adaptive stiff method
    of diffrax on the index-1 equations, and ours, against the stored state there."""
    with np.load(DATA) as file:
        ref = {k.split("/")[1]: file[k] for k in file.files if k.startswith("paper2/")}
    at = lambda t: int(np.argmin(np.abs(ref["t_full"] - t)))
    state = cordax.State(ref["q_full"][at(5.5)], ref["v_full"][at(5.5)])
    stiff = cordax.Diffrax(dfx.Kvaerno5(), dfx.PIDController(rtol=1e-6, atol=1e-8))
    index1 = {"formulation": cordax.Baumgarte(20.0, 20.0)}
    cases = {
        "kvaerno5": {"integrator": stiff, "dt": 1e-4, "save_every": 250, **index1},
        "generalised_alpha_once": {"integrator": ONCE, "dt": 1e-4, "save_every": 250},
    }
    out = {}
    for name, options in cases.items():
        go = lambda options=options: cordax.simulate(
            robot(),
            state,
            t0=5.5,
            duration=0.5,
            control=lift,
            throw=False,
            **options,
        )
        end = np.asarray(go().q)[-1]
        seconds = measure.processor(lambda go=go: go().q, repeats=1)
        off = np.abs(end - ref["q_full"][at(6.0)])
        out[name] = {"s": seconds, "largest": off.max(), "platform": off[-3:].max()}
    return out


def scaling() -> dict:
    """Microseconds of one evaluation in a loop, by segments."""
    out = {}
    none = Stabilisation(jnp.asarray(20.0), jnp.asarray(20.0))
    u, t = jnp.zeros(3), jnp.zeros(())
    for count in (5, 10, 20, 40, 80, 160):
        machine = robot(count)
        state = machine.hanging([0.45, -3.0, -0.25])

        @eqx.filter_jit
        def accelerate(machine, q, v):
            step = lambda _, y: y + 1e-12 * machine.constrained_acceleration(t, y, v, u, none)[0]
            return jax.lax.fori_loop(0, 1000, step, q)

        @eqx.filter_jit
        def solve(machine, q, v):
            def step(_, y):
                J = machine.constraint_terms(t, y, v).jacobian
                motion = machine.linearise(t, y, v, u, multipliers=jnp.ones(4))
                return y + 1e-12 * motion.constrained_solver(J, 1e-3)(motion.f, jnp.zeros(4))[0]

            return jax.lax.fori_loop(0, 1000, step, q)

        row = {}
        for name, go in (("acceleration_us", accelerate), ("implicit_solve_us", solve)):
            call = lambda go=go, r=machine, x=state: go(r, x.q, x.v)
            row[name] = 1e3 * measure.best(call, repeats=5)
        out[count] = row
    ratio = lambda k: out[160][k] / out[20][k]
    return {
        "by_segments": out,
        "acceleration_160_over_20": ratio("acceleration_us"),
        "implicit_160_over_20": ratio("implicit_solve_us"),
    }


def batch() -> dict:
    """256 robots with ropes of different stiffness for 1 s at 1 ms."""
    stiffness = jnp.linspace(2e4, 6e4, 256)
    state = robot().rest()
    go = lambda: cordax.simulate_batch(
        lambda EA: (robot(EA=EA), state),
        stiffness,
        dt=1e-3,
        duration=1.0,
        save_every=100,
        control=lift,
        integrator="linearly_implicit_euler",
        formulation=cordax.Index3(),
    )
    run = go()
    seconds = measure.best(lambda: go().q, repeats=3)
    return {
        "members": 256,
        "s": seconds,
        "us_per_member_step": seconds * 1e6 / 256 / 1000,
        "ok": bool(jnp.all(jnp.isfinite(run.q))),
    }


FIRST = """
import json, time
import jax, rope_robot, cordax
parts = {{"trace": 0.0, "lower": 0.0, "compile": 0.0}}
names = {{"jaxpr_trace": "trace", "jaxpr_to_mlir_module": "lower", "backend_compile": "compile"}}
def note(event, seconds, **_):
    name = names.get(event.split("/")[-1].removesuffix("_duration"))
    if name:
        parts[name] += seconds
machine = rope_robot.robot({count})
state = machine.hanging()
jax.monitoring.register_event_duration_secs_listener(note)
begin = time.perf_counter(), time.process_time()
run = cordax.simulate(machine, state, dt=1e-3, duration=0.1, save_every=100,
    control=rope_robot.lift, throw=False, {method})
run.q.block_until_ready()
seconds = time.perf_counter() - begin[0], time.process_time() - begin[1]
print(json.dumps({{"s": seconds[0], "processor_s": seconds[1], **parts}}))
"""
FIRST_OF = {
    "linearly_implicit_euler": (
        'integrator="linearly_implicit_euler", formulation=cordax.Index3()',
        (20, 160),
    ),
    "generalised_alpha": ('integrator="generalised_alpha"', (20, 160)),
    "adaptive": ("integrator=rope_robot.ONCE, accuracy=2e-4", (20,)),
}


def start() -> dict:
    """The first call, of 0.1 s, with its compilation: seconds that pass and of the processor, and
    of those that pass how many trace (nested functions count twice), lower and compile."""
    where = {"PYTHONPATH": f"{Path(__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    where["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    out = {}
    for name, (method, counts) in FIRST_OF.items():
        code = lambda n, method=method: FIRST.format(count=n, method=method)
        out[name] = {n: measure.in_new_process(code(n), **where) for n in counts}
    euler = out["linearly_implicit_euler"]
    return {**out, "160_over_20": euler[160]["s"] / euler[20]["s"]}


def mujoco() -> dict | None:
    """The same robot in MuJoCo: half elements as bodies with slide and hinge, ends connected."""
    try:
        import mujoco as mj
    except ImportError:
        return None
    with np.load(DATA) as file:
        ref = {k.split("/")[1]: file[k] for k in file.files if k.startswith("paper2/")}
    rows = []
    for dt in (1e-3, 2e-4, 1e-4):
        model = mj.MjModel.from_xml_string(mujoco_model(dt))
        data = mj.MjData(model)
        at = mujoco_start(mj, model, data, ref["q0"])
        n = round(15.0 / dt)
        force = np.asarray(jax.vmap(FORCE.position)(jnp.arange(n) * dt))[:, 1]
        lift = model.jnt_dofadr[model.joint("pz").id]
        pose = np.zeros((n + 1, 3))
        pose[0] = data.qpos[at]
        begin = time.process_time()
        for k in range(n):
            data.qfrc_applied[lift] = force[k]
            mj.mj_step(model, data)
            pose[k + 1] = data.qpos[at]
        seconds = time.process_time() - begin
        seen = pose[:: round(0.025 / dt)]
        norm = lambda x: np.sqrt(np.trapezoid(np.sum(x**2, axis=1), ref["t"]))
        error = norm(seen - ref["qp"]) / norm(ref["qp"] - ref["qp"][0])
        rows.append({"dt": dt, "s": seconds, "platform_motion": error})
    return {"version": mj.__version__, "rows": rows}


def mujoco_start(mj, model, data, q):
    """Set the stored start; returns where the pose of the platform is."""
    ropes, pose = q[:-3].reshape(2, 20, 2), q[-3:]
    for j, rope in enumerate(ropes):
        bends = np.diff(rope[:, 1], prepend=0.0)
        for i in range(20):
            data.joint(f"bend_{j}_{i}").qpos = bends[i]
            data.joint(f"stretch_{j}_{i}").qpos = rope[i, 0]
    for name, value in zip(("px", "pz", "pa"), pose, strict=True):
        data.joint(name).qpos = value
    return [model.jnt_qposadr[model.joint(name).id] for name in ("px", "pz", "pa")]


def mujoco_model(dt: float) -> str:
    machine = robot()
    seg = machine.segments()
    l0, mass = float(seg.rest[0, 0]), float(seg.upper_mass[0, 0])
    spin = float(seg.spin[0, 0]) / 2.0
    inertia = f'mass="{mass}" diaginertia="{spin} {spin} {spin}"'
    axial, bend = float(machine.EA) / l0, float(machine.EI) / l0
    ropes = ""
    for j, (x, z) in enumerate(np.asarray(machine.roots)):
        for i in range(20):
            place = f"{x} 0 {z}" if i == 0 else f"0 0 {-l0 / 2}"
            ropes += (
                f'<body pos="{place}"><joint name="bend_{j}_{i}" type="hinge" axis="0 -1 0" '
                f'stiffness="{bend}" damping="{0.05 * bend}"/>'
                f'<inertial pos="0 0 {-l0 / 4}" {inertia}/>'
                f'<body pos="0 0 {-l0 / 2}"><joint name="stretch_{j}_{i}" type="slide" '
                f'axis="0 0 -1" stiffness="{axial}" damping="{2e-3 * axial}"/>'
                f'<inertial pos="0 0 {-l0 / 4}" {inertia}/>'
            )
        ropes += f'<site name="end{j}" pos="0 0 {-l0 / 2}"/>' + "</body></body>" * 20
    plate = machine.platform
    assert plate is not None
    sites = "".join(
        f'<site name="hold{j}" pos="{x} 0 {z}"/>'
        for j, (x, z) in enumerate(np.asarray(plate.attachments))
    )
    spin = float(plate.inertia)
    hold = f'solref="{2 * dt} 1" solimp="0.9999 0.9999 0.001 0.5 2"'
    return f"""<mujoco><option timestep="{dt}" gravity="0 0 -9.81" integrator="discrete"
    iterations="50" tolerance="1e-12"><flag contact="disable"/></option><worldbody>{ropes}
    <body><joint name="px" type="slide" axis="1 0 0"/><joint name="pz" type="slide" axis="0 0 1"/>
    <joint name="pa" type="hinge" axis="0 -1 0"/><inertial pos="0 0 0" mass="{float(plate.mass)}"
    diaginertia="{spin} {spin} {spin}"/>{sites}</body></worldbody><equality>
    <connect site1="end0" site2="hold0" {hold}/><connect site1="end1" site2="hold1" {hold}/>
    </equality></mujoco>"""


def figure(found: dict, file: str) -> None:
    """Error of the motion of the platform over seconds, all that ran."""
    import matplotlib.pyplot as plt

    rows = [row for part in ("paper", "accuracy") for row in found.get(part, {}).get("rows", [])]
    rows += [{"method": "mujoco", **row} for row in (found.get("mujoco") or {}).get("rows", [])]
    _, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    for name in dict.fromkeys(row["method"] for row in rows):
        own = sorted((row for row in rows if row["method"] == name), key=lambda row: row["s"])
        seconds, off = [row["s"] for row in own], [row["platform_motion"] for row in own]
        axes.loglog(seconds, off, "o-", label=name.replace("_", " "))
    axes.set(xlabel="processor time of 15 s [s]", ylabel="error of platform motion")
    axes.grid(which="both", alpha=0.3)
    axes.legend(fontsize="small")
    plt.savefig(file, dpi=150)


PARTS = {f.__name__: f for f in (paper, accuracy, scaling, batch, start, reverse, diffrax, mujoco)}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--out", help="file for the results, kept part by part")
    parser.add_argument("--figure", help="file for a plot of work and precision")
    given = parser.parse_args()
    file = None if given.out is None else Path(given.out)
    found = json.loads(file.read_text()) if file is not None and file.exists() else {}
    for part in given.parts or list(PARTS):
        found[part] = {"about": measure.about(), **(PARTS[part]() or {})}
        if file is not None:
            file.write_text(json.dumps(found, indent=2))
    print(json.dumps(found, indent=2))
    if given.figure:
        figure(found, given.figure)
