"""Check imported models against MuJoCo: `python examples/import_models.py PATH [--poses 5]`.

PATH is a model (.xml, .urdf) or a folder of models. For each model the table has the largest
difference to MuJoCo over the initial and some random poses: tendon lengths [m] and their Jacobian;
relative to the largest entry, mass matrix, bias forces, passive forces, actuator forces and
accelerations; and the coordinates after 0.2 s without inputs, both by RK4 with steps of 0.1 ms.
Contacts, limits, equalities and friction loss are switched off in both. Models that cannot be read
are listed with the reason."""

import argparse
from pathlib import Path

import cordax

cordax.enable_x64()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import mujoco  # noqa: E402
import numpy as np  # noqa: E402

from cordax.io import read_mjcf  # noqa: E402

COLUMNS = ("length", "Jacobian", "mass", "bias", "passive", "actuator", "qacc", "run")
ABSOLUTE = ("length", "Jacobian", "run")
STEP, DURATION = 1e-4, 0.2


def of_cordax(machine, qpos, qvel, act, u):
    """Quantities of the equations of motion at one state."""
    t, drive, n = jnp.zeros(()), machine.elements[0], machine.tree.n_v
    q, v = jnp.concatenate([qpos, jnp.zeros_like(act)]), jnp.concatenate([qvel, act])
    at = machine.instant(t, q, v)
    bias = machine.bias(q, v)
    if drive.laws is not None and drive.laws.heavy:
        bias = bias + drive.armature_bias(at)
    found = {
        "mass": machine.mass_matrix(q)[:n, :n],
        "bias": bias,
        "passive": drive.passive_force(at),
        "actuator": drive.actuator_force(at, u)[1],
        "qacc": machine.structure().acceleration(t, q, v, u)[:n],
    }
    if drive.tendons is not None:
        found["length"] = drive.tendons.at(at).length
        found["Jacobian"] = drive.tendon_jacobian(at)
    return found


def of_mujoco(model, qpos, qvel, act, u):
    """The same by MuJoCo."""
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.act, data.ctrl = qpos, qvel, act, u
    mujoco.mj_forward(model, data)
    found = {
        "mass": np.zeros((model.nv, model.nv)),
        "bias": data.qfrc_bias,
        "passive": data.qfrc_passive,
        "actuator": data.qfrc_actuator,
        "qacc": data.qacc,
        "length": data.ten_length,
        "Jacobian": np.zeros((model.ntendon, model.nv)),
    }
    mujoco.mj_fullM(model, data, found["mass"])
    if model.ntendon:
        place = model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind
        mujoco.mju_sparse2dense(found["Jacobian"], data.ten_J, *place)
    return found


def random_states(model, count):
    """The initial configuration at rest and random states: qpos, qvel, act, ctrl."""
    random = np.random.default_rng(0)
    yield np.array(model.qpos0), np.zeros(model.nv), np.zeros(model.na), np.zeros(model.nu)
    for _ in range(count):
        qpos = np.array(model.qpos0)
        mujoco.mj_integratePos(model, qpos, 0.3 * random.normal(size=model.nv), 1.0)
        for j in np.flatnonzero(model.jnt_limited & (model.jnt_type >= 2)):
            qpos[model.jnt_qposadr[j]] = random.uniform(*model.jnt_range[j])
        yield (
            qpos,
            random.normal(size=model.nv),
            random.uniform(size=model.na),
            random.normal(size=model.nu),
        )


def end_of_run(model, machine):
    """Largest difference of the coordinates after a run without inputs."""
    model.opt.timestep, model.opt.integrator = STEP, mujoco.mjtIntegrator.mjINT_RK4
    data = mujoco.MjData(model)
    for _ in range(round(DURATION / STEP)):
        mujoco.mj_step(model, data)
    stride = round(DURATION / STEP)
    control = jnp.zeros(machine.n_u) if machine.n_u else None
    run = cordax.simulate(
        machine, control=control, dt=STEP, duration=DURATION, save_every=stride, integrator="rk4"
    )
    return float(np.abs(np.asarray(run.q)[-1, : model.nq] - data.qpos).max())


def compare(path: Path, poses: int) -> dict[str, float]:
    """Largest differences of one model."""
    machine = read_mjcf(path, constraints=False).system
    model = mujoco.MjModel.from_xml_path(str(path))
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    states = [np.stack(x) for x in zip(*random_states(model, poses), strict=True)]
    found = jax.jit(jax.vmap(lambda *state: of_cordax(machine, *state)))(*states)
    expected = [of_mujoco(model, *state) for state in zip(*states, strict=True)]
    errors = {}
    for name, values in found.items():
        want = np.stack([x[name] for x in expected])
        size = 1.0 if name in ABSOLUTE else max(np.abs(want).max(initial=0.0), 1e-12)
        errors[name] = float(np.abs(np.asarray(values) - want).max(initial=0.0)) / size
    return errors | {"run": end_of_run(model, machine)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--poses", type=int, default=5)
    given = parser.parse_args()
    folder = given.path.is_dir()
    files = [x for x in sorted(given.path.rglob("*")) if x.suffix in (".xml", ".urdf", ".mjcf")]
    print(f"{'model':28}" + "".join(f"{name:>10}" for name in COLUMNS))
    for path in files if folder else [given.path]:
        try:
            errors = compare(path, given.poses)
        except (ValueError, cordax.SimulationError) as error:
            print(f"{path.stem:28}  not compared: {error}", flush=True)
            continue
        cells = (f"{errors[name]:10.1e}" if name in errors else f"{'-':>10}" for name in COLUMNS)
        print(f"{path.stem:28}" + "".join(cells), flush=True)


if __name__ == "__main__":
    main()
