"""Digest of everything that functions, classes and objects can reach.

Two functions are identical if their code, defaults, closures, the globals and attributes they read,
and everything reached through these, are identical. Library code is identified by its name and
version; code of the user is followed."""

import dataclasses
import enum
import functools
import hashlib
import sys
import types
import weakref
from collections.abc import Iterable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from . import library_code as library
from .library_code import code_facts

_PLAIN = frozenset(
    (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented))
)
_BY_REPR = (np.dtype, slice, range, types.GenericAlias, types.UnionType, np.ufunc)
_DESCRIPTORS = (types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType)
_DESCRIPTORS += (types.MethodDescriptorType, types.ClassMethodDescriptorType)
#: class attributes that do not influence computations
_IDLE = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __annotations__ __abstractmethods__ _abc_impl "
    "__match_args__ __orig_bases__ __parameters__ __firstlineno__ __static_attributes__ "
    "__qualname__ __annotate__ __annotate_func__ __annotations_cache__ __slotnames__ "
    "__dataclass_params__".split()
)
#: largest number of objects that are followed
MOST = 20_000
TRANSFORMED = "values of a JAX transformation"
_MISSING: Any = object()


class Reachable:
    """Traversal of everything that `parts` can reach.

    - `digest`: equal for equal contents; in all processes, unless `local`.
    - `own`: whether the traversal reached something that may change: code of the user, containers,
      objects, or patched classes of cordax.
    - `local`: whether the digest is valid only in this process.
    - `unknown`: reason why a second call may behave differently; None if there is none.
    - `classes`: classes of cordax that were reached.
    """

    def __init__(self, parts: Iterable[Any]):
        self._hash = hashlib.sha256()
        self.own = self.local = False
        self.unknown: str | None = None
        self.classes: list[type] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []
        self._names: set[str] = set()
        self._modules: dict[int, types.ModuleType] = {}
        self._module_names: set[tuple[int, str]] = set()
        self._methods: list[tuple[str, Any]] = []
        self._dynamic = self._lenient = False
        try:
            for part in parts:
                self._visit(part)
            self._visit_named()
        except RecursionError:
            self._give_up("objects that are nested too deeply")
        self.digest = self._hash.digest()

    def _add(self, text: str) -> None:
        self._hash.update(f"{text};".encode("utf-8", "surrogatepass"))

    def _give_up(self, reason: str) -> None:
        self.own = True
        if not self._lenient and self.unknown is None:
            self.unknown = reason

    def _visit(self, x: Any) -> None:
        kind = type(x)
        if kind in _PLAIN:
            self._add(f"{kind.__name__} {x!r}")
        elif kind is tuple:
            self._add(f"tuple{len(x)}")
            for y in x:
                self._visit(y)
        elif isinstance(x, (jax.Array, np.ndarray, np.generic)):
            self._visit_array(x)
        elif id(x) in self._numbers:
            self._add(f"again {self._numbers[id(x)]}")
        elif len(self._numbers) > MOST:
            self._give_up(f"more than {MOST} objects")
        else:
            self._numbers[id(x)] = len(self._numbers)
            self._alive.append(x)  # so that no other object gets its address
            self._visit_compound(x, kind)

    def _visit_compound(self, x: Any, kind: type) -> None:
        if isinstance(x, types.FunctionType):
            self._visit_function(x)
        elif isinstance(x, type):
            self._visit_class(x)
        elif isinstance(x, types.ModuleType):
            self._add(f"module {x.__name__}".replace("__mp_main__", "__main__"))
            if not library.is_library_module(x):
                self.own = True
                self._modules[id(x)] = x
        elif kind in (list, dict, set, frozenset, types.MappingProxyType):
            self._visit_container(x, kind)
        elif isinstance(x, enum.Enum):
            self._visit((kind, x.name, x.value))
        elif isinstance(x, types.MethodType):
            self._visit((x.__func__, x.__self__))
        elif isinstance(x, functools.partial):
            self._visit((kind, x.func, x.args, x.keywords))
        elif isinstance(x, property):
            self._visit(("property", x.fget, x.fset))
        elif isinstance(x, (staticmethod, classmethod)):
            self._visit((kind.__name__, x.__func__))
        elif isinstance(x, (types.BuiltinFunctionType, types.MethodWrapperType)):
            self._add(f"{kind.__name__} {x.__qualname__}")
            if not isinstance(x.__self__, (types.ModuleType, type(None))):
                self._visit(x.__self__)
        elif isinstance(x, _BY_REPR):
            self._add(f"{kind.__name__} {x!r}")
        elif isinstance(x, _DESCRIPTORS):
            self._add(f"{kind.__name__} {x.__qualname__}")
        elif isinstance(x, types.CodeType):
            self._hash.update(code_facts(x).digest)
        elif isinstance(x, dataclasses.Field):
            self._visit((x.name, x.default, x.default_factory, tuple(x.metadata.items())))
        elif isinstance(x, functools.cached_property):
            self._visit(x.func)
        elif isinstance(x, weakref.ref):
            self._visit(x())
        elif isinstance(x, types.CellType):
            self._visit_cell(x)
        else:
            self._visit_object(x, kind)

    def _visit_array(self, x) -> None:
        if isinstance(x, Tracer):
            self._give_up(TRANSFORMED)
            return
        self._add(f"{type(x).__name__} {x.dtype}{x.shape}{getattr(x, 'weak_type', False)}")
        if isinstance(x, jax.Array):
            self._hash.update(_array_digest(x))
        elif x.dtype.hasobject:
            self._visit(x.tolist())
        else:
            self.own = True
            self._hash.update(x.tobytes())

    def _visit_container(self, x: Any, kind: type) -> None:
        self.own = True
        self._add(f"{kind.__name__}{len(x)}")
        if kind in (set, frozenset):  # their order differs between processes
            plain = all(type(y) in _PLAIN for y in x)
            text = lambda y: f"{type(y).__name__} {y!r}"
            if plain:
                self._add(repr(sorted(map(text, x))))
            else:
                parts = [Reachable((y,)) for y in x]
                for part in sorted(parts, key=lambda part: part.digest):
                    self._absorb(part)
        elif kind in (dict, types.MappingProxyType):
            for name, value in list(x.items()):
                self._visit(name)
                self._visit(value)
        else:
            for y in list(x):
                self._visit(y)

    def _absorb(self, part: "Reachable") -> None:
        self._hash.update(part.digest)
        self.own |= part.own
        self.local |= part.local
        self.classes += part.classes
        if part.unknown is not None:
            self._give_up(part.unknown)

    def _visit_cell(self, cell: types.CellType) -> None:
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            self._add("empty")
        else:
            self._visit(value)

    def _visit_function(self, f: types.FunctionType) -> None:
        self._add(f"function {_module_of(f)}.{f.__qualname__}")
        facts, origin = code_facts(f.__code__), library.kind_of_file(f.__code__.co_filename)
        self._hash.update(facts.digest)
        for cell in f.__closure__ or ():
            self._visit_cell(cell)
        if origin == "installed":
            self._hash.update(library.file_digest(f.__code__.co_filename))
        if origin != "user":
            self.own |= origin == "installed"
            if f.__closure__ is not None:
                self._visit((f.__defaults__, f.__kwdefaults__))
            if "__wrapped__" in f.__dict__:
                self._visit(f.__dict__["__wrapped__"])
            return
        self.own = True
        self._visit((f.__defaults__, f.__kwdefaults__, f.__dict__))
        self._names |= facts.names
        if outside := facts.names & library.OUTSIDE_ATTRIBUTES:
            self._give_up(f"{f.__qualname__} uses {min(outside)}")
        for chain in facts.chains:
            self._visit_global(f, chain)
        package = str(f.__globals__.get("__package__") or "")
        for name in facts.imports:
            self._add(f"import {name}")
            for module in map(sys.modules.get, (name, f"{package}.{name}")):
                if isinstance(module, types.ModuleType):
                    self._check_module(f, module)
                    self._visit(module)

    def _visit_global(self, f: types.FunctionType, chain: tuple[str, ...]) -> None:
        """Visit a global name, and the attributes read from it as long as it is a module."""
        name, *attributes = chain
        self._add(f"global {'.'.join(chain)}")
        value = f.__globals__.get(name, _MISSING)
        if value is _MISSING:
            if name in library.OUTSIDE_BUILTINS:
                self._give_up(f"{f.__qualname__} uses {name}")
            self._dynamic |= name in ("getattr", "vars")
            value = vars(sys.modules["builtins"]).get(name, _MISSING)
        while isinstance(value, types.ModuleType) and attributes:
            self._check_module(f, value)
            name = attributes.pop(0)
            value = vars(value).get(name, _MISSING)
        if isinstance(value, types.ModuleType):
            self._check_module(f, value)
        self._add("missing") if value is _MISSING else self._visit(value)

    def _check_module(self, f: types.FunctionType, module: types.ModuleType) -> None:
        if module.__name__ in library.OUTSIDE_MODULES:
            self._give_up(f"{f.__qualname__} uses {module.__name__}")

    def _visit_class(self, kind: type) -> None:
        self._add(f"class {_module_of(kind)}.{kind.__qualname__}")
        known = library_class(kind)
        self._hash.update(known.digest)
        if known.origin == "cordax":
            self.classes += known.lineage
            if all(map(is_unchanged, known.lineage)):
                return
        elif known.origin != "user":
            self.own |= known.origin == "installed"
            return
        self.own = True
        if type(kind) not in (type, *_METACLASSES):
            self._visit(type(kind))
        for base in kind.__bases__:
            self._visit(base)
        inherited = set().union(*(vars(base) for base in kind.__mro__[1:] if base is not object))
        for name, value in sorted(vars(kind).items(), key=lambda pair: pair[0]):
            if name in _IDLE:
                continue
            called = name in inherited or (name.startswith("__") and name.endswith("__"))
            if called or not isinstance(library.unwrapped(value), types.FunctionType):
                self._add(name)
                self._visit(value)
            else:
                self._methods.append((name, value))

    def _visit_object(self, x: Any, kind: type) -> None:
        parts = getattr(kind, "identity_parts", None)
        if parts is not None:
            self._add(kind.__qualname__)
            for part in parts(x):
                self._visit(part)
            return
        if isinstance(x, jax.tree_util.PyTreeDef):
            for part in structure_parts(x):
                self._visit(part)
            return
        self._visit(kind)
        if isinstance(x, eqx.Module):
            for field in dataclasses.fields(x):  # pyright: ignore[reportArgumentType]
                self._add(field.name)
                self._visit(getattr(x, field.name, None))
            return
        wrapped = getattr(x, "__wrapped__", None)  # such as a function compiled by `jax.jit`
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            self._visit(tuple(x))
        elif library_class(kind).origin == "package" and not getattr(x, "__dict__", True):
            pass  # a constant without content
        elif library_class(kind).origin == "user" or _has_known_attributes(kind):
            self.own = True
            self._visit_attributes(x, kind)
        elif wrapped is not None:
            self._visit(wrapped)
        else:
            self.own = True
            self._visit_state(x)

    def _visit_attributes(self, x: Any, kind: type) -> None:
        """Visit an object with attributes, or a container whose class the user defined."""
        base = next((b for b in _CONTENTS if isinstance(x, b)), None)
        slots = [name for k in kind.__mro__ for name in _slots(k)]
        if base is not None:
            self._visit(base(x))  # pyright: ignore[reportCallIssue]
        if hasattr(x, "__dict__"):
            self._visit(vars(x))
        for name in slots:
            self._add(name)
            self._visit(getattr(x, name, None))
        if base is None and not hasattr(x, "__dict__") and not slots:
            self._visit_state(x)

    def _visit_state(self, x: Any) -> None:
        """Visit any other object by the state that `pickle` would write."""
        try:
            parts = x.__reduce_ex__(4)
        except (TypeError, NotImplementedError, AttributeError, ValueError, RuntimeError):
            parts = None
        if isinstance(parts, tuple):
            function, *more = parts
            self._add(getattr(function, "__qualname__", repr(function)))
            self._visit([list(y) if hasattr(y, "__next__") else y for y in more])
        elif isinstance(parts, str):
            self._add(parts)
        elif library_class(type(x)).origin != "user" and type(x).__module__ in _CONSTANT_MODULES:
            self.local = True
            self._add(f"at {id(x)}")
        else:
            self._give_up(f"a {type(x).__qualname__}, whose content cannot be read")

    def _visit_named(self) -> None:
        """Visit the methods and module attributes that the code reached so far names.

        Then visit the remaining methods. These may read files or the environment, because no code
        that was reached names them."""
        while True:
            named = [pair for pair in self._methods if pair[0] in self._names]
            self._methods = [pair for pair in self._methods if pair[0] not in self._names]
            for name, value in named:
                self._add(name)
                self._visit(value)
            if not self._visit_module_names() and not named:
                break
        self._lenient = True
        while self._methods:
            pairs, self._methods = self._methods, []
            for name, value in pairs:
                self._add(name)
                self._visit(value)
            self._visit_module_names()

    def _visit_module_names(self) -> bool:
        before = len(self._module_names)
        for module in list(self._modules.values()):
            names = vars(module).keys() if self._dynamic else self._names & vars(module).keys()
            for name in sorted(names):
                if (id(module), name) not in self._module_names and not name.startswith("__"):
                    self._module_names.add((id(module), name))
                    self._add(f"{module.__name__}.{name}")
                    self._visit(vars(module)[name])
        return len(self._module_names) > before


