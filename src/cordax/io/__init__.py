"""Data in files."""

from typing import TYPE_CHECKING

from .._base.lazy_imports import later
from .machine_file import (
    MachineFile,
    example_path,
    examples,
    experiment_of,
    find_machine,
    read_machine,
)
from .registry import machine_kinds

if TYPE_CHECKING:
    from .caspr import read_caspr
    from .csv import read_csv, write_csv
    from .logs import read_recording
    from .mjcf import ImportReport, read_mjcf
    from .robot_file import RobotFile
    from .templates import starting_file
    from .toml import read_robot

__getattr__, __dir__ = later(
    __name__,
    {
        "caspr": "read_caspr",
        "csv": "read_csv write_csv",
        "logs": "read_recording",
        "mjcf": "ImportReport read_mjcf",
        "robot_file": "RobotFile",
        "templates": "starting_file",
        "toml": "read_robot",
    },
)

#: shipped with cordax
EXAMPLES = examples()

__all__ = [
    "EXAMPLES",
    "ImportReport",
    "MachineFile",
    "RobotFile",
    "example_path",
    "examples",
    "experiment_of",
    "find_machine",
    "machine_kinds",
    "read_caspr",
    "read_csv",
    "read_machine",
    "read_mjcf",
    "read_recording",
    "read_robot",
    "starting_file",
    "write_csv",
]
