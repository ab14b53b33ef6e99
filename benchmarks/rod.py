"""Speed of spline rods: `python benchmarks/rod.py [part ...] [--out FILE]`.

Prints one JSON object. Parts: force (one elastic force against C++), run (10 s at 2 ms with
Forest-Ruth on the paper-effective rod), wire (a real aluminium wire between supports: sag against
the elastica, dynamic error against a converged run, time), batch (1024 rods), gradient (of a run),
stiffness (the matrix by spans and its solves against differentiation and dense solves), harness
(constrained solves of joined rods, along their chains against dense ones)."""

import time

import cordax
from cordax.mechanics import Structure

cordax.enable_x64()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import measure  # noqa: E402
import numpy as np  # noqa: E402
from scipy.optimize import brentq  # noqa: E402

from cordax.math import bsplines  # noqa: E402
from cordax.systems import End, Harness, Joint, SplineRod  # noqa: E402

#: Khalifa and Palli (2022), 10 s at 2 ms: C++ and MATLAB [s]
PAPER_S = {"cpp": 182.46, "matlab": 473.18}
#: sag of the wire by an independent elastica [m]
ELASTICA = 0.5325


def paper_rod(**options) -> SplineRod:
    """The rod of the paper with the modulus that makes 2 ms its limit."""
    ends = End.sliding(50.0)
    settings = {"young": 2.5e6, "left": ends, "right": ends, "quadrature": ("trap", 101)} | options
    return SplineRod(**settings)


def loop(function, x, steps: int = 1000):
    """Seconds per call of `function`, called in a compiled loop that depends on its results."""

    def go(x):
        body = lambda _, x: x + 1e-14 * jnp.mean(function(x))
        return jax.lax.fori_loop(0, steps, body, x)

    call, cost = measure.compiled(go, x)
    return measure.best(call) / steps, cost


def force() -> dict:
    out = {}
    for name, closed in (("closed_form", True), ("from_energy", False)):
        free = End.free()
        rod = paper_rod(left=free, right=free, gravity=0.0, closed_form=closed)
        g = bsplines.greville(9) * rod.span
        P = jnp.stack(
            [g + 1e-3 * jnp.sin(3 * g), 0.05 * jnp.sin(2 * g), -0.1 * g * (2 - g), 0.1 * g]
        )
        f = lambda q, rod=rod: rod.control_forces(jnp.zeros(()), q, q, jnp.zeros(0))
        q = rod.layout.split(P)
        seconds, cost = loop(f, q)
        out[name] = {"ns": round(seconds * 1e9), "check": float(f(q)[2, 4]), **cost}
    figures = measure.anchor("rod")
    if figures is not None:
        out["cpp"] = figures
        for name in ("closed_form", "from_energy"):
            out[name]["times_cpp"] = round(out[name]["ns"] / figures["ns_per_force"], 2)
    return out


def run() -> dict:
    out = {"paper_s": PAPER_S}
    for name, quadrature in (("trap_101", ("trap", 101)), ("gauss_4", ("gauss", 4))):
        rod = paper_rod(quadrature=quadrature)
        state = rod.default_state()
        options = {"dt": 2e-3, "duration": 10.0, "integrator": "forest_ruth_4", "save_every": 50}
        go = lambda rod=rod, state=state, o=options: cordax.simulate(rod, state, **o).q
        out[name] = {"s": round(measure.best(go, repeats=5), 4)}
    return out


def wire(control_points: int, **options) -> tuple[SplineRod, cordax.State]:
    """2 m of aluminium wire, 2 mm thick, released from a circular arc between supports 1.6 m
    apart."""
    rod = SplineRod(
        young=70e9,
        control_points=control_points,
        quadrature=("gauss", 3),
        right=End.pinned(point=[1.6, 0.0, 0.0]),
        **options,
    )
    half = brentq(lambda a: np.sin(a) / a - 0.8, 0.1, 3.0)
    radius = 1.0 / half

    def arc(u):
        angle = (u - 1.0) * half
        drop = radius * (jnp.cos(angle) - np.cos(half))
        return jnp.stack([0.8 + radius * jnp.sin(angle), 0.0 * u, -drop], axis=1)

    return rod, rod.state_of(arc)


def real_wire() -> dict:
    """The first row is the finest run, to which the others are compared; times are of runs that
    store every 0.1 s, of the two finest every 0.01 s."""
    rows = []
    fine = None
    for points, dt, scheme in (
        (19, 2.5e-4, "generalised_alpha"),
        (19, 5e-4, "generalised_alpha"),
        (19, 1e-2, "linearly_implicit_euler"),
        (19, 1e-2, "generalised_alpha"),
        (19, 2e-3, "generalised_alpha"),
        (25, 1e-2, "linearly_implicit_euler"),
    ):
        rod, state = wire(points)
        method = cordax.GeneralisedAlpha(0.0) if scheme == "generalised_alpha" else scheme
        go = lambda every, r=rod, s=state, m=method, h=dt: cordax.simulate(
            r, s, integrator=m, dt=h, duration=10.0, save_every=round(every / h)
        )
        begin = time.perf_counter()
        found = go(0.01)
        compiled = time.perf_counter() - begin
        height = np.asarray(found["centre"])[:, 2]
        fine = height if fine is None else fine
        off = 1e3 * np.abs(height - fine)
        # how many steps are stored is compiled: the finest are not worth a second program
        every, repeats = (0.1, 5) if dt > 1e-3 else (0.01, 1)
        seconds = measure.best(lambda go=go, every=every: go(every).q, repeats=repeats)
        late = float(np.mean(np.asarray(found["sag"])[-200:]))
        rows.append(
            {
                "scheme": scheme,
                "dt": dt,
                "control_points": points,
                "sag_last_2_s": round(late, 5),
                "off_elastica_percent": round(100.0 * (late / ELASTICA - 1.0), 3),
                "centre_off_finest_mm": {
                    f"first {s} s": round(float(off[: round(100 * s) + 1].max()), 2)
                    for s in (0.1, 0.5, 2.0)
                },
                "ms": round(seconds * 1e3, 1),
                "simulated_per_wall": round(10.0 / seconds),
                "first_call_s": round(compiled, 1),
            }
        )
    return {"rows": rows, "elastica_m": ELASTICA}