_CONTENTS = (list, dict, set, frozenset, tuple, bool, int, float, complex, str, bytes)
_METACLASSES = (type(eqx.Module), type(enum.Enum))
#: modules whose objects are opaque and constant
_CONSTANT_MODULES = ("jaxlib._jax", "jaxlib.xla_extension", "builtins", "_thread", "_abc")


def _module_of(x: Any) -> str:
    """Return the module of a function or class. Spawned processes have another name for the module
    that is run as a program."""
    return "__main__" if x.__module__ == "__mp_main__" else str(x.__module__)


def _has_known_attributes(kind: type) -> bool:
    package = kind.__module__.partition(".")[0]
    return package in ("cordax", "jax", "equinox", "diffrax", "optax", "types", "argparse")


def _slots(kind: type) -> tuple[str, ...]:
    slots = vars(kind).get("__slots__", ())
    slots = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in slots if name not in ("__dict__", "__weakref__"))


def structure_parts(structure) -> list:
    """Return the classes and static values of a PyTreeDef, in order."""
    data, children = structure.node_data(), structure.children()
    if data is None:
        parts: list = ["leaf"]
    else:
        kind, static = data
        if type(static).__module__.startswith("equinox"):  # before 0.13.3; third: documentation
            static = tuple(getattr(static, name) for name in _slots(type(static)))[:2]
        parts = [len(children), kind, tuple(static) if type(static) is list else static]
    for child in children:
        parts += structure_parts(child)
    return parts


