"""Readers and writers of files: machines, recordings and trajectories."""

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
    from .templates import starting_file

__getattr__, __dir__ = later(
    __name__,
    {
        "caspr": "read_caspr",
        "csv": "read_csv write_csv",
        "logs": "read_recording",
        "mjcf": "ImportReport read_mjcf",
        "templates": "starting_file",
    },
)

#: shipped with cordax
EXAMPLES = examples()

__all__ = [
    "EXAMPLES",
    "ImportReport",
    "MachineFile",
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
    "starting_file",
    "write_csv",
]
