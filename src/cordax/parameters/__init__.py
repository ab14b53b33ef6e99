"""Named parameters of an experiment, to be fitted, varied or optimised."""

from .parameter import Parameter

__all__ = ["Parameter"]
