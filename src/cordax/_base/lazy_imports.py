"""Names of a package that are imported when they are first asked for."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def later(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable]:
    """`__getattr__` and `__dir__` of a package: `names` by the module of it that has them, all of
    one module in a text; modules are names themselves. The package says the same to those who only
    read it, `if TYPE_CHECKING:`."""
    home = {name: module for module, own in names.items() for name in (module, *own.split())}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home[name]}")
        found = module if name == home[name] else getattr(module, name)
        setattr(sys.modules[package], name, found)
        return found

    return find, lambda: sorted({*vars(sys.modules[package]), *home})


def of_extra(name: str, extra: str) -> Any:
    """A module that comes with an extra of cordax, or an error that says so."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        said = f"this needs {name}, which the `{extra}` extra of cordax brings"
        raise ImportError(f'{said}: pip install "cordax[{extra}]", or -e ".[{extra}]"') from error
