"""Machines that commands know by name or from files."""

from ..io import experiment_of

__all__ = ["experiment_of"]
