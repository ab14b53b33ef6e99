"""The stored reference of the neck (`tests/data/neck.npz`) as machines, controllers and states."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import cordax
from cordax import Controller, State
from cordax.control import ComputedTorque, MeanTension, MinimumTension, RaisedCosine, Sinusoid
from cordax.systems.neck import Bars, Neck, Springs
from cordax.systems.neck.tendons import ElasticTendon, Motors, RigidTendon, Routing
from helpers.stored import stored

SCHEMES = {
    "rigid_explicit": (False, "explicit_euler"),
    "rigid_implicit": (False, "linearly_implicit_euler"),
    "elastic_explicit": (True, "explicit_euler"),
    "elastic_implicit": (True, "linearly_implicit_euler"),
}
AMPLITUDE = {3: [0.6, -0.8, 1.0], 4: [0.5, -0.7, 0.7, 0.6]}


def field(case: str, name: str) -> np.ndarray:
    return stored("neck")[f"{case}/{name}"]


def cases(prefix: str) -> list[str]:
    return sorted({k.split("/")[0] for k in stored("neck") if k.startswith(prefix)})


def neck_of(case: str, *, elastic: bool, closed_form: bool = True) -> Neck:
    """The machine of a case. B comes as one number: a drum of that radius without a gear."""
    b, L, m_d, m_t, gravity, f_v, rest, B, inertia, k, d, dry, slope = field(case, "params")
    return Neck(
        bars=Bars(width=b, diagonal=L, top_mass=m_t, diagonal_mass=m_d),
        springs=Springs(stiffness=field(case, "ks"), rest_length=rest),
        motors=Motors(
            inertia=inertia, drum_radius=B, gear_ratio=1.0, dry_friction=dry, friction_slope=slope
        ),
        tendon=ElasticTendon(k, d) if elastic else RigidTendon(),
        routing=Routing(field(case, "RL"), field(case, "RR")),
        pivot_friction=f_v,
        gravity=gravity,
        closed_form=closed_form,
    )


def motion_of(case: str) -> RaisedCosine | Sinusoid:
    offset, amplitude, frequency, phase, kind = field(case, "mot")
    if np.all(kind == 1):
        return Sinusoid(amplitude, frequency, phase, offset)
    assert np.all(kind == 0) and np.all(phase == 0) and np.ptp(frequency) == 0
    return RaisedCosine(amplitude, frequency[0], offset)


def control_of(case: str, neck: Neck, distribution=None, friction=None) -> ComputedTorque:
    """The controller of a case; `distribution` and `friction`: codes as in `ctl`, or its own."""
    K_p, K_d, mean, minimum, dist, fric, _ = field(case, "ctl")
    distribution = int(dist) if distribution is None else distribution
    friction = int(fric) if friction is None else friction
    return ComputedTorque(
        neck,
        motion_of(case),
        K_p,
        K_d,
        MeanTension(mean) if distribution == 0 else MinimumTension(minimum),
        ("none", "desired", "measured")[friction],
    )


class StoredControl(Controller):
    """Computed torque, or torques `Gc[0] + Gc[1] sin(Gc[2] t)`: a number decides, so that
    closed-loop and open-loop cases share one compiled function."""

    closed_loop: jax.Array
    computed: ComputedTorque
    Gc: jax.Array

    def __call__(self, t, state, memory):
        mean, amplitude, frequency = self.Gc
        open_loop = mean + amplitude * jnp.sin(frequency * t)
        u, memory = self.computed(t, state, memory)
        return jnp.where(self.closed_loop > 0, u, open_loop), memory


def stored_control(case: str, neck: Neck) -> StoredControl:
    closed_loop = jnp.asarray(field(case, "ctl")[-1])
    return StoredControl(closed_loop, control_of(case, neck), jnp.asarray(field(case, "Gc")))


def unpack(y, n: int) -> State:
    """State from `[alpha, alphad, theta, thetad]`."""
    alpha, rate, motors = y[:n], y[n : 2 * n], y[2 * n :]
    k = motors.size // 2
    return State(np.concatenate([alpha, motors[:k]]), np.concatenate([rate, motors[k:]]))


def relative(a, b) -> float:
    """Largest difference over the largest entry of b."""
    return float(np.max(np.abs(np.asarray(a) - np.asarray(b))) / np.max(np.abs(np.asarray(b))))


BLOCK, EVERY = 1000, 10


class Run(NamedTuple):
    """Every tenth step of a run, as NumPy arrays; fields as in `Trajectory`."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    outputs: dict[str, np.ndarray]
    result: object
    failure_time: float


def run(neck, control, state, *, dt, steps, integrator) -> Run:
    """`simulate` with throw=False in blocks of 1000 steps, so that runs of any length and step
    share one compiled function. Stops after the block in which it fails."""
    parts = []
    for start in range(0, steps, BLOCK):
        part = cordax.simulate(
            neck,
            state,
            dt=dt,
            duration=BLOCK * dt,
            t0=start * dt,
            integrator=integrator,
            control=control,
            save_every=EVERY,
            throw=False,
        )
        state = State(part.q[-1], part.v[-1])
        parts.append(part)
        if np.isfinite(part.failure_time):
            break
    keep = steps // EVERY + 1
    join = lambda *x: np.concatenate([x[0], *(y[1:] for y in x[1:])])[:keep]
    t, q, v, outputs = jax.tree.map(join, *((p.t, p.q, p.v, p.outputs) for p in parts))
    return Run(t, q, v, outputs, parts[-1].result, float(parts[-1].failure_time))
