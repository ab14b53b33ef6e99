"""Identification of machines from recordings made by simulation, with noise and another step.

    python benchmarks/identification_machines.py [CASE ...] [--seed 1] [--json machines.json]
    python benchmarks/identification_machines.py CASE ... --scipy
    python benchmarks/identification_machines.py --table machines.json ...

Cases: neck_motors (tendon stiffness and damping from motor angles alone), strut (modulus and
viscosity of its cables), rope (EA, EI and both damping times from three markers), wire (modulus and
density from its centre line, without and with a known load), payload (mass, centre of mass and
moments of inertia of what a cable robot picks up), finger (capstan friction of its tendon). Every
recording is simulated with half the step of the fit. Prints one JSON line for each: truth, start,
estimates, standard errors, how far off in these, which 95 % intervals contain the truth, processor
seconds with compilation, and what the fit says about itself. `--scipy` fits a
second time, compiled, and beside that with SciPy's `least_squares` (MINPACK's Levenberg-Marquardt,
finite differences) on the same compiled residuals from the same start: processor seconds of both,
how far their estimates are apart in standard errors, how many simulations SciPy asks for. `--table`
makes the tables of docs/identification.md of such reports.
"""

import argparse
import json
import tempfile
import time
import warnings
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares

import cordax
from cordax import Experiment, Parameter, Recording, identify
from cordax.control import Multisine
from cordax.identification._identify import problem_of
from cordax.identification.messages import sentences
from cordax.io import find_machine, read_machine
from cordax.parameters.parameter import collect
from cordax.systems import End, Neck, RopeRobot, SplineRod, single_strut
from cordax.systems import mechanism as mech


def neck_motors():
    """All four motor angles, no joint angle: 2 s at 1 kHz, 1e-4 rad."""
    neck, tension = Neck.default(3), jnp.full(4, 50.0)
    frequency = jnp.array([10.0, 14.0, 18.0, 22.0])
    phase = 0.5 * jnp.arange(16.0).reshape(4, 4)
    control = Multisine(-neck.motors.travel * tension, frequency, jnp.full((4, 4), 3e-3), phase)
    begin = lambda machine: machine.state_at(jnp.zeros(3), tension=tension)
    one = Experiment(neck, begin, control, dt=5e-4, integrator="rosenbrock_2", duration=2.0)
    seen = {f"theta_{i + 1}": 1e-4 for i in range(4)}
    names = ["tendon.stiffness", "tendon.damping"]
    return one.replace(save_every=2), names, [0.5, 2.0], seen


def strut():
    """Two angles of the strut and the angles of its pulleys: 1 s at 500 Hz, 1e-4 rad."""
    strut = single_strut(viscosity=2e6)
    area, modulus = 1e-6 * np.pi, 2e9
    tension = 0.002 * modulus * area
    pull = lambda machine: machine.cables.modulus
    begin = lambda machine: machine.state_at((0.0, 0.0), tension / (pull(machine) * area))
    torque = jnp.full(3, tension * 0.07)
    control = Multisine(
        torque, [6.0, 11.0, 17.0], 0.05 * np.eye(3) + 0.03, 0.7 * np.arange(9.0).reshape(3, 3)
    )
    one = Experiment(strut, begin, control, dt=1e-3, integrator="rk4", duration=1.0, save_every=2)
    names = [
        Parameter("modulus", pull, unit="Pa"),
        Parameter("viscosity", lambda machine: machine.cables.viscosity, unit="Pa s"),
    ]
    seen = dict.fromkeys(("cross", "strut", "pulley1", "pulley2", "pulley3"), 1e-4)
    return one, names, [0.4, 2.5], seen


def rope():
    """An elastic cord with a free end that a known force pulls: x and z of three nodes, 1 s at
    100 Hz, 0.1 mm."""
    cord = RopeRobot(
        [[0.0, 0.0]], 1.0, EA=2e3, EI=5e-3, axial_time=2e-4, bending_time=0.02, count=6
    )
    control = Multisine([0.3, -8.0], [1.5, 4.0, 9.0], [[0.4, 0.3, 0.2], [1.0, 2.0, 2.0]])
    method = {"dt": 2.5e-4, "integrator": "rk4", "duration": 1.0, "save_every": 40}
    one = Experiment(cord, lambda machine: machine.rest(jnp.array([0.3, -8.0])), control, **method)
    seen = {f"node_{2 * node + c}": 1e-4 for node in (2, 4, 6) for c in (1, 2)}
    return one, ["EA", "EI", "axial_time", "bending_time"], [1.5, 0.6, 2.0, 0.5], seen


