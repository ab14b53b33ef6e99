"""Interactive display of runs in the browser (needs the `view` extra)."""

from .viewer import Viewer, view

__all__ = ["Viewer", "view"]
