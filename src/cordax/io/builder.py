"""Modules from tables: keys are the arguments of what a `kind` names."""

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
    """Makes modules. `given`: arguments that are known without being written, such as the machine
    of a controller; `code`: whether classes of the user may be named, "module:Class"; `seen`: a
    list that receives each object, its table and its constructor."""

    given: Mapping[str, Any] = {}
    code: bool = False
    seen: list | None = None

    def module(self, table: Table, bases: tuple[type, ...], place: str = "") -> Any:
        """What a table describes: one of the `bases`."""
        return self.made(table, self.maker(table, bases, place))

    def maker(self, table: Table, bases: tuple[type, ...], place: str = "") -> Callable:
        """What its `kind` names; that of the only class there is, where it may be left out."""
        if not table.has("kind") and len(own := own_kinds(bases)) == 1:
            return own[0]
        name = table.text("kind") if table.has("kind") else self._named_by_key(table, bases, place)
        if ":" in name:
            return self._users(table, name, bases)
        return _known(table.where("kind"), name, bases, place)[1]

    def _named_by_key(self, table: Table, bases: tuple[type, ...], place: str) -> str:
        """The kind that a key of the table has the name of: `{ wrap = ... }` is of kind "wrap"."""
        return next((key for key in kinds(bases, place) if table.has(key)), "")

    def made(self, table: Table, make: Callable, **more: Any) -> Any:
        """What `make` makes of the table's keys; `more`: arguments that it has from elsewhere."""
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
                # of constructors that take for granted what an annotation says
                raise ValueError(f"{table.here}: {error}") from error

    def value(self, table: Table, key: str, argument: Argument) -> Any:
        """The value of a key, as the argument takes it."""
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
            if argument.number:  # or a name, where a constructor takes one
                return x
            return self._word(table, at(), x, argument)
        return x

    def _word(self, table: Table, at: str, word: str, argument: Argument) -> Any:
        """A part by its kind alone."""
        _, make = _known(at, word, argument.bases, argument.name)
        needed = [n for n, a in arguments(make).items() if a.required and n not in self.given]
        more = ", ".join(f"{name} = ..." for name in needed)
        require(not needed, at, repr(word), f'a table {{ kind = "{word}", {more} }}')
        more = {n: self.given[n] for n, a in arguments(make).items() if a.required}
        with table.naming():
            return make(**more)

    def _users(self, table: Table, name: str, bases: tuple[type, ...]) -> Callable:
        """A class of the user."""
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
    """The kind of a name and what makes it, or an error that says which kinds there are."""
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
