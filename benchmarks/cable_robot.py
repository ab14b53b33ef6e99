"""Speed of cable robots: `python benchmarks/cable_robot.py [part ...] [--out FILE]`.

Prints one JSON object. Parts: impulse (the pushed plate over 10 s, error against time over schemes
and steps), paper (RK4 at 0.1 ms, the paper's setting), batch (1024 robots for 1 s), gradient (of a
final pose by two parameters), start (first call), mujoco (the same plate in MuJoCo, where it is
installed). Errors are the largest distance of the centre of mass from a run at 0.1 ms, which
the tests compare with independent data; the target is 0.016 mm."""

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.control import Pulses  # noqa: E402
from cordax.systems import (  # noqa: E402
    CableRobot,
    NaturalBody,
    PointExit,
    ProgrammedLengths,
    PulleyExit,
    box_inertia,
)

SIZE, MASS = (0.2, 0.4, 0.01), 6.24
POINTS = np.array([[-3.0, -2.0, 2.0], [-3.0, 2.5, 2.0], [3.0, 2.5, 2.0], [3.0, -2.0, 2.0]])
CORNERS = np.array([[-0.1, -0.2, 0.0], [-0.1, 0.2, 0.0], [0.1, 0.2, 0.0], [0.1, -0.2, 0.0]])
START, PUSH, PUSH_TIMES = np.array([0.0, 0.25, 0.37]), (50.0, 100.0, 0.0), (0.51, 0.52)
PAPER_S = {"model_1": 11.9, "model_2": 9.1}


def plate(model: str, mass=MASS, points=POINTS) -> CableRobot:
    """The plate of section 4.3 of Piva, Richiedei and Trevisani (2024)."""
    inertia = jnp.asarray(mass) / MASS * box_inertia(MASS, SIZE)
    body = NaturalBody(mass, inertia, r_j=(0.0, 0.1, 0.0), v_i=(1.0, 0.0, 0.0), v_j=(0.0, 0.0, 1.0))
    exits = PointExit(points) if model == "model_1" else PulleyExit(points, np.full(4, 0.05))
    lengths = ProgrammedLengths(np.ones(4))
    robot = CableRobot(body, CORNERS, exits, lengths, position=START)
    return eqx.tree_at(lambda r: r.drives, robot, ProgrammedLengths(robot.lengths()))


def push(dt: float) -> Pulses:
    return Pulses([PUSH_TIMES], [[*PUSH, 0.0, 0.0, 0.0]], period=dt)


def run(model: str, dt: float, duration: float = 10.0, **options):
    robot = plate(model)
    state = robot.default_state()
    every = max(1, round(0.01 / dt))
    keep = {"dt": dt, "duration": duration, "control": push(dt), "save_every": every} | options
    return lambda: cordax.simulate(robot, state, **keep)


SCHEMES = {
    "rk4_baumgarte": {"integrator": "rk4"},
    "rk4_index1": {"integrator": "rk4", "formulation": cordax.Baumgarte(0.0, 0.0)},
    "rk4_penalty": {"integrator": "rk4", "formulation": cordax.Penalty()},
    "rk4_projected": {"integrator": "rk4", "formulation": cordax.Projected()},
    "generalised_alpha": {"integrator": cordax.GeneralisedAlpha()},
}
STEPS = {"rk4_penalty": (2e-3, 1e-3), "generalised_alpha": (1e-2, 5e-3)}


def impulse() -> dict:
    """Error against time of the pushed plate."""
    out = {}
    for model in ("model_1", "model_2"):
        reference = np.asarray(run(model, 1e-4)()["position"])
        rows = []
        for scheme, options in SCHEMES.items():
            for dt in STEPS.get(scheme, (1e-2, 5e-3)):
                go = run(model, dt, **options)
                error = np.abs(np.asarray(go()["position"]) - reference).max()
                seconds = measure.best(lambda go=go: go().q)
                rows.append(
                    {
                        "scheme": scheme,
                        "dt": dt,
                        "error_mm": round(error * 1e3, 7),
                        "ms": round(seconds * 1e3, 3),
                        "simulated_per_wall": round(10.0 / seconds),
                    }
                )
        out[model] = rows
    return out


def paper() -> dict:
    """RK4 at 0.1 ms over 10 s, in s; the paper's MATLAB took 11.9 and 9.1."""
    out = {}
    for model in ("model_1", "model_2"):
        formulation = cordax.Baumgarte(1e3, 1e3)
        go = run(model, 1e-4, formulation=formulation)
        seconds = measure.best(lambda go=go: go().q, repeats=3)
        out[model] = {"s": round(seconds, 3), "paper_s": PAPER_S[model]}
    return out


