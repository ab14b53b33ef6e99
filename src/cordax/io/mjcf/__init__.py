"""Reader of MuJoCo models (MJCF and URDF files)."""

from .read import read_mjcf
from .report import ImportReport

__all__ = ["ImportReport", "read_mjcf"]
