"""Report of everything that an import ignores or changes."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from ..._base.checks import require
from ...mechanics import State


class Entry(NamedTuple):
    """A line of the report: the `element` of the model, the number of such elements (`count`) and
    the `effect` of the import on them."""

    element: str
    count: int
    effect: str

    def __str__(self):
        return f"{self.element} ({self.count}): {self.effect}"


class Keyframe(NamedTuple):
    """A named state of the model: coordinates `q`, velocities `v` and inputs `u`."""

    name: str
    q: tuple[float, ...]
    v: tuple[float, ...]
    u: tuple[float, ...]


class ImportReport(NamedTuple):
    """Everything that the reader of a model ignored or changed.

    - `source`: the file;
    - `entries`: the lines of the report, empty if everything was read;
    - `keyframes`: named states of the model."""

    source: str
    entries: tuple[Entry, ...] = ()
    keyframes: tuple[Keyframe, ...] = ()

    def keyframe(self, name: str) -> Keyframe:
        """Return a keyframe by name."""
        known = [key.name for key in self.keyframes]
        expected = "one of " + ", ".join(known) if known else "no keyframe: the model has none"
        require(name in known, "keyframe", repr(name), expected)
        return self.keyframes[known.index(name)]

    def state(self, name: str) -> State:
        """State of a keyframe, for use as an initial state: `experiment.replace(state0=...)`."""
        key = self.keyframe(name)
        return State(jnp.asarray(np.array(key.q)), jnp.asarray(np.array(key.v)))

    def __str__(self):
        lines = [f"{self.source}: imported with changes" if self.entries else f"{self.source}:"]
        lines += [f"  {entry}" for entry in self.entries] or ["  everything was imported"]
        if self.keyframes:
            lines.append("  keyframes: " + ", ".join(key.name for key in self.keyframes))
        return "\n".join(lines)


class Report:
    """Collects entries while a model is read."""

    def __init__(self):
        self.counts: dict[tuple[str, str], int] = {}

    def add(self, element: str, count: int, effect: str) -> None:
        """Add `count` elements; equal elements with the same effect form one entry."""
        if count:
            key = element, effect
            self.counts[key] = self.counts.get(key, 0) + int(count)

    def entries(self) -> tuple[Entry, ...]:
        return tuple(Entry(element, n, effect) for (element, effect), n in self.counts.items())


def add_ignored(m, report: Report, without_contact: bool) -> None:
    """Report the elements that no other part of the reader handles. `without_contact`: whether
    contacts that the model declares are ignored."""
    colliding = ((m.geom_contype != 0) | (m.geom_conaffinity != 0)).sum() * without_contact
    wrapped = {int(i) for i, kind in zip(m.wrap_objid, m.wrap_type, strict=True) if kind in (4, 5)}
    fluid = int(m.opt.density > 0 or m.opt.viscosity > 0)
    plastic = sum(
        int(np.count_nonzero(getattr(m, name, ())))
        for name in ("jnt_springyield", "tendon_springyield")
    )
    for element, count, effect in (
        ("geom", colliding, "can collide: contacts are ignored"),
        ("contact pair", m.npair * without_contact, "contacts are ignored"),
        ("geom", m.ngeom - len(wrapped), "is not drawn; its mass is included"),
        ("option density, viscosity", fluid, "fluid forces are ignored"),
        ("springyield", plastic, "springs do not yield"),
        ("flex", m.nflex, "deformable bodies are ignored"),
        ("skin", m.nskin, "is not drawn"),
        ("plugin", m.nplugin, "is ignored"),
        ("sensor", m.nsensor, "is not evaluated"),
        ("camera", m.ncam, "is ignored"),
        ("light", m.nlight, "is ignored"),
        ("material", m.nmat, "is not drawn"),
        ("custom numeric, text, tuple", m.nnumeric + m.ntext + m.ntuple, "is ignored"),
    ):
        report.add(element, int(count), effect)
