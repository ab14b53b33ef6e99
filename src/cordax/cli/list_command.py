"""`cordax list`: what there is."""

import json as json_module
import math

from ..integrators import BY_NAME
from ..io import example_path, examples, machine_kinds


def show(json: bool = False) -> int:
    """List machines that `cordax run` knows, kinds of machines for files, and integrators.

    Args:
        json: print it as JSON.
    """
    found = {
        "machines": {name: _first_comment(name) for name in examples()},
        "kinds": {name: _first_sentence(make) for name, make in machine_kinds().items()},
        "integrators": {name: _method(kind) for name, kind in BY_NAME.items()},
    }
    if json:
        print(json_module.dumps(found, indent=2))
        return 0
    heads = {
        "machines": "machines: cordax run NAME, or cordax new NAME > machine.toml",
        "kinds": 'kinds of machines in files: kind = "NAME"',
        "integrators": "integrators: --integrator NAME",
    }
    for part, head in heads.items():
        print(head)
        for name, text in found[part].items():
            print(f"  {name:24} {text}")
        print()
    return 0


def _method(kind) -> str:
    limit = kind.oscillator_limit
    step = "any step" if limit == math.inf else f"omega dt <= {limit:.5g}" if limit else "none"
    how = "explicit" if kind.explicit else "implicit"
    return f"order {kind.order}, {how}; stable undamped oscillation: {step}"


def _first_sentence(thing) -> str:
    text = " ".join((thing.__doc__ or "").split())
    return text.split(". ")[0].rstrip(".") + "."


def _first_comment(name: str) -> str:
    """What an example says of itself, up to the first full stop or colon."""
    lines = example_path(name).read_text(encoding="utf-8").splitlines()
    head = []
    for line in lines:
        if not line.startswith("#"):
            break
        head.append(line.lstrip("# "))
    text = " ".join(head)
    ends = [text.find(mark) for mark in (". ", ": ") if mark in text]
    return text[: min(ends)] if ends else text.rstrip(".")
