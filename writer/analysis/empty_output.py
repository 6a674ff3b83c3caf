"""What an answer without a result looks like: no text, nothing in its lists, or a count of none."""

from collections.abc import Mapping
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
"""Where an answer has what was found, and nothing of the question."""


def is_empty(output: object) -> bool:
    """Returns whether a tool answered that there is nothing; no answer at all says nothing."""
    return output is not None and _is_empty(output, 0)


def _is_empty(value: object, depth: int) -> bool:
    if depth > MOST_DEPTH:
        return False
    if isinstance(value, str):
        return _is_empty_text(value, depth)
    if isinstance(value, list):
        return not value or (len(value) == 1 and _is_empty_part(value[0], depth))
    return isinstance(value, Mapping) and _is_empty_object(value, depth)


def _is_empty_text(text: str, depth: int) -> bool:
    said = beginning(text, LOOK_CHARS).strip()
    if not said.startswith(("{", "[")):
        return (said in {"", '""'} and not depth) or (len(said) <= SHORT_CHARS and _NOTHING.match(said) is not None)
    if len(text) > LOOK_JSON_CHARS:
        return False
    try:
        return _is_empty(orjson.loads(text), depth + 1)
    except (orjson.JSONDecodeError, UnicodeError):
        return False


def _is_empty_part(part: object, depth: int) -> bool:
    """Returns whether the only part of a message says that there is nothing."""
    return isinstance(part, Mapping) and part.get("type") == "text" and _is_empty(part.get("text"), depth + 1)


def _is_empty_object(value: Mapping[object, object], depth: int) -> bool:
    """Returns whether all that it says of results is that there are none."""
    fields = {str(key)[:40].casefold(): item for key, item in islice(value.items(), MOST_KEYS)}
    found = [item for key, item in fields.items() if key in _RESULTS and item is not None]
    if not all(_is_none(item) or _is_empty(item, depth + 1) for item in found):
        return False
    if any(_is_none(fields.get(key)) for key in _COUNTS):
        return True
    if len(fields) == 1 and isinstance(fields.get("content"), list):
        return _is_empty(fields["content"], depth + 1)
    rest = (item for key, item in fields.items() if key not in _RESULTS)
    return not fields or (bool(found) and not any(isinstance(item, list | Mapping) and item for item in rest))


def _is_none(count: object) -> bool:
    return type(count) is int and count == 0
