"""Internals of JAX and XLA are used in the package `cordax._jax` only."""

import ast
from pathlib import Path

import cordax

INTERNALS = ("jax._src", "jax.interpreters", "jax.extend", "jaxlib", "equinox.internal")


def uses(source: str) -> list[str]:
    """Internals that a module imports, or reaches as attributes (`eqx.internal`)."""
    found, aliases = [], {}
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [x.name for x in node.names]
            aliases |= {x.asname or x.name.split(".")[0]: x.name for x in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{x.name}" for x in node.names]
        found += [x for x in names if f"{x}.".startswith(tuple(f"{y}." for y in INTERNALS))]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{aliases.get(node.value.id)}.{node.attr}"
            found += [name] if name in INTERNALS else []
    return found


def test_each_kind_of_use_is_recognised():
    assert uses("import jax._src.core") == uses("from jax._src import core")
    assert uses("from jax import extend") == ["jax.extend"]
    assert uses("import equinox as eqx\neqx.internal.unvmap_any(x)") == ["equinox.internal"]
    assert uses("def f():\n    import jaxlib\n    from jax.interpreters import ad") == [
        "jaxlib",
        "jax.interpreters.ad",
    ]
    assert not uses(
        "import jax\nfrom jax.core import Tracer\njax.lax.sin(x)\nfrom .jaxlib import x"
    )


def test_only_the_package_for_internals_uses_them():
    folder = Path(cordax.__file__).parent
    places = {
        path.relative_to(folder).as_posix(): uses(path.read_text())
        for path in folder.rglob("*.py")
        if path.parent != folder / "_jax"
    }
    assert len(places) > 100
    assert {place: names for place, names in places.items() if names} == {}
