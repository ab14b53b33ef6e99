"""The largest stable step of a method."""

from typing import NamedTuple

import numpy as np

from .._base.checks import require_instance, require_known
from ..integrators import BY_NAME, Integrator
from ..mechanics import State, System
from ._modes import modes


class StepLimit(NamedTuple):
    """The largest stable step of a method about a state.

    `dt` [s]: the smallest of `per_mode`, inf if no mode limits it; `eigenvalue` the mode that
    limits; `eigenvalues` and `per_mode` [s] all modes and their limits (0 for a mode of the machine
    that grows by itself); `growing`: modes no step can stabilise, Re lambda > 0."""

    dt: float
    eigenvalue: complex
    eigenvalues: np.ndarray
    per_mode: np.ndarray
    growing: np.ndarray


def step_limit(
    system: System,
    state: State | None = None,
    integrator: Integrator | str = "rk4",
    u=None,
    *,
    t: float = 0.0,
    held: bool = True,
) -> StepLimit:
    """Predict the largest stable step [s] of `integrator` from the spectrum of the machine
    linearised about `state`.

    Exact for linear machines; for others it holds near the state, and a run can survive above it
    while growth has not had time to build up. Arguments as in `modes`.

    **Example:**

    ```python
    import cordax

    cordax.enable_x64()
    from cordax.systems import Oscillator

    spring = Oscillator(mass=1.0, stiffness=100.0)
    print(cordax.step_limit(spring, integrator="stormer_verlet").dt)  # 2 / 10 s
    ```
    """
    if isinstance(integrator, str):
        require_known("integrator", integrator, BY_NAME)
        integrator = BY_NAME[integrator]()
    require_instance("integrator", integrator, Integrator)
    values = modes(system, state, u, t=t, held=held).eigenvalues
    size = np.abs(values)
    negligible = size < 1e-9 * max(size.max(initial=0.0), 1e-300)
    grows = (np.real(values) > 1e-9 * size) & ~negligible
    # the limit of a mode follows from its direction and scales with its size
    safe = np.where(size > 0, size, 1.0)
    directions = np.round(np.real(values) / safe + 1j * np.abs(np.imag(values)) / safe, 13)
    known = {z: _mode_limit(integrator, complex(z)) for z in set(directions[~negligible & ~grows])}
    limits = np.array(
        [
            np.inf if skip else 0.0 if grow else known[z] / length
            for z, length, skip, grow in zip(directions, safe, negligible, grows, strict=True)
        ]
    )
    stable = np.where(grows, np.inf, limits)
    worst = int(np.argmin(stable))
    return StepLimit(float(stable[worst]), complex(values[worst]), values, limits, values[grows])


def _mode_limit(integrator: Integrator, eigenvalue: complex) -> float:
    """The first step at which the method amplifies the mode, by search over a geometric grid and
    bisection."""
    size = abs(eigenvalue)
    growth = type(integrator).growth  # unbound: binding a method of a module costs 20 calls of it
    amplifies = lambda dt: growth(integrator, eigenvalue * dt) > 1.0 + 1e-12
    grid = np.geomspace(1e-4, 1e4, 4001) / size
    bad = next((i for i, dt in enumerate(grid) if amplifies(dt)), None)
    if bad is None:
        return np.inf
    if bad == 0:
        return 0.0
    low, high = grid[bad - 1], grid[bad]
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if amplifies(middle) else (middle, high)
    return float(low)
