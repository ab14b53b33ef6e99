"""Build the documentation site: `python docs/site/build.py [FOLDER]` (needs the `docs` extra).

Pages are those of docs/, the notebooks and examples as pages, and the reference of every public
name from its docstring. A link that leads nowhere, or a page that no menu shows, is an error."""

import argparse
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: menus: titles, and pages in docs/ by name; what begins with "api" is made here
MENUS = {
    "Begin": ["getting-started", "gallery", "conventions", "glossary", "coming-from", "faq"],
    "Machines": [
        "neck",
        "cable-robot",
        "spline-rod",
        "rope-robot",
        "mechanism",
        "contact",
        "machine-files",
    ],
    "Your own machine": ["your-own-machine", "tutorial-energies", "tutorial-parts"],
    "Simulate": ["choosing-an-integrator", "plotting", "saving"],
    "Many runs": [
        "sweeps",
        "identification",
        "gradients",
        "optimisation",
        "environments",
        "workspace",
    ],
    "Trust": ["validation", "validation-papers"],
    "The code": ["architecture", "versions", "contributing", "coding_guidelines", "changelog"],
}
#: packages whose public names the reference has, and what they are for
REFERENCE = {
    "cordax": "Simulate, batch, identify, optimise: what `import cordax` brings",
    "cordax.systems": "Machines",
    "cordax.systems.mechanism": "Parts of mechanisms",
    "cordax.control": "Controllers and references",
    "cordax.formulations": "How constraints become accelerations",
    "cordax.integrators": "Methods",
    "cordax.plot": "Pictures, films and pages",
    "cordax.viewer": "Runs in the browser",
    "cordax.io": "Files",
    "cordax.statics.workspace": "Where a cable robot can work",
    "cordax.reduction": "Smaller models",
    "cordax.sweeps": "Many variants",
}
#: pages at the top of the repository
TOP_PAGES = ("CONTRIBUTING.md", "CODING_GUIDELINES.md", "CHANGELOG.md")
_LINK = re.compile(r"(\]\()([^)#\s]+)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "build" / "docs")
    folder = parser.parse_args().folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    shutil.copytree(ROOT / "docs" / "images", pages / "images")
    write_pages(pages)
    menus = ['{ "Home" = "index.md" }', *menu_lines(pages)]
    settings = (ROOT / "docs" / "site" / "zensical.toml").read_text()
    source = f'paths = ["{(ROOT / "src").as_posix()}"]'
    listed = ",\n  ".join(menus)
    settings = settings.replace("[project]\n", f"[project]\nnav = [\n  {listed},\n]\n")
    (folder / "zensical.toml").write_text(settings.replace('paths = ["src"]', source))
    program = Path(sys.executable).with_name("zensical")
    environment = os.environ | {"NO_COLOR": "1"}
    found = subprocess.run([program, "build", "--strict"], cwd=folder, env=environment)
    if found.returncode:
        sys.exit(f"the site in {folder} has errors")
    print(f"wrote {folder / 'html' / 'index.html'}")


def write_pages(pages: Path) -> None:
    """All pages in Markdown, links between them as they are in the site."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        (pages / page.name).write_text(_relinked(page.read_text(), page))
    for name in TOP_PAGES:
        text = _relinked((ROOT / name).read_text(), ROOT / name)
        (pages / name.lower()).write_text(text)
    for kind in ("notebooks", "examples"):
        (pages / kind).mkdir()
        for script in sorted((ROOT / kind).glob("*.py")):
            (pages / kind / f"{script.stem}.md").write_text(_script_page(script))
    (pages / "api").mkdir()
    for package, purpose in REFERENCE.items():
        (pages / "api" / f"{package}.md").write_text(_reference(package, purpose))


def menu_lines(pages: Path) -> list[str]:
    """Of the settings file. Every page is in one menu."""
    title = lambda page: re.search(r"^# (.+)$", page.read_text(), re.M)[1].replace("`", "")
    entry = lambda page: f'{{ "{title(page)}" = "{page.relative_to(pages).as_posix()}" }}'
    menus = {
        name: [path for page in listed if (path := pages / f"{page}.md").exists()]
        for name, listed in MENUS.items()
    }
    menus["Begin"] += sorted((pages / "notebooks").glob("*.md"))
    menus["Begin"] += sorted((pages / "examples").glob("*.md"))
    menus["Reference"] = [pages / "api" / f"{package}.md" for package in REFERENCE]
    shown = [page for listed in menus.values() for page in listed]
    lost = sorted(str(p) for p in set(pages.rglob("*.md")) - set(shown) - {pages / "index.md"})
    if lost:
        sys.exit(f"docs/site/build.py: no menu shows {lost}")
    join = lambda listed: ", ".join(entry(page) for page in listed)
    return [f'{{ "{name}" = [{join(listed)}] }}' for name, listed in menus.items()]


def _relinked(text: str, page: Path) -> str:
    """Links to files of the repository as links to their pages."""

    def new(match) -> str:
        target = match[2]
        if target.startswith(("http", "#")):
            return match[0]
        path = (page.parent / target).resolve()
        if not path.exists():
            sys.exit(f"{page.name}: the link {target} leads nowhere")
        inside = path.relative_to(ROOT).as_posix()
        if inside.startswith(("notebooks/", "examples/")):
            inside = inside.removesuffix(".py") + ".md"
        elif inside == "README.md":
            inside = "getting-started.md"
        elif inside in TOP_PAGES:
            inside = inside.lower()
        elif inside.startswith("docs/"):
            inside = inside.removeprefix("docs/")
        else:  # a file that has no page is named, not linked
            return f"]({'index.md'}"
        return f"]({inside}"

    return _LINK.sub(new, text)


def _script_page(script: Path) -> str:
    """A notebook in percent format, or a plain script, as text and code."""
    code = script.read_text()
    if "# %%" not in code:
        title = script.stem.replace("_", " ").capitalize()
        return f"# {title}\n\n```python\n{code}```\n"
    parts = []
    for cell in re.split(r"^# %%", code, flags=re.M)[1:]:
        head, _, body = cell.partition("\n")
        if "[markdown]" in head:
            parts.append(re.sub(r"^# ?", "", body, flags=re.M).strip())
        elif body.strip():
            parts.append(f"```python\n{body.strip()}\n```")
    text = "\n\n".join(parts)
    if not re.search(r"^# ", text, re.M):
        text = f"# {script.stem.replace('_', ' ').capitalize()}\n\n{text}"
    # links of a notebook are relative to its folder
    return _LINK.sub(lambda m: m[0] if m[2].startswith("http") else f"{m[1]}../index.md", text)


def public(package: str) -> list[str]:
    """Names a package offers."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
    return [n for n in names if callable(getattr(module, n)) or inspect.isclass(getattr(module, n))]


def _reference(package: str, purpose: str) -> str:
    module, lines = importlib.import_module(package), [f"# {package}", "", f"{purpose}.", ""]
    for name in sorted(public(package), key=str.lower):
        thing = getattr(module, name)
        home = getattr(thing, "__module__", "")
        if not home.startswith("cordax"):
            continue
        lines.append(f"::: {home}.{getattr(thing, '__qualname__', name)}\n")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
