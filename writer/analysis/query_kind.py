"""Finds the kind of a task (find, create, change, …) by its first known verb, in English and German."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Literal, cast

from retrieval.patterns import read

QueryKind = Literal["find", "create", "change", "remove", "repair", "run", "question", "other"]
"""The kinds that the rule tells apart; a backend may name others."""

TASK_CHARS = 400
MOST_WORDS = 40

_READ = read("writer.analysis", "query_kind.toml")
_ASKS = frozenset(_READ["question"].split())
_KINDS = {
    word: cast("QueryKind", kind) for kind, verbs in _READ.items() if kind != "question" for word in verbs.split()
}
_WORD = re.compile(r"[^\W\d_]+")


def query_kind(task: str) -> QueryKind:
    """Returns the kind of a task: "question" if it begins with a question word, else the kind of its first known verb.

    A task without a known verb is a "question" if it has a question mark, else "other".
    """
    words = _words(task)
    if words and words[0] in _ASKS:
        return "question"
    return next((_KINDS[word] for word in words if word in _KINDS), "question" if "?" in task[:TASK_CHARS] else "other")


def verb_of(task: str, plan: Sequence[str]) -> str:
    """Returns the first known verb of a task; else of the plan's last step with one; else "question" or "other"."""
    known = (word for text in (task, *reversed(plan)) for word in _words(text) if word in _KINDS)
    return next(known, query_kind(task))


def _words(text: str) -> list[str]:
    return list(islice((match[0].casefold() for match in _WORD.finditer(text[:TASK_CHARS])), MOST_WORDS))
