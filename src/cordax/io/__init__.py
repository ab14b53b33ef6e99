"""Data in files."""

from .csv import read_csv, write_csv
from .kinds import machine_kinds
from .machine_file import (
    MachineFile,
    example_path,
    examples,
    experiment_of,
    find_machine,
    read_machine,
)
from .robot_file import RobotFile
from .starting import starting_file
from .toml import read_robot

#: shipped with cordax
EXAMPLES = examples()

__all__ = [
    "EXAMPLES",
    "MachineFile",
    "RobotFile",
    "example_path",
    "examples",
    "experiment_of",
    "find_machine",
    "machine_kinds",
    "read_csv",
    "read_machine",
    "read_robot",
    "starting_file",
    "write_csv",
]
