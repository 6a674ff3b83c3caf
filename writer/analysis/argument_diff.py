"""What differs between the arguments of two calls, path by path, shown short, typed and without their content."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from retrieval.text import shortened
from writer.analysis.placeholders import kind_of, path_name
from writer.analysis.statements import Language, Token, is_statement, language_of, tokens, words

MOST_DIFFERENCES = 20
MOST_DEPTH = 6
"""Levels of nesting that are told apart; what lies deeper is compared as a whole."""
MOST_LOOKS = 500
"""Pairs of values that are compared."""
VALUE_CHARS = 40
TEXT_CHARS = 10 * VALUE_CHARS
"""Characters of a text that are compared."""
MOST_PIECES = 6
SAME_STATEMENT = 0.6
"""Least overlap of two statements of which one is the other, edited."""
_ABBREVIATION = re.compile(r"(?:[A-Z]\.? ?){2,5}")

Change = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One place in which the arguments differ.

    Attributes:
        path: keys and places from the top, joined by dots; "input" where the input is no object.
        before: type and beginning of the failing call's value; empty where there was none.
        after: the same of the call that worked.
        how: the change in words that hold nothing of the values but their form.
    """

    path: str
    change: Change
    before: str
    after: str
    how: str


_ABSENT = object()


def differences(before: object, after: object) -> tuple[Difference, ...]:
    """Returns in which places the two inputs differ, at most MOST_DIFFERENCES, in the order of their keys."""
    found: list[Difference] = []
    for looks, (path, old, new) in enumerate(_places("", before, after, 0)):
        if len(found) == MOST_DIFFERENCES or looks == MOST_LOOKS:
            break
        if old is _ABSENT or new is _ABSENT or old != new or type(old) is not type(new):
            found.append(_difference(path or "input", old, new))
    return tuple(found)


def _places(path: str, before: object, after: object, depth: int) -> Iterator[tuple[str, object, object]]:
    """Yields the leaves of both values side by side."""
    if depth < MOST_DEPTH and isinstance(before, Mapping) and isinstance(after, Mapping):
        keys = [*before, *(key for key in after if key not in before)]
        for key in keys[:MOST_LOOKS]:
            inside = f"{path}.{path_name(key)}" if path else path_name(key)
            yield from _places(inside, before.get(key, _ABSENT), after.get(key, _ABSENT), depth + 1)
    elif depth < MOST_DEPTH and isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (old, new) in enumerate(zip(before[:MOST_LOOKS], after, strict=False)):
            yield from _places(f"{path}.{place}" if path else str(place), old, new, depth + 1)
    else:
        yield path, before, after


def _difference(path: str, before: object, after: object) -> Difference:
    if before is _ABSENT:
        return Difference(path, "added", "", shown(after), f"{path} added as {kind_of(after)}")
    if after is _ABSENT:
        return Difference(path, "removed", shown(before), "", f"{path} left out")
    return Difference(path, "changed", shown(before), shown(after), f"{path}: {_how(before, after)}")


def shown(value: object) -> str:
    """Returns the type of the value and, of a plain one, its beginning."""
    if isinstance(value, str):
        return f'string "{shortened(value, VALUE_CHARS)}"'
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return f"number {value:g}" if abs(value) < 10**12 else "number"
    return kind_of(value).strip("<>")


def _how(before: object, after: object) -> str:
    if isinstance(before, str) and isinstance(after, str):
        return _rewritten(before, after)
    if isinstance(before, list) and isinstance(after, list):
        return f"a list of {len(before)} became one of {len(after)}"
    old, new = kind_of(before), kind_of(after)
    return f"another {new} was right" if old == new else f"{old} became {new}"


def _rewritten(before: str, after: str) -> str:
    old, new = before[:TEXT_CHARS], after[:TEXT_CHARS]
    language = language_of(new) or language_of(old)
    if language is not None:
        return _edited(before, after, language)
    if old.casefold() == new.casefold():
        return "the same in other letter case"
    if _letters(old) == _letters(new):
        return f"the same with other punctuation or spacing{_prefix(old, new)}"
    if new and new in old:
        return "a part of the value alone"
    if old and old in new:
        return "the value and more"
    kinds = kind_of(old), kind_of(new)
    return f"another {kinds[1]} was right" if kinds[0] == kinds[1] else f"{kinds[0]} became {kinds[1]}"


def _prefix(old: str, new: str) -> str:
    sign = new[: -len(old)] if old and new.endswith(old) else ""
    return f": with {sign} in front" if re.fullmatch(r"[#@$+/:_-]{1,2}", sign) else ""


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _edited(before: str, after: str, language: Language) -> str:
    """Returns which words of a statement were added and dropped, all but its language's own as placeholders."""
    old, new = (tokens(text, language) for text in (before, after))
    added: list[str] = []
    dropped: list[str] = []
    for change, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if change != "equal":
            dropped += [_shown_tokens(old[i:j])] if j > i else []
            added += [_shown_tokens(new[k:m])] if m > k else []
    parts = [f"{word} {_listed(pieces)}" for word, pieces in (("added", added), ("dropped", dropped)) if pieces]
    return ", ".join(parts) or "written otherwise"


def _shown_tokens(found: Sequence[Token]) -> str:
    return " ".join(token.shown for token in found)


def _listed(pieces: list[str]) -> str:
    return " and ".join(f"`{shortened(piece, 2 * VALUE_CHARS + 1)}`" for piece in pieces[:MOST_PIECES])


def overlap(before: str, after: str) -> float:
    """Returns which share of the words of the shorter text the other one has, 0 to 1."""
    old, new = ({word.casefold() for word in words(text)} for text in (before, after))
    return len(old & new) / max(1, min(len(old), len(new)))


def respelled(before: object, after: object) -> bool:
    """Returns whether two inputs ask for the same thing in other words: spelled otherwise, or a statement edited."""
    found = differences(before, after)
    return bool(found) and all(_same_thing(before, after, item) for item in found)


def _same_thing(before: object, after: object, item: Difference) -> bool:
    old, new = (_at(value, item.path) for value in (before, after))
    if not isinstance(old, str) or not isinstance(new, str) or item.change != "changed":
        return False
    old, new = old[:TEXT_CHARS], new[:TEXT_CHARS]
    if is_statement(old) and is_statement(new):
        return overlap(old, new) >= SAME_STATEMENT
    return bool(_letters(old)) and (_letters(old) == _letters(new) or _abbreviates(old, new) or _abbreviates(new, old))


def _abbreviates(short: str, long: str) -> bool:
    """Returns whether the first text is some letters of the second in their order, in capitals: OH of Ohio."""
    if not (_ABBREVIATION.fullmatch(short) and len(_letters(short)) < len(_letters(long))):
        return False
    rest = iter(_letters(long))
    return _letters(short)[0] == _letters(long)[0] and all(letter in rest for letter in _letters(short))


def _at(value: object, path: str) -> object:
    return value.get(path) if isinstance(value, Mapping) else value
