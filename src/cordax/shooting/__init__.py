"""Multiple shooting: a run split into segments with free initial states."""

from .segments import Segments, differentiate, push_forward, require_restartable

__all__ = ["Segments", "differentiate", "push_forward", "require_restartable"]
