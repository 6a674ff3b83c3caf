"""Counts of a JSON body's values, fields and levels, taken from its bytes: a few bytes can make many objects."""

import re
from itertools import accumulate

from app.edge.intake.errors import BodyTooComplex

MAX_VALUES = 200_000
"""Most texts, numbers, objects and lists together."""
MAX_FIELDS = 100_000
"""Most names in all objects together."""
MAX_DEPTH = 250
"""Most objects and lists inside each other; redaction looks no deeper, and orjson writes no deeper ones."""

# Possessive, and content with an end that never comes: linear, whatever the bytes.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_BRACKETS = b"[]{}"
_NOT_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_LEVEL = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def check_counts(body: bytes) -> None:
    """Returns if a JSON body has at most MAX_VALUES values, MAX_FIELDS fields and MAX_DEPTH levels; others pass.

    Raises:
        BodyTooComplex: the body has more.
    """
    if _within(body):  # nearly every body is, even with the signs inside texts counted
        return
    bare = _TEXT.sub(b"", body)
    depth = MAX_DEPTH + 1
    if _opened(bare) <= MAX_VALUES:  # most brackets that are open at once
        depth = max(accumulate(_LEVEL[sign] for sign in bare.translate(None, _NOT_BRACKETS)), default=0)
    if not _within(bare, deep=depth):
        most = f"{MAX_VALUES:,} values, {MAX_FIELDS:,} fields and {MAX_DEPTH} levels"
        raise BodyTooComplex(f"a request may hold at most {most}")


def _within(body: bytes, *, deep: int | None = None) -> bool:
    """Returns whether the signs between values are few; without ``deep`` every bracket may be a level."""
    opened = _opened(body)
    levels = opened if deep is None else deep
    return opened + body.count(b",") < MAX_VALUES and body.count(b":") <= MAX_FIELDS and levels <= MAX_DEPTH


def _opened(body: bytes) -> int:
    return body.count(b"[") + body.count(b"{")
