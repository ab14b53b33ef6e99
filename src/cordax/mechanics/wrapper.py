"""Machines that wrap another machine."""

import types
from dataclasses import replace

import equinox as eqx

from .system import System

#: members of `System` that a wrapper takes from `inner`; all others are derived from these
FORWARDED = (
    *("default_integrator", "default_dt", "default_formulation"),
    *("coordinate_names", "velocity_names", "input_names", "mass_is_regular", "flat"),
    *("mass_matrix", "force", "held", "held_force", "potential_energy", "outputs"),
    *("constraint", "one_sided", "multiplier_forces", "retract", "difference"),
    *("contacts", "without_forces", "valid", "default_state"),
)


def _forward(name: str) -> property:
    return property(lambda self: getattr(self.inner, name), doc=f"`{name}` of `inner`.")


_forwarded = {name: _forward(name) for name in FORWARDED}
_Forwarding = types.new_class("_Forwarding", (System,), {}, lambda body: body.update(_forwarded))


class Delegate(_Forwarding):
    """A machine with the equations, names, defaults and fields of `inner`. Base class of reduced or
    modified models, which override the differences:

        class Heavier(Delegate):
            def force(self, t, q, v, u):
                return 2.0 * self.inner.force(t, q, v, u)

    `structure` is dense: it follows from the equations of the wrapper, whether they are changed or
    not. A wrapper that does not change them can return `self.inner.structure()`."""

    inner: System

    def __getattr__(self, name):
        # fields and methods of a particular machine, which System does not have
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def energies(self, t, q, v):
        """Kinetic and potential energy [J]; moving supports of `inner` add kinetic energy."""
        supports = self.inner.energies(t, q, v)[0] - self.inner.kinetic_energy(q, v)
        return self.kinetic_energy(q, v) + supports, self.potential_energy(t, q)

    def presentation(self):
        """Presentation of `inner`, with an error if it reads an output that the wrapper removed."""
        shown = self.inner.presentation()
        functions = {name: getattr(shown, name) for name in ("summary", "warnings")}
        return replace(shown, **{name: self._reading(name, f) for name, f in functions.items()})

    def _reading(self, name: str, function):
        def read(outputs):
            try:
                return function(outputs)
            except KeyError as missing:
                inner, own = type(self.inner).__name__, type(self).__name__
                raise ValueError(
                    f"{own}.outputs: got no {missing}, expected what `{name}` of {inner} reads: "
                    "keep it or override `presentation`"
                ) from missing

        return read

    def without_contacts(self):
        return self._around(self.inner.without_contacts())

    def prepare(self):
        return self._around(self.inner.prepare())

    def _around(self, inner: System):
        return eqx.tree_at(lambda d: d.inner, self, inner)
