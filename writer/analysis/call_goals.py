"""Compares the goals of two calls of one tool, by their statements or command lines, or by the objects they name."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import lru_cache
from itertools import islice

from writer.analysis import command_goals
from writer.analysis.argument_diff import overlap
from writer.analysis.calls import Call
from writer.analysis.causes import cause_of
from writer.analysis.move_values import CHOICES, LITTLE, MOST_WORDS, fields_of, last_word, normal, placeholder_of
from writer.analysis.statement_moves import taken
from writer.analysis.statements import SQL_WORDS, statement_of, words
from writer.nested import parts

VERB_CHARS = 40
ALTER_CHARS = 400
"""Maximum characters of an ALTER statement that are searched for what it drops."""
SAME_GOAL = 0.5
"""Least overlap of words, 0 to 1, at which two statements or programs count as having the same goal."""
TASK_CHARS = 4_000
NAME_CHARS = 400
MOST_FIELDS = 20
"""Number of a call's values that are searched for names of objects."""
_WORD = re.compile(r"[^\W_]+")
_OBJECTS = {"<id>", "<name>", "<email>", "<path>"}
"""Placeholders of arguments that name the object of a call."""
_NO_OBJECTS = {"<text>", "<date>", "<number>"}
_REFUSING = {"a permission error", "a wrong-state error"}
"""Causes of errors about an object that exists, so that its name was no mistake."""

_VERBS = {
    "alter", "analyze", "comment", "create", "delete", "drop", "explain", "grant", "insert", "lock", "reindex",
    "revoke", "select", "set", "truncate", "update", "vacuum",
}  # fmt: skip
"""First words of SQL statements; two statements with different first words have different goals."""
_DROPS = re.compile(r"(?i)\b(?:delete|drop|remove)\b")
"""Words by which an ALTER statement takes something away, which an ALTER without them does not mean to."""


def same_goal(failed: Call, later: Call, task_words: Collection[str] = ()) -> bool:
    """Returns whether two calls of a tool may have the same goal.

    They do, unless they run statements or programs with few words in common, since a tool for SQL, commands or code
    serves many goals, or act on different objects, as in ``delete_user(u1)`` and ``delete_user(u2)``.

    Args:
        failed: the failed call.
        later: the later call.
        task_words: words of the run's task, see `words_of`.
    """
    if failed.line is not None and later.line is not None:
        return command_goals.same_goal(failed.line, later.line)
    verbs = {_verb(failed.arguments), _verb(later.arguments)} - {""}
    if len(verbs) > 1:
        return False
    before, after = statement_of(failed.arguments), statement_of(later.arguments)
    if before is None or after is None:
        code = _code_of(failed)
        if code and (other := _code_of(later)):
            return len(code & other) >= SAME_GOAL * len(code)
        return not _has_another_object(failed, later, task_words)
    return overlap(*(_without_keywords(text) for text in (before, after))) >= SAME_GOAL


def words_of(text: str) -> set[str]:
    """Returns the words and numbers of a text that may name an object, in the form in which texts are compared."""
    return set(_WORD.findall(normal(text[:TASK_CHARS]))) - LITTLE


def _code_of(call: Call) -> set[str]:
    """Returns the words of the program that a call passes as its only text; empty: it passes none."""
    given = call.arguments if isinstance(call.arguments, Mapping) else {}
    texts = [(str(name), text) for name, text in given.items() if isinstance(text, str)]
    return words_of(texts[0][1]) if len(texts) == 1 and "code" in taken(call.tool, texts[0][0]) else set()


def _has_another_object(failed: Call, later: Call, task_words: Collection[str]) -> bool:
    """Returns whether a later call left out the failed call's object, and acts on another one.

    An object with another name is another one if the task names both, or if the failed call's error says that its
    object refused the call; else the new name may correct the old one.
    """
    before, after = _names_in(failed.arguments), _names_in(later.arguments)
    kept = set[str]().union(*after.values())
    for name in before.keys() & after.keys():
        gone, new = before[name] - kept, after[name] - before[name]
        if not gone.isdisjoint(task_words) and not new.isdisjoint(task_words):
            return True
        kind = re.sub(r"_?id$", "", normal(name.rsplit(".", 1)[-1]))
        is_own = placeholder_of(name) in _OBJECTS and kind in normal(failed.tool)
        if gone and new and is_own and cause_of(failed.failure or "").name in _REFUSING:
            return True
    return False


def _names_in(arguments: object) -> dict[str, set[str]]:
    """Returns for each argument of a call the words that may name an object; choices, numbers and prose name none.

    The words in an id such as "gift_card_77" name its kind.
    """
    names = defaultdict[str, set[str]](set)
    for name, value in islice(fields_of(arguments), MOST_FIELDS):
        kind = placeholder_of(name)
        if kind in _NO_OBJECTS or last_word(name) in CHOICES or isinstance(value, bool):
            continue
        if isinstance(value, int) and kind == "<id>":
            names[name].add(str(value))
        elif isinstance(value, str) and len(value[:NAME_CHARS].split()) <= MOST_WORDS:
            words = words_of(value[:NAME_CHARS])
            numbered = {word for word in words if not word.isalpha()}
            names[name] |= (numbered or words) if kind == "<id>" else {word for word in words if not word.isdecimal()}
    return names


def _verb(arguments: object) -> str:
    """Returns the first word of an SQL statement among the arguments, of an ALTER also if it drops something.

    The result is empty without a statement.
    """
    text = statement_of(arguments) or next((part for part in parts(arguments) if isinstance(part, str)), "")
    word = text.lstrip()[:VERB_CHARS].split(None, 1)[0].casefold() if text.strip() else ""
    if word == "alter" and _DROPS.search(text[:ALTER_CHARS]):
        return "alter drop"
    return word if word in _VERBS else ""


@lru_cache(maxsize=256)  # each statement is compared with several failures
def _without_keywords(statement: str) -> str:
    """Returns the names and values of an SQL statement; the statement itself if it has no others."""
    named = (word.rsplit(".", 1)[-1] for word in words(statement))  # "shop.orders" may be "orders"
    names = [word for word in named if len(word) > 1 and word.casefold() not in SQL_WORDS]
    return " ".join(names) or statement
