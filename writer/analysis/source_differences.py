"""Describes the difference between two source texts, such as code, configuration or a pattern, without data of the run.

Keywords, names of code, signs and short values of technology are quoted; other strings and values, numbers, paths, ids
and secrets become placeholders, and comments are left out. A text in prose has no such description.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from retrieval.patterns import patterns, word_sets
from retrieval.text import shortened
from writer.analysis.causes import instructs
from writer.analysis.move_values import last_word, placeholder_of
from writer.analysis.placeholders import clean, kind_of
from writer.analysis.value_differences import change_between, changed_ranges, is_technical, told

SOURCE_CHARS = 20_000
"""Maximum characters of a source text that are compared."""
MOST_LINES = 100
"""Maximum number of lines that are compared, after the first line that changed."""
MOST_CHANGED = 10
"""Maximum number of places that changed, and of lines of each, that are read."""
LINE_CHARS = 240
WHOLE_CHARS = 90
"""Maximum characters of two lines that are quoted whole, half as many where several lines changed."""
TOLD_CHARS = 120
"""Maximum characters of a description."""
PIECE_CHARS = 80
MOST_QUOTED = 2
"""Maximum number of lines of one place that are quoted one by one; more are quoted as one."""
NUMBER_CHARS = 4
"""Maximum characters of a number that is quoted; a longer one may be an id."""
FEWEST_CHARS = 3
LEAST_SIGNS = 0.2
"""Least number of signs for each word in a source text."""
MOST_SAID = 0.08
"""Largest share of words that are only said, such as "the", in a source text."""
READ_CHARS = 2_000
"""Number of characters by which a text is recognised as source text."""

_FORMS = patterns("writer.analysis", "source_differences")
_WORDS = word_sets("writer.analysis", "source_differences")
PATCH = _FORMS["patch"]
ADDED = _FORMS["added"]
"""A line that a patch adds."""


def is_source(name: str, text: str) -> bool:
    """Returns whether the value of an argument is source text: by its signs and words, if its name is not for prose."""
    if not _may_be_source(name, text) or kind_of(text) != "<text>":
        return False
    signs, words = len(_FORMS["sign"].findall(text[:READ_CHARS])), len(_FORMS["word"].findall(text[:READ_CHARS]))
    return signs >= max(1, LEAST_SIGNS * words)


def _are_source(name: str, before: str, after: str) -> bool:
    """Returns whether two values of an argument are versions of a source text, by its name or by both values."""
    if last_word(name) in _WORDS["code"]:
        return _may_be_source(name, before) and _may_be_source(name, after)
    if name.startswith(("new_", "old_")) and _may_be_source(name, before) and _may_be_source(name, after):
        return is_source(name, before) or is_source(name, after)
    return is_source(name, before or after) and is_source(name, after or before)


def _may_be_source(name: str, text: str) -> bool:
    free = placeholder_of(name) not in {None, "<text>"} and last_word(name) not in _WORDS["code"]
    if free or last_word(name) in _WORDS["prose"]:
        return False
    lines = (_FORMS["piece"].finditer(line[:LINE_CHARS]) for line in text[:READ_CHARS].splitlines())
    code = ("".join(part[0] for part in line if part.lastgroup not in {"comment", "string"}) for line in lines)
    words = _FORMS["word"].findall("\n".join(code))
    return sum(word.casefold() in _WORDS["said"] for word in words) <= MOST_SAID * len(words)


def source_difference(name: str, before: str, after: str) -> str | None:
    """Describes the lines and words that changed in a source text; None: it is no source, or only data changed.

    Args:
        name: name of the argument that holds the text.
        before: the text of the call that failed.
        after: the text of the call that succeeded.
    """
    hunks, changes, length = _hunks(before, after), list[str](), 0
    if not hunks:
        return _indentation(name, before, after)
    if not _are_source(name, before, after):
        return None
    whole = WHOLE_CHARS // min(sum(len(come) or 1 for _, come in hunks), 2)
    for gone, come in hunks:
        for change in _changes(_shown(name, gone), _shown(name, come), whole):
            length += len(change) + 2
            if change not in changes and (not changes or length <= TOLD_CHARS):
                changes.append(change)
    if not changes and any(len(gone) != len(come) for gone, come in hunks):  # nothing is told of a comment
        return "comments changed"
    return clean(", ".join(changes), 2 * TOLD_CHARS) or None


def source_terms(name: str, before: str, after: str) -> list[str]:
    """Returns the words and signs that came and went in a source text, as terms; empty: it is no source."""
    if not _are_source(name, before, after):
        return []
    had, has = Counter[str](), Counter[str]()
    for gone, come in _hunks(before, after):
        for lines, counts in ((gone, had), (come, has)):
            counts.update(_FORMS["term"].findall(" ".join(_shown(name, lines))))
    return [*(f"+{word}" for word in has - had), *(f"-{word}" for word in had - has)]


def _hunks(before: str, after: str) -> list[tuple[Sequence[str], Sequence[str]]]:
    """Returns the lines that went and those that came in each place that changed; spaces around lines are ignored."""
    old, new = _lines(before), _lines(after)
    pairs = enumerate(zip(old, new, strict=False))
    start = next((at for at, (one, other) in pairs if one != other), min(len(old), len(new)))
    old, new = old[start : start + MOST_LINES], new[start : start + MOST_LINES]
    places = changed_ranges(old, new)[:MOST_CHANGED]
    return [(old[i:j][:MOST_CHANGED], new[k:m][:MOST_CHANGED]) for i, j, k, m in places]


def _lines(text: str) -> list[str]:
    """Returns the lines of a text without those that are empty; of a patch, those that it adds."""
    known = text[:SOURCE_CHARS]
    lines = ADDED.findall(known) if PATCH.search(known) else known.splitlines()
    return [line[:LINE_CHARS].strip() for line in lines if line.strip()]


def _shown(name: str, lines: Sequence[str]) -> list[str]:
    """Returns lines with placeholders for data of the run, without empty ones."""
    return [line for line in (_line(name, line) for line in lines) if line]


def _line(name: str, line: str) -> str:
    """Returns a line with placeholders for data of the run; empty for a comment."""
    if configured := _FORMS["configured"].fullmatch(line):
        return f"{configured[1]}{_value(configured[2], configured[3])}"
    shown = "".join(islice((_piece(name, line, part) for part in _FORMS["piece"].finditer(line)), LINE_CHARS)).strip()
    if "</" in shown:
        shown = _FORMS["between_tags"].sub(lambda text: text[0] if is_technical("", text[0]) else "<text>", shown)
    said = re.findall(r"\w+(?: \w+)+", shown)
    return "<text>" if _FORMS["sentence"].fullmatch(shown) or any(map(instructs, said)) else shown


def _piece(name: str, line: str, part: re.Match[str]) -> str:
    """Returns a piece of a line as it is, or as a placeholder; a comment is left out."""
    kind, text = part.lastgroup or "", part[0]
    if kind == "rest":
        return text
    before = (
        _FORMS["key"].search(line[max(0, part.start() - 80) : part.start()]) if kind in {"string", "number"} else None
    )
    key = before[1] if before else ""
    if kind == "string":
        names_field = _FORMS["field"].fullmatch(text) and line[part.end() :].lstrip().startswith(":")
        return text if names_field else f"{text[0]}{_value(key, text[1:-1])}{text[-1]}"
    if kind == "number" and (len(key) == 1 or placeholder_of(key) is None):
        return text if len(text) <= NUMBER_CHARS or is_technical(key, text) else "<number>"
    if kind == "word":
        kind = "word" if last_word(name) in _WORDS["matches"] and len(text) >= FEWEST_CHARS else "id"
        return f"<{kind}>" if kind == "word" or _FORMS["id"].fullmatch(text) else text
    return "" if kind == "comment" else f"<{kind}>"


def _value(key: str, value: str) -> str:
    """Returns a string or a value of configuration if it names a choice or a technology, else a placeholder."""
    if _FORMS["secret"].search(key) and value:
        return "<secret>"
    if is_technical(key, value) or told(key or "value", value):
        return value
    return "<number>" if value.isdigit() else "<string>"


def _changes(gone: Sequence[str], come: Sequence[str], whole: int) -> Iterator[str]:
    """Yields what changed between the lines of one place; lines of at most `whole` characters are quoted whole."""
    if len(gone) == len(come):
        for old, new in zip(gone, come, strict=True):
            yield from _change(old, new, whole)
    elif gone and come:
        yield from _change(" ".join(gone), " ".join(come), whole)
    else:
        some = [" ".join(come or gone)] if len(come or gone) > MOST_QUOTED else come or gone
        lines = " and ".join(f"`{shortened(line, PIECE_CHARS)}`" for line in some)
        yield f"{lines} {'added' if come else 'left out'}"


def _change(old: str, new: str, whole: int) -> Iterator[str]:
    if old == new:
        kinds = dict.fromkeys(_FORMS["placeholder"].findall(new))
        if kinds:
            yield f"another {' and '.join(kinds)} in `{shortened(new, PIECE_CHARS)}`"
    elif len(old) + len(new) <= whole:
        yield f"`{new}` in place of `{old}`"
    else:
        one, other = (re.findall(r"\w[\w.$@-]*|\s+|[^\w\s]", line) for line in (old, new))
        for i, j, k, m in changed_ranges(one, other):
            pair = (shortened("".join(words).strip(), PIECE_CHARS) for words in (one[i:j], other[k:m]))
            yield from change_between(*(piece and f"`{piece}`" for piece in pair))


def _indentation(name: str, before: str, after: str) -> str | None:
    """Describes the first line whose indentation changed; None: there is none."""
    texts = ([line for line in text[:SOURCE_CHARS].splitlines() if line.strip()] for text in (before, after))
    for old, new in zip(*texts, strict=False):
        one, other = (line[: len(line) - len(line.lstrip())] for line in (old, new))
        if one != other and "\t" in one + other:
            return "spaces in place of tabs" if "\t" in one else "tabs in place of spaces"
        if one != other:
            line = shortened(_line(name, new.strip()), PIECE_CHARS) if _are_source(name, before, after) else "a line"
            return f"`{line}` indented by {len(other)} spaces in place of {len(one)}"
    return None
