"""Differences between the arguments of two calls, argument by argument, described by types and forms of the values."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import Literal

from retrieval.text import shortened
from writer.analysis.commands import scripts
from writer.analysis.move_values import parsed
from writer.analysis.placeholders import kind_of, path_name
from writer.analysis.source_differences import source_difference, source_terms
from writer.analysis.statements import Language, Token, language_of, tokens, words
from writer.analysis.value_differences import (
    affix_difference,
    changed_ranges,
    date_form,
    digits_form,
    in_place_of,
    number_form,
    statement_difference,
    told,
    url_difference,
)

MOST_DIFFERENCES = 20
MOST_DEPTH = 6
"""Levels of nested arguments that are compared value by value; deeper values are compared as a whole."""
MOST_LOOKS = 500
"""Maximum number of pairs of values that one comparison reads."""
VALUE_CHARS = 40
TEXT_CHARS = 10 * VALUE_CHARS
"""Maximum characters of a text that are compared."""
LINE_CHARS = 160
"""Maximum characters of a command line that a difference quotes as a whole."""
MOST_PIECES = 6
ALIKE = 0.75
"""Least similarity, 0 to 1, at which one name counts as a misspelling of the other."""
FEWEST_CHARS = 3
NAME_CHARS = 40
"""Maximum characters of a name that may be a misspelling: to compare two names takes time in both their lengths."""
SAME_STATEMENT = 0.6
"""Least overlap, 0 to 1, at which one statement counts as an edit of the other."""
LEFT_OUT = " left out"
"""Ending of the description of an argument that a call no longer has; the argument's path comes before it."""
_ABBREVIATION = re.compile(r"(?:[A-Z]\.? ?){2,5}")

Change = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True)
class ArgumentChange:
    """One place in which the arguments of two calls differ.

    Attributes:
        path: keys and list positions from the top, joined by dots; "input" if the input is not an object.
        how: description of the change that contains only the form of the values.
    """

    path: str
    change: Change
    how: str


_ABSENT = object()


def differences(before: object, after: object, *, concrete: bool = False) -> tuple[ArgumentChange, ...]:
    """Returns the first MOST_DIFFERENCES differences between the arguments of two calls, in the order of their keys.

    ``concrete``: quote harmless words of a command line, in place of placeholders.
    """

    def how(name: str, old: object, new: object) -> str:
        return kind_of(new) if old is _ABSENT else _how(old, new, name.rsplit(".", 1)[-1], concrete=concrete)

    return tuple(_compared(before, after, how))


def concrete_differences(before: object, after: object) -> list[str]:
    """Describes in words the first MOST_DIFFERENCES differences between the arguments of two calls.

    Values are quoted only if they are types, flags, versions, enum values, or tables and columns (see
    `value_differences`); other values are the run's data and become placeholders.
    """

    def how(name: str, old: object, new: object) -> str:
        if old is _ABSENT:
            return told(name, new) or kind_of(new)
        return _told_change(name.rstrip(".0123456789"), old, new)

    return [change.how for change in _compared(as_object(before), as_object(after), how)]


def _compared(before: object, after: object, how: Callable[[str, object, object], str]) -> Iterator[ArgumentChange]:
    """Yields the first MOST_DIFFERENCES changes; ``how`` describes the two values at a place, or an added value."""
    places = islice(_places("", before, after, 0), MOST_LOOKS)
    changed = (  # True equals 1 and is another value in JSON, 1.0 is not
        (path, old, new)
        for path, old, new in places
        if old != new or isinstance(old, bool) is not isinstance(new, bool)
    )
    for path, old, new in islice(changed, MOST_DIFFERENCES):
        name = path or "input"
        if new is _ABSENT:
            yield ArgumentChange(name, "removed", f"{name}{LEFT_OUT}")
        elif old is _ABSENT:
            yield ArgumentChange(name, "added", f"{name} added as {how(name, old, new)}")
        else:
            yield ArgumentChange(name, "changed", f"{name}: {how(name, old, new)}")


def source_changes(before: object, after: object) -> list[str]:
    """Returns the words that came and went in the source texts among the arguments of two calls, as terms."""
    pairs = islice(_places("", before, after, 0), MOST_DIFFERENCES)
    texts = ((path.rsplit(".", 1)[-1], old, new) for path, old, new in pairs if old != new)
    return [
        term
        for name, old, new in texts
        if isinstance(old, str) and isinstance(new, str)
        for term in source_terms(name, old, new)
    ]


def as_object(arguments: object) -> object:
    """Returns the object of arguments that a client wrote as JSON in a text; other arguments unchanged."""
    return parsed(arguments) if isinstance(arguments, str) and arguments[:1] == "{" else arguments


def _told_change(path: str, before: object, after: object) -> str:
    key = path.rsplit(".", 1)[-1]
    if isinstance(before, str) and isinstance(after, str):
        language = language_of(after[:TEXT_CHARS], key) or language_of(before[:TEXT_CHARS], key)
        change = statement_difference(before, after, language) if language else None
        inside = source_difference("code", *map(scripts, (before, after))) if language == "shell" else None
        if change and inside:
            change = inside if change.startswith("another ") else f"{inside}, {change}"
        return (
            change
            or url_difference(key, before[:TEXT_CHARS], after[:TEXT_CHARS])
            or date_form(before, after)
            or affix_difference(before, after)
            or digits_form(before, after)
            or (in_place_of(path, before, after) if told(path, after) else source_difference(key, before, after))
            or in_place_of(path, before, after)
            or _how_text(before, after, key, concrete=True)
        )
    if isinstance(before, list) and isinstance(after, list):
        gone, come = (
            [told(path, item) for item in some if item not in other]
            for some, other in ((before, after), (after, before))
        )
        if any(gone) or any(come):
            parts = [f"{', '.join(filter(None, come))} added"] * any(come) + [
                f"{', '.join(filter(None, gone))} left out"
            ] * any(gone)
            return " and ".join(parts)
    told_change = in_place_of(path, before, after) or number_form(path, before, after)
    return told_change or _how(before, after, key, concrete=True)


