"""Recognises empty tool outputs: an empty text, empty lists, a count of 0, or a phrase such as "no results"."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice

import orjson
import re2

from writer.analysis.error_output import LOOK_CHARS, LOOK_JSON_CHARS, MOST_DEPTH, MOST_KEYS, SHORT_CHARS, beginning

_NOTHING = re2.compile(
    r"(?i)^\W{0,4}(?:no (?:\w+ )?(?:results?|rows?|match(?:es)?|records?|data)\b|0 (?:rows?|results?|matches)\b"
    r"|none|null|empty|(?:select|update|delete|merge) 0\W{0,4}$)"
)
_COUNTS = {"total", "total_count", "totalcount", "total_results", "totalresults", "count", "num_results", "row_count"}
_RESULTS = {
    "data", "documents", "entries", "entry", "hits", "items", "matches", "records", "result", "results", "rows",
}  # fmt: skip
"""Keys under which an output holds its results, in contrast to keys that repeat the query."""


def is_empty(output: object) -> bool:
    """Returns whether a tool's output says that there are no results; False for None, a missing output."""
    return output is not None and _is_empty(output, 0)


def _is_empty(value: object, depth: int) -> bool:
    if depth > MOST_DEPTH:
        return False
    if isinstance(value, str):
        return _is_empty_text(value, depth)
    if isinstance(value, list):
        if len(value) != 1 or not isinstance(value[0], Mapping) or value[0].get("type") != "text":
            return not value
        return _is_empty(value[0].get("text"), depth + 1)  # the only part of a message
    return isinstance(value, Mapping) and _is_empty_object(value, depth)


def _is_empty_text(text: str, depth: int) -> bool:
    head = beginning(text, LOOK_CHARS).strip()
    if not head.startswith(("{", "[")):
        return (head in {"", '""'} and not depth) or (len(head) <= SHORT_CHARS and _NOTHING.match(head) is not None)
    return len(text) <= LOOK_JSON_CHARS and _is_empty_json(text, depth)


@lru_cache(maxsize=256)  # each output of a run is looked at several times
def _is_empty_json(text: str, depth: int) -> bool:
    try:
        return _is_empty(orjson.loads(text), depth + 1)
    except (orjson.JSONDecodeError, UnicodeError):
        return False


def _is_empty_object(value: Mapping[object, object], depth: int) -> bool:
    """Returns whether an object has no results under any key for results, and no data elsewhere."""
    fields = {str(key)[:40].casefold(): item for key, item in islice(value.items(), MOST_KEYS)}
    results = [item for key, item in fields.items() if key in _RESULTS and item is not None]
    if not all(_is_zero(item) or _is_empty(item, depth + 1) for item in results):
        return False
    if any(_is_zero(fields.get(key)) for key in _COUNTS):
        return True
    if len(fields) == 1 and isinstance(fields.get("content"), list):
        return _is_empty(fields["content"], depth + 1)
    rest = (item for key, item in fields.items() if key not in _RESULTS)
    return not fields or (bool(results) and not any(isinstance(item, list | Mapping) and item for item in rest))


def _is_zero(count: object) -> bool:
    return type(count) is int and count == 0
