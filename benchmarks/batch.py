"""Batches: `python benchmarks/batch.py [part ...] [--steps 500]`, one JSON object.

Parts: steps (steps per second of 1 to 4096 necks, implicit steps, one thread and all), devices (the
same with one and two devices that JAX is told the processor has, each in a process of its own, and
their ratio), mujoco (a chain of as many coordinates with tendons in MuJoCo's batch, where it is
installed), kept (1024 necks of which the end is kept, or the largest tensions over time, as in
sweeps), memory (what a member takes, from processes with few and with many). Rates count seconds
that pass; on a shared machine look at ratios.

`python benchmarks/batch.py line [--batch 4096] [--precision float64]` prints one JSON line for the
device JAX has, a GPU among others: device, batch, precision (float32 by default), steps and
gradients per second, seconds to compile, and by how much single precision is off double at the
end."""

import argparse
import json
import os
import sys
import time

import cordax

SINGLE = "line" in sys.argv and "float64" not in sys.argv
if not SINGLE:
    cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.systems import Neck  # noqa: E402

SIZES = (1, 16, 64, 256, 1024, 4096)
DT = 2e-3
TORQUE = -8e-4 * np.array([60.0, 15.0, 50.0, 20.0])


def where(neck):
    return neck.tendon.stiffness, neck.tendon.damping


def tendons(size: int):
    """Stiffness [N/m] and damping [N s/m] of so many necks."""
    random = np.random.default_rng(0)
    return tuple(jnp.asarray(x * np.exp(0.3 * random.normal(size=size))) for x in (1e5, 100.0))


def neck_batch(size: int, steps: int, **options):
    """A call that advances so many necks by so many implicit steps."""
    neck = Neck.default(3)
    state = neck.default_state()
    build = lambda p: (eqx.tree_at(where, neck, p), state)
    given = {"dt": DT, "duration": steps * DT, "save_every": steps, "control": jnp.asarray(TORQUE)}
    p = tendons(size)
    whole = "keep" not in options

    def call():
        found = cordax.simulate_batch(build, p, **(given | options))
        return found.q if whole else found

    return call


def rate(call, work: int, repeats: int = 3) -> float:
    """Million steps per second, the best of some calls."""
    return round(work / measure.best(call, repeats=repeats, budget=20.0) / 1e6, 3)


def steps_part(steps: int) -> dict:
    """Steps per second over the size of the batch."""
    out = {}
    for size in SIZES:
        ways = {"one_thread": {"workers": 1}, "all_threads": {}}
        out[str(size)] = {
            name: rate(neck_batch(size, steps, **more), size * steps) for name, more in ways.items()
        }
    return {"million_steps_per_s": out}


def kept_part(steps: int, size: int = 1024) -> dict:
    """Million steps per second where something is kept of each motion."""
    ways = {
        "end": (steps, lambda run: run.q[-1]),
        "largest_tension": (1, lambda run: jnp.max(run["tension"], axis=0)),
    }
    return {
        name: rate(neck_batch(size, steps, save_every=every, keep=keep), size * steps)
        for name, (every, keep) in ways.items()
    }


_DEVICES = """
import json, sys
sys.path.insert(0, {here!r})
import batch
print(json.dumps({{str(n): batch.rate(batch.neck_batch(n, {steps}, workers=1), n * {steps}, 5)
                  for n in {sizes}}}))
"""


def devices_part(steps: int) -> dict:
    """Million steps per second with one device and with two, in turns."""
    sizes = SIZES[3:]
    code = _DEVICES.format(here=str(measure.HERE), steps=steps, sizes=sizes)
    own = os.environ.get("XLA_FLAGS", "")
    rounds: dict[int, list[dict]] = {1: [], 2: []}
    for _ in range(2):
        for count, found in rounds.items():
            flags = f"{own} --xla_force_host_platform_device_count={count}"
            found.append(measure.in_new_process(code, XLA_FLAGS=flags))
    best = {n: {k: max(x[str(k)] for x in found) for k in sizes} for n, found in rounds.items()}
    ratio = {str(k): round(best[2][k] / best[1][k], 2) for k in sizes}
    return {"one_device": best[1], "two_devices": best[2], "ratio": ratio}


def mujoco_part(steps: int) -> dict | None:
    """Three hinges in a chain and four winches, seven coordinates, four tendons with stiffness and
    damping: of the neck's size, not the neck."""
    try:
        import mujoco as mj
        from mujoco import rollout
    except ImportError:
        return None
    model = mj.MjModel.from_xml_string(_MUJOCO.format(dt=DT))
    out = {}
    for size in SIZES[3:5]:
        start = np.zeros((size, mj.mj_stateSize(model, mj.mjtState.mjSTATE_FULLPHYSICS)))
        control = np.broadcast_to(100.0 * TORQUE, (size, steps, 4)).copy()
        for name, threads in (("one_thread", 1), ("all_threads", os.cpu_count() or 1)):
            data = [mj.MjData(model) for _ in range(threads)]
            call = lambda data=data, a=start, u=control: rollout.rollout(model, data, a, u)[0]
            moved = np.abs(call()[:, -1, 1:4]).max()
            assert 1e-4 < moved < 1.0, f"joints of the chain at {moved} rad: not a fair motion"
            out.setdefault(str(size), {})[name] = rate(call, size * steps)
    return {"version": mj.__version__, "million_steps_per_s": out}