def _places(path: str, before: object, after: object, depth: int) -> Iterator[tuple[str, object, object]]:
    """Yields each path in the two values with both plain values there; _ABSENT stands for a missing value."""
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


def _how(before: object, after: object, key: str, *, concrete: bool) -> str:
    if isinstance(before, str) and isinstance(after, str):
        return _how_text(before, after, key, concrete=concrete)
    if isinstance(before, list) and isinstance(after, list):
        return f"a list of {len(before)} became one of {len(after)}"
    old, new = kind_of(before), kind_of(after)
    return f"another {new} was right" if old == new else f"{old} became {new}"


def _how_text(before: str, after: str, key: str, *, concrete: bool) -> str:
    old, new = before[:TEXT_CHARS], after[:TEXT_CHARS]
    language = language_of(new, key) or language_of(old, key)
    if language is not None:
        return _edited(before, after, language, concrete=concrete)
    if old.casefold() == new.casefold():
        return "the same in other letter case"
    if _letters(old) == _letters(new):
        sign = new[: -len(old)] if old and new.endswith(old) else ""
        prefix = f": with {sign} in front" if re.fullmatch(r"[#@$+/:_-]{1,2}", sign) else ""
        return f"the same with other punctuation or spacing{prefix}"
    if new and new in old:
        return "a part of the value alone"
    if old and old in new:
        return "the value and more"
    kinds = kind_of(old), kind_of(new)
    return f"another {kinds[1]} was right" if kinds[0] == kinds[1] else f"{kinds[0]} became {kinds[1]}"


def _letters(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())


def _edited(before: str, after: str, language: Language, *, concrete: bool) -> str:
    """Returns the words that were added to and dropped from a statement; words of the user's data as placeholders.

    Short command lines are quoted as a whole.
    """
    old, new = (tokens(text, language, concrete=concrete) for text in (before, after))
    old_line, new_line = _shown_tokens(old), _shown_tokens(new)
    if language == "shell" and max(len(old_line), len(new_line)) <= LINE_CHARS:
        if old_line != new_line:
            return f"`{new_line}` instead of `{old_line}`"
        pairs = [(one, other) for one, other in zip(old, new, strict=True) if one.text != other.text]
        if pairs and all(_letters(one.text) == _letters(other.text) and other.text[0] in "'\"" for one, other in pairs):
            return f"`{new_line}` with other quotes"
        if pairs:
            return f"another {' and '.join(dict.fromkeys(one.shown for one, _ in pairs))} was right"
    pieces: dict[str, list[str]] = {"added": [], "dropped": []}
    for i, j, k, m in changed_ranges(old, new):
        pieces["dropped"] += [_shown_tokens(old[i:j])] if j > i else []
        pieces["added"] += [_shown_tokens(new[k:m])] if m > k else []
    return (
        ", ".join(
            f"{word} {' and '.join(f'`{shortened(piece, 2 * VALUE_CHARS + 1)}`' for piece in some[:MOST_PIECES])}"
            for word, some in pieces.items()
            if some
        )
        or "written otherwise"
    )


def _shown_tokens(statement: Sequence[Token]) -> str:
    return " ".join(token.shown for token in statement)


def overlap(before: str, after: str) -> float:
    """Returns the share of the shorter text's words that the other text has too, 0 to 1; letter case is ignored."""
    old, new = ({word.casefold() for word in words(text)} for text in (before, after))
    return len(old & new) / max(1, min(len(old), len(new)))


def alike(one: str, other: str) -> bool:
    """Returns whether one name is a misspelling or a part of the other; names that differ in a number are not alike."""
    if min(len(one), len(other)) < FEWEST_CHARS or max(len(one), len(other)) > NAME_CHARS:
        return one == other
    if re.sub(r"\d+", "0", one) == re.sub(r"\d+", "0", other):
        return one == other
    return one in other or other in one or SequenceMatcher(None, one, other, autojunk=False).ratio() >= ALIKE


def respelled(before: object, after: object) -> bool:
    """Returns whether two calls' arguments differ only in spelling, in an abbreviation, or in edits of a statement."""
    changes = differences(before, after)
    for item in changes:
        old, new = (value.get(item.path) if isinstance(value, Mapping) else value for value in (before, after))
        if not isinstance(old, str) or not isinstance(new, str) or item.change != "changed":
            return False
        old, new = old[:TEXT_CHARS], new[:TEXT_CHARS]
        if language_of(old) and language_of(new):
            same = overlap(old, new) >= SAME_STATEMENT
        else:
            same = bool(_letters(old)) and (
                _letters(old) == _letters(new)
                or alike(old.casefold(), new.casefold())
                or _abbreviates(old, new)
                or _abbreviates(new, old)
            )
        if not same:
            return False
    return bool(changes)


def _abbreviates(short: str, long: str) -> bool:
    """Returns whether the first text is an abbreviation in capitals of the second, as OH is of Ohio."""
    if not (_ABBREVIATION.fullmatch(short) and len(_letters(short)) < len(_letters(long))):
        return False
    rest = iter(_letters(long))
    return _letters(short)[0] == _letters(long)[0] and all(letter in rest for letter in _letters(short))
