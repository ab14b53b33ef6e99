"""Imported models beside MuJoCo: `python benchmarks/mjcf.py MODEL.xml ... [--batch 256 1024]`.

Prints one JSON object for each model: seconds of the first call, microseconds for a step of one
model and for a step of each member of a batch, and seconds for the gradient of a run of 0.2 s by 10
site coordinates, by cordax and by MuJoCo, both with RK4 (MuJoCo: one model after the other in one
thread; a gradient by 11 runs). Contacts, limits and friction loss are switched off in both."""

import argparse
import json
import time
from pathlib import Path

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import mujoco  # noqa: E402
import numpy as np  # noqa: E402

from cordax.io import read_mjcf  # noqa: E402

STEPS, DT = 100, 2e-3
PARAMETERS = 10


def place(machine):
    return machine.elements[0].tendons.sites.position


def of_cordax(path: Path, batches: list[int]) -> dict:
    machine = read_mjcf(path, constraints=False).system
    start, u = machine.default_state(), jnp.full(machine.n_u, 0.2) if machine.n_u else None
    settings = {"dt": DT, "duration": STEPS * DT, "save_every": STEPS, "control": u}
    run = lambda: cordax.simulate(machine, start, integrator="rk4", **settings).q
    begin = time.perf_counter()
    jax.block_until_ready(run())
    found = {"first call [s]": time.perf_counter() - begin}
    found["step [us]"] = measure.best(run) / STEPS * 1e6
    for n in batches:
        many = jax.tree.map(lambda x, n=n: jnp.tile(x, (n, 1)), start)
        batch = lambda many=many: (
            cordax.simulate_batch(
                lambda state: (machine, state), many, integrator="rk4", **settings
            ).q
        )
        found[f"step of each of {n} [us]"] = measure.best(batch, repeats=3) / STEPS / n * 1e6
    if machine.elements[0].tendons is not None and place(machine).size >= PARAMETERS:
        sites = place(machine)

        @jax.jit
        def gradient(x):
            def end(x):
                moved = sites.reshape(-1).at[:PARAMETERS].add(x).reshape(sites.shape)
                changed = eqx.tree_at(place, machine, moved)
                run = cordax.simulate(changed, start, integrator="rk4", **settings)
                return jnp.sum(run.q[-1, : machine.tree.n_q])

            return jax.grad(end)(x)

        begin = time.perf_counter()
        jax.block_until_ready(gradient(jnp.zeros(PARAMETERS)))
        found["first gradient [s]"] = time.perf_counter() - begin
        found["gradient [s]"] = measure.best(lambda: gradient(jnp.zeros(PARAMETERS)), repeats=3)
    return found


def of_mujoco(path: Path) -> dict:
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    model.opt.timestep, model.opt.integrator = DT, mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)

    def run():
        mujoco.mj_resetData(model, data)
        data.ctrl[:] = np.clip(0.2, *model.actuator_ctrlrange.T) if model.nu else 0.0
        mujoco.mj_step(model, data, STEPS)
        return 0.0

    seconds = measure.best(run)
    return {"step [us]": seconds / STEPS * 1e6, "gradient [s]": (PARAMETERS + 1) * seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--batch", type=int, nargs="*", default=[256, 1024])
    given = parser.parse_args()
    for path in given.models:
        both = {"cordax": of_cordax(path, given.batch), "mujoco": of_mujoco(path)}
        print(json.dumps({"model": path.stem} | both, indent=2), flush=True)


if __name__ == "__main__":
    main()