def wire(load: float):
    """A cantilever of nylon released from straight, with a known force at its tip or none: control
    points of its centre line, 0.6 s at 100 Hz, 0.5 mm."""
    rod = SplineRod(
        0.6, 2e-3, 1150.0, 3e9, left=End.clamped(), right=End.free(), control_points=7,
        quadrature=("gauss", 3), loads=(1.0,),
    )  # fmt: skip
    control = Multisine([0.0, 0.0, -load], [3.0], [[0.0], [load], [load]])
    method = {"dt": 2e-5, "integrator": "rk4", "duration": 0.6, "save_every": 500}
    one = Experiment(rod, None, control, **method)
    seen = {name: 5e-4 for name in rod.coordinate_names if name[0] in "xyz"}
    return one, ["young", "density"], [0.8, 1.15], seen


_PICK = """
name = "picks a plate"
[platform]
mass = 20.0
box = [0.2, 0.2, 0.2]
position = [0.0, 0.0, 0.105]
attachments = [[-0.1, -0.1, 0.0], [-0.1, 0.1, 0.0], [0.1, 0.1, 0.0], [0.1, -0.1, 0.0]]
[exits]
kind = "point"
points = [[-1.0, -1.0, 2.0], [-1.0, 1.0, 2.0], [1.0, 1.0, 2.0], [1.0, -1.0, 2.0]]
[drives]
kind = "servo"
radius = 0.05
rotor_inertia = 0.01
K_p = 400.0
K_i = 400.0
K_d = 10.0
feedforward = "hold"
[[drives.moves]]
by = [0.15, 0.1, 0.4]
times = [0.3, 1.0]
[payload]
mass = 6.28
box = [0.2, 0.4, 0.01]
position = [0.02, -0.03, 0.0]
joint = [0.1, 0.2, 0.0]
pick = 0.1
[run]
dt = 2e-3
duration = 2.0
save_every = 5
"""


