"""Reads a body piece by piece, whole or not at all, and bounds its values: a few bytes can make many objects."""

import re
from itertools import accumulate

from starlette.types import Receive

from app.edge.intake.errors import BodyIncomplete, BodyTooComplex, BodyTooLarge


def announced(content_length: str | None, most: int) -> int:
    """Returns the bytes that a body may have: its Content-Length, or else ``most``.

    Raises:
        BodyTooLarge: the Content-Length is larger; the body need not be read.
    """
    if content_length is None or not content_length.isdecimal():
        return most
    digits = content_length.lstrip("0") or "0"
    if len(digits) > len(str(most)) or int(digits) > most:
        raise BodyTooLarge(most)
    return int(digits)


async def read_body(receive: Receive, most: int, body: bytearray | None = None) -> bytes:
    """Returns the whole body, whose first bytes may have been read already.

    Raises:
        BodyTooLarge: it grew over ``most`` bytes.
        BodyIncomplete: its sender went away, or was too slow.
    """
    body = bytearray() if body is None else body
    await read_on(receive, most, body)
    if len(body) > most:
        raise BodyTooLarge(most)
    return bytes(body)


async def read_on(receive: Receive, most: int, body: bytearray) -> bool:
    """Adds pieces to a body until it has ended, or has over ``most`` bytes; returns whether it has ended.

    Raises:
        BodyIncomplete: its sender went away, or was too slow.
    """
    while len(body) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise BodyIncomplete("the request did not arrive whole")
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return True
    return False


MAX_VALUES = 200_000
"""Most texts, numbers, objects and lists together."""
MAX_FIELDS = 100_000
"""Most names in all objects together."""
MAX_DEPTH = 250
"""Most objects and lists inside each other; redaction looks no deeper, and orjson writes no deeper ones."""

# Possessive, and content with an end that never comes: linear, whatever the bytes.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_LEVEL = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NOT_BRACKETS = bytes(set(range(256)) - set(_LEVEL))


def check_counts(body: bytes) -> None:
    """Returns if a JSON body has at most MAX_VALUES values, MAX_FIELDS fields and MAX_DEPTH levels; others pass.

    Raises:
        BodyTooComplex: the body has more.
    """
    if _is_wide(body) or _opened(body) > MAX_DEPTH:  # nearly no body is, even with the signs inside texts counted
        bare = _TEXT.sub(b"", body)
        levels = accumulate(_LEVEL[sign] for sign in bare.translate(None, _NOT_BRACKETS))
        if _is_wide(bare) or max(levels, default=0) > MAX_DEPTH:
            most = f"{MAX_VALUES:,} values, {MAX_FIELDS:,} fields and {MAX_DEPTH} levels"
            raise BodyTooComplex(f"a request may hold at most {most}")


def _is_wide(body: bytes) -> bool:
    return _opened(body) + body.count(b",") >= MAX_VALUES or body.count(b":") > MAX_FIELDS


def _opened(body: bytes) -> int:
    return body.count(b"[") + body.count(b"{")
