"""The code in the README, in docs/ and in the notebooks runs as it stands.

All in one process: pages and notebooks simulate the same machines, and share what is compiled.
"""

import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

matplotlib.use("Agg")

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    pytest.param(block, id=f"{page.stem}-{i}")
    for page in PAGES
    for i, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} >= {"neck", "neck_identification"}


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


@pytest.mark.parametrize("block", BLOCKS)
def test_block_runs(block, capsys):
    exec(compile(block, "<docs>", "exec"), {"__name__": "docs"})
    printed = capsys.readouterr().out
    assert "finished" in printed
    assert "nan" not in printed.lower()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).exists(), target
