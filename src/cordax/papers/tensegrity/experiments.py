"""Experiments of the study, with all results in one structure."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from . import manipulator, strut
from .manipulator import ASIDE, ASIDE_FREE, STILL, UP, UP_FREE
from .setup import SPLINE_TIMES, SPLINE_VALUES, TABLE_5_7, VARIANTS_FOR, table_4_1
from .strut import DAMPED, FED_BACK, HELD, LIGHT, LOW, PLAIN

#: step of the runs of the strut [s] by modulus [Pa], short compared with the oscillation of the
#: stiffest cables
STEPS = {2e8: 1e-3, 2e9: 1e-3, 2e10: 2.5e-4}
#: larger steps for runs that show the effect of a choice and need fewer digits
COARSE = {2e10: 5e-4}


class Spline(NamedTuple):
    """Spline of Table 4.1 at times `t` (n,) [s]: `values`, `rates` and `accelerations` (n, 2);
    largest deviation of the control values from the spline (`missed`) and from the spline of
    equation 4.3.2 as printed (`missed_printed`); largest jump at knots of rates (`jump`) and of
    accelerations (`kink`)."""

    t: np.ndarray
    values: np.ndarray
    rates: np.ndarray
    accelerations: np.ndarray
    missed: float
    missed_printed: float
    jump: float
    kink: float


class Study(NamedTuple):
    """Results of all experiments. `variants`: strut under constant torques, by variant; `followed`:
    strut along its path, by modulus [Pa] and choice; `moved`: manipulator, by case; `full`: whether
    all durations are those of the thesis."""

    spline: Spline
    variants: dict[str, strut.Motion]
    followed: dict[tuple[float, str], strut.Motion]
    moved: dict[str, manipulator.Motion]
    full: bool


def measure(say: Callable[[str], None], full: bool = False, share: float = 1.0) -> Study:
    """Run every experiment; `say` is called with a line before each group. `full`: whether to use
    all durations and steps of the thesis; `share`: fraction of every duration, for short trials."""
    whole = lambda duration: round(share * duration / 0.1) * 0.1
    say("the spline")
    curve = spline()
    say("variants of the strut's cables")
    same = strut.variants(whole(VARIANTS_FOR), 1e-4 if full else 1e-3)
    say("the strut along its path")
    followed = {}
    for modulus, choice in cases(full):
        precise = choice == PLAIN or full
        dt = STEPS[modulus] if precise else COARSE.get(modulus, STEPS[modulus])
        dt = 1e-3 if choice in (HELD, FED_BACK) else dt
        followed[modulus, choice] = strut.follow(modulus, choice, dt, whole(9.0))
    say("the manipulator")
    horizons = {STILL: 3.0, UP: 20.0, UP_FREE: 10.0, ASIDE: 10.0}
    if full:
        horizons |= {STILL: 5.0, ASIDE: 20.0, ASIDE_FREE: 10.0}
    moved = {case: manipulator.move(case, whole(x)) for case, x in horizons.items()}
    return Study(curve, same, followed, moved, full)


def cases(full: bool) -> list[tuple[float, str]]:
    """Moduli [Pa] and choices for the runs of the strut along its path."""
    moduli = list(TABLE_5_7)
    found = [(E, choice) for choice in (PLAIN, DAMPED) for E in moduli]
    found += [(E, choice) for choice in (LIGHT, LOW) for E in (moduli if full else moduli[:2])]
    return [*found, *((E, HELD) for E in moduli), (moduli[1], FED_BACK)]


def spline(n: int = 601) -> Spline:
    """Evaluate the spline of figure 4.1."""
    curve = table_4_1()
    t = np.linspace(SPLINE_TIMES[0], SPLINE_TIMES[-1], n)
    values, rates, accelerations = (np.asarray(x) for x in jax.vmap(curve)(t))
    knots, wanted = np.array(SPLINE_TIMES), np.array(SPLINE_VALUES)
    at = lambda t: [np.asarray(x) for x in jax.vmap(curve)(t)]
    before, after = at(knots[1:-1] - 1e-9), at(knots[1:-1] + 1e-9)
    size = lambda x: float(np.abs(x).max())
    printed = [_printed(k, knots[k + 1]) for k in range(len(knots) - 1)]
    return Spline(
        t,
        values,
        rates,
        accelerations,
        size(at(knots)[0] - wanted),
        size(np.array(printed) - wanted[1:]),
        size(after[1] - before[1]),
        size(after[2] - before[2]),
    )


def _printed(k: int, t: float) -> np.ndarray:
    """Value (2,) at a time in the k-th segment, by equation 4.3.2 as printed, M_H D."""
    first, last = SPLINE_TIMES[k : k + 2]
    T = last - first
    # rows: coefficients of P0, P0', P1, P1' in powers s^i/i! of s = (t - t0)/T
    hermite = np.array([[1.0, 0, -6, 12], [0.0, 1, -4, 6], [0.0, 0, 6, -12], [0.0, 0, -2, 6]])
    s = (t - first) / T
    powers = np.array([1.0, s, s**2 / 2.0, s**3 / 6.0])
    P = np.array(SPLINE_VALUES)
    control = np.stack([P[k], 0.0 * P[k], P[k + 1], 0.0 * P[k]], axis=1)
    return control @ hermite @ np.diag([1.0, T, 1.0, T]) @ powers
