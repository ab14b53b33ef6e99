"""Module fields that are not physical quantities: parts, counts and settings.

A value of the wrong type is rejected when the module is created, with the name of the field."""

import types
from typing import Any, Union, get_args, get_origin

from .checks import require, require_instance, require_number, require_whole
from .precision import declared_field


class _Declared:
    """Converter that receives the name and annotation of its field by `declare`."""

    def __init__(self, optional: bool):
        self.name, self.optional = "value", optional

    def declare(self, name: str, annotation) -> None:
        self.name = name

    def __call__(self, x: Any) -> Any:
        # JAX transformations use plain instances of `object` as placeholders for values
        if type(x) is object or (x is None and self.optional):
            return x
        return self.convert(x)

    def convert(self, x):
        raise NotImplementedError


class _Part(_Declared):
    kinds: tuple[type, ...] = ()
    many = False

    def declare(self, name, annotation):
        self.name = name
        self.many = get_origin(annotation) is tuple
        union = get_origin(annotation) in (Union, types.UnionType)
        kinds = get_args(annotation) if union or self.many else (annotation,)
        kinds = [k for k in kinds if isinstance(k, type) and k is not type(None)]
        self.kinds = tuple(kinds)

    def convert(self, x):
        if not self.many:
            self.check(self.name, x)
            return x
        if isinstance(x, self.kinds):
            return (x,)
        require(isinstance(x, (tuple, list)), self.name, x, f"a tuple of {self._names}")
        for i, part in enumerate(x):
            if type(part) is not object:
                self.check(f"{self.name}[{i}]", part)
        return tuple(x)

    @property
    def _names(self) -> str:
        return " or ".join(kind.__name__ for kind in self.kinds)

    def check(self, name: str, x) -> None:
        protocols = [k for k in self.kinds if getattr(k, "_is_protocol", False)]
        if not protocols:
            require_instance(name, x, *self.kinds)
        for kind in protocols:
            wanted = {n for n in (*vars(kind), *vars(kind).get("__annotations__", ()))}
            has = lambda n: hasattr(type(x), n) or hasattr(x, n)
            missing = sorted(n for n in wanted if not n.startswith("_") and not has(n))
            known = f"a machine with {', '.join(missing)}"
            require(not missing and not isinstance(x, type), name, x, known)


class _Count(_Declared):
    def __init__(self, least: int, optional: bool):
        super().__init__(optional)
        self.least = least

    def convert(self, x):
        require_whole(self.name, x, self.least)
        return int(x)


class _Setting(_Declared):
    def convert(self, x):
        require_number(self.name, x)
        return float(x)


class _Names(_Declared):
    def convert(self, x):
        x = (x,) if isinstance(x, str) else x
        listed = isinstance(x, (tuple, list)) and all(isinstance(n, str) and n for n in x)
        require(listed, self.name, x, "a name or a tuple of names")
        return tuple(x)


class _Name(_Declared):
    def convert(self, x):
        require(isinstance(x, str) and x != "", self.name, x, "a name")
        return x


class _Flag(_Declared):
    def convert(self, x):
        require(isinstance(x, bool), self.name, x, "True or False")
        return x


def part_field(**kwargs) -> Any:
    """Module field for parts of the classes that its annotation names.

    The annotation is a class such as `Cables`, a union such as `Elastic | Rigid`, a protocol, or a
    tuple such as `tuple[Rod, ...]`. For a tuple, a list or a single part is accepted too. None is
    accepted if it is the default."""
    return declared_field(_Part(_may_be_none(kwargs)), **kwargs)


def count_field(least: int = 1, **kwargs) -> Any:
    """Static field for a whole number, at least `least`."""
    return declared_field(_Count(least, _may_be_none(kwargs)), static=True, **kwargs)


def setting_field(**kwargs) -> Any:
    """Static field for a number > 0 without gradients, such as a tolerance or a period."""
    return declared_field(_Setting(_may_be_none(kwargs)), static=True, **kwargs)


def names_field(**kwargs) -> Any:
    """Static field for a tuple of names; a single name is accepted too."""
    return declared_field(_Names(False), static=True, **kwargs)


def name_field(**kwargs) -> Any:
    """Static field for a name."""
    return declared_field(_Name(False), static=True, **kwargs)


def flag_field(**kwargs) -> Any:
    """Static field that is True or False."""
    return declared_field(_Flag(False), static=True, **kwargs)


def _may_be_none(kwargs) -> bool:
    return "default" in kwargs and kwargs["default"] is None
