"""Speed of the tendon-driven neck: `python benchmarks/neck.py [part ...] [--out FILE] [--figure
error_time.png]`.

Prints one JSON object. Parts: step, hoist, motion, overhead, start, gradient, gradient_long,
durations, sharing, batch, precision (default: all; five minutes, nearly all to compile the forty
programs of gradients, durations and schemes: give parts). `--out` keeps each part as it ends.
Ratios are taken within one run; the C++ anchor (anchors/neck.cpp, hand-written derivatives, SIMD)
is built where a compiler is."""

import tempfile

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.control import ComputedTorque, RaisedCosine  # noqa: E402
from cordax.simulation import executor  # noqa: E402
from cordax.systems import Neck  # noqa: E402

MOTION = {"dt": 2e-3, "duration": 6.3}
TORQUE = -8e-4 * np.array([60.0, 15.0, 50.0, 20.0])


def controlled(joints: int = 3):
    neck = Neck.default(joints)
    amplitude = {3: [0.6, -0.8, 1.0], 4: [0.5, -0.7, 0.7, 0.6]}[joints]
    control = ComputedTorque(neck, RaisedCosine(amplitude))
    return neck, control, control.start()


def step(anchors: bool = True) -> dict:
    """One elastic linearly implicit step, 3 joints, constant torques: written out, from energies,
    C++."""
    steps, out = 1000, {}
    method = cordax.LinearlyImplicitEuler()
    for name, closed_form in (("closed_form", True), ("from_energies", False)):
        neck = Neck.default(3, closed_form=closed_form)
        dynamics = cordax.Dynamics(neck, cordax.Minimal())

        def run(dynamics, state, u, dt):
            def one(state, i):
                return method.step(dynamics, i * dt, dt, state, lambda t, q, v: u, ()).state, None

            return jax.lax.scan(one, state, jnp.arange(steps))[0]

        call, cost = measure.compiled(
            run, dynamics, neck.default_state(), jnp.asarray(TORQUE), jnp.asarray(2e-3)
        )
        out[name] = {"ns": round(measure.best(call) / steps * 1e9), **cost}
    for label, source in (("cpp_plain", "neck_plain"), ("cpp_tuned", "neck")) if anchors else ():
        figures = measure.anchor(source)
        if figures is not None:
            out[label] = {key: value for key, value in figures.items() if key.startswith("ns_")}
            for name in ("closed_form", "from_energies"):
                ratio = out[name]["ns"] / figures["ns_per_step_3"]
                out[name][f"times_{label}"] = round(ratio, 1)
    return out


def motion() -> dict:
    """The controlled motion of 6.3 s at 2 ms, elastic, all states and outputs kept."""
    neck, control, start = controlled()
    call = lambda: cordax.simulate(neck, start, control=control, **MOTION).outputs
    seconds = measure.best(call)
    return {
        "ms": round(seconds * 1e3, 2),
        "simulated_per_wall": round(6.3 / seconds),
        "paper_s": 22,
    }


def overhead() -> dict:
    """A call with one step: processor time of it all; seconds that pass (minimum) in the compiled
    functions within it, of which `blocks` is the run itself, and in the Python around them."""
    neck, control, start = controlled()
    options = {"dt": 2e-3, "duration": 2e-3}
    calls = {
        "state_and_control": lambda: cordax.simulate(neck, start, control=control, **options).q,
        "defaults": lambda: cordax.simulate(neck, **options).q,
    }
    out = {name: measure.processor(call) for name, call in calls.items()}
    call = calls["state_and_control"]
    inside = ((engine, "_compiled_start"), (engine, "_compiled_blocks"), (stored, "_rows_together"))
    for module, name in inside:
        found, undo = measure.recorded(module, name)
        call()
        undo()
        out[name.lstrip("_")] = measure.best(found[0], repeats=500)
    undo = measure.replayed(list(inside))
    out["python"] = measure.best(call, repeats=2000)
    undo()
    out["around"] = out["python"] + out["compiled_start"] + out["rows_together"]
    return {f"{name}_ms": round(value * 1e3, 3) for name, value in out.items()}


_FIRST_CALL = """
import json, time
begin = time.perf_counter()
import cordax
cordax.enable_x64()
{cache}
import jax
from cordax.systems import Neck
from cordax.control import ComputedTorque, RaisedCosine
neck = Neck.default(3)
control = ComputedTorque(neck, RaisedCosine([0.6, -0.8, 1.0]))
imported = time.perf_counter()
state = control.start()
run = cordax.simulate(neck, state, dt=2e-3, duration=6.3, control=control)
jax.block_until_ready(run.q)
print(json.dumps({{"import_s": round(imported - begin, 2),
                   "first_call_s": round(time.perf_counter() - imported, 2)}}))
"""


