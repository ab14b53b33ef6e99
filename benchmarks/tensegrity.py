"""Speed of tensegrity machines: `python benchmarks/tensegrity.py [part ...]`.

Prints one JSON object. Parts: strut (forward dynamics at 1 ms, simulated per wall second), track
(9 s of tracking with the quadratic programme in every stage at 1 ms), manipulator (its z trajectory
with control), batch (256 struts), evaluate (one constrained evaluation of both machines),
predictive (model-predictive control of the strut beside inverse dynamics)."""

import argparse
import json

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.control import Hermite, ModelPredictive, NearRigidQP  # noqa: E402
from cordax.mechanics.constraints import Stabilisation  # noqa: E402
from cordax.systems import single_strut, tensegrity_manipulator  # noqa: E402

AREA = np.pi * 1e-6


def strut() -> dict:
    machine = single_strut(modulus=50e6)
    start = machine.state_at((0.0, 0.0), 0.1 / (0.07 * AREA * 50e6))
    u = np.array([0.1001, 0.1, 0.1])
    run = lambda: cordax.simulate(machine, start, duration=1.0, dt=1e-3, save_every=10, control=u).q
    times = measure.timed(run)
    speed = 1.0 / times["run_processor_s"]
    return times | {"times_real_time": speed, "at_least_50": speed >= 50.0}


def track() -> dict:
    machine = single_strut(modulus=2e9, viscosity=1e6)
    angle = np.pi / 8
    path = Hermite(
        [0.0, 1.0, 3.0, 7.0, 9.0],
        [[0, 0], [0, 0], [angle, 0], [-angle, angle], [0, 0.0]],
        np.zeros((5, 2)),
    )
    control = NearRigidQP(machine, path, 0.01, followed=("cross", "strut"))
    start = machine.state_at((0.0, 0.0), 0.01)
    options = {"duration": 9.0, "dt": 1e-3, "save_every": 100, "control": control}
    times = measure.timed(lambda: cordax.simulate(machine, start, **options).q)
    sharing = _sharing(machine, start, control)
    return times | {"at_most_2_s": times["run_processor_s"] <= 2.0, "sharing": sharing}


def _sharing(machine, start, control) -> dict:
    """1 s with a controller that holds the machine, and one that holds a copy of it, so that
    nothing the two compute can be shared."""
    copy = jax.tree.map(lambda x: jnp.array(x, copy=True) if eqx.is_array(x) else x, machine)
    apart = eqx.tree_at(lambda c: c.machine, control, copy)
    options = {"duration": 1.0, "dt": 1e-3, "save_every": 100}
    run = lambda control: cordax.simulate(machine, start, control=control, **options).q
    took = measure.in_turns({"shared": lambda: run(control), "apart": lambda: run(apart)})
    ratio = round(took["shared"] / took["apart"], 3)
    return {f"{name}_ms": round(x * 1e3, 2) for name, x in took.items()} | {"ratio": ratio}


def predictive() -> dict:
    """A tilt within 1 s: inverse dynamics in every stage, held for 10 ms with feedback, and
    `ModelPredictive` held for 10 ms, 0.1 s ahead. Largest errors, effort (the integral of |u|^2),
    least strain over its bound, times of the run, and how often the controller was evaluated."""
    machine = single_strut(modulus=2e9, viscosity=1e7)
    path = Hermite([0.0, 0.5, 1.5], [[0, 0], [0, 0], [0, np.pi / 8]], np.zeros((3, 2)))
    start, followed = machine.state_at((0.0, 0.0), 0.01), ("cross", "strut")
    hold = 0.07 * 2e9 * AREA * 0.01 * np.ones(3)
    near_rigid = lambda **options: NearRigidQP(machine, path, 0.01, followed=followed, **options)
    laws = {
        "near_rigid": near_rigid(),
        "near_rigid_held": near_rigid(K_p=100.0, K_d=20.0, period=0.01),
        "predictive": ModelPredictive(
            machine, path, followed, hold, bounded=machine.independent[2:], least=0.01,
            tracking=1e4, tracking_rate=10.0, effort=1e-4,
        ),
    }  # fmt: skip
    out = {}
    for name, law in laws.items():
        options = {"duration": 1.5, "dt": 1e-3, "save_every": 10, "control": law, "throw": False}
        again = lambda options=options: cordax.simulate(machine, start, **options)
        times, run = measure.timed(lambda again=again: again().q), again()
        off = np.abs(np.array(run.outputs["angles"]) - np.array(jax.vmap(path.position)(run.t)))
        out[name] = {
            "largest_error_rad": off.max(axis=0).tolist(),
            "effort": float(np.sum(np.array(run.u) ** 2) * 0.01),
            "least_strain_over_bound": float(np.min(run.outputs["strain"]) / 0.01),
            "evaluations": 6000 if law.period is None else 150,
        } | times
    return out


def manipulator(duration: float = 20.0) -> dict:
    machine = tensegrity_manipulator(friction=5.0)
    start = machine.state_at([-0.02527940, -0.22061204] * 3, [0.01, 0.0148825] * 3)
    height = float(start.q[6])
    z = np.array([height, height - 0.5, height + 0.25, height])
    points = np.stack([0 * z, 0 * z, z], axis=1)
    path = Hermite([0.0, 5.0, 15.0, 20.0], points, np.zeros((4, 3)))
    control = NearRigidQP(machine, path, 0.01, point=("ee", (0.0, 0.0, 0.0)))
    options = {"duration": duration, "dt": 2.5e-3, "save_every": 40, "control": control}
    times = measure.timed(lambda: cordax.simulate(machine, start, **options).q)
    return times | {"at_most_40_s": times["run_processor_s"] <= 40.0}


def batch(n: int = 256) -> dict:
    """By members advanced together; as many evaluations as one machine alone, 0.1 s."""
    machine, u = single_strut(modulus=50e6), np.array([0.1001, 0.1, 0.1])
    build = lambda strain: (machine, machine.state_at((0.0, 0.0), strain))
    strains = jnp.linspace(0.009, 0.0095, n)
    options = {"duration": 0.1, "dt": 1e-3, "save_every": 100, "control": u, "workers": 1}
    out = {}
    for chunk in (1, 16):
        run = lambda chunk=chunk: cordax.simulate_batch(build, strains, chunk=chunk, **options).q
        times = measure.timed(run)
        each = {"us_per_member_step": times["run_processor_s"] / n / 100 * 1e6}
        out[f"chunk_{chunk}"] = times | each
    return out


def evaluate() -> dict:
    out, steps = {}, 1000
    for name, machine in (("strut", single_strut()), ("manipulator", tensegrity_manipulator())):
        state, u = machine.default_state(), jnp.ones(machine.n_u)
        none = Stabilisation(jnp.zeros(()), jnp.zeros(()))

        def loop(machine, state, u, none=none):
            machine = machine.prepare()

            def body(q, _):
                a = machine.structure().constrained_acceleration(
                    jnp.zeros(()), q, state.v, u, none
                )[0]
                return q + 1e-15 * jnp.sum(a), None

            return jax.lax.scan(body, state.q, length=steps)[0]

        run, cost = measure.compiled(loop, machine, state, u)
        out[name] = cost | {"us": measure.processor(run, repeats=20) / steps * 1e6}
    return out


PARTS = {
    "strut": strut,
    "track": track,
    "manipulator": manipulator,
    "batch": batch,
    "evaluate": evaluate,
    "predictive": predictive,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=", ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    print(json.dumps({"about": measure.about()} | {name: PARTS[name]() for name in chosen}))
