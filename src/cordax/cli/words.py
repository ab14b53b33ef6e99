"""Words of a command that hold several things."""

import math

from .._base.checks import require


def comma_words(text: str) -> list[str]:
    """Separated by commas, except those of an index such as `name[0,1]`."""
    words, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and depth == 0:
            words.append("")
        else:
            words[-1] += letter
    return [word.strip() for word in words if word.strip()]


def number(field: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    require(math.isfinite(value), field, repr(text), "a finite number")
    return value