class LibraryClass(NamedTuple):
    """State of a class when it was first reached.

    - `origin`: value of `library_code.kind_of_class`.

    For classes of cordax also:

    - `digest`: digest of the methods and constants of the class and its bases.
    - `lineage`: the class and its bases.
    - `attributes`: attributes of the class, by name.
    - `contents`: bases and attribute values, to detect changes."""

    origin: str
    digest: bytes = b""
    lineage: tuple[type, ...] = ()
    attributes: dict[str, Any] = {}  # noqa: RUF012
    contents: tuple = ()


_classes: dict[type, LibraryClass] = {}


def library_class(kind: type) -> LibraryClass:
    known = _classes.get(kind)
    if known is None:
        known = _classes[kind] = _first_look(kind)
    return known


def _first_look(kind: type) -> LibraryClass:
    origin = library.kind_of_class(kind)
    if origin != "cordax":
        return LibraryClass(origin)
    bases = [base for base in kind.__mro__[1:] if library_class(base).origin != "package"]
    if any(library_class(base).origin == "user" for base in bases):
        return LibraryClass("user")
    lineage, digest = (kind, *bases), hashlib.sha256()
    for base in lineage:
        digest.update(_class_digest(base))
    return LibraryClass(origin, digest.digest(), lineage, dict(vars(kind)), _contents(kind))


