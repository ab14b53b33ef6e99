"""The rope robot of `rope_robot_case` in MuJoCo."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import rope_robot_case as case


def mujoco() -> dict | None:
    """The same robot in MuJoCo: half elements as bodies with slide and hinge, ends connected."""
    try:
        import mujoco as mj
    except ImportError:
        return None
    rows = []
    for dt in (1e-3, 2e-4, 1e-4):
        model = mj.MjModel.from_xml_string(_model(dt))
        data = mj.MjData(model)
        at = _begin(model, data, np.asarray(case.start().q))
        n = round(15.0 / dt)
        force = np.asarray(jax.vmap(case.FORCE.position)(jnp.arange(n) * dt))[:, 1]
        lift = model.jnt_dofadr[model.joint("pz").id]
        pose = np.zeros((n + 1, 3))
        pose[0] = data.qpos[at]
        begin = time.process_time()
        for k in range(n):
            data.qfrc_applied[lift] = force[k]
            mj.mj_step(model, data)
            pose[k + 1] = data.qpos[at]
        seconds = time.process_time() - begin
        error = case.platform_error(pose[:: round(case.STORED / dt)])
        rows.append({"dt": dt, "s": seconds, "platform_motion": error})
    return {"version": mj.__version__, "rows": rows}


def _begin(model, data, q):
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


def _model(dt: float) -> str:
    machine = case.robot()
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
