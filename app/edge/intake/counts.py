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
