"""Numbers of a real wire from its recordings: least squares with derivatives that are carried along
with the motion."""

import jax.numpy as jnp
import numpy as np
from scipy.optimize import least_squares
from wires_model import NAMES, at_markers, prepared, sensitivity

#: where a fit begins, and how far a search moves each at first, in its logarithm but for tilts
START = {
    "EI": 0.02,
    "bending_time": 0.05,
    "slip": 1.0,
    "length": 0.985,
    "left_tilt": 0.0,
    "right_tilt": 0.0,
}
REACH = np.array([0.5, 0.5, 0.5, 0.02, 0.05, 0.05])
RATIOS = np.array([True, True, True, True, False, False])
#: [rad], 20 degrees: two markers 20 mm apart, one of them 7 mm beside the wire
MOST_TILT = 0.35
#: [1/m]; below, friction does nothing
LEAST_SLIP = 1e-3
#: of misses [m]: beyond, they count by their size instead of its square; frames between samples
FAR, EVERY = 0.02, 10
#: runs simulated with their derivatives at a time
TOGETHER = 4


class Misses:
    """Of free markers of runs [m], at every tenth frame, and their derivatives by z: the logarithms
    of ratios and tilts, from those of `start` on, in units of `REACH`. Derivatives are carried
    along with the motion, of a few runs at a time: one program for any number of runs."""

    def __init__(self, runs, places, start):
        self.y0 = np.array([float(start[name]) for name in NAMES])
        self.y0[~RATIOS] = np.clip(self.y0[~RATIOS], -0.99 * MOST_TILT, 0.99 * MOST_TILT)
        self.each = [prepared(run, places) for run in runs]
        self.truth = [run[::EVERY, 2:-2] for run in runs]
        self.spread = at_markers(places)
        self.last: tuple = (None, None, None)

    def numbers(self, z) -> np.ndarray:
        return np.where(RATIOS, self.y0 * np.exp(REACH * z), self.y0 + REACH * z)

    def bounds(self):
        far = np.where(RATIOS, 20.0, (MOST_TILT - self.y0) / REACH)
        near = np.where(RATIOS, -20.0, (-MOST_TILT - self.y0) / REACH)
        slip = NAMES.index("slip")
        near[slip] = np.log(0.99 * LEAST_SLIP / self.y0[slip]) / REACH[slip]
        return near, far

    def look(self, z):
        """Misses (n,) and derivatives (n, 6); a run that fails misses by a metre."""
        if self.last[0] is None or not np.array_equal(self.last[0], z):
            y, off, by = self.numbers(z), [], []
            scale = REACH * np.where(RATIOS, y, 1.0)
            for first in range(0, len(self.each), TOGETHER):
                several = self.each[first : first + TOGETHER]
                filled = several + several[-1:] * (TOGETHER - len(several))
                data = {name: np.stack([one[name] for one in filled]) for name in several[0]}
                found = sensitivity(jnp.asarray(y), data)
                for i in range(len(several)):
                    nodes, good, slopes = (np.asarray(x[i]) for x in found)
                    ends = several[i]["held"][::EVERY, 1]
                    here = self.spread @ np.concatenate([nodes[::EVERY], ends], axis=1)
                    here = here - self.truth[first + i]
                    slopes = np.einsum(
                        "mn,knci->kmci", self.spread[:, : nodes.shape[1]], slopes[::EVERY]
                    )
                    near = good & (np.abs(here) < 1.0)
                    off.append(np.where(near, here, 1.0).ravel())
                    by.append(np.where(near[..., None], slopes * scale, 0.0).reshape(-1, len(z)))
            self.last = z.copy(), np.concatenate(off), np.concatenate(by)
        return self.last[1:]


def mean_distance(off) -> float:
    """[mm], of misses (n,) [m]."""
    return 1e3 * float(np.linalg.norm(off.reshape(-1, 3), axis=1).mean())


def fit(runs, places, start=START, iterations: int = 12, progress: bool = True) -> dict[str, float]:
    """The numbers by least squares on all runs, far misses counted by their size, with tilts of 20
    degrees at most."""
    misses = Misses(runs, places, start)

    def off(z):
        found = misses.look(z)[0]
        if progress:
            numbers = dict(zip(NAMES, misses.numbers(z), strict=True))
            print(f"  {mean_distance(found):6.2f} mm at {say(numbers)}", flush=True)
        return found

    found = least_squares(
        off,
        np.zeros(len(NAMES)),
        lambda z: misses.look(z)[1],
        bounds=misses.bounds(),
        loss="soft_l1",
        f_scale=FAR,
        max_nfev=iterations,
        ftol=1e-4,
        xtol=1e-3,
    )
    return dict(zip(NAMES, map(float, misses.numbers(found.x)), strict=True))


def say(numbers) -> str:
    return ", ".join(f"{name} {float(x):.3g}" for name, x in numbers.items())
