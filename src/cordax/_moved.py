"""Old import paths and names, kept for one minor version: they work and say what is right now."""

import functools
import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

_MOVED = {
    "cordax.mechanics.checks": "cordax._checks",
    "cordax.mechanics.natural": "cordax.systems.cable_robot.natural",
    "cordax.mechanics.obstacles": "cordax.systems.rod.obstacles",
    "cordax.mechanics.payload": "cordax.systems.cable_robot.payload",
    "cordax.mechanics.rod_ends": "cordax.systems.rod.ends",
    "cordax.mechanics.tendons": "cordax.systems.neck.tendons",
    "cordax.systems.harness": "cordax.systems.rod.harness",
    "cordax.systems.plastic_flow": "cordax.systems.rod.plastic_flow",
    "cordax.systems.spline_rod": "cordax.systems.rod.spline_rod",
}


class _Moved(MetaPathFinder, Loader):
    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self) if fullname in _MOVED else None

    def create_module(self, spec):
        new = _MOVED[spec.name]
        warnings.warn(
            f"{spec.name} has moved to {new}", DeprecationWarning, stacklevel=2, source=None
        )
        # a plain alias would have its name and spec changed by the import machinery
        module = type(sys)(spec.name)
        module.__dict__.update(
            {k: x for k, x in vars(importlib.import_module(new)).items() if k[:2] != "__"}
        )
        return module

    def exec_module(self, module):
        pass


def redirect_moved_modules() -> None:
    """Let imports of moved modules find them."""
    sys.meta_path.append(_Moved())


def renamed(old: str, new: str):
    """For a class whose field `old` is now `new`: the old keyword and attribute still work."""

    def told(cls):
        inner = cls.__init__

        @functools.wraps(inner)
        def init(self, *values, **fields):
            if old in fields:
                _warn_renamed(cls, old, new, 5)
                fields[new] = fields.pop(old)
            inner(self, *values, **fields)

        def read(self):
            _warn_renamed(cls, old, new, 4)
            return getattr(self, new)

        cls.__init__ = init
        setattr(cls, old, property(read))
        return cls

    return told


def _warn_renamed(cls, old: str, new: str, level: int) -> None:
    """`level`: how far up the user's line is; equinox makes and reads modules in between."""
    text = f"{cls.__name__}: `{old}` is now `{new}`"
    warnings.warn(text, DeprecationWarning, stacklevel=level)
