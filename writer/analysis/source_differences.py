"""Describes the difference between two source texts, such as code, configuration or a pattern, without data of the run.

Keywords, names of code, signs and short values of technology are quoted; other strings and values, numbers, paths, ids
and secrets become placeholders, and comments are left out. A text in prose has no such description.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice

from retrieval.text import shortened
from writer.analysis.causes import instructs
from writer.analysis.move_values import last_word, placeholder_of
from writer.analysis.placeholders import clean, kind_of
from writer.analysis.value_differences import told

SOURCE_CHARS = 20_000
"""Maximum characters of a source text that are compared."""
MOST_LINES = 200
"""Maximum number of lines that are compared, after the first line that changed."""
LINE_CHARS = 240
WHOLE_CHARS = 90
"""Maximum characters of two lines that are quoted whole; of longer lines, only the changed pieces are."""
TOLD_CHARS = 150
"""Maximum characters of a description."""
PIECE_CHARS = 80
NUMBER_CHARS = 4
"""Maximum characters of a number that is quoted; a longer one may be an id."""
FEWEST_CHARS = 3
LEAST_SIGNS = 0.2
"""Least number of signs for each word in a source text."""
MOST_SAID = 0.08
"""Largest share of words that are only said, such as "the", in a source text."""
READ_CHARS = 4_000
"""Number of characters by which a text is recognised as source text."""

_PROSE = frozenset(
    """
    agenda answer comment description details explanation goal instruction instructions message note notes prompt
    question reason reasoning subject summary task thought title topic
    """.split()
)
"""Last words in the names of arguments that hold prose."""
_SAID = frozenset(
    """
    an are dear he her his my our please she that the their them there these they those we you your
    das dem den der die ein eine einen ist und zum zur el las los para que una est les une vous
    """.split()
)
_MATCHES = frozenset(("find", "glob", "grep", "pattern", "regex", "regexp", "search"))
"""Last words in the names of arguments that hold a pattern, whose words are data."""
_SIGN = re.compile(r"[{}()\[\];=<>:+*&|\\^$#/]|(?<=\s)\.(?=\s)")
_WORD = re.compile(r"[^\W\d][\w-]*")
_PIECE = re.compile(
    r"""(?xi)
    (?P<comment> (?<![:\w])//.* | /\*.*?(?:\*/|$) | (?<!\S)\#(?=\s|$).* | <!--.*?(?:-->|$) )
    | (?P<string> "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | `[^`]*` )
    | (?P<url> [a-z][a-z+.-]{1,12}://[^\s"'`<>()]+ )
    | (?P<email> [\w.%+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,6} )
    | (?P<redacted> \[REDACTED:[a-z-]+\] )
    | (?P<path> (?<![\w<.)*])(?:~|\.{1,2})?/[\w.~-]+(?:/[\w.~-]+)+ )
    | (?P<date> \b\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?\b )
    | (?P<word> [^\W\d][\w$]* (?: [:@] v?\d{1,4} (?:\.\d{1,4}){0,3} (?!\w) )? )
    | (?P<number> \d[\w.]* )
    | (?P<rest> \s+ | . )
    """
)
_CONFIGURED = re.compile(
    r"(\s*(?:[+-]\s*)?([\w.$-]{1,60})\s*[:=]\s*)([^\s\"'{}\[\]()<>;=+*,|&][^\"'{}\[\]()<>;=+*,|&]*?)\s*"
)
"""A line of configuration: its beginning, its key and its value without quotes."""
_KEY = re.compile(r"([\w.-]{1,60})[\"'\])]?\s*(?:=>|[:=!]?={0,2}|\()\s*$")
_SECRET = re.compile(r"(?i)pass|secret|token|key|credential|auth")
_ID = re.compile(r"(?i)(?=.*\d)[0-9a-f]{7,64}|.*\d{5}.*|.{41,}")
_TECHNICAL = re.compile(
    r"(?:application|audio|font|image|multipart|text|video)/[\w.+*-]{1,40}|(?i:utf-?\d{1,2}(?:-sig)?|latin-?1|cp\d{3,4}|iso-8859-\d+)"
    r"|[a-z][a-z+.]{0,30}/v\d{1,2}(?:(?:alpha|beta)\d{0,2})?|[a-z][a-z+]{0,14}[:@-]?v?(?:\d{1,2}|20\d\d)(?:\.\d{1,3}){0,3}"
    r"|[~^<>=]{0,2}v?\d{1,3}(?:\.\d{1,4}){1,3}|[rwab+]{1,3}"
    r"|(?=.*(?:yy|MM|dd|HH|mm|DD))[yYMdDHhmsSaZXzTA:./, '-]+|(?=.*%)(?:%-?[A-Za-z%]|[^\w])+|[^\w]*"
)
"""Values that name a technology: media types, encodings, versions, forms of dates and numbers, signs."""


def is_source(name: str, text: str) -> bool:
    """Returns whether the value of an argument is source text: by its signs and words, if its name is not for prose."""
    free = placeholder_of(name) not in {None, "<text>"} and last_word(name) != "code"
    if free or last_word(name) in _PROSE or kind_of(text) != "<text>":
        return False
    signs, words = len(_SIGN.findall(text[:READ_CHARS])), _WORD.findall("\n".join(_code(text[:READ_CHARS])))
    said = sum(word.casefold() in _SAID for word in words)
    return signs >= max(1, LEAST_SIGNS * len(words)) and said <= MOST_SAID * len(words)


def _code(text: str) -> Iterator[str]:
    """Yields the lines of a text without comments and strings."""
    for line in text.splitlines():
        yield "".join(
            part[0] for part in _PIECE.finditer(line[:LINE_CHARS]) if part.lastgroup not in {"comment", "string"}
        )


def source_difference(name: str, before: str, after: str) -> str | None:
    """Describes the lines and words that changed in a source text; None: it is no source, or only data changed.

    Args:
        name: name of the argument that holds the text.
        before: the text of the call that failed.
        after: the text of the call that succeeded.
    """
    if not (is_source(name, after) and is_source(name, before or after)):
        return None
    hunks, changes, length = _hunks(before, after), list[str](), 0
    if not hunks:
        return _indentation(name, before, after)
    for gone, come in hunks:
        for change in _changes(*(_shown(name, lines) for lines in (gone, come))):
            length += len(change) + 2
            if change in changes or (changes and length > TOLD_CHARS):
                continue
            changes.append(change)
    return clean(", ".join(changes), 2 * TOLD_CHARS) or None


def source_terms(name: str, before: str, after: str) -> list[str]:
    """Returns the words and signs that came and went in a source text, as terms; empty: it is no source."""
    if not (is_source(name, after) and is_source(name, before or after)):
        return []
    had, has = Counter[str](), Counter[str]()
    for gone, come in _hunks(before, after):
        for lines, counts in ((gone, had), (come, has)):
            counts.update(re.findall(r"<\w+>|\w+|[^\w\s]", " ".join(_shown(name, lines))))
    return [*(f"+{word}" for word in has - had), *(f"-{word}" for word in had - has)]


def _hunks(before: str, after: str) -> list[tuple[Sequence[str], Sequence[str]]]:
    """Returns the lines that went and those that came in each place that changed; spaces around lines are ignored."""
    old, new = (
        [line[:LINE_CHARS].strip() for line in text[:SOURCE_CHARS].splitlines() if line.strip()]
        for text in (before, after)
    )
    start = next(
        (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new))
    )
    old, new = old[start : start + MOST_LINES], new[start : start + MOST_LINES]
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    return [(old[i:j], new[k:m]) for change, i, j, k, m in matcher.get_opcodes() if change != "equal"]


def _shown(name: str, lines: Sequence[str]) -> list[str]:
    """Returns lines with placeholders for data of the run, without empty ones."""
    return [line for line in (_line(name, line) for line in lines) if line]


def _line(name: str, line: str) -> str:
    if configured := _CONFIGURED.fullmatch(line):
        return f"{configured[1]}{_value(configured[2], configured[3])}"
    shown = "".join(islice((_piece(name, line, part) for part in _PIECE.finditer(line)), LINE_CHARS)).strip()
    said = re.findall(r"\w+(?: \w+)+", shown)
    return shown if not any(map(instructs, said)) else "<text>"


def _piece(name: str, line: str, part: re.Match[str]) -> str:
    kind, text = part.lastgroup or "", part[0]
    if kind in {"comment", "rest"}:
        return "" if kind == "comment" else text
    before = _KEY.search(line[max(0, part.start() - 80) : part.start()])
    key = before[1] if before else ""
    if kind == "string":
        return f"{text[0]}{_value(key, text[1:-1])}{text[-1]}"
    if kind == "number":
        return text if len(text) <= NUMBER_CHARS and placeholder_of(key) is None else "<number>"
    if kind != "word":
        return f"<{kind}>"
    if last_word(name) in _MATCHES and len(text) >= FEWEST_CHARS:
        return "<word>"
    return "<id>" if _ID.fullmatch(text) else text


def _value(key: str, value: str) -> str:
    """Returns a string or a value of configuration if it names a choice or a technology, else a placeholder."""
    if _SECRET.search(key) and value:
        return "<secret>"
    technical = placeholder_of(key) is None and _TECHNICAL.fullmatch(value)
    return value if technical or told(key or "value", value) else "<string>"


def _changes(gone: Sequence[str], come: Sequence[str]) -> Iterator[str]:
    """Yields what changed between the lines of one place."""
    if len(gone) == len(come):
        for old, new in zip(gone, come, strict=True):
            yield from _change(old, new)
    elif gone and come:
        yield from _change(" ".join(gone), " ".join(come))
    else:
        lines = " and ".join(f"`{shortened(line, PIECE_CHARS)}`" for line in come or gone)
        yield f"{lines} {'added' if come else 'left out'}"


def _change(old: str, new: str) -> Iterator[str]:
    if old == new:
        kinds = dict.fromkeys(re.findall(r"<\w+>", new))
        if kinds:
            yield f"another {' and '.join(kinds)} was right"
    elif len(old) + len(new) <= WHOLE_CHARS:
        yield f"`{new}` in place of `{old}`"
    else:
        one, other = (re.findall(r"\w+|\s+|[^\w\s]", line) for line in (old, new))
        for change, i, j, k, m in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
            gone, come = (shortened("".join(words).strip(), PIECE_CHARS) for words in (one[i:j], other[k:m]))
            if change != "equal" and (gone or come):
                yield (
                    f"`{come}` in place of `{gone}`"
                    if gone and come
                    else f"`{come or gone}` {'added' if come else 'left out'}"
                )


def _indentation(name: str, before: str, after: str) -> str | None:
    """Describes the first line whose indentation changed; None: there is none."""
    for old, new in zip(
        *([line for line in text.splitlines() if line.strip()] for text in (before, after)), strict=False
    ):
        one, other = (line[: len(line) - len(line.lstrip())] for line in (old, new))
        if one != other:
            if "\t" in one + other:
                return "spaces in place of tabs" if "\t" in one else "tabs in place of spaces"
            line = shortened(_line(name, new.strip()), PIECE_CHARS)
            return f"`{line}` indented by {len(other)} spaces in place of {len(one)}"
    return None


EDITS = (
    ("old_str", "new_str"),
    ("old_string", "new_string"),
    ("old_text", "new_text"),
    ("old", "new"),
    ("search", "replace"),
)
"""Names of the two arguments of an edit: the text that it takes away, and the text that it puts there."""


def edit_in(arguments: object) -> tuple[str, str, str] | None:
    """Returns an edit among the arguments of a call: the argument's name, the text before and the text after."""
    if not isinstance(arguments, Mapping):
        return None
    for old, new in EDITS:
        before, after = arguments.get(old), arguments.get(new)
        if isinstance(before, str) and isinstance(after, str):
            return new, before, after
    return None