def batch(members: int = 1024) -> dict:
    moduli = np.linspace(1.5e6, 2.6e6, members)
    build = lambda young: paper_rod(young=young, quadrature=("gauss", 4))
    options = {"dt": 1e-3, "duration": 0.5, "integrator": "stormer_verlet", "save_every": 500}
    go = lambda: cordax.simulate_batch(build, moduli, **options).q
    seconds = measure.best(go, repeats=3)
    return {"s": round(seconds, 3), "million_steps_per_s": round(members * 500 / seconds / 1e6, 3)}


def gradient() -> dict:
    """Of the height of the centre at the end by Young's modulus and density: soft rod, 1 s by
    Verlet at 1 ms; aluminium, 0.2 s by implicit steps of 2 ms. On idle cores
    forward mode by two numbers takes 3.9 times the run with Verlet (by one 2.3, in reverse 3.9),
    1.7 with Newton's method, 2.9 linearly implicit."""
    soft = paper_rod(quadrature=("gauss", 4))
    metal = SplineRod(young=69e9, quadrature=("gauss", 3))
    verlet = {"dt": 1e-3, "duration": 1.0, "integrator": "stormer_verlet", "save_every": 1000}
    implicit = {"dt": 2e-3, "duration": 0.2, "save_every": 100}
    methods = ("implicit_midpoint", "generalised_alpha", "linearly_implicit_euler")
    out = {"soft_stormer_verlet": _gradient(soft, verlet)}
    for name in methods:
        out[f"aluminium_{name}"] = _gradient(metal, implicit | {"integrator": name})
    return out


def _gradient(rod: SplineRod, options: dict) -> dict:
    """Processor time of a run; in its units forward mode by one and by both numbers, and reverse
    mode; all take turns."""

    def end(numbers):
        where = lambda r: (r.young, r.density)
        machine = eqx.tree_at(where, rod, (numbers[0], numbers[1]))
        run = cordax.simulate(machine, rod.default_state(), throw=False, **options)
        return run["centre"][-1, 2]

    x = jnp.stack([rod.young, rod.density])
    one = jnp.array([1.0, 0.0])
    ways = {
        "run": end,
        "forward": lambda x: jax.jvp(end, (x,), (one,)),
        "forward_by_two": jax.jacfwd(end),
        "reverse": jax.grad(end),
    }
    calls, costs = {}, {}
    for name, way in ways.items():
        calls[name], costs[name] = measure.compiled(way, x)
    took = measure.in_turns(calls)
    ratios = {name: round(took[name] / took["run"], 2) for name in list(ways)[1:]}
    return {"run_ms": round(took["run"] * 1e3, 2), "times_run": ratios, "compiling": costs}


def stiffness() -> dict:
    out = {}
    t, none, h = jnp.zeros(()), jnp.zeros(0), jnp.asarray(1e-3)

    def solved(rod, linearise):
        def go(q):
            v = jnp.zeros_like(q)
            return structure.linearise(t, q, v, none).implicit_solver(h)(rod.force(t, q, v, none))

        return go

    for n in (9, 19, 35):
        rod = SplineRod(control_points=n)
        state = rod.default_state()
        known, general = solved(rod, rod.structure()), solved(rod, Structure(rod))
        spans, spans_cost = loop(known, state.q, 100)
        plain, plain_cost = loop(general, state.q, 100)
        out[str(n)] = {
            "by_spans_us": round(spans * 1e6, 1),
            "differentiated_us": round(plain * 1e6, 1),
            "by_spans": spans_cost,
            "differentiated": plain_cost,
        }
    return out


def harness() -> dict:
    """One constrained implicit solve of a harness of rods: along their chains with a complement for
    the joints, and dense with derivatives by AD."""
    out, t, none, h = {}, jnp.zeros(()), jnp.zeros(0), jnp.asarray(1e-3)
    for n in (6, 12, 18):
        half = {"length": 1.0, "young": 2.5e6, "control_points": n}
        left = SplineRod(right=End.free(), **half)
        right = SplineRod(left=End.free(), right=End.pinned([1.9, 0.0, 0.0]), **half)
        machine = Harness((left, right), (Joint(0, "right", 1, "left"),))
        q, v = machine.default_state().q, jnp.zeros(machine.n_v)

        def solved(structure, machine=machine, v=v):
            def go(x):
                J = machine.structure().constraint_terms(t, x, v).jacobian
                solve = structure.linearise(t, x, v, none).constrained_solver(J, h, h * h)
                return solve(machine.force(t, x, v, none), jnp.zeros(J.shape[0]))[0]

            return go

        chains, cost = loop(solved(machine.structure()), q, 100)
        dense, dense_cost = loop(solved(Structure(machine)), q, 100)
        out[f"{machine.n_v} coordinates"] = {
            "chains_us": round(chains * 1e6, 1),
            "dense_us": round(dense * 1e6, 1),
            "gain": round(dense / chains, 1),
            "chains": cost,
            "dense": dense_cost,
        }
    return out


PARTS = {"force": force, "run": run, "wire": real_wire, "batch": batch}
PARTS |= {"gradient": gradient, "stiffness": stiffness, "harness": harness}

if __name__ == "__main__":
    measure.parts(PARTS, __doc__)
