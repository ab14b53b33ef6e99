"""Environments for Gymnasium (extra `gym`): one machine, or a batch in one compiled call."""

from typing import Any, ClassVar

import gymnasium
import jax
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from .._base.checks import require, require_instance, require_shape, require_whole
from .environment import Environment, Moment


def _spaces(environment: Environment, low, high):
    """Observation and action spaces; inputs between `low` and `high`, (n_u,) each or one number."""
    require_instance("environment", environment, Environment)
    n_u = environment.experiment.system.n_u
    low, high = (np.broadcast_to(np.asarray(x, np.float32), (n_u,)) for x in (low, high))
    require(bool(np.all(low < high)), "low, high", (low, high), "low < high")
    _, seen = jax.eval_shape(environment.reset, jax.random.key(0))
    require_shape("observe", seen, (seen.size,))
    observations = gymnasium.spaces.Box(-np.inf, np.inf, seen.shape, np.float64)
    return observations, gymnasium.spaces.Box(low, high, dtype=np.float32)


class MachineEnv(gymnasium.Env):
    """Gymnasium environment of one machine.

    `low`, `high`: bounds of the inputs, in their units, (n_u,) each or one number for all; actions
    beyond them are clipped. `info["failed"]`: the simulation failed."""

    def __init__(self, environment: Environment, low, high):
        self.observation_space, self.action_space = _spaces(environment, low, high)
        self.environment = environment
        # bound methods of modules cannot be hashed
        self._reset = jax.jit(lambda key: environment.reset(key))
        self._step = jax.jit(lambda *given: environment.step(*given))
        self._moment: Moment | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        key = jax.random.key(int(self.np_random.integers(2**31)))
        self._moment, seen = self._reset(key)
        return np.asarray(seen, np.float64), {}

    def step(self, action):
        require(self._moment is not None, "step", "no episode", "reset() before it")
        box: Any = self.action_space
        self._moment, outcome = self._step(self._moment, np.clip(action, box.low, box.high))
        seen, reward, terminated, truncated, failed = (np.asarray(x) for x in outcome)
        ends = bool(terminated), bool(truncated)
        return seen.astype(np.float64), float(reward), *ends, {"failed": bool(failed)}


class MachineVectorEnv(VectorEnv):
    """Gymnasium vector environment of `count` machines, simulated as one batch; arguments as in
    `MachineEnv`.

    After the end of an episode the next step resets the member and ignores its action (Gymnasium's
    NEXT_STEP)."""

    metadata: ClassVar = {"autoreset_mode": AutoresetMode.NEXT_STEP}

    def __init__(self, environment: Environment, count: int, low, high):
        require_whole("count", count, 1)
        seen, acted = _spaces(environment, low, high)
        self.num_envs, self.environment = count, environment
        self.single_observation_space, self.single_action_space = seen, acted
        self.observation_space, self.action_space = (batch_space(x, count) for x in (seen, acted))
        self._reset = jax.jit(jax.vmap(lambda key: environment.reset(key)))
        self._step = jax.jit(jax.vmap(lambda *given: environment.step_after(*given)))
        self._moments: Moment | None = None
        self._over = np.zeros(count, bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self._moments, seen = self._reset(self._keys())
        self._over[:] = False
        return np.asarray(seen, np.float64), {}

    def step(self, actions):
        require(self._moments is not None, "step", "no episodes", "reset() before it")
        box: Any = self.single_action_space
        given = self._moments, np.clip(actions, box.low, box.high), self._over, self._keys()
        self._moments, outcome = self._step(*given)
        seen, rewards, terminated, truncated, failed = (np.array(x) for x in outcome)
        self._over = terminated | truncated
        return seen.astype(np.float64), rewards, terminated, truncated, {"failed": failed}

    def _keys(self):
        seeds = self.np_random.integers(2**31, size=self.num_envs)
        return jax.vmap(jax.random.key)(seeds)
