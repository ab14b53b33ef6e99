"""From search coordinates to residuals and their Jacobian."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .._checks import known_values, require, require_shape
from .._precision import as_float_array
from ..experiment import Experiment
from ..parameters import ParameterSet
from ..recording import Recording, observe
from ..simulate import simulate
from ..trajectory import Trajectory
from .grid import Grid


class Problem(eqx.Module):
    """Recorded values against a simulation with unknown numbers.

    Residuals are (recorded - simulated)/noise, flat, shape (n,), zero where a value is missing.
    """

    experiment: Experiment
    parameters: ParameterSet
    grid: Grid
    values: dict[str, Float[Array, "k ..."]]
    noise: dict[str, Float[Array, "..."]]
    noise_given: bool = eqx.field(static=True)
    adjoint: str = eqx.field(static=True)

    def run(self, y) -> Trajectory:
        """The simulation at search coordinates `y`, shape (p,)."""
        experiment = self.parameters.insert(self.experiment, y).replace(
            dt=self.grid.dt,
            duration=self.grid.steps * self.grid.dt,
            t0=self.grid.t0,
            save_every=self.grid.save_every,
        )
        return simulate(experiment, adjoint=self.adjoint, throw=False)  # pyright: ignore

    def differences(self, trajectory: Trajectory) -> dict[str, Float[Array, "k ..."]]:
        """Recorded minus simulated, in the units of each quantity, NaN where nothing was
        recorded."""
        found = {}
        for name, recorded in self.values.items():
            simulated = observe(trajectory, name)[self.grid.rows]
            require_shape(f"recording.values[{name!r}]", recorded, simulated.shape)
            found[name] = recorded - simulated
        return found

    def residuals(self, y) -> tuple[Float[Array, " n"], Trajectory]:
        """Residuals and the trajectory they come from. They are infinite if the run failed, so that
        no method accepts such a point."""
        trajectory = self.run(y)
        parts = [
            jnp.where(jnp.isnan(self.values[name]), 0.0, d / self.noise[name]).ravel()
            for name, d in self.differences(trajectory).items()
        ]
        r = jnp.concatenate(parts)
        return jnp.where(trajectory.succeeded, r, jnp.inf), trajectory

    def jacobian(self, y) -> tuple[Float[Array, "n p"], tuple[Float[Array, " n"], Trajectory]]:
        """d(residuals)/dy by forward mode: all parameters ride along in one run, which is not
        repeated for the residuals."""

        def f(y):
            r, trajectory = self.residuals(y)
            return r, (r, trajectory)

        J, (r, trajectory) = jax.jacfwd(f, has_aux=True)(y)
        return jnp.where(trajectory.succeeded, J, 0.0), (r, trajectory)

    def check(self) -> None:
        """Refuse a recording that says less than is asked of it."""
        known = [known_values(x) for x in self.values.values()]
        if any(x is None for x in known):
            return
        numbers = sum(int(np.sum(~np.isnan(x))) for x in known)  # pyright: ignore
        for name, x in zip(self.values, known, strict=True):
            assert x is not None
            require(not np.any(np.isinf(x)), f"recording.values[{name!r}]", "inf", "finite values")
        said = f"{numbers} numbers that are not NaN"
        wanted = f"more than the {self.parameters.size} fitted ones"
        require(numbers > self.parameters.size, "recording", said, wanted)

    def count(self) -> Array:
        """How many numbers were recorded."""
        return sum(jnp.sum(~jnp.isnan(x)) for x in self.values.values())  # pyright: ignore


def noise_levels(noise: Any, recording: Recording) -> dict[str, Array]:
    """The standard deviation of each recorded quantity from one number, numbers by name, or
    None."""
    if noise is None:
        noise = 1.0
    if not isinstance(noise, dict):
        noise = {name: noise for name in recording.names}
    missing = sorted(set(recording.names) ^ set(noise))
    require(not missing, "noise", ", ".join(missing), f"exactly {', '.join(recording.names)}")
    levels = {}
    for name in recording.names:
        x = as_float_array(noise[name], f"noise[{name!r}]")
        require_shape(f"noise[{name!r}]", x, (), recording.values[name].shape[1:])
        if (known := known_values(x)) is not None:
            ok = bool(np.all(np.isfinite(known) & (known > 0)))
            require(ok, f"noise[{name!r}]", x, "a finite standard deviation > 0")
        levels[name] = x
    return levels
