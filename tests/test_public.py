"""Names that users reach after `import cordax` alone."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from cordax._base.lazy_imports import of_extra


def test_packages_are_there_when_asked_for_and_not_before():
    program = (
        "import sys, cordax\n"
        "slow = 'matplotlib diffrax optimistix optax scipy cordax.systems'.split()\n"
        "assert not set(slow) & set(sys.modules)\n"
        "cordax.statics.workspace.box_grid, cordax.plot.animate, cordax.systems.Neck\n"
        "cordax.io.read_csv\n"
        "assert {'plot', 'control', 'reduction', 'sweeps'} <= set(dir(cordax))\n"
        "try:\n    cordax.nothing\n"
        "except AttributeError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "no attribute 'nothing'" in said.stdout, said.stderr


@pytest.mark.parametrize("package", ["cordax", "cordax.io", "cordax.systems"])
def test_what_is_imported_later_is_what_readers_are_told(package):
    """Names in the table, and below `if TYPE_CHECKING:`."""
    module = import_module(package)
    assert module.__file__ is not None
    tree = ast.parse(Path(module.__file__).read_text())
    (told,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    ]
    readers = {x.name for node in told.body if isinstance(node, ast.ImportFrom) for x in node.names}
    eager = {
        x.asname or x.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for x in node.names
    }
    names = {name for name in module.__dir__() if not name.startswith("_")} - eager
    folder = Path(module.__file__).parent
    modules = {x.stem for x in folder.glob("*.py")} | {x.name for x in folder.iterdir()}
    constants = {"EXAMPLES", "PACKAGES"}
    assert names - modules - constants == readers
    assert all(getattr(module, name) is not None for name in readers)


def test_what_an_extra_brings_is_said():
    with pytest.raises(ImportError, match="no_such_module, which the `data` extra"):
        of_extra("no_such_module", "data")
