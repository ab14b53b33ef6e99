"""Runs in the browser, to turn, play and change (needs the `view` extra)."""

from .viewer import Viewer, view

__all__ = ["Viewer", "view"]
