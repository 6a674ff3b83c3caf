"""Finds the kind of a task (find, create, change, …) by its first known verb, in English and German."""

import re
from collections.abc import Sequence
from itertools import islice
from typing import Literal

QueryKind = Literal["find", "create", "change", "remove", "repair", "run", "question", "other"]
"""The kinds that the rule tells apart; a backend may name others."""

TASK_CHARS = 400
MOST_WORDS = 40

_WORDS: dict[QueryKind, str] = {
    "find": """check compare count describe display fetch find get list locate look monitor read search see show
        summarise summarize tell verify finde lies liste prüfe suche vergleiche zeige""",
    "create": """add append book build compose create draft generate insert make new open prepare register write
        anlegen baue buche erstelle füge schreibe""",
    "change": """adjust apply assign change convert correct edit exchange increase merge migrate modify move reduce
        rename replace reset resize scale set sort split swap switch translate update upgrade ändere aktualisiere
        ersetze tausche""",
    "remove": """cancel clean clear close delete deny drop erase exclude refund remove revoke uninstall withdraw
        entferne lösche storniere""",
    "repair": """debug diagnose fix heal mend recover repair resolve restore solve troubleshoot behebe repariere""",
    "run": """deploy execute import install publish restart run send start stop test trigger upload führe sende
        starte""",
}
_KINDS: dict[str, QueryKind] = {word: kind for kind, some in _WORDS.items() for word in some.split()}
_ASKS = {
    "are", "did", "do", "does", "how", "is", "was", "were", "what", "when", "where", "which", "who", "whose", "why",
    "wann", "warum", "welche", "wer", "wie", "wo",
}  # fmt: skip
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
    """Returns the first known verb of a task; else that of the plan's last step that has one; else the task's kind."""
    known = (word for text in (task, *reversed(plan)) for word in _words(text) if word in _KINDS)
    return next(known, query_kind(task))


def _words(text: str) -> list[str]:
    return list(islice((match[0].casefold() for match in _WORD.finditer(text[:TASK_CHARS])), MOST_WORDS))
