"""What steps, batches, first calls and gradients of rope robots cost."""

import os
from pathlib import Path

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import rope_robot_case as case  # noqa: E402

from cordax.mechanics.constraints import Stabilisation  # noqa: E402


def reverse() -> dict:
    """A gradient by EA in reverse mode beside the run: 0.2 s at 1 ms, 20 segments."""
    state, EA, out = case.start(), jnp.asarray(4.0e4), {}
    methods = {
        "generalised_alpha": {"integrator": cordax.GeneralisedAlpha()},
        "once": {"integrator": case.ONCE},
        "linearly_implicit_euler": case.EULER,
    }
    given = {"dt": 1e-3, "duration": 0.2, "save_every": 200, "control": case.lift, "throw": False}
    for name, method in methods.items():

        def place(EA, method=method):
            return cordax.simulate(case.robot(EA=EA), state, **given, **method).q[-1, -2]

        both = {"run_s": jax.jit(place), "reverse_s": jax.jit(jax.value_and_grad(place))}
        calls = {kind: lambda f=f: f(EA) for kind, f in both.items()}
        seconds = measure.in_turns(calls, repeats=25)
        out[name] = {**seconds, "ratio": seconds["reverse_s"] / seconds["run_s"]}
    return out


def scaling() -> dict:
    """Microseconds of one evaluation in a loop, by segments."""
    out = {}
    none = Stabilisation(jnp.asarray(20.0), jnp.asarray(20.0))
    u, t = jnp.zeros(3), jnp.zeros(())
    for count in (5, 10, 20, 40, 80, 160):
        machine = case.robot(count)
        state = machine.hanging([0.45, -3.0, -0.25])

        @eqx.filter_jit
        def accelerate(machine, q, v):
            step = lambda _, y: (
                y + 1e-12 * machine.structure().constrained_acceleration(t, y, v, u, none)[0]
            )
            return jax.lax.fori_loop(0, 1000, step, q)

        @eqx.filter_jit
        def solve(machine, q, v):
            def step(_, y):
                J = machine.structure().constraint_terms(t, y, v).jacobian
                motion = machine.structure().linearise(t, y, v, u, multipliers=jnp.ones(4))
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
    state = case.robot().rest()
    go = lambda: cordax.simulate_batch(
        lambda EA: (case.robot(EA=EA), state),
        stiffness,
        dt=1e-3,
        duration=1.0,
        save_every=100,
        control=case.lift,
        **case.EULER,
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
import jax, rope_robot_case as case, cordax
parts = {{"trace": 0.0, "lower": 0.0, "compile": 0.0}}
names = {{"jaxpr_trace": "trace", "jaxpr_to_mlir_module": "lower", "backend_compile": "compile"}}
def note(event, seconds, **_):
    name = names.get(event.split("/")[-1].removesuffix("_duration"))
    if name:
        parts[name] += seconds
machine = case.robot({count})
state = machine.hanging()
jax.monitoring.register_event_duration_secs_listener(note)
begin = time.perf_counter(), time.process_time()
run = cordax.simulate(machine, state, dt=1e-3, duration=0.1, save_every=100,
    control=case.lift, throw=False, {method})
run.q.block_until_ready()
seconds = time.perf_counter() - begin[0], time.process_time() - begin[1]
print(json.dumps({{"s": seconds[0], "processor_s": seconds[1], **parts}}))
"""
FIRST_OF = {
    "generalised_alpha": ("", (20, 160)),  # the default
    "linearly_implicit_euler": ("**case.EULER", (20,)),
    "adaptive": ("integrator=case.ONCE, accuracy=2e-5", (20,)),
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
    default = out["generalised_alpha"]
    return {**out, "160_over_20": default[160]["s"] / default[20]["s"]}
