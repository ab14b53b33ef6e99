"""Lazy imports: names of a package that are imported when they are first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def later(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable]:
    """Return `__getattr__` and `__dir__` for a package with lazy imports.

    `names` maps each module of the package to the names that it provides, separated by spaces in
    one text. The modules themselves can be imported by name too. The package repeats these imports
    under `if TYPE_CHECKING:` for type checkers."""
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
    """Import a module that an optional extra of cordax installs.

    Raises `ImportError` with the name of the extra if the module is missing."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        said = f"this needs {name}, which the `{extra}` extra of cordax brings"
        raise ImportError(f'{said}: pip install "cordax[{extra}]", or -e ".[{extra}]"') from error