def is_unchanged(kind: type) -> bool:
    """Return whether a class of cordax has not been patched since it was first reached."""
    known = library_class(kind)
    try:
        if _contents(kind) == known.contents:  # functions are compared by identity
            return True
    except ValueError:  # arrays, which have no single truth value
        return False
    relevant = lambda attributes: {k: id(x) for k, x in attributes.items() if k not in _IDLE}
    same = relevant(vars(kind)) == relevant(known.attributes)
    if same:
        _classes[kind] = known._replace(attributes=dict(vars(kind)), contents=_contents(kind))
    return same


def _contents(kind: type) -> tuple:
    return (kind.__bases__, *vars(kind).values())


def _class_digest(kind: type) -> bytes:
    digest = hashlib.sha256()
    for name, value in sorted(vars(kind).items(), key=lambda pair: pair[0]):
        if name in _IDLE:
            continue
        inside = library.unwrapped(value)
        digest.update(f"{name} {type(value).__qualname__};".encode())
        if isinstance(inside, types.FunctionType):
            digest.update(f"{inside.__module__}.{inside.__qualname__};".encode())
            digest.update(code_facts(inside.__code__).digest)
        elif type(inside) in _PLAIN:
            digest.update(repr(inside).encode())
    return digest.digest()


_arrays: dict[int, tuple[Any, bytes]] = {}


def _array_digest(x: jax.Array) -> bytes:
    """Return a digest of the values of a JAX array, computed once because they never change."""
    entry = _arrays.get(id(x))
    if entry is not None and entry[0]() is x:
        return entry[1]
    if x.is_deleted() or not x.is_fully_addressable:
        return f"at {id(x)}".encode()
    values = jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.extended) else x
    digest = hashlib.sha256(np.asarray(values).tobytes()).digest()
    number = id(x)
    _arrays[number] = weakref.ref(x, lambda _, known=_arrays: known.pop(number, None)), digest
    return digest
