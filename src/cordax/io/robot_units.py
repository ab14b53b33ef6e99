"""What the numbers of a cable robot's file measure, by table and key: where a text such as "20 mm"
may stand for them. Keys that measure different things from kind to kind are not among them."""

_BODY = {"mass": "kg", "box": "m", "inertia": "kg m^2", "centre": "m"}
_TABLES = {
    "": {"gravity": "m/s^2"},
    "platform": _BODY
    | {
        "attachments": "m",
        "position": "m",
        "euler": "rad",
        "velocity": "m/s",
        "angular_velocity": "rad/s",
        "linear_damping": "N s/m",
        "angular_damping": "N m s",
    },
    "exits": {"points": "m", "radius": "m", "pulley_inertia": "kg m^2", "mass": "kg"},
    "exits.moves": {"by": "m", "times": "s"},
    "drives": {
        "lengths": "m",
        "radius": "m",
        "rotor_inertia": "kg m^2",
        "friction": "N m s",
        "torque": "N m",
        "feedforward": "N m",
        "mean_tension": "N",
    },
    "drives.moves": {"by": "m", "times": "s"},
    "cables": {"stiffness": "N/m", "damping": "N s/m", "width": "m"},
    "pulses": {"times": "s", "force": "N", "torque": "N m"},
    "payload": _BODY
    | {
        "position": "m",
        "euler": "rad",
        "joint": "m",
        "pick": "s",
        "place": "s",
        "drop": "s",
    },
}

#: `table.key` to unit
ROBOT_UNITS = {
    f"{table}.{key}" if table else key: unit
    for table, units in _TABLES.items()
    for key, unit in units.items()
}
