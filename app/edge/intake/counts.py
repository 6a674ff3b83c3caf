"""How much a JSON body holds, counted in its bytes before anything is parsed: a few bytes can make many objects."""

import re
from itertools import accumulate

from app.edge.intake.errors import BodyTooComplex

MAX_VALUES = 200_000
"""Texts, numbers, objects and lists together."""
MAX_FIELDS = 100_000
"""Names in all objects together."""
MAX_DEPTH = 250
"""Objects and lists inside each other; redaction looks no deeper, and orjson writes none."""

DOCUMENTED = f"at most {MAX_VALUES:,} values, {MAX_FIELDS:,} fields and {MAX_DEPTH} levels"

# Possessive, and content with an end that never comes: linear, whatever the bytes.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+"?', re.DOTALL)
_BRACKETS = b"[]{}"
_NOT_BRACKETS = bytes(set(range(256)) - set(_BRACKETS))
_LEVEL = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def check_counts(body: bytes) -> None:
    """Returns if the body holds no more than is read; what is no JSON is not told apart.

    Raises:
        BodyTooComplex: it holds more.
    """
    if _within(body):  # as nearly every body: signs inside texts are counted too, and still there are few
        return
    bare = _TEXT.sub(b"", body)
    if not _within(bare, deep=_depth(bare) if _opened(bare) <= MAX_VALUES else MAX_DEPTH + 1):
        raise BodyTooComplex(f"a request may hold {DOCUMENTED}")


def _within(body: bytes, *, deep: int | None = None) -> bool:
    """Returns whether the signs between values are few; without ``deep`` every bracket may be a level."""
    opened = _opened(body)
    levels = opened if deep is None else deep
    return opened + body.count(b",") < MAX_VALUES and body.count(b":") <= MAX_FIELDS and levels <= MAX_DEPTH


def _opened(body: bytes) -> int:
    return body.count(b"[") + body.count(b"{")


def _depth(bare: bytes) -> int:
    """Returns how many brackets are open at most at once."""
    return max(accumulate(_LEVEL[sign] for sign in bare.translate(None, _NOT_BRACKETS)), default=0)
