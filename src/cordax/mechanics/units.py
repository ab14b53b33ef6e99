"""Units of quantities by name, for labels and tables."""

import re

#: units of names that have the same meaning in all machines
COMMON = {
    "angle": "rad",
    "theta": "rad",
    "x": "m",
    "y": "m",
    "z": "m",
    "torque": "N m",
    "force": "N",
    "tension": "N",
    "length": "m",
    "elongation": "m",
    "position": "m",
    "velocity": "m/s",
    "angular_velocity": "rad/s",
}


def stem(name: str) -> str:
    """Stem of a numbered name: `alpha` for `alpha_2`."""
    return re.sub(r"(_\d+)+$", "", name)


def unit_of(system, name: str) -> str | None:
    """SI unit of a quantity of a machine by its name, `d_` + name or stem; None if unknown."""
    base = name.removeprefix("d_")
    own = {} if system is None else system.presentation().units
    for table in (own, COMMON):
        for key in (base, stem(base)):
            if key in table:
                return table[key] if base == name else f"{table[key]}/s"
    return None
