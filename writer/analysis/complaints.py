"""Recognises complaints of the user about a wrong result, in several languages."""

from collections.abc import Iterable, Mapping
from itertools import islice

from retrieval.patterns import patterns
from writer.analysis.error_output import SHORT_CHARS, beginning

MOST_TURNS = 2_000
MOST_PARTS = 4

_FORMS = patterns("writer.analysis", "complaints")


def complaints(turns: Iterable[object]) -> list[str]:
    """Returns the beginnings of the user's turns that complain about a result; the first one, the task, is not read."""
    by_user = (turn for turn in islice(turns, MOST_TURNS) if isinstance(turn, Mapping) and turn.get("role") == "user")
    texts: list[str] = []
    for turn in islice(by_user, 1, None):
        content = turn.get("content")
        parts = content if isinstance(content, list) else [content]
        values = (part.get("text") if isinstance(part, Mapping) else part for part in parts[:MOST_PARTS])
        texts += [beginning(text, SHORT_CHARS) for text in values if isinstance(text, str)]
    complaints = [text for text in texts if _FORMS["complaint"].search(text) or _FORMS["quoted_wrong"].search(text)]
    return [text for text in complaints if not _FORMS["denied"].search(text)]
