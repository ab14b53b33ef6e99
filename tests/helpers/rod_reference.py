"""Rods of the reference data."""

import json

import jax.numpy as jnp

from cordax.systems import End, SplineRod
from helpers.stored import stored

DATA = stored("rod")


def rod_of(case: str, **options):
    """The rod of a case, and its parameters."""
    p = json.loads(str(DATA[f"{case}/params"]))
    ends = [End.sliding(p["Kx"], slope=p["fix_slope"], twist=held) for held in p["fix_theta"]]
    settings = {
        "length": p["L"],
        "diameter": p["D"],
        "density": p["rho"],
        "young": p["E"],
        "poisson": p["nu"],
        "left": ends[0],
        "right": ends[1],
        "control_points": p["n_u"],
        "quadrature": tuple(p["rule"]),
        "torsion_width": jnp.asarray(p["dt_reg"]),
        "bending_width": p["db_reg"],
        "rest_strain": p["eps0"],
        "loads": (p["uf"],),
        "gravity": p["g"],
    }
    return SplineRod(**(settings | options)), p


def pull(p):
    """The sinusoidal force of a case, as a controller."""
    direction = jnp.asarray(p["fdir"])
    return lambda t, state: p["A"] * jnp.sin(2 * jnp.pi * p["f"] * t) * direction


def points_first(rod):
    """Indices that order unknowns by control point, as the data does."""
    index, start = {}, 0
    for c, free in enumerate(rod.layout.free):
        index |= {(i, c): start + k for k, i in enumerate(free)}
        start += len(free)
    return [index[i, c] for i in range(rod.control_points) for c in range(4) if (i, c) in index]
