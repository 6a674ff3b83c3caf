"""Keeps the tools, errors and technologies that a message names in the query that a language model makes of it."""

import re

MOST_NAMED = 12
_LEFT_OUT = re.compile(r"\[REDACTED:[a-z-]+\]|\S+@\S+|\w+://\S+")
_NAMED = re.compile(
    r"(?<![\w.])(?:`([^`\n]{2,60})`|("
    r"[A-Za-z]\w*(?:_\w+)+|[A-Za-z]\w*\.(?:[a-z]\w*\.)*[a-z]\w+|[a-z]+[A-Z]\w+|[A-Z]\w*(?:Error|Exception)"
    r"|[A-Z]{2,}(?:-?\d{1,5})?|[45]\d\d|(?=\d*[A-Z])\d{2}[A-Z0-9]{3}|[A-Za-z]+\d{1,2}[a-z]*|--?[a-z][a-z-]{2,}))(?!\w)"
)
"""A name as tools, files, errors, flags and technologies have it: in backticks, or by its letters and signs."""


def named(text: str) -> list[str]:
    """Returns the first MOST_NAMED tools, errors and technologies that a text names, each once."""
    found = ("".join(match) for match in _NAMED.findall(_LEFT_OUT.sub(" ", text)))
    return list(dict.fromkeys(found))[:MOST_NAMED]


def completed(query: str, said: str, longest: int) -> str:
    """Returns a query with what the message names and the query lacks appended, as far as it fits ``longest``."""
    for name in named(said):
        if name.casefold() not in query.casefold() and len(query) + len(name) + 2 <= longest:
            query += f", {name}"
    return query
