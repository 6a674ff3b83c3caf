"""Recognises complaints of the user about a wrong result, in several languages."""

from collections.abc import Iterable, Mapping
from itertools import islice

from retrieval.patterns import patterns
from writer.analysis.error_output import SHORT_CHARS, beginning

MOST_TURNS = 2_000
MOST_PARTS = 4

_FORMS = patterns("writer.analysis", "complaints")


def complaints(turns: Iterable[object]) -> list[str]:
    """Returns the beginnings of the user's turns that complain about a result; the first one, the task, is not read.

    That a thing of the user's does not work ("my TV is broken") is no complaint about a result.
    """
    by_user = (turn for turn in islice(turns, MOST_TURNS) if isinstance(turn, Mapping) and turn.get("role") == "user")
    texts: list[str] = []
    for turn in islice(by_user, 1, None):
        content = turn.get("content")
        parts = content if isinstance(content, list) else [content]
        values = (part.get("text") if isinstance(part, Mapping) else part for part in parts[:MOST_PARTS])
        texts += [beginning(text, SHORT_CHARS) for text in values if isinstance(text, str)]
    about_results = ((text, _FORMS["world"].sub(" ", text)) for text in texts)
    forms = _FORMS["complaint"], _FORMS["quoted_wrong"]
    complaints = [text for text, said in about_results if any(form.search(said) for form in forms)]
    return [text for text in complaints if not _FORMS["denied"].search(text)]
