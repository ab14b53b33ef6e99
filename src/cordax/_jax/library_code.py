"""Find out which functions and classes belong to libraries, and which names code looks up.

Libraries are cordax, the packages it is built on, the standard library and other installed
packages. Their source does not change while a process runs, so `identity` does not follow it."""

import builtins
import dis
import functools
import hashlib
import site
import sys
import sysconfig
import types
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

#: packages whose versions `versions` lists
PACKAGES = ("jax", "jaxlib", "equinox", "diffrax", "optimistix", "lineax", "optax", "qpax", "numpy")
PACKAGES += ("scipy", "jaxtyping", "ml_dtypes")
_CORDAX = str(Path(__file__).parent.parent)
_STDLIB = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), "<frozen ")
#: methods that `dataclass`, `NamedTuple` and `Enum` generate; no source file contains them
_GENERATED = frozenset(
    "__init__ __new__ __eq__ __ne__ __repr__ __hash__ __lt__ __le__ __gt__ __ge__ __setattr__ "
    "__delattr__ __replace__ __getstate__ __setstate__ __reduce__ __format__ __getnewargs__ _make "
    "_replace _asdict".split()
)
#: modules whose functions return values that their arguments do not determine
OUTSIDE_MODULES = frozenset(
    "os io sys random secrets time datetime uuid socket subprocess pathlib shutil tempfile urllib "
    "http sqlite3 shelve gc inspect ctypes mmap glob platform getpass select importlib".split()
) | {"numpy.random"}
OUTSIDE_BUILTINS = frozenset("open eval exec globals locals input __import__ compile".split())
#: attributes that read files or the environment
OUTSIDE_ATTRIBUTES = frozenset(
    "read_text read_bytes loadtxt genfromtxt fromfile memmap read_csv read_excel read_parquet "
    "read_json read_hdf read_pickle read_table environ".split()
)


@functools.cache
def code() -> str:
    """Return a digest of the source of cordax."""
    folder, digest = Path(_CORDAX), hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def versions() -> str:
    """Return the versions of cordax and of the packages that affect compiled programs."""
    return " ".join(f"{name}={_version(name)}" for name in ("cordax", *PACKAGES))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@functools.cache
def _installed() -> tuple[str, ...]:
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    return tuple(path for path in (*paths, site.getusersitepackages()) if path)


@functools.cache
def kind_of_file(file: str) -> str:
    """Return the origin of source code: "cordax", "package" (one of `PACKAGES`, or the standard
    library), "installed" (another installed package) or "user"."""
    if file.startswith((_CORDAX + "/", _CORDAX + "\\")):
        return "cordax"
    for folder in _installed():
        if file.startswith(folder):
            name = file[len(folder) + 1 :].replace("\\", "/").partition("/")[0]
            return "package" if name.removesuffix(".py") in PACKAGES else "installed"
    return "package" if file.startswith(_STDLIB) else "user"


@functools.cache
def file_digest(file: str) -> bytes:
    """Return a digest of a source file of an installed package that `versions` does not list."""
    try:
        return hashlib.sha256(Path(file).read_bytes()).digest()
    except OSError:
        return file.encode()


def is_library_module(module: types.ModuleType) -> bool:
    file = getattr(module, "__file__", None) or getattr(module.__spec__, "origin", None)
    if file in (None, "built-in", "frozen"):
        return module.__name__.partition(".")[0] in sys.stdlib_module_names | set(PACKAGES)
    return kind_of_file(str(file)) != "user"


#: Py_TPFLAGS_HEAPTYPE: the class is not a static type of Python or of an extension module
_MADE_AT_RUN_TIME = 1 << 9