_LINK = '<body pos="0 0 0.087"><joint name="j{i}" axis="0 1 0" damping="4e-3" stiffness="1"/>'
_LINK += '<geom type="capsule" fromto="0 0 0 0 0 0.087" size="0.01" mass="0.16"/>'
_LINK += '<site name="l{i}" pos="-0.025 0 0.087"/><site name="r{i}" pos="0.025 0 0.087"/>'
_CHAIN = "".join(_LINK.format(i=i) for i in range(3)) + "</body>" * 3
_WINCH = '<body pos="{x} 0 -0.1"><joint name="w{i}" type="slide" axis="0 0 1" armature="50"/>'
_WINCH += '<geom size="0.005" mass="0.01" contype="0" conaffinity="0"/><site name="s{i}"/></body>'
_CABLE = '<spatial name="c{i}" stiffness="1e5" damping="100" springlength="{length}">'
_CABLE += '<site site="s{i}"/><site site="{side}{top}"/></spatial>'
_SIDES = [("l", 2, 0.448), ("r", 2, 0.448), ("l", 1, 0.361), ("r", 0, 0.274)]
_CABLES = "".join(
    _CABLE.format(i=i, side=side, top=top, length=length)
    for i, (side, top, length) in enumerate(_SIDES)
)
_MUJOCO = (
    '<mujoco><option timestep="{dt}" integrator="implicit" gravity="0 0 0">'
    '<flag contact="disable"/></option>'
    f"<worldbody>{_CHAIN}"
    + "".join(
        _WINCH.format(i=i, x=-0.025 if s == "l" else 0.025) for i, (s, *_) in enumerate(_SIDES)
    )
    + f"</worldbody><tendon>{_CABLES}</tendon><actuator>"
    + "".join(f'<motor joint="w{i}"/>' for i in range(4))
    + "</actuator></mujoco>"
)

_MEMORY = """
import json, resource, sys
sys.path.insert(0, {here!r})
import batch, jax
if {everything}:
    call = batch.neck_batch_stored({size})
else:
    call = batch.neck_batch({size}, 100)
jax.block_until_ready(call())
print(json.dumps({{"kB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}}))
"""


def neck_batch_stored(size: int):
    """The same with all of 100 instants stored."""
    neck = Neck.default(3)
    state = neck.default_state()
    build = lambda p: (eqx.tree_at(where, neck, p), state)
    given = {"dt": DT, "duration": 100 * DT, "control": jnp.asarray(TORQUE)}
    return lambda: cordax.simulate_batch(build, tendons(size), **given)


def memory_part(steps: int) -> dict:
    """What one more member takes [kB]: its end stored, and 100 instants with all outputs."""
    peak = lambda size, everything: measure.in_new_process(
        _MEMORY.format(here=str(measure.HERE), size=size, everything=everything)
    )["kB"]
    out = {}
    for name, everything, sizes in (("end", False, (256, 65536)), ("all_100", True, (256, 4096))):
        few, many = (peak(size, everything) for size in sizes)
        out[f"{name}_kB"] = round((many - few) / (sizes[1] - sizes[0]), 3)
    return out


def line(size: int, steps: int) -> dict:
    """Of the device that JAX has."""
    precision = "float32" if SINGLE else "float64"
    neck = Neck.default(3)
    state = neck.default_state()
    p = tendons(size)

    def end(p):
        machine = eqx.tree_at(where, neck, p)
        run = cordax.simulate(
            machine, state, dt=DT, duration=steps * DT, save_every=steps, control=TORQUE,
            throw=False, adjoint="forward",
        )  # fmt: skip
        return run.q[-1]

    def slopes(p):
        return jax.jacfwd(lambda p: jnp.sum(end(p)[:3] ** 2))(p)

    out = {"device": str(jax.devices()[0].device_kind), "platform": jax.default_backend()}
    out |= {"batch": size, "precision": precision, "steps": steps}
    chunk = 64 if jax.default_backend() == "cpu" else size
    run = neck_batch(size, steps, keep=lambda run: run.q[-1], chunk=chunk)
    start = time.perf_counter()
    ends = np.asarray(run())
    some = lambda p: jax.lax.map(slopes, p, batch_size=min(chunk, size))
    slope = jax.jit(some).lower(p).compile()
    both, seconds = time.perf_counter() - start, measure.best(run, repeats=5)
    out["compile_s"] = round(both - seconds, 1)
    out["steps_per_s"] = round(size * steps / seconds)
    out["gradients_per_s"] = round(size / measure.best(lambda: slope(p), repeats=5), 1)
    out["float32_error_rad"] = _single_error(ends[:, :3], steps) if SINGLE else None
    return out


_DOUBLE = """
import json, sys
sys.path.insert(0, {here!r})
import batch
print(json.dumps([x.tolist() for x in batch.neck_batch({size}, {steps})()[:, -1, :3]]))
"""


def _single_error(ends: np.ndarray, steps: int, size: int = 64) -> float:
    """Largest error of joint angles at the end [rad], of the first members."""
    size = min(size, len(ends))
    code = _DOUBLE.format(here=str(measure.HERE), size=size, steps=steps)
    truth = np.asarray(measure.in_new_process(code, JAX_PLATFORMS="cpu"))
    return float(np.max(np.abs(ends[:size] - truth)))


PARTS = {
    "steps": steps_part,
    "devices": devices_part,
    "mujoco": mujoco_part,
    "kept": kept_part,
    "memory": memory_part,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "line", []], help="those above")
    parser.add_argument("--steps", type=int, default=500, help="of each member")
    parser.add_argument("--batch", type=int, default=4096, help="of `line`")
    parser.add_argument("--precision", choices=("float64", "float32"), help="of `line`; float32")
    chosen = parser.parse_args()
    if chosen.parts == ["line"]:
        print(json.dumps(line(chosen.batch, chosen.steps)))
        return
    result: dict = {"about": measure.about(), "steps": chosen.steps}
    for name in chosen.parts or PARTS:
        result[f"{name}_part" if name == "steps" else name] = PARTS[name](chosen.steps)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
