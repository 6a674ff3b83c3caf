"""Parses JSON whose numbers are all finite: JSON has no NaN and no Infinity, and what is stored would be null."""

import json
import math
from typing import Any


class NotFinite(ValueError):
    """A number is NaN or infinite, or beyond the range of floats, such as 1e999."""


def parsed(text: str | bytes) -> Any:
    """Returns the value of a JSON text.

    Raises:
        NotFinite: the text has a number that is not finite.
        ValueError, RecursionError: the text is no JSON, is no UTF-8, has an integer of thousands of digits, or is
            nested too deep.
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotFinite("a number is not finite")
    return number
