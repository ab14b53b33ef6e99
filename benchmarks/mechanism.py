"""Speed of mechanisms: `python benchmarks/mechanism.py [part ...]`.

Prints one JSON object. Parts: pendulum, squeezer, bricard, four_bar (N = 2 and 40): the IFToMM
benchmarks, with errors against published or independently computed solutions and the published
times of others; compile (trace and compile seconds of one evaluation against the number of bodies);
pinocchio (one evaluation of the constrained strut beside Pinocchio, where it is installed)."""

import argparse
import json
import time

import cordax

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402

from cordax.formulations import UdwadiaKalaba  # noqa: E402
from cordax.systems import mechanism as parts  # noqa: E402


def timed(machine, **options):
    """The last of several runs, and their times."""
    last = []

    def run():
        last[:] = [cordax.simulate(machine, **options)]
        return last[0].q

    times = measure.timed(run)
    return last[0], times


def pendulum() -> dict:
    run, times = timed(parts.simple_pendulum(), duration=10.0, dt=1e-3, save_every=1000)
    place = np.array([np.cos(run.q[-1, 0]), np.sin(run.q[-1, 0])])
    error = np.abs(place - [-0.275087462577, -0.961419205099]).max()
    found = {"error_m": float(error), "good": bool(error < 1e-8)}
    return times | found | {"published_s": {"exudyn": 0.037, "opensim": 0.637}}


def squeezer() -> dict:
    machine = parts.andrews_squeezer()
    run, times = timed(machine, duration=0.03, dt=2.5e-6, save_every=12000)
    error = abs(float(run.q[-1, 0]) / 15.81077119629904 - 1.0)
    return times | {"relative_error_of_beta": error, "good": error < 1e-8, "steps": 12000}


def bricard() -> dict:
    machine = parts.bricard()
    run, times = timed(
        machine, duration=10.0, dt=1e-3, save_every=1000, formulation=UdwadiaKalaba(tolerance=1e-5)
    )
    place = np.array(machine.position(run.q[-1], "rod4"))
    error = np.abs(place - [0.99999996, -1.00026901, 0.99973095]).max()
    found = {"error_m": float(error), "good": bool(error < 1e-4)}
    return times | found | {"published_s": {"opensim": 0.258, "exudyn_5_s": 3.57}}


def four_bar() -> dict:
    """Through their singular positions for 20 s: the first pin at 10 and at 20 s."""
    places = {
        2: [[0.328458111533, 0.944518538181], [0.839746574275, 0.542978536402]],
        40: [[0.180512226681, 0.983572740583], [0.410901153740, 0.911679900982]],
    }
    out = {}
    for n, place in places.items():
        dt = 1e-3 if n == 2 else 4e-3
        run, times = timed(
            parts.n_four_bar(n), duration=20.0, dt=dt, save_every=round(10.0 / dt), throw=False
        )
        angle = np.array(run.q[1:, 0])
        error = np.abs(np.stack([np.cos(angle), np.sin(angle)], axis=1) - place).max(axis=1)
        out[f"n_{n}"] = times | {
            "dt": dt,
            "error_m_at_10_and_20_s": error.tolist(),
            "within_official_high_precision": bool(error.max() < 1e-3),
        }
    return out | {"published_s": {"exudyn_n_2_h_0.01_10_s": 0.0776}}


def compile_times() -> dict:
    """Of one index-1 evaluation against the number of bodies."""
    out = {}
    for n in (2, 10, 40):
        machine = parts.n_four_bar(n)
        state = machine.default_state()
        evaluate = lambda m, s: m.structure().equations(jnp.zeros(()), s.q, s.v, jnp.zeros(0))
        out[f"bodies_{len(machine.bodies)}"] = measure.compiled(evaluate, machine, state)[1]
    return out


def pinocchio() -> dict | None:
    """Unconstrained dynamics of a random tree of 26 bodies: mass matrix and bias."""
    try:
        import pinocchio as pin
    except ImportError:
        return None
    model = pin.buildSampleModelManipulator()
    data, q, v = model.createData(), pin.neutral(model), np.ones(model.nv)
    start, n = time.perf_counter(), 2000
    for _ in range(n):
        pin.crba(model, data, q)
        pin.nonLinearEffects(model, data, q, v)
    theirs = (time.perf_counter() - start) / n
    chain = parts.Mechanism(
        [
            parts.Body(f"b{i}", parts.Revolute("xyz"[i % 3]), f"b{i - 1}" if i else "world",
                       at=(0, 0, 0.3), solids=parts.cylinder(0.05, 0.3, mass=1.0))
            for i in range(model.nv)
        ]
    )  # fmt: skip
    steps = 1000

    @eqx.filter_jit
    def loop(machine, q, v):
        machine = machine.prepare()

        def body(q, _):
            at = machine.bias(q, v) + machine.mass_matrix(q)[0]
            return q + 1e-12 * at, None

        return jax.lax.scan(body, q, length=steps)[0]

    mine = measure.best(lambda: loop(chain, jnp.zeros(model.nv), jnp.ones(model.nv))) / steps
    return {"pinocchio_us": theirs * 1e6, "cordax_us": mine * 1e6, "ratio": mine / theirs}


PARTS = {
    "pendulum": pendulum,
    "squeezer": squeezer,
    "bricard": bricard,
    "four_bar": four_bar,
    "compile": compile_times,
    "pinocchio": pinocchio,
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=[], help=", ".join(PARTS))
    chosen = parser.parse_args().parts or list(PARTS)
    print(json.dumps({"about": measure.about()} | {name: PARTS[name]() for name in chosen}))
