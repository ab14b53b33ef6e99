"""All studies as one page: verdicts, tables, figures, papers, and studies that fail."""

import json
import re

import pytest
from PIL import Image

from cordax.cli import main, reproduce
from cordax.papers.page import PAPERS, Done, write_report
from cordax.papers.report import Claim

CLAIMS = [
    Claim("implicit is <faster>", "2.1 (1.9 to 2.4 in 5 rounds)", "reproduces", ""),
    Claim("rigid is faster", "1.0 (0.8 to 1.3)", "cannot be judged", "rounds disagree"),
]


@pytest.fixture
def figure(tmp_path):
    path = tmp_path / "rod_errors.png"
    Image.new("RGB", (8, 8), "#0072B2").save(path)
    return path


def test_the_page_has_everything_and_needs_nothing(tmp_path, figure):
    studies = [
        Done("rod", "Table 1. paper / ours\n  1.0 / 1.1", CLAIMS, [figure], 12.0),
        Done("neck", failed="RuntimeError: no"),
    ]
    page = write_report(tmp_path / "r.html", studies, {"jax": "0.10", "devices": "cpu"}).read_text()
    assert "implicit is &lt;faster&gt;" in page and "cannot be judged" in page
    assert "1.0 / 1.1" in page and "rounds disagree" in page
    assert "RuntimeError: no" in page and "0.10" in page
    for name in ("rod", "neck"):
        assert PAPERS[name].title in page and PAPERS[name].doi in page
    # figures are inside; addresses are those of the papers alone
    assert len(re.findall(r'src="data:image/png;base64,', page)) == 1
    assert set(re.findall(r"https?://[^/\"]+", page)) == {"https://doi.org"}


def test_command(tmp_path, figure, monkeypatch, capsys):
    """What is done is kept when a later study fails, and the exit code says so."""

    def study(name, output, figures):
        if name == "neck":
            raise RuntimeError("no\nand more")
        return Done(name, "a table", CLAIMS, [], 1.0), {"mass": 1.0}

    monkeypatch.setattr(reproduce, "_study", study)
    asked = ["reproduce", "all", "--output", str(tmp_path / "new"), "--only", "rod,neck"]
    assert main(asked) == 1
    printed = capsys.readouterr().out
    assert "1 reproduces, 1 cannot be judged" in printed and "failed: RuntimeError: no" in printed
    assert "a table" in (tmp_path / "new" / "report.html").read_text()
    assert main([*asked, "--overwrite", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["studies"] == {"rod": {"mass": 1.0}, "neck": {"failed": "RuntimeError: no"}}
    assert main(asked) == 2 and "already exist" in capsys.readouterr().err
    assert main([*asked[:2], "--only", "nek", "--output", str(tmp_path / "b")]) == 2
    assert "neck" in capsys.readouterr().err
