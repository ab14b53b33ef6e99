"""Data in files."""

from .csv import read_csv, write_csv
from .robot_file import RobotFile
from .toml import EXAMPLES, example_path, read_robot

__all__ = ["EXAMPLES", "RobotFile", "example_path", "read_csv", "read_robot", "write_csv"]