def start() -> dict:
    """The first call in a new process: without cache, and from one filled before."""
    with tempfile.TemporaryDirectory() as folder:
        cache = _FIRST_CALL.format(cache=f"cordax.enable_cache({folder!r})")
        cold = measure.in_new_process(_FIRST_CALL.format(cache=""))
        measure.in_new_process(cache)
        warm = measure.in_new_process(cache)
    return {"cold": cold, "from_cache": warm}


_STEP = """
import json, sys
sys.path.insert(0, {here!r})
import neck
print(json.dumps(neck.step(anchors=False)))
"""


def hoist() -> dict:
    """The step with and without the XLA option that cordax switches on."""
    code = _STEP.format(here=str(measure.HERE))
    # this process has the option in its environment, where it would count as the user's own
    on, off = (measure.in_new_process(code, CORDAX_HOIST=x, XLA_FLAGS="") for x in "10")
    ratio = lambda name: {"times_slower_without": round(off[name]["ns"] / on[name]["ns"], 2)}
    return {name: {"ns": on[name]["ns"], **ratio(name)} for name in on}


def gradient() -> dict:
    """Mean squared tracking error of the whole motion with respect to tendon stiffness and
    damping."""
    neck, control, state = controlled()

    def error(p, adjoint="scan"):
        where = lambda n: (n.tendon.stiffness, n.tendon.damping)
        variant = eqx.tree_at(where, neck, (p[0], p[1]))
        run = cordax.simulate(
            variant, state, control=control, throw=False, adjoint=adjoint, **MOTION
        )
        return jnp.mean(control.tracking_error(run) ** 2)

    p = jnp.array([1e5, 100.0])
    functions = {
        "forward_run": error,
        "reverse": jax.grad(error),
        "reverse_checkpointed": jax.grad(lambda p: error(p, "checkpointed")),
        "forward_mode_2": jax.jacfwd(error),
    }
    out = {}
    for name, function in functions.items():
        call, cost = measure.compiled(function, p)
        out[name] = {"ms": round(measure.best(call) * 1e3, 2), **cost}
        out[name]["times_run"] = round(out[name]["ms"] / out["forward_run"]["ms"], 2)
    return out


def gradient_long(steps: int = 100_000) -> dict:
    """Reverse mode over many steps with checkpoints: time against the run, and the memory that the
    compiled gradient asks for [MB]."""
    neck, control, state = controlled()
    options = {"dt": 2e-3, "duration": 2e-3 * steps, "save_every": 1000, "throw": False}

    def error(p):
        where = lambda n: (n.tendon.stiffness, n.tendon.damping)
        variant = eqx.tree_at(where, neck, (p[0], p[1]))
        run = cordax.simulate(variant, state, control=control, adjoint="checkpointed", **options)
        return jnp.mean(control.tracking_error(run) ** 2)

    p = jnp.array([1e5, 100.0])
    run, slope = jax.jit(error).lower(p).compile(), jax.jit(jax.grad(error)).lower(p).compile()
    times = measure.in_turns({"run": lambda: run(p), "gradient": lambda: slope(p)}, repeats=5)
    return {
        "steps": steps,
        "run_s": round(times["run"], 3),
        "gradient_s": round(times["gradient"], 3),
        "times_run": round(times["gradient"] / times["run"], 2),
        "memory_mb": round(slope.memory_analysis().temp_size_in_bytes / 1e6, 1),
    }


def durations(lengths=(3150, 300)) -> dict:
    """Runs and gradients outside of `jit`: pieces of a fixed size, which know no duration, against
    one loop compiled for it. Both take turns; times are minima."""
    neck, control, state = controlled()

    def run(machine, n, adjoint):
        options = {"dt": 2e-3, "duration": 2e-3 * n, "throw": False, "adjoint": adjoint}
        return cordax.simulate(machine, state, control=control, **options)

    def error(p, n, adjoint):
        where = lambda n: (n.tendon.stiffness, n.tendon.damping)
        variant = eqx.tree_at(where, neck, (p[0], p[1]))
        return jnp.mean(control.tracking_error(run(variant, n, adjoint)) ** 2)

    look = lambda run: (run.q, run.outputs)  # all that a run computes
    p = jnp.array([1e5, 100.0])
    kinds = {
        "run": (lambda _: lambda p, n, adjoint: look(run(neck, n, adjoint)), "forward"),
        "reverse": (jax.grad, "scan"),
        "reverse_checkpointed": (jax.grad, "checkpointed"),
        "forward_mode_2": (jax.jacfwd, "scan"),
    }
    usual = executor.Transformed.of

    def under(look, call):
        executor.Transformed.of = look
        return call(p)

    out = {}
    for name, (change, adjoint) in kinds.items():
        for n in lengths:
            go = change(error)
            call = lambda p, go=go, n=n, adjoint=adjoint: go(p, n, adjoint)
            ways = {"pieces": usual, "one_loop": lambda tree: None}
            calls = {
                way: lambda look=look, call=call: under(look, call) for way, look in ways.items()
            }
            took = measure.in_turns(calls)
            ms = {f"{way}_ms": round(x * 1e3, 2) for way, x in took.items()}
            out[f"{name}_{n}"] = ms | {"ratio": round(took["pieces"] / took["one_loop"], 3)}
    executor.Transformed.of = usual
    return out


