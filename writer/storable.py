"""Makes text storable, refuses JSON that cannot be stored as it is, and has the types of such fields of a request."""

import json
import math
from typing import Annotated, Any

from pydantic import AfterValidator, Field, JsonValue


def storable(text: str) -> str:
    """Returns the text with U+FFFD in place of each NUL character, which Postgres cannot store in a text."""
    return text.replace("\x00", "\ufffd")


def encodable(value: JsonValue) -> JsonValue:
    """Returns the JSON value unchanged.

    Raises:
        ValueError: a string in it has a lone surrogate, which cannot be encoded as UTF-8.
    """
    # not nested.parts: a generator takes twice the time, and every retain waits for this
    pending: list[object] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            try:
                item.encode()
            except UnicodeEncodeError as error:
                raise ValueError("must not contain lone surrogates") from error
        elif isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            pending += item
    return value


Payload = Annotated[JsonValue, AfterValidator(encodable)]
"""Any JSON. It is encrypted before it is stored, so a NUL character in it is kept."""


def _says_something(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    return text


def line(longest: int, *, blank: bool = True) -> Any:
    """Returns a pydantic type: a text of 1 to ``longest`` characters that Postgres can store.

    With ``blank=False`` a text of white space alone is refused, too. The return type is Any because mypy cannot express
    a type that is made at run time.
    """
    text = Annotated[str, Field(min_length=1, max_length=longest), AfterValidator(storable)]
    return text if blank else Annotated[text, AfterValidator(_says_something)]


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