def kind_of_class(kind: type) -> str:
    """Return the origin of a class, with the values of `kind_of_file`.

    A class belongs to a library only if all its methods are library code and either its module
    holds it under its name or a function of the module created it. The name alone is not enough,
    because code passed to `exec` may give its classes any name."""
    if not kind.__flags__ & _MADE_AT_RUN_TIME:
        return "package"
    module = sys.modules.get(kind.__module__)
    if module is None or module is builtins or not is_library_module(module):
        return "user"
    file = getattr(module, "__file__", None)
    origin = "package" if file is None else kind_of_file(str(file))
    found: Any = module
    for name in kind.__qualname__.split("."):
        if name == "<locals>":
            break
        found = getattr(found, name, None)
    else:
        if found is not kind and (origin == "cordax" or not _is_compiled(kind)):
            return "user"
    methods = ((name, unwrapped(x)) for name, x in vars(kind).items())
    own = [x for name, x in methods if isinstance(x, types.FunctionType) and name not in _GENERATED]
    return origin if all(kind_of_file(x.__code__.co_filename) != "user" for x in own) else "user"


def _is_compiled(kind: type) -> bool:
    """Return whether no method of a class is Python code, as for private classes of extension
    modules."""
    return not any(isinstance(unwrapped(x), types.FunctionType) for x in vars(kind).values())


def unwrapped(x):
    """Return the function inside a method, property or wrapper; other objects are unchanged."""
    for _ in range(8):
        if isinstance(x, property):
            x = x.fget
        elif isinstance(x, (staticmethod, classmethod)):
            x = x.__func__
        elif isinstance(x, (types.FunctionType, type)):
            break
        else:
            inner = getattr(x, "__wrapped__", None) or getattr(x, "method", None)
            if not callable(inner):
                break
            x = inner
    return x


_GLOBAL = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM", "DELETE_ATTR")


class CodeFacts(NamedTuple):
    """Facts about a code object and all code objects inside it.

    - `chains`: each global name with the attributes read directly from it, such as
      `("np", "linalg", "norm")`.
    - `imports`: names of modules that the code imports.
    - `names`: all attribute names, and string constants, which `getattr` may look up.
    - `digest`: digest of the code without file name and line numbers; equal in all processes of one
      version of Python.
    """

    chains: tuple[tuple[str, ...], ...]
    imports: tuple[str, ...]
    names: frozenset[str]
    digest: bytes


#: by address, because equal code on different lines compares unequal; entries keep code alive
_facts: dict[int, tuple[types.CodeType, CodeFacts]] = {}
_MOST_FACTS = 20_000


def code_facts(code: types.CodeType) -> CodeFacts:
    """Return the facts about `code`, computed once per code object."""
    entry = _facts.get(id(code))
    if entry is None:
        if len(_facts) > _MOST_FACTS:
            _facts.clear()
        entry = _facts[id(code)] = code, _compute_facts(code)
    return entry[1]


def _compute_facts(code: types.CodeType) -> CodeFacts:
    chains, imports, names, chain = set(), set(), set(), []
    for step in dis.get_instructions(code):
        if step.opname in _ATTRIBUTE:
            names.add(step.argval)
            if chain:
                chain.append(step.argval)
                continue
        if chain and step.opname != "CACHE":
            chains.add(tuple(chain))
            chain = []
        if step.opname in _GLOBAL:
            chain = [step.argval]
        elif step.opname == "IMPORT_NAME":
            imports.add(step.argval)
    names |= {x for x in code.co_consts if isinstance(x, str) and x.isidentifier()}
    for inner in (code_facts(x) for x in code.co_consts if isinstance(x, types.CodeType)):
        chains |= {*inner.chains}
        imports |= {*inner.imports}
        names |= inner.names
    return CodeFacts(tuple(sorted(chains)), tuple(sorted(imports)), frozenset(names), _digest(code))


def _digest(code: types.CodeType) -> bytes:
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    digest = hashlib.sha256(repr((counts, names)).encode("utf-8", "surrogatepass"))
    digest.update(code.co_code)
    digest.update(code.co_exceptiontable)
    digest.update(b"".join(map(_constant, code.co_consts)))
    return digest.digest()


def _constant(x) -> bytes:
    if isinstance(x, types.CodeType):
        return code_facts(x).digest
    if isinstance(x, tuple):
        return b"(" + b"".join(map(_constant, x)) + b")"
    if isinstance(x, frozenset):  # its order differs between processes
        return b"{" + b"".join(sorted(map(_constant, x))) + b"}"
    return f"{type(x).__name__} {x!r};".encode("utf-8", "surrogatepass")
