"""`cordax list`: what there is."""

import math

from .. import systems
from ..integrators import BY_NAME
from ..mechanics import System


def show() -> int:
    """List machines and integrators."""
    print("machines")
    for name in systems.__all__:
        thing = getattr(systems, name)
        if isinstance(thing, type) and issubclass(thing, System):
            print(f"  {name:24} {_first_sentence(thing)}")
    print("\nintegrators")
    for name, method in BY_NAME.items():
        kind = "explicit" if method.explicit else "implicit"
        limit = method.oscillator_limit
        step = "any step" if limit == math.inf else f"omega dt <= {limit:.5g}" if limit else "none"
        print(f"  {name:24} order {method.order}, {kind}; stable undamped oscillation: {step}")
    return 0


def _first_sentence(thing: type) -> str:
    text = " ".join((thing.__doc__ or "").split())
    return text.split(". ")[0].rstrip(".") + "."
