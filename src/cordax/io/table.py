"""Tables of a TOML file, read so that every mistake is named: file, key, value, expectation."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from .._checks import require

_REQUIRED: Any = object()


class Table:
    """One table. Keys are asked for by what they should be; `finish` refuses all others."""

    def __init__(self, path: Path, name: str, data: dict[str, Any]):
        self.path, self.name, self._data = path, name, data
        self._asked: list[str] = []

    def where(self, key: str) -> str:
        return f"{self.path}, {self.name}.{key}" if self.name else f"{self.path}, {key}"

    def has(self, key: str) -> bool:
        self._ask(key)
        return key in self._data

    def numbers(self, key: str, *shapes: tuple[int | None, ...], default: Any = _REQUIRED) -> Any:
        """An array of one of the shapes (None: any size; (): a number, returned as float)."""
        said = " or ".join(_describe(shape) for shape in shapes)
        value = self._get(key, default, said)
        if value is default and key not in self._data:
            return value
        array = _array(value)
        fits = array is not None and any(_fits(array.shape, shape) for shape in shapes)
        require(fits, self.where(key), value, said)
        assert array is not None
        require(bool(np.all(np.isfinite(array))), self.where(key), value, "finite numbers")
        return float(array) if array.shape == () else array

    def word(self, key: str, choices: Iterable[str], default: Any = _REQUIRED) -> str:
        choices = tuple(choices)
        said = "one of " + ", ".join(repr(c) for c in choices)
        value = self._get(key, default, said)
        known = isinstance(value, str) and value in choices
        require(known or value is default, self.where(key), repr(value), said)
        return value

    def text(self, key: str, default: Any = _REQUIRED) -> str:
        value = self._get(key, default, "a text")
        require(isinstance(value, str), self.where(key), value, "a text")
        return value

    def is_word(self, key: str) -> bool:
        return isinstance(self._data.get(key), str)

    def table(self, key: str, *, needed: bool = False) -> "Table":
        """The table below; an empty one where it is missing and not needed."""
        value = self._get(key, _REQUIRED if needed else {}, f"a table [{self._below(key)}]")
        require(isinstance(value, dict), self.where(key), value, f"a table [{self._below(key)}]")
        return Table(self.path, self._below(key), value)

    def tables(self, key: str) -> "list[Table]":
        """The tables of an array of tables, none where it is missing."""
        value = self._get(key, [], f"tables [[{self._below(key)}]]")
        ok = isinstance(value, list) and all(isinstance(x, dict) for x in value)
        require(ok, self.where(key), value, f"tables [[{self._below(key)}]]")
        return [Table(self.path, f"{self._below(key)}[{i}]", x) for i, x in enumerate(value)]

    def finish(self) -> None:
        """Refuse keys that nothing has asked for."""
        for key, value in self._data.items():
            known = "one of " + ", ".join(self._asked)
            for near in get_close_matches(key, self._asked, 1):
                known += f"; the nearest is {near}"
            require(key in self._asked, self.where(key), f"an unknown key (= {value})", known)

    @contextmanager
    def naming(self, key: str = "") -> Iterator[None]:
        """Errors of what is made from this table say where its numbers stand."""
        try:
            yield
        except ValueError as error:
            text = str(error)
            if text.startswith(str(self.path)):
                raise
            raise ValueError(f"{self.where(key)}: {text}" if key else self.where(text)) from error

    def _below(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def _ask(self, key: str) -> None:
        if key not in self._asked:
            self._asked.append(key)

    def _get(self, key: str, default: Any, expected: str) -> Any:
        self._ask(key)
        if key not in self._data and default is _REQUIRED:
            # misspelt, rather than missing
            for near in get_close_matches(key, set(self._data) - set(self._asked), 1, 0.75):
                said = f"an unknown key (= {self._data[near]})"
                require(False, self.where(near), said, f"{key}: {expected}")
            require(False, self.where(key), "nothing", expected)
        return self._data.get(key, default)


def _array(value: Any) -> np.ndarray | None:
    """Numbers, nested lists of equal lengths; None for anything else, booleans included."""
    if not _only_numbers(value):
        return None
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return None


def _only_numbers(value: Any, depth: int = 0) -> bool:
    if isinstance(value, list):
        return depth < 4 and all(_only_numbers(x, depth + 1) for x in value)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(
        w is None or s == w for s, w in zip(shape, wanted, strict=True)
    )


def _describe(shape: tuple[int | None, ...]) -> str:
    if shape == ():
        return "a number"
    count = "numbers" if shape[-1] is None else f"{shape[-1]} numbers"
    if len(shape) == 1:
        return f"a list of {count}"
    rows = "rows" if shape[0] is None else f"{shape[0]} rows"
    return f"a list of {rows} of {count}"
