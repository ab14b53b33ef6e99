"""Measured or simulated signals over time."""

from .recording import Recording

__all__ = ["Recording"]
