"""Tables of a TOML file. Every error names the file, the key, the value and what is expected."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

import numpy as np

from .._base.checks import require
from .._base.quantities import is_quantity, quantity
from .line_numbers import lines_of

_REQUIRED: Any = object()


class Table:
    """One table of a TOML file. Each method reads a key with the type that it must have; `finish`
    rejects keys that were not read."""

    def __init__(
        self, path: Path, name: str, data: dict[str, Any], lines: dict[str, int] | None = None
    ):
        self.path, self.name, self._data, self._lines = path, name, data, lines or {}
        self._asked: list[str] = []

    def where(self, key: str) -> str:
        """Location of a key for messages: file, line and key. For a missing key, the line is that
        of the nearest table above it."""
        place = self._below(key)
        known = re.split(r"(?=[.\[])", place)
        for count in range(len(known), 0, -1):
            line = self._lines.get("".join(known[:count]))
            if line is not None:
                return f"{self.path}:{line}, {place}"
        return f"{self.path}, {place}"

    @property
    def here(self) -> str:
        """Location of the table for messages: file, line and name."""
        line = self._lines.get(self.name)
        at = f"{self.path}:{line}" if line else f"{self.path}"
        return f"{at}, {self.name}" if self.name else at

    def has(self, key: str) -> bool:
        self._ask(key)
        return key in self._data

    def numbers(
        self, key: str, *shapes: tuple[int | None, ...], default: Any = _REQUIRED, unit: str = ""
    ) -> Any:
        """Read an array with one of the shapes (None: any size; (): a number, returned as float).
        With a `unit`, texts such as "20 mm" are converted."""
        description = " or ".join(_describe(shape) for shape in shapes)
        value = self._get(key, default, description)
        if value is default and key not in self._data:
            return value
        array = _array(_measured(self.where(key), value, unit) if unit else value)
        fits = array is not None and any(_fits(array.shape, shape) for shape in shapes)
        require(fits, self.where(key), value, description)
        assert array is not None
        require(bool(np.all(np.isfinite(array))), self.where(key), value, "finite numbers")
        return float(array) if array.shape == () else array

    def word(self, key: str, choices: Iterable[str], default: Any = _REQUIRED) -> str:
        choices = tuple(choices)
        description = "one of " + ", ".join(repr(c) for c in choices)
        value = self._get(key, default, description)
        known = isinstance(value, str) and value in choices
        require(known or value is default, self.where(key), repr(value), description)
        return value

    def text(self, key: str, default: Any = _REQUIRED) -> str:
        value = self._get(key, default, "a text")
        require(isinstance(value, str), self.where(key), value, "a text")
        return value

    def is_word(self, key: str) -> bool:
        """Whether the value of the key is a text other than a quantity such as "20 mm"."""
        text = self._data.get(key)
        return isinstance(text, str) and not is_quantity(text)

    def table(self, key: str, *, needed: bool = False) -> "Table":
        """Read the table at a key; an empty one if it is missing and not `needed`."""
        value = self._get(key, _REQUIRED if needed else {}, f"a table [{self._below(key)}]")
        require(isinstance(value, dict), self.where(key), value, f"a table [{self._below(key)}]")
        return Table(self.path, self._below(key), value, self._lines)

    def tables(self, key: str) -> "list[Table]":
        """Read an array of tables; an empty list if it is missing."""
        value = self._get(key, [], f"tables [[{self._below(key)}]]")
        ok = isinstance(value, list) and all(isinstance(x, dict) for x in value)
        require(ok, self.where(key), value, f"tables [[{self._below(key)}]]")
        return [self.row(key, i) for i in range(len(value))]

    def row(self, key: str, *index: int) -> "Table":
        """Read the table at an index of a list, or at several indices of nested lists."""
        value = self.raw(key)
        for i in index:
            value = value[i]
        name = self._below(key) + "".join(f"[{i}]" for i in index)
        return Table(self.path, name, value, self._lines)

    def put(self, place: str, value: Any) -> None:
        """Set the value of a key, given by its path from this table: `tables[1].key`."""
        keys = [int(x[1:-1]) if x[0] == "[" else x for x in re.findall(r"[^.\[\]]+|\[\d+\]", place)]
        node: Any = self._data
        for i, key in enumerate(keys):
            fits = isinstance(node, list) and isinstance(key, int) and key < len(node)
            fits = fits or (isinstance(node, dict) and isinstance(key, str))
            require(fits, f"{self.path}, {place}", repr(key), "a key that leads somewhere")
            if i == len(keys) - 1:
                cast(Any, node)[key] = value
            else:
                if isinstance(node, dict):
                    node.setdefault(key, {})
                node = cast(Any, node)[key]

    def needed(self, key: str, expected: str) -> None:
        """Raise an error if a key is missing."""
        self._get(key, _REQUIRED, expected)

    def raw(self, key: str) -> Any:
        """Read the value of a key without checks or conversion."""
        self._ask(key)
        return self._data[key]

    def finish(self) -> None:
        """Raise an error if the table has keys that were not read."""
        for key, value in self._data.items():
            known = "one of " + ", ".join(self._asked)
            for near in get_close_matches(key, self._asked, 1):
                known += f"; the nearest is {near}"
            require(key in self._asked, self.where(key), f"an unknown key (= {value})", known)

    @contextmanager
    def naming(self, key: str = "") -> Iterator[None]:
        """Add the location in the file to errors that occur while an object is constructed from
        this table."""
        try:
            yield
        except ValueError as error:
            text = str(error)
            if text.startswith(str(self.path)):
                raise
            place, _, reason = text.partition(": got ")
            # names of fields may begin with the part that they belong to: `bars.width`
            place = place.removeprefix(f"{self.name.split('.')[-1]}.")
            named = not key and reason and re.fullmatch(r"[\w.\[\]]+", place)
            at = self.where(place) if named else self.where(key) if key else self.here
            raise ValueError(f"{at}: got {reason}" if named else f"{at}: {text}") from error

    def _below(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def _ask(self, key: str) -> None:
        if key not in self._asked:
            self._asked.append(key)

    def _get(self, key: str, default: Any, expected: str) -> Any:
        self._ask(key)
        if key not in self._data and default is _REQUIRED:
            # an unread key with a similar name is probably a misspelling of this one
            for near in get_close_matches(key, set(self._data) - set(self._asked), 1, 0.75):
                unknown = f"an unknown key (= {self._data[near]})"
                require(False, self.where(near), unknown, f"{key}: {expected}")
            require(False, self.where(key), "nothing", expected)
        return self._data.get(key, default)


def read_toml(path: str | Path) -> Table:
    """Read a TOML file as a table. Raises `ValueError` if the text is not TOML."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        return Table(path, "", tomllib.loads(text), lines_of(text))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: got bytes that are no text, expected UTF-8") from error
    except RecursionError as error:
        raise ValueError(f"{path}: got lists nested too deep to be read") from error
    except ValueError as error:  # invalid TOML, or integers with thousands of digits
        raise ValueError(f"{path}: got text that is not TOML ({error})") from error


def _measured(where: str, value: Any, unit: str) -> Any:
    """Replace texts that are quantities by numbers in the `unit`, also in nested lists."""
    if isinstance(value, list):
        return [_measured(where, x, unit) for x in value]
    if isinstance(value, str) and is_quantity(value):
        return quantity(where, value, unit)
    return value


def _array(value: Any) -> np.ndarray | None:
    """Convert a number, or nested lists of equal lengths, to an array; None for anything else,
    booleans included."""
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
