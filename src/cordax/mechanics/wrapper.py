"""A machine that stands in for another one."""

import types
from dataclasses import replace

import equinox as eqx

from .system import System

#: what of a System follows from what else of it: methods that a machine may have overridden for
#: speed, and that no longer hold once a wrapper changes what they were derived from
_FOLLOWS = {
    "momentum": ("mass_matrix",),
    "kinetic_energy": ("mass_matrix", "momentum"),
    "energies": ("kinetic_energy", "potential_energy"),
    "mass_solve": ("mass_matrix",),
    "rate": ("retract", "flat"),
    "normalise": ("retract", "flat"),
    "difference": ("retract", "flat"),
    "total_force": ("force", "held", "held_force"),
    "active_force": ("total_force", "without_forces"),
    "acceleration": ("mass_matrix", "total_force"),
    "n_constraints": ("constraint",),
    "one_sided": ("constraint",),
    "multiplier_forces": ("constraint",),
    "constraint_terms": ("constraint", "rate"),
    "saddle": ("mass_matrix", "mass_solve", "mass_is_regular", "constraint_terms"),
    "residual": ("mass_matrix", "momentum", "total_force", "constraint", "retract"),
    "equations": ("mass_matrix", "total_force", "constraint_terms"),
    "constrained_acceleration": ("total_force", "constraint_terms", "saddle"),
    "linearise": ("mass_matrix", "momentum", "total_force", "constraint", "rate"),
    "separable": ("mass_matrix", "force"),
    "n_q": ("coordinate_names",),
    "velocity_names": ("coordinate_names",),
    "n_v": ("velocity_names",),
    "n_u": ("input_names",),
    "fastest_frequency": ("mass_matrix", "force"),
}


def _forward_everything(namespace) -> None:
    for name, member in vars(System).items():
        if name.startswith("_") or name == "prepare":
            continue
        plain = callable(getattr(System, name)) and not isinstance(member, property)
        namespace[name] = _method(name) if plain else _property(name)


def _property(name):
    return property(lambda self: getattr(self.inner, name), doc=f"`{name}` of `inner`.")


def _method(name):
    def forward(self, *args, **kwargs):
        return getattr(self.inner, name)(*args, **kwargs)

    forward.__name__ = forward.__qualname__ = name
    forward.__doc__ = f"`{name}` of `inner`."
    return forward


_Forwarding = types.new_class("_Forwarding", (System,), exec_body=_forward_everything)


class Delegate(_Forwarding):
    """A machine that behaves in everything like `inner`: equations, structure, names, defaults and
    fields. Base of reduced or changed models, which override what differs:

        class Heavier(Delegate):
            def force(self, t, q, v, u):
                return 2.0 * self.inner.force(t, q, v, u)

    What follows from an overridden part (here accelerations and linearisation, which `inner` may
    have by closed formulas of its own) is then derived from it anew; say it too where there is a
    faster way."""

    inner: System

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        changed = {name for c in cls.__mro__[: cls.__mro__.index(Delegate)] for name in vars(c)}
        for name, sources in _FOLLOWS.items():
            if name not in changed and changed.intersection(sources):
                setattr(cls, name, vars(System)[name])
                changed.add(name)

    def __getattr__(self, name):
        # only what this machine does not have itself: fields and methods of a particular machine
        if name.startswith("__") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    def presentation(self):
        """That of `inner`; an error names outputs that it reads and the wrapper removed."""
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

    def prepare(self):
        return eqx.tree_at(lambda d: d.inner, self, self.inner.prepare())