def payload():
    """Pose of the platform (0.1 mm, 0.1 mrad) and tensions (0.5 N) while a plate is lifted and
    swings, 2 s at 100 Hz."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.toml"
        path.write_text(_PICK)
        one = read_machine(path).experiment
    names = [
        Parameter("payload.body.mass"),
        Parameter("payload.body.centre", transform="linear"),
        *(Parameter(f"payload.body.inertia[{i},{i}]") for i in range(3)),
    ]
    one = one.replace(integrator="rk4", dt=2e-3)
    seen = {"position": 1e-4, "euler": 1e-4, "tension": 0.5}
    return one, names, [1.4, "shift", "shift", "shift", 1.3, 1.3, 1.3], seen


def finger():
    """The shipped finger, pulled and let go by its winch: angles of joints and winch, 1.3 s at
    200 Hz, 1 mrad."""
    one = find_machine("finger").experiment
    tendon = next(i for i, x in enumerate(one.system.elements) if isinstance(x, mech.CableSet))
    friction = Parameter(f"elements[{tendon}].friction", unit="1")
    seen = dict.fromkeys(("proximal", "middle", "distal", "winch"), 1e-3)
    return one.replace(duration=1.3), [friction], [2.5], seen


CASES = {
    "neck_motors": neck_motors,
    "strut": strut,
    "rope": rope,
    "wire": lambda: wire(0.0),
    "wire_loaded": lambda: wire(0.01),
    "payload": payload,
    "finger": finger,
}


def record(one: Experiment, seen: dict[str, float], seed: int) -> Recording:
    """With half the step, and noise."""
    fine = one.replace(dt=0.5 * one.dt, save_every=2 * one.save_every)
    run = cordax.simulate(fine)
    values, key = {}, jax.random.key(seed)
    for name, sigma in seen.items():
        key, one_key = jax.random.split(key)
        x = cordax.recordings.recording.observe(run, name)
        values[name] = x + sigma * jax.random.normal(one_key, x.shape)
    return Recording(run.t, values)


def beside_scipy(guess: Experiment, recording: Recording, names, seen, fit) -> dict:
    """Both from the same start, without compilation, in processor seconds."""
    if guess.integrator is None:
        guess = guess.replace(integrator="rosenbrock_2")
    problem = problem_of([guess], [recording], names, noise=dict(seen))
    residuals = eqx.filter_jit(lambda problem, y: problem.residuals(y)[0])
    asked = [0]

    def ask(y):
        asked[0] += 1
        return np.asarray(residuals(problem, jnp.asarray(y)))

    origin = np.zeros(problem.parameters.size)
    ask(origin)  # compiled
    asked[0] = 0
    clock = time.process_time()
    found = least_squares(ask, origin, method="lm", xtol=1e-8, ftol=1e-8)
    theirs = time.process_time() - clock
    values = np.asarray(problem.parameters.values(jnp.asarray(found.x)))
    ours, seconds = _fitted(guess, recording, names, seen)
    apart = np.abs(values - np.asarray(ours.values)) / np.asarray(fit.standard_errors)
    return {
        "apart_in_errors": float(np.max(apart)),
        "cpu_s": seconds,
        "scipy_cpu_s": theirs,
        "ratio": theirs / seconds,
        "scipy_simulations": asked[0],
        "iterations": int(ours.iterations),
    }


def _fitted(guess, recording, names, seen):
    """A fit, and its processor seconds."""
    clock = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = identify(guess, recording, names, noise=dict(seen), check_step=False)
    jax.block_until_ready(fit.values)
    return fit, time.process_time() - clock


def solve(case: str, seed: int = 1, scipy: bool = False) -> dict:
    one, names, factors, seen = CASES[case]()
    recording = record(one, seen, seed)
    found = collect(names, one)
    truth = np.asarray(found.values(found.origin))
    start = np.array(
        [t + 0.02 if f == "shift" else t * f for t, f in zip(truth, factors, strict=True)]
    )
    guess, used = one, 0
    for place, begin in zip(found.places, found.starts, strict=True):
        part = start[used : used + begin.size].reshape(begin.shape)
        guess, used = place.write(guess, jnp.asarray(part)), used + begin.size
    fit, seconds = _fitted(guess, recording, names, seen)
    values, errors = np.asarray(fit.values), np.asarray(fit.standard_errors)
    interval = np.asarray(fit.interval())
    beside = {"scipy": beside_scipy(guess, recording, names, seen, fit)} if scipy else {}
    return {
        "case": case,
        "names": list(fit.names),
        "truth": truth.tolist(),
        "start": start.tolist(),
        "estimates": values.tolist(),
        "standard_errors": errors.tolist(),
        "off_in_errors": ((values - truth) / errors).tolist(),
        "inside": ((interval[:, 0] < truth) & (truth < interval[:, 1])).tolist(),
        "converged": bool(fit.succeeded),
        "noise_scale": float(fit.noise_scale),
        "iterations": int(fit.iterations),
        "cpu_seconds": seconds,
        "says": [fit.reason, *fit.unidentifiable(), *sentences(fit)],
    } | beside


def table(reports: list[dict]) -> str:
    """Of Markdown."""
    head = "| case | number | truth | start | estimate | standard error | off by |"
    lines = [head, "|" + "---|" * 7]
    for found in reports:
        keys = "names", "truth", "start", "estimates", "standard_errors", "off_in_errors"
        for i, row in enumerate(zip(*(found[key] for key in keys), strict=True)):
            name, truth, start, value, error, off = row
            case = f"{found['case']} ({found['cpu_seconds']:.0f} s)" if i == 0 else ""
            known = error < abs(truth) or error < abs(start - truth)
            end = f"{value:.5g} | {error:.2g} | {off:+.1f}" if known else "not told | |"
            lines.append(f"| {case} | `{name}` | {truth:.5g} | {start:.4g} | {end} |")
    beside = [found for found in reports if "scipy" in found]
    if beside:
        head = (
            "| case | SciPy over cordax | cordax [s], iterations | SciPy [s], simulations | apart |"
        )
        lines += ["", head, "|" + "---|" * 5]
    for found in beside:
        both = found["scipy"]
        ours = f"{both['cpu_s']:.2f}, {both['iterations']}"
        theirs = f"{both['scipy_cpu_s']:.2f}, {both['scipy_simulations']}"
        apart = f"{both['apart_in_errors']:.1g} standard errors"
        lines.append(f"| {found['case']} | {both['ratio']:.1f} | {ours} | {theirs} | {apart} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=None)
    parser.add_argument("--scipy", action="store_true")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="of --json")
    options = parser.parse_args()
    if options.table:
        print(table([one for path in options.table for one in json.loads(path.read_text())]))
        return
    cordax.enable_x64()
    reports = []
    for case in options.cases:
        reports.append(solve(case, options.seed, options.scipy))
        print(json.dumps(reports[-1]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(reports, indent=2) + "\n")


if __name__ == "__main__":
    main()
