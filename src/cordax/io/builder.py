"""Construction of objects from tables of a machine file.

The `kind` of a table names a class or function; the other keys are its arguments."""

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

from .._base.checks import require
from .._base.quantities import is_quantity, quantity
from .registry import Argument, arguments, find_kind, kinds, own_kinds
from .table import Table


class Builder(NamedTuple):
    """Constructs objects from tables.

    - `given`: values of required arguments that the file need not contain, such as the machine of
      a controller;
    - `code`: whether the file may name classes of the user, "module:Class";
    - `seen`: a list to which each construction appends the name of its table, its constructor and
      the arguments."""

    given: Mapping[str, Any] = {}
    code: bool = False
    seen: list | None = None

    def module(self, table: Table, bases: tuple[type, ...], place: str = "") -> Any:
        """Construct the object that a table describes, an instance of one of the `bases`."""
        return self.made(table, self.maker(table, bases, place))

    def maker(self, table: Table, bases: tuple[type, ...], place: str = "") -> Callable:
        """Return the constructor that the `kind` of the table names. The `kind` may be omitted if
        exactly one of the `bases` is itself in the registry, or if a key has the name of a kind."""
        if not table.has("kind") and len(own := own_kinds(bases)) == 1:
            return own[0]
        name = table.text("kind") if table.has("kind") else self._named_by_key(table, bases, place)
        if ":" in name:
            return self._users(table, name, bases)
        return _known(table.where("kind"), name, bases, place)[1]

    def _named_by_key(self, table: Table, bases: tuple[type, ...], place: str) -> str:
        """Find a kind among the keys of the table: `{ wrap = ... }` is of kind "wrap". Empty if
        there is none."""
        return next((key for key in kinds(bases, place) if table.has(key)), "")

    def made(self, table: Table, make: Callable, **more: Any) -> Any:
        """Call `make` with the keys of the table as arguments. `more`: arguments that do not come
        from the table."""
        values = dict(more)
        table.has("kind")
        for name, argument in arguments(make).items():
            if name in values:
                continue
            if table.has(name):
                values[name] = self.value(table, name, argument)
            elif argument.required and name in self.given:
                values[name] = self.given[name]
            elif argument.required:
                table.needed(name, _expected(argument))
        table.finish()
        if self.seen is not None:
            self.seen.append((table.name, make, values))
        with table.naming():
            try:
                return make(**values)
            except (TypeError, AttributeError, IndexError) as error:
                # constructors that rely on their annotations do not check the types themselves
                raise ValueError(f"{table.here}: {error}") from error

    def value(self, table: Table, key: str, argument: Argument) -> Any:
        """Convert the value of a key to the type of the argument."""
        return self._value(table, key, argument, table.raw(key), ())

    def _value(self, table: Table, key: str, argument: Argument, x: Any, index) -> Any:
        at = lambda: table.where(key + "".join(f"[{i}]" for i in index))
        if isinstance(x, dict):
            if not argument.bases:
                require(False, at(), "a table", _expected(argument))
            return self.module(table.row(key, *index), argument.bases, key)
        if isinstance(x, list):
            part = lambda i, y: self._value(table, key, argument, y, (*index, i))
            return tuple(part(i, y) for i, y in enumerate(x))
        if isinstance(x, str) and argument.number and is_quantity(x):
            return quantity(at(), x, argument.unit)
        if isinstance(x, str) and argument.bases and len(index) <= argument.depth:
            if argument.number:  # some constructors also accept a name
                return x
            return self._word(table, at(), x, argument)
        return x

    def _word(self, table: Table, at: str, word: str, argument: Argument) -> Any:
        """Construct a part from its kind alone, without a table."""
        _, make = _known(at, word, argument.bases, argument.name)
        needed = [n for n, a in arguments(make).items() if a.required and n not in self.given]
        more = ", ".join(f"{name} = ..." for name in needed)
        require(not needed, at, repr(word), f'a table {{ kind = "{word}", {more} }}')
        more = {n: self.given[n] for n, a in arguments(make).items() if a.required}
        with table.naming():
            return make(**more)

    def _users(self, table: Table, name: str, bases: tuple[type, ...]) -> Callable:
        """Import a class or function of the user, "module:Class"."""
        require(
            self.code,
            table.where("kind"),
            repr(name),
            "a kind of cordax, or --allow-code: a class of yours runs code of yours",
        )
        module, _, own = name.partition(":")
        named = re.fullmatch(r"\w+(\.\w+)*:\w+", name)
        require(bool(named), table.where("kind"), repr(name), '"module:Class"')
        folder = str(Path(table.path).resolve().parent)
        if folder not in sys.path:
            sys.path.insert(0, folder)
        try:
            make = getattr(importlib.import_module(module), own)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"{table.where('kind')}: got {name!r}, which {error}") from error
        fits = callable(make) and (not isinstance(make, type) or issubclass(make, bases))
        names = " or ".join(base.__name__ for base in bases)
        require(fits, table.where("kind"), repr(name), f"a class of {names}, or a function")
        return make


def _known(at: str, name: str, bases: tuple[type, ...], place: str) -> tuple[str, Callable]:
    """Return the kind and the constructor for a name; raise an error that lists all kinds if the
    name is unknown."""
    found = find_kind(name, bases, place)
    if found is None:
        choices = kinds(bases, place)
        near = get_close_matches(name, choices, 1)
        expected = "one of " + ", ".join(choices) + (f"; the nearest is {near[0]}" if near else "")
        require(False, at, repr(name) if name else "nothing", expected)
    assert found is not None
    return found


def _expected(argument: Argument) -> str:
    if argument.bases and not argument.number:
        known = ", ".join(kinds(argument.bases, argument.name))
        one = f"a table with kind = one of {known}"
        return one if argument.depth == 0 else f"tables, each with kind = one of {known}"
    return "a number or a list of numbers" if argument.number else "a value"
