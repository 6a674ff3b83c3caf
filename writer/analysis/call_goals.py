"""Compares the goals of two calls of one tool, by the statements or command lines among their arguments."""

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice

from writer.analysis import command_goals
from writer.analysis.argument_diff import overlap
from writer.analysis.calls import Call
from writer.analysis.statements import SQL_WORDS, command_in, is_statement, words
from writer.nested import parts

MOST_ARGUMENTS = 8
"""Number of a call's arguments that are searched for a statement."""
VERB_CHARS = 40
SAME_GOAL = 0.5
"""Least overlap of words, 0 to 1, at which two statements count as having the same goal."""

_VERBS = {
    "alter", "analyze", "comment", "create", "delete", "drop", "explain", "grant", "insert", "lock", "reindex",
    "revoke", "select", "set", "truncate", "update", "vacuum",
}  # fmt: skip
"""First words of SQL statements; two statements with different first words have different goals."""


def same_goal(failed: Call, later: Call) -> bool:
    """Returns whether two calls of a tool may have the same goal.

    They do, unless they run statements with few words in common: a tool for SQL or commands serves many goals.
    """
    old, new = command_in(failed.arguments), command_in(later.arguments)
    if old is not None and new is not None:
        return command_goals.same_goal(old, new)
    verbs = {_verb(failed.arguments), _verb(later.arguments)} - {""}
    if len(verbs) > 1:
        return False
    before, after = statement_of(failed.arguments), statement_of(later.arguments)
    if before is None or after is None:
        return True
    return overlap(*(_without_keywords(text) for text in (before, after))) >= SAME_GOAL


def _verb(arguments: object) -> str:
    """Returns the first word of an SQL statement among the arguments; empty without one."""
    text = statement_of(arguments) or next((part for part in parts(arguments) if isinstance(part, str)), "")
    word = text[:VERB_CHARS].split(None, 1)[0].casefold() if text.strip() else ""
    return word if word in _VERBS else ""


@lru_cache(maxsize=256)  # each statement is compared with several failures
def _without_keywords(statement: str) -> str:
    """Returns the names and values of an SQL statement; the statement itself if it has no others."""
    named = (word.rsplit(".", 1)[-1] for word in words(statement))  # "shop.orders" may be "orders"
    names = [word for word in named if len(word) > 1 and word.casefold() not in SQL_WORDS]
    return " ".join(names) or statement


def statement_of(arguments: object) -> str | None:
    """Returns the SQL statement or the command line among the arguments of a call; None: there is none."""
    values = islice(arguments.items(), MOST_ARGUMENTS) if isinstance(arguments, Mapping) else (("", arguments),)
    return next((value for key, value in values if isinstance(value, str) and is_statement(value, key)), None)
