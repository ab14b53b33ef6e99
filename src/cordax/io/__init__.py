"""Data in files."""

from .csv import read_csv, write_csv

__all__ = ["read_csv", "write_csv"]
