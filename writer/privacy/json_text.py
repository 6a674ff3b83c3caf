"""Handles JSON inside texts, so that the text is still JSON after redaction has replaced a number."""

import json
import re
from typing import Any

_NEAR = 200
"""Number of bytes before and after a number that are searched for the quotes and commas of JSON."""
_REST = re.compile(rb"\d*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SPACE = rb"(?:\s|\\+[nrt])*"  # in JSON inside JSON a line ends with \n in two characters
_KEY_BEFORE = re.compile(rb'(\\*)"' + _SPACE + b":" + _SPACE + b"$")
_ITEM_BEFORE = re.compile(rb"[\[,]" + _SPACE + b"$")
_END_BEHIND = re.compile(_SPACE + rb"[,\]}]")
_QUOTE = re.compile(rb'(\\*)"')
_TELLING = re.compile(
    r"[:\[,\s]\d{6}|[Cc](?:v[cv]|V[CV])|[Ss]ecurity|[Vv]erification|[Pp](?:in|IN)\"|\"(?:type|label|kind|field)\\*\""
)
"""Sign of JSON that may hold a number to redact: a large number, or a name for a card's security code."""


def whole_number(data: bytes, start: int, end: int) -> tuple[int, int, bytes]:
    """Returns the start and end of the JSON number that contains these bytes, and the quote around a text in its place.

    For bytes that are no JSON number, it returns their own start and end and an empty quote. In JSON inside JSON, the
    quote has the same backslashes as the quotes near it.
    """
    if not data[start:end].isdigit():
        return start, end, b""
    behind = _REST.match(data, end)
    first, last = start - (data[start - 1 : start] == b"-"), behind.end() if behind else end
    before = data[max(0, first - _NEAR) : first]
    if _END_BEHIND.match(data[last : last + _NEAR]):
        if key := _KEY_BEFORE.search(before):
            return first, last, key[1] + b'"'
        if _ITEM_BEFORE.search(before) and data.lstrip()[:1] in {b"{", b"[", b'"'}:
            return first, last, (_QUOTE.findall(before) or [b""])[-1] + b'"'
    return start, end, b""


def with_numbers(text: str) -> Any:
    """Returns the object or list that a JSON text holds; None for other texts, or without a number to redact."""
    return parsed(text) if _TELLING.search(text) else None


def parsed(text: str) -> Any:
    """Returns the object or list that a JSON text holds; None for other texts."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
