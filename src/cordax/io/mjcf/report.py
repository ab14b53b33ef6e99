"""What an import ignores or changes."""

from typing import NamedTuple


class Entry(NamedTuple):
    """An `element` of the model, how many (`count`) and the `effect` of the import on them."""

    element: str
    count: int
    effect: str

    def __str__(self):
        return f"{self.element} ({self.count}): {self.effect}"


class ImportReport(NamedTuple):
    """What the reader of a model ignored or changed: `entries`, empty where it reads everything;
    `source`: the file; `keyframes`: names, with coordinates and velocities as tuples."""

    source: str
    entries: tuple[Entry, ...] = ()

    def __str__(self):
        if not self.entries:
            return f"{self.source}: everything was imported"
        return "\n".join(
            [f"{self.source}: imported with changes", *(f"  {e}" for e in self.entries)]
        )


class Report:
    """Collects entries while a model is read."""

    def __init__(self):
        self.counts: dict[tuple[str, str], int] = {}

    def add(self, element: str, count: int, effect: str) -> None:
        if count:
            key = element, effect
            self.counts[key] = self.counts.get(key, 0) + int(count)

    def entries(self) -> tuple[Entry, ...]:
        return tuple(Entry(element, n, effect) for (element, effect), n in self.counts.items())
