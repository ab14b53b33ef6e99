"""`cordax list`: example machines, machine kinds and integrators."""

import json as json_module
import math

from ..integrators import BY_NAME
from ..io import example_path, examples, machine_kinds


def list_contents(json: bool = False) -> int:
    """List example machines, machine kinds for machine files, and integrators.

    Args:
        json: print the lists as JSON.
    """
    contents = {
        "machines": {name: _first_comment(name) for name in examples()},
        "kinds": {name: _first_sentence(make) for name, make in machine_kinds().items()},
        "integrators": {name: _method(kind.traits) for name, kind in BY_NAME.items()},
    }
    if json:
        print(json_module.dumps(contents, indent=2))
        return 0
    headings = {
        "machines": "example machines: cordax run NAME, or cordax new NAME > machine.toml",
        "kinds": 'machine kinds for machine files: kind = "NAME"',
        "integrators": "integrators: cordax run MACHINE --integrator NAME",
    }
    for part, heading in headings.items():
        print(heading)
        for name, text in contents[part].items():
            print(f"  {name:24} {text}")
        print()
    return 0


def _method(traits) -> str:
    limit = traits.oscillator_limit
    step = "any time step" if limit == math.inf else f"omega dt <= {limit:.5g}" if limit else "none"
    solver = "explicit" if traits.explicit else "implicit"
    return f"order {traits.order}, {solver}; stable undamped oscillation: {step}"


def _first_sentence(thing) -> str:
    text = " ".join((thing.__doc__ or "").split())
    return text.split(". ")[0].rstrip(".") + "."


def _first_comment(name: str) -> str:
    """The comment at the top of an example file, up to the first full stop or colon."""
    lines = example_path(name).read_text(encoding="utf-8").splitlines()
    head = []
    for line in lines:
        if not line.startswith("#"):
            break
        head.append(line.lstrip("# "))
    text = " ".join(head)
    ends = [text.find(mark) for mark in (". ", ": ") if mark in text]
    return text[: min(ends)] if ends else text.rstrip(".")