def batch(members: int = 1024, dt: float = 1e-2) -> dict:
    """Plates of different masses, pushed at once, for 1 s."""
    masses = np.linspace(4.0, 9.0, members)
    pulse = Pulses([(0.0, 0.01)], [[*PUSH, 0.0, 0.0, 0.0]], period=dt)

    def build(mass):
        robot = plate("model_1", mass)
        return robot, robot.default_state(), pulse

    def fine(mass):
        robot = plate("model_1", mass)
        control = Pulses([(0.0, 0.01)], [[*PUSH, 0.0, 0.0, 0.0]], period=1e-3)
        keep = {"dt": 1e-3, "duration": 1.0, "save_every": 10}
        return cordax.simulate(robot, robot.default_state(), control=control, **keep)

    go = lambda: cordax.simulate_batch(build, masses, dt=dt, duration=1.0)
    found = np.asarray(go()["position"])
    few = range(0, members, members // 8)
    error = max(np.abs(found[i] - np.asarray(fine(masses[i])["position"])).max() for i in few)
    seconds = measure.best(lambda: go().q, repeats=10)
    return {"s": round(seconds, 3), "error_mm": round(error * 1e3, 6), "members": members}


def gradient(dt: float = 1e-2) -> dict:
    """Of the squared distance of the final pose from a wanted one over 1 s, by mass and by the
    height of the exits; forward mode."""
    pulse = Pulses([(0.0, 0.01)], [[*PUSH, 0.0, 0.0, 0.0]], period=dt)

    def loss(parameters):
        robot = plate("model_1", parameters[0], POINTS + parameters[1] * jnp.array([0.0, 0.0, 1.0]))
        # outputs are not wanted here: the last stored state is
        options = {"dt": dt, "duration": 1.0, "control": pulse, "save_every": 100}
        end = cordax.simulate(robot, robot.default_state(), throw=False, **options)
        return jnp.sum((end["position"][-1] - jnp.array([0.05, 0.3, 0.4])) ** 2)

    x = jnp.array([MASS, 0.0])
    value, cost = measure.compiled(loss, x)
    forward, forward_cost = measure.compiled(jax.jacfwd(loss), x)
    reverse, reverse_cost = measure.compiled(jax.grad(loss), x)
    step = np.array([1e-5, 1e-6])
    difference = [
        (float(loss(x.at[i].add(h))) - float(loss(x.at[i].add(-h)))) / (2 * h)
        for i, h in enumerate(step)
    ]
    found = np.asarray(jax.tree.leaves(forward())[0])
    calls = {"run": value, "forward_mode": forward, "reverse": reverse}
    ms = {name: round(measure.best(f) * 1e3, 3) for name, f in calls.items()}
    return {
        "ms": ms,
        "times_run": {name: round(ms[name] / ms["run"], 2) for name in ("forward_mode", "reverse")},
        "compile": {"run": cost, "forward_mode": forward_cost, "reverse": reverse_cost},
        "off_central_differences": float(np.max(np.abs(found / difference - 1.0))),
    }


def start() -> dict:
    """Import and first call of the pushed plate in a new process, without and with a cache."""
    import tempfile

    code = (
        "import time; a = time.perf_counter(); import sys; sys.path.insert(0, {here!r})\n"
        "import cordax; cordax.enable_x64(); cordax.enable_cache({cache!r})\n"
        "import cable_robot, jax, json; b = time.perf_counter()\n"
        "jax.block_until_ready(cable_robot.run('model_2', 1e-2)().q); c = time.perf_counter()\n"
        "print(json.dumps({{'import_s': round(b - a, 2), 'first_call_s': round(c - b, 2)}}))"
    )
    with tempfile.TemporaryDirectory() as cache:
        text = code.format(here=str(measure.HERE), cache=cache)
        return {"cold": measure.in_new_process(text), "from_cache": measure.in_new_process(text)}


def mujoco() -> dict | None:
    """The same plate on four tendons of fixed length in MuJoCo, bilateral, at 1 ms."""
    try:
        import mujoco as mj
    except ImportError:
        return None
    inertia = " ".join(str(x) for x in np.diag(box_inertia(MASS, SIZE)))
    place = lambda p: " ".join(str(x) for x in p)
    sites = "".join(f'<site name="b{i}" pos="{place(p)}"/>' for i, p in enumerate(POINTS))
    marks = "".join(f'<site name="p{i}" pos="{place(p)}"/>' for i, p in enumerate(CORNERS))
    wires = "".join(
        f'<spatial name="t{i}"><site site="b{i}"/><site site="p{i}"/></spatial>' for i in range(4)
    )
    stiff = 'solref="0.002 1" solimp="0.999 0.9999 0.001"'
    holds = "".join(f'<tendon tendon1="t{i}" polycoef="0 1 0 0 0" {stiff}/>' for i in range(4))
    xml = (
        '<mujoco><option timestep="0.001" gravity="0 0 -9.81" integrator="implicitfast"/>'
        f'<worldbody>{sites}<body pos="{place(START)}"><freejoint/>'
        f'<inertial pos="0 0 0" mass="{MASS}" diaginertia="{inertia}"/>{marks}</body></worldbody>'
        f"<tendon>{wires}</tendon><equality>{holds}</equality></mujoco>"
    )
    model = mj.MjModel.from_xml_string(xml)
    data = mj.MjData(model)

    def go():
        mj.mj_resetData(model, data)
        mj.mj_step(model, data, 510)
        data.xfrc_applied[1, :3] = PUSH
        mj.mj_step(model, data, 10)
        data.xfrc_applied[1, :3] = 0.0
        mj.mj_step(model, data, 9480)

    seconds = measure.best(go, repeats=5)
    mj.mj_resetData(model, data)
    seen = [data.qpos[:3].copy()]
    for k in range(10_000):
        data.xfrc_applied[1, :3] = PUSH if 510 <= k < 520 else (0.0, 0.0, 0.0)
        mj.mj_step(model, data)
        if (k + 1) % 10 == 0:
            seen.append(data.qpos[:3].copy())
    reference = np.asarray(run("model_1", 1e-4)()["position"])
    return {
        "version": mj.__version__,
        "ms": round(seconds * 1e3, 2),
        "simulated_per_wall": round(10.0 / seconds),
        "error_mm": round(float(np.abs(np.array(seen) - reference).max()) * 1e3, 4),
    }


PARTS = {f.__name__: f for f in (impulse, paper, batch, gradient, start, mujoco)}

if __name__ == "__main__":
    measure.parts(PARTS, __doc__)
