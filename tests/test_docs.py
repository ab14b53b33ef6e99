"""The code in the README, in docs/, in examples/ and in the notebooks runs as it stands.

Each on its own: what pages and notebooks compile in common they find in the cache of the run.
"""

import re
from pathlib import Path

import jax.numpy as jnp
import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from cordax.integrators import BY_NAME

matplotlib.use("Agg")

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{i}")
    for page in PAGES
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


@pytest.fixture(autouse=True)
def examples(monkeypatch):
    """They can be imported."""
    monkeypatch.syspath_prepend(ROOT / "examples")


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} >= {"neck", "neck_identification", "rod"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    """As a script: in percent format the cells are the statements of the file in their order, and
    a kernel would only add its start. The last cell asserts what the notebook claims."""
    code = path.read_text()
    assert "assert " in code.split("# %%")[-1]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: None)  # which only complains where there is no screen
    exec(compile(code, str(path), "exec"), {"__name__": "notebook"})
    assert plt.get_fignums()
    plt.close("all")


def test_two_hands_bend_a_wire(tmp_path, capsys):
    """The hand bends further than the hook, the wire springs back onto it and rests; the Jacobian
    is that of central differences."""
    import two_hands

    two_hands.main(tmp_path, iterations=1)
    printed = capsys.readouterr().out
    # regression: stored output of this code
    assert "128.9 deg     88.468 mm" in printed
    assert {path.name for path in tmp_path.iterdir()} == {"two_hands.png", "two_hands.gif"}
    plt.close("all")
    hook = jnp.asarray(two_hands.HOOK)
    found = jnp.array([2.27, 7.2, 10.8])
    r, J, story = two_hands.misses(found, hook)
    assert two_hands.rms(r) < 5e-4
    assert float(two_hands.turn(found, 1.0) - two_hands.turn(hook, 1.0)) > 1.0
    assert float(story.speed) < 1e-8
    assert float(jnp.linalg.norm(story.held[-1, -1] - story.released[-1])) > 0.15
    step = jnp.array([0.0, 1e-3, 0.0])
    ahead, behind = (two_hands.misses(found + s, hook)[0] for s in (step, -step))
    np.testing.assert_allclose(J[:, 1], (ahead - behind) / 2e-3, atol=1e-8)


@pytest.mark.parametrize("block", BLOCKS)
def test_block_runs(block, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where the files go that some of them write
    exec(compile(block, "<docs>", "exec"), {"__name__": "docs"})
    printed = capsys.readouterr().out
    assert "finished" in printed or "simulate(" not in block
    assert "nan" not in printed.lower()


def test_every_page_is_in_the_index():
    linked = lambda page: set(re.findall(r"\]\(([^)#]+)\)", page.read_text()))
    pages = {page.name for page in PAGES if page.parent == ROOT / "docs"} - {"index.md"}
    assert pages <= linked(ROOT / "docs/index.md")
    assert "docs/index.md" in linked(ROOT / "README.md")


def test_every_page_is_in_a_menu_of_the_site():
    menus = (ROOT / "docs/site/build.py").read_text()
    pages = [page.stem for page in PAGES if page.parent == ROOT / "docs"]
    assert [name for name in pages if f'"{name}"' not in menus and name != "index"] == []


def test_every_integrator_has_its_use():
    page = (ROOT / "docs/choosing-an-integrator.md").read_text()
    assert [name for name in BY_NAME if f"| `{name}`" not in page] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target


def test_architecture_names_every_package_and_only_modules_that_exist():
    page = (ROOT / "docs/architecture.md").read_text()
    source = ROOT / "src/cordax"
    packages = {path.name for path in source.iterdir() if (path / "__init__.py").exists()}
    rows = " ".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))
    assert packages == set(re.findall(r"`(\w+)`", rows))
    modules = set(re.findall(r"[\w/]+/\w+\.py\b", page))
    assert len(modules) > 10
    assert [m for m in modules if not ((source / m).exists() or (ROOT / m).exists())] == []
