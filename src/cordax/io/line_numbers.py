"""Line numbers of the keys of a TOML text, for error messages.

The text has been parsed as TOML before, so it is known to be well formed."""

import re

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BLANK = re.compile(r"[ \t]*")
#: numbers, dates, truth values
_PLAIN = re.compile(r"[^,\]}\s#]+(?: [0-9:.]+)?")
_STRINGS = (
    re.compile(r'"""(?:\\.|(?!""").)*"{3,5}', re.DOTALL),
    re.compile(r"'''(?:(?!''').)*'{3,5}", re.DOTALL),
    re.compile(r'"(?:\\.|[^"\\])*"'),
    re.compile(r"'[^']*'"),
)


def lines_of(text: str) -> dict[str, int]:
    """Line numbers, counted from one, by path: `table.key`, `tables[1].key`, `key[2].inner`. Empty
    if the text is not TOML."""
    try:
        return _Scan(text.replace("\r\n", "\n")).found
    except (ValueError, IndexError):
        return {}


class _Scan:
    def __init__(self, text: str):
        self.text, self.at, self.found = text, 0, {}
        self.counts: dict[str, int] = {}
        table = ""
        self.skip(_SPACE)
        while self.at < len(text):
            if text[self.at] == "[":
                table = self.header()
            else:
                self.pair(table)
            self.skip(_SPACE)

    def skip(self, pattern: re.Pattern) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:  # not TOML
            raise ValueError
        self.at = match.end()
        return match[0]

    def note(self, path: str) -> None:
        self.found.setdefault(path, self.text.count("\n", 0, self.at) + 1)

    def header(self) -> str:
        many = self.text.startswith("[[", self.at)
        begin = self.at
        self.at += 1 + many
        path = ""
        keys = self.keys()
        for i, key in enumerate(keys):
            path = f"{path}.{key}" if path else key
            last = i == len(keys) - 1
            if many and last:
                self.counts[path] = self.counts.get(path, -1) + 1
            if path in self.counts and (many or not last):
                path = f"{path}[{self.counts[path]}]"
        end = self.at + 1 + many
        self.at = begin
        self.note(path)
        self.at = end
        return path

    def keys(self) -> list[str]:
        """Read a dotted key such as `a.b . "c"` and return its parts."""
        found = []
        while True:
            self.skip(_BLANK)
            if self.text[self.at] in "\"'":
                found.append(self.string()[1:-1])
            else:
                found.append(self.skip(_BARE))
            self.skip(_BLANK)
            if self.text[self.at] != ".":
                return found
            self.at += 1

    def pair(self, table: str) -> None:
        begin = self.at
        path = ".".join([table, *self.keys()] if table else self.keys())
        end, self.at = self.at, begin
        self.note(path)
        self.at = end + 1
        self.skip(_BLANK)
        self.value(path)

    def string(self) -> str:
        for pattern in _STRINGS:
            if pattern.match(self.text, self.at):
                return self.skip(pattern)
        raise ValueError

    def value(self, path: str) -> None:
        sign = self.text[self.at]
        if sign in "\"'":
            self.string()
        elif sign in "[{":
            self.at += 1
            self.skip(_SPACE)
            count = 0
            while self.text[self.at] not in "]}":
                if sign == "{":
                    self.pair(path)
                else:
                    self.note(f"{path}[{count}]")
                    self.value(f"{path}[{count}]")
                    count += 1
                self.skip(_SPACE)
                if self.text[self.at] == ",":
                    self.at += 1
                    self.skip(_SPACE)
            self.at += 1
        else:
            self.skip(_PLAIN)
