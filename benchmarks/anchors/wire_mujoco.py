"""The wire of `benchmarks/rod.py` in MuJoCo: a flexible line with edges of fixed length, implicit.

`python wire_mujoco.py DAMPING EDGES DT ...` prints a JSON list: for each step the seconds of the
run and the height of the centre every 10 ms. Edges are kept by soft constraints that settle within
4 ms, or two steps. Needs MuJoCo and nothing of cordax."""

import json
import sys
import time

import mujoco
import numpy as np

LENGTH, SPAN, RADIUS, END = 2.0, 1.6, 1e-3, 0.5
EDGES = int(sys.argv[2])
MASS = 2700.0 * np.pi * RADIUS**2 * LENGTH
SETTLED = [0.99, 0.9999, 0.001]


def places() -> np.ndarray:
    """Corners on a circle, with edges of equal length."""
    edge = LENGTH / EDGES
    turn = lambda r: np.arcsin(0.5 * edge / r)  # half of what an edge spans
    chord = lambda r: 2 * r * np.sin(EDGES * turn(r))
    low, high = 1.001 * LENGTH / (2 * np.pi), 100 * LENGTH
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if chord(middle) < SPAN else (low, middle)
    angle = turn(low) * (2 * np.arange(EDGES + 1) - EDGES)
    drop = np.cos(angle[0]) - np.cos(angle)
    return np.stack([0.5 * SPAN + low * np.sin(angle), 0 * angle, low * drop], axis=1)


def wire(dt: float, damping: float):
    edge = LENGTH / EDGES
    settle = f'solref="{max(0.004, 2 * dt)} 1" solimp="{" ".join(map(str, SETTLED))}"'
    text = f"""
<mujoco>
  <option timestep="{dt}" integrator="discrete" solver="Newton" tolerance="1e-10" iterations="50"
          gravity="0 0 -9.81"/>
  <worldbody>
    <flexcomp name="w" type="grid" dim="1" count="{EDGES + 1} 1 1" spacing="{edge} {edge} {edge}"
              mass="{MASS}" radius="{RADIUS}" pos="{LENGTH / 2} 0 0">
      <edge equality="true" {settle}/>
      <elasticity young="70e9" poisson="0.33" damping="{damping}"/>
      <contact contype="0" conaffinity="0" selfcollide="none"/>
      <pin id="0"/>
    </flexcomp>
  </worldbody>
</mujoco>"""
    spec = mujoco.MjSpec.from_string(text)
    join = spec.add_equality()
    join.type, join.objtype = mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtObj.mjOBJ_BODY
    join.name1, join.name2 = f"w_{EDGES}", "world"
    join.solref, join.solimp = [max(0.004, 2 * dt), 1], [*SETTLED, 0.5, 2]
    model = spec.compile()
    model.eq_data[-1, :3], model.eq_data[-1, 3:6] = 0, [SPAN, 0, 0]
    return model


def run(dt: float, damping: float) -> dict:
    model = wire(dt, damping)
    data, corners = mujoco.MjData(model), places()
    mujoco.mj_forward(model, data)
    straight = data.flexvert_xpos.copy()
    at = [
        model.jnt_qposadr[model.body_jntadr[model.body(f"w_{i}").id]] for i in range(1, EDGES + 1)
    ]
    every, seconds = round(0.01 / dt), []
    for _ in range(3):
        mujoco.mj_resetData(model, data)
        for i, k in enumerate(at, start=1):
            data.qpos[k : k + 3] = corners[i] - straight[i]
        mujoco.mj_forward(model, data)
        heights = [data.flexvert_xpos[EDGES // 2, 2]]
        start = time.process_time()
        for _ in range(round(END / 0.01)):
            mujoco.mj_step(model, data, every)
            heights.append(data.flexvert_xpos[EDGES // 2, 2])
        seconds.append(time.process_time() - start)
    t = 0.01 * np.arange(len(heights))
    return {"dt": dt, "s": min(seconds), "t": list(t), "z": [float(z) for z in heights]}


if __name__ == "__main__":
    damping, _, *steps = map(float, sys.argv[1:])
    print(json.dumps([run(dt, damping) for dt in steps]))
