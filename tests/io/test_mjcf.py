"""MJCF models: every quantity of the equations of motion beside that of MuJoCo."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

from cordax.io import read_mjcf
from helpers.mjcf_models import JOINTS, TENDONS

COMPARED = (
    "qfrc_passive",
    "actuator_force",
    "qfrc_actuator",
    "ten_length",
    "ten_velocity",
    "qacc",
    "act_dot",
)


def quantities(machine, qpos, qvel, act, u):
    """Of the equations of motion at one state, by MuJoCo's names."""
    t, drive, n = jnp.zeros(()), machine.elements[0], machine.tree.n_v
    q, v = jnp.concatenate([qpos, jnp.zeros_like(act)]), jnp.concatenate([qvel, act])
    at = machine.instant(t, q, v)
    out = {"M": machine.mass_matrix(q)[:n, :n], "qfrc_passive": drive.passive_force(at)}
    out["actuator_force"], out["qfrc_actuator"] = drive.actuator_force(at, u)
    if drive.tendons is not None:
        tendons = drive.tendons.at(at)
        out |= {"ten_length": tendons.length, "ten_velocity": tendons.rate}
        out["ten_J"] = drive.tendons.jacobian(at, tendons)
    acceleration = machine.acceleration(t, q, v, u)
    return out | {"qacc": acceleration[:n], "act_dot": acceleration[n:]}


def of_mujoco(model, qpos, qvel, act, u):
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.act, data.ctrl = qpos, qvel, act, u
    mujoco.mj_forward(model, data)
    found = {name: np.array(getattr(data, name)) for name in COMPARED}
    found["M"] = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, found["M"])
    found["ten_J"] = np.zeros((model.ntendon, model.nv))
    if model.ntendon:
        mujoco.mju_sparse2dense(
            found["ten_J"], data.ten_J, model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind
        )
    return found


def poses(model, count):
    random = np.random.default_rng(3)
    for _ in range(count):
        qpos, qvel = np.array(model.qpos0), random.normal(size=model.nv)
        mujoco.mj_integratePos(model, qpos, 0.5 * random.normal(size=model.nv), 1.0)
        yield qpos, qvel, random.uniform(0, 1, model.na), random.normal(size=model.nu)


@pytest.mark.parametrize("text", [JOINTS, TENDONS], ids=["joints", "tendons"])
def test_every_quantity_is_that_of_mujoco(text):
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    experiment = read_mjcf(text, constraints=False)
    assert experiment.import_report.entries == ()
    states = [np.stack(x) for x in zip(*poses(model, 12), strict=True)]
    found = jax.jit(jax.vmap(lambda *state: quantities(experiment.system, *state)))(*states)
    for i, state in enumerate(zip(*states, strict=True)):
        expected = of_mujoco(model, *state)
        for name, values in found.items():
            want = expected[name]
            # MuJoCo finds the bend of a tendon that passes through a surface to about 1e-7
            accuracy = 1e-6 if text is TENDONS else 1e-11
            scale = 1.0 + np.abs(want).max(initial=0.0)
            np.testing.assert_allclose(values[i], want, atol=accuracy * scale, rtol=0, err_msg=name)