def sharing() -> dict:
    """The controlled motion with a controller that holds the machine, and one that holds a copy of
    it, so that nothing the two compute can be shared."""
    neck, control, state = controlled()
    copy = jax.tree.map(lambda x: jnp.array(x, copy=True), neck)
    apart = eqx.tree_at(lambda c: c.machine, control, copy)
    run = lambda control: cordax.simulate(neck, state, control=control, **MOTION).q
    took = measure.in_turns({"shared": lambda: run(control), "apart": lambda: run(apart)})
    ratio = round(took["shared"] / took["apart"], 3)
    return {f"{name}_ms": round(x * 1e3, 2) for name, x in took.items()} | {"ratio": ratio}


def batch() -> dict:
    """1024 necks with different tendons, 1000 implicit steps each."""
    neck = Neck.default(3)
    state = neck.default_state()
    rng = np.random.default_rng(0)
    k, d = (jnp.asarray(x * np.exp(0.3 * rng.normal(size=1024))) for x in (1e5, 100.0))
    where = lambda n: (n.tendon.stiffness, n.tendon.damping)
    build = lambda p: (eqx.tree_at(where, neck, p), state)
    options = {"dt": 2e-3, "duration": 2.0, "save_every": 1000, "control": jnp.asarray(TORQUE)}
    run = lambda: cordax.simulate_batch(build, (k, d), **options).q
    seconds = measure.best(run, repeats=5)
    return {"s": round(seconds, 3), "million_steps_per_s": round(1024 * 1000 / seconds / 1e6, 2)}


def precision() -> list[dict]:
    """Error at 1 s of the controlled motion against run time, all schemes."""
    import diffrax

    neck, control, state = controlled()
    exact = cordax.Diffrax(diffrax.Kvaerno5(), diffrax.PIDController(rtol=1e-11, atol=1e-11))
    end = lambda **o: cordax.simulate(neck, state, control=control, duration=1.0, **o).q[-1][:3]
    truth = end(integrator=exact, dt=1e-3, save_every=1000)
    rows = []
    schemes = {
        "explicit_euler": (2e-4, 1e-4, 5e-5),
        "rk4": (5e-4, 2.5e-4, 1.25e-4),
        "zhai": (2e-4, 1e-4, 5e-5),
        "linearly_implicit_euler": (4e-3, 2e-3, 1e-3, 5e-4),
        "rosenbrock_2": (8e-3, 4e-3, 2e-3, 1e-3),
        "implicit_euler": (4e-3, 2e-3, 1e-3),
        "implicit_midpoint": (8e-3, 4e-3, 2e-3, 1e-3),
    }
    for name, sizes in schemes.items():
        for dt in sizes:
            options = {"integrator": name, "dt": dt, "save_every": round(1.0 / dt)}
            error = float(jnp.max(jnp.abs(end(**options) - truth)))
            seconds = measure.best(lambda o=options: end(**o), repeats=5, budget=0.5)
            rows.append(
                {"scheme": name, "dt": dt, "error_rad": error, "ms": round(seconds * 1e3, 3)}
            )
    return rows


def _plot_precision(rows: list[dict], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    for name, marker in zip(dict.fromkeys(r["scheme"] for r in rows), "osv^DPX", strict=False):
        mine = [r for r in rows if r["scheme"] == name]
        ax.loglog(
            [r["ms"] for r in mine],
            [r["error_rad"] for r in mine],
            marker=marker,
            label=name.replace("_", " "),
        )
    ax.set(xlabel="run time of 1 s simulated [ms]", ylabel="error of joint angles at 1 s [rad]")
    ax.grid(True, which="both", alpha=0.3)
    ax.legend(fontsize=8)
    fig.savefig(path, dpi=150)


PARTS = (step, hoist, motion, start, gradient, gradient_long, durations, sharing, batch, overhead)

if __name__ == "__main__":
    functions = {f.__name__: f for f in (*PARTS, precision)}
    plot = (("--figure", "write the error-against-time plot here"),)
    found, given = measure.parts(functions, __doc__, plot)
    if given.figure:
        _plot_precision(found["precision"], given.figure)
