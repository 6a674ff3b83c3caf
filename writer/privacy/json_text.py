"""JSON inside texts: what redaction puts in the place of a number must leave it JSON."""

import json
import re
from typing import Any

_NEAR = 200
"""Bytes around a number in which its neighbours in JSON are looked for."""
_REST = re.compile(rb"\d*(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SPACE = rb"(?:\s|\\+[nrt])*"  # in JSON inside JSON a line ends with \n in two characters
_KEY_BEFORE = re.compile(rb'(\\*)"' + _SPACE + b":" + _SPACE + b"$")
_ITEM_BEFORE = re.compile(rb"[\[,]" + _SPACE + b"$")
_END_BEHIND = re.compile(_SPACE + rb"[,\]}]")
_QUOTE = re.compile(rb'(\\*)"')
_TELLING = re.compile(r"[:\[,\s]\d{6}|[Cc](?:v[cv]|V[CV])|[Ss]ecurity|[Vv]erification")
"""A large number, or the name of a card's code."""


def whole_number(data: bytes, start: int, end: int) -> tuple[int, int, bytes]:
    """Returns the start and end of the number in JSON that these bytes belong to, and the quote for a text in its place.

    Bytes that are no number in JSON are returned with an empty quote. In JSON inside JSON the quote has the backslashes
    of its neighbours.
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
    """Returns the object or list that the text is as JSON if it may have a number to redact, or else None."""
    return parsed(text) if _TELLING.search(text) else None


def parsed(text: str) -> Any:
    """Returns the object or list that the text is as JSON, or None for another text."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
