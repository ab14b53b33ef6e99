"""Check that a machine satisfies the contracts of `System`."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from .._base.precision import as_float_array
from .._jax.identity import filter_jit
from ..formulations import BY_NAME as FORMULATIONS
from ..integrators import BY_NAME as INTEGRATORS
from ..mechanics import State, System
from ..mechanics import constraints as generic
from ..mechanics.constraints import Stabilisation, rank_margin


def check_machine(
    system: System, state: State | None = None, *, t: float = 0.0, conservative: bool = True
) -> None:
    """Check a user-defined machine and raise `ValueError` with a sentence for each contract of
    `System` that it violates.

    Checked are names and shapes, mass matrix, `retract`, `difference`, `rate` and `normalise`,
    constraints and their terms, hand-written accelerations, energies and outputs.

    The check evaluates one state (default: the machine's default state) and random velocities.
    `conservative`: whether the forces at rest under zero inputs are those of `potential_energy`;
    use False if some have no potential. The forces of a machine without `potential_energy` are not
    checked.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Pendulum

    cordax.check_machine(Pendulum())  # prints nothing: no violations
    ```
    """
    problems = _names(system)
    if not problems:
        state = system.default_state() if state is None else state
        problems = _shapes(system, state)
    if not problems:
        assert state is not None
        found = {k: np.asarray(x) for k, x in _numbers(system, state, as_float_array(t)).items()}
        problems = _judge(system, state, found, conservative)
    if problems:
        lines = "\n".join(f"- {p}" for p in problems)
        raise ValueError(
            f"system: {type(system).__name__} breaks the contracts of System:\n{lines}"
        )


def _names(system: System) -> list[str]:
    out = []
    for field in ("coordinate_names", "velocity_names", "input_names"):
        names = getattr(system, field)
        if not (isinstance(names, tuple) and all(isinstance(n, str) for n in names)):
            out.append(f"{field}: got {names!r}, expected a tuple of strings")
        elif len(set(names)) < len(names):
            out.append(f"{field}: got {names!r}, expected every name once")
    if system.default_integrator not in INTEGRATORS:
        known = ", ".join(INTEGRATORS)
        out.append(
            f"default_integrator: got {system.default_integrator!r}, expected one of {known}"
        )
    given = system.default_formulation
    if given is not None and (given if isinstance(given, str) else given[0]) not in FORMULATIONS:
        out.append(f"default_formulation: got {given!r}, expected one of {', '.join(FORMULATIONS)}")
    return out


def _shapes(system: System, state: State) -> list[str]:
    """Check the shapes that the methods return, without computing anything."""
    out = []
    sizes = (("default_state().q", state.q, "n_q"), ("default_state().v", state.v, "n_v"))
    for what, x, name in sizes:
        expected = (getattr(system, name),)
        if x.shape != expected:
            out.append(f"{what}: got shape {x.shape}, expected {expected}: as many as names")
    if out:
        return out
    q, v, t, u = state.q, state.v, jnp.zeros(()), jnp.zeros(system.n_u)
    n, m = (system.n_v,), (system.n_constraints,)
    for what, f, args, expected in (
        ("mass_matrix", system.mass_matrix, (q,), n + n),
        ("force", system.force, (t, q, v, u), n),
        ("constraint", system.constraint, (t, q), m),
        ("retract", system.retract, (q, v), q.shape),
        ("difference", system.difference, (q, q), n),
        ("rate", system.rate, (q, v), q.shape),
        ("normalise", system.normalise, (q,), q.shape),
        ("multiplier_forces", system.multiplier_forces, (t, q, jnp.zeros(m)), m),
        ("kinetic_energy", system.kinetic_energy, (q, v), ()),
        ("potential_energy", system.potential_energy, (t, q), ()),
    ):
        try:
            shape = jnp.shape(jax.eval_shape(f, *args))
        except NotImplementedError as error:
            out.append(f"{what}: {error}")
            continue
        except (TypeError, ValueError) as error:
            out.append(f"{what}: raises {type(error).__name__}: {str(error).splitlines()[0]}")
            continue
        if shape != expected:
            out.append(f"{what}: got shape {shape}, expected {expected}")
    one_sided = np.asarray(system.one_sided)
    if one_sided.shape != m or one_sided.dtype != bool:
        given = f"{one_sided.dtype} of shape {one_sided.shape}"
        out.append(f"one_sided: got {given}, expected bool of shape {m}")
    outputs = eqx.filter_eval_shape(system.outputs, t, q, v, u, jnp.zeros(m))
    if not isinstance(outputs, dict):
        out.append(f"outputs: got {type(outputs).__name__}, expected a dict of named arrays")
    if out:
        return out

    def held_force():
        held = system.held(t, q, v)
        return None if held is None else system.held_force(t, q, held)

    held = eqx.filter_eval_shape(held_force)
    if held is not None and held.shape != n:
        out.append(f"held_force: got shape {held.shape}, expected {n}")
    return out


# runs once: without LLVM's optimisation it compiles in a third of the time
@filter_jit(compiler_options={"xla_backend_optimization_level": 0})  # pyright: ignore
def _numbers(system: System, state: State, t) -> dict:
    """Compute all compared quantities at one state and a random velocity."""
    q, n, m = state.q, system.n_v, system.n_constraints
    structure = system.structure()
    random = np.random.default_rng(0)
    draw = lambda size: jnp.asarray(random.normal(size=size), q.dtype)
    v, w, u = draw(n), draw(n), jnp.zeros(system.n_u, q.dtype)
    rest, zero, one = jnp.zeros(n, q.dtype), jnp.zeros((), q.dtype), jnp.ones((), q.dtype)
    small = 1e-3 * w
    moved = system.retract(q, small)
    M, M_rate = jax.jvp(system.mass_matrix, (q,), (system.rate(q, v),))
    fast, slow = system.total_force(t, q, v, u), system.force(t, q, rest, u)
    gradient = jax.grad(system.potential_energy, argnums=1)(t, q)
    pull = jax.vjp(lambda v: system.rate(q, v), rest)[1](gradient)[0]
    path = lambda s: system.retract(q, s * v)
    # deviation from a motion at constant velocity, and its rate of growth at the start
    lag = lambda s: jax.jvp(path, (s,), (one,))[1] - system.rate(path(s), v)
    moves, curves = jax.jvp(lag, (zero,), (one,))
    out = {
        "M": M,
        "stays": system.retract(q, rest) - q,
        "normal": system.normalise(q) - q,
        "moves": moves,
        "curves": curves,
        "adds": moved - (q + small) if system.flat else zero,
        "returns": (system.difference(q, moved) - small) / 1e-3,
        "on": system.normalise(moved) - moved,
        "fast": fast,
        "momentum": structure.momentum(q, v) - M @ v,
        "energy": system.kinetic_energy(q, v) - 0.5 * v @ M @ v,
        "twice_energy": v @ M @ v,
        # power of velocity terms and damping
        "power": v @ (system.force(t, q, v, u) - slow) + 0.5 * v @ M_rate @ v,
        "power_scale": jnp.abs(v) @ jnp.abs(fast) + 1.0,
        "slow": slow,
        "pull": pull,
    }
    if m == 0:
        if system.mass_is_regular:
            out["balance"] = M @ structure.acceleration(t, q, v, u) - fast
        return out
    terms = generic.constraint_terms(system, t, q, v)
    by_hand = structure.constraint_terms(t, q, v)
    J = terms.jacobian
    b, f = draw(m), draw(n)
    x, lam = structure.saddle(t, q).solve(f, b)
    a, multipliers = structure.constrained_acceleration(t, q, v, u, Stabilisation(zero, zero))
    return out | {
        "phi": by_hand.phi - terms.phi,
        "jacobian": by_hand.jacobian - J,
        "phi_rate": by_hand.rate - terms.rate,
        "phi_bias": by_hand.bias - terms.bias,
        "bias_scale": 1.0 + jnp.abs(terms.bias),
        "margin": rank_margin(system, t, q),
        "saddle": jnp.concatenate([M @ x + J.T @ lam - f, J @ x - b]),
        "saddle_scale": 1.0 + jnp.max(jnp.abs(M)) * jnp.max(jnp.abs(x)) + jnp.max(jnp.abs(lam)),
        "balance": jnp.concatenate([M @ a + J.T @ multipliers - fast, J @ a + terms.bias]),
        "balance_scale": 1.0 + jnp.abs(a).max() * (1.0 + jnp.abs(M).max()) + jnp.abs(fast).max(),
    }


def _judge(system: System, state: State, x: dict, conservative: bool) -> list[str]:
    eps = float(np.finfo(state.q.dtype).eps)
    loose, tight = np.sqrt(eps), 1e4 * eps
    size = lambda *names: max(float(np.max(np.abs(x[n]), initial=0.0)) for n in names)
    out: list[str] = []

    def tell(bad, sentence: str) -> None:
        if bad:
            out.append(sentence)

    bad = [name for name in ("M", "fast", "slow") if not np.all(np.isfinite(x[name]))]
    if bad:
        words = {"M": "mass_matrix", "fast": "force", "slow": "force at rest"}
        return [f"{words[name]}: not finite at this state" for name in bad]
    M, q_size = x["M"], 1.0 + float(np.max(np.abs(state.q), initial=0.0))
    scale = np.sqrt(np.outer(np.abs(np.diag(M)), np.abs(np.diag(M)))) + eps
    asymmetry = float(np.max(np.abs(M - M.T) / np.max(scale)))
    tell(asymmetry > tight, f"mass_matrix: not symmetric, by {asymmetry:.1e} of its size")
    least = float(np.min(np.linalg.eigvalsh((M + M.T) / 2.0))) / float(np.max(scale))
    tell(least < -tight, "mass_matrix: has a negative eigenvalue, kinetic energy is not positive")
    unit = np.where(np.diag(M) > 0, np.sqrt(np.abs(np.diag(M))), 1.0)
    thin = float(np.min(np.linalg.eigvalsh(M / np.outer(unit, unit))))
    tell(
        system.mass_is_regular and abs(least) >= 0 and thin < tight,
        "mass_matrix: singular, but mass_is_regular is True; say False, and hold massless parts by "
        "constraints",
    )
    tell(
        not system.mass_is_regular and system.n_constraints == 0,
        "mass_is_regular: False, and there are no constraints that could hold massless parts",
    )
    tell(size("stays") > tight * q_size, "retract: retract(q, 0) is not q at this state")
    tell(size("normal") > tight * q_size, "normalise: changes this state, which is a configuration")
    tell(size("on") > tight * q_size, "retract: leads to numbers that normalise changes")
    tell(
        size("moves") > tight * q_size,
        "rate: is not the derivative of retract(q, s v) at s = 0",
    )
    tell(
        size("curves") > loose * q_size >= size("moves"),
        "retract: retract(q, s v) follows the motion at constant velocity v to first order in s "
        "only, and methods of second order would be of first",
    )
    tell(size("adds") > tight * q_size, "flat: True, but retract(q, dq) is not q + dq")
    tell(
        size("returns") > loose * q_size,
        "difference: difference(q, retract(q, dq)) is not dq",
    )
    energy = float(x["twice_energy"]) + eps
    tell(size("momentum") > tight * (1.0 + energy), "momentum: is not mass_matrix(q) v")
    tell(size("energy") > tight * (1.0 + energy), "kinetic_energy: is not v M v / 2")
    tell(
        float(x["power"]) > loose * float(x["power_scale"]),
        "force: its velocity terms do work, faster than damping takes it: the energy of a free "
        "motion would grow (signs of Coriolis, gyroscopic or damping terms)",
    )
    if conservative and size("pull") > 0:
        off = float(np.max(np.abs(x["slow"] + x["pull"])))
        tell(
            off > loose * (1.0 + size("slow", "pull")),
            f"potential_energy: its gradient differs from the force at rest by {off:.3g}; mend one "
            "of them, or check with conservative=False if forces without a potential act",
        )
    if system.n_constraints == 0:
        if "balance" in x:
            off = size("balance")
            tell(off > loose * (1.0 + size("fast")), "acceleration: M a differs from the force")
        return out
    for key, word in (("phi", "phi"), ("jacobian", "jacobian"), ("phi_rate", "rate")):
        tell(
            size(key) > loose * q_size, f"constraint_terms: {word} is not that of constraint(t, q)"
        )
    off = float(np.max(np.abs(x["phi_bias"]) / x["bias_scale"]))
    tell(off > loose, "constraint_terms: bias is not the derivative of the rate with v kept")
    if not float(x["margin"]) > tight:
        what = "rows are redundant, or massless parts not held, at this state"
        return [*out, f"constraint: {what}; Penalty and UdwadiaKalaba alone take redundant rows"]
    off = size("saddle") / float(x["saddle_scale"])
    tell(not off < loose, "saddle: its solution does not satisfy M x + J^T lam = f and J x = b")
    off = size("balance") / float(x["balance_scale"])
    tell(not off < loose, "constrained_acceleration: does not satisfy the equations of motion")
    return out
