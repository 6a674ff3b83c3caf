"""Concrete values as typed placeholders, so that what is learned from one run says nothing of its data."""

import re
from collections.abc import Callable, Iterable
from functools import partial

from retrieval.text import shortened
from writer.analysis.statements import SQL_WORDS, language_of, tokens, words

TEXT_CHARS = 400
"""Characters of a text that are looked at, and the most of a form that is told."""
MOST_SHOWN = 40
"""Tokens of a statement that its form tells."""
MOST_ARGUMENTS = 8
"""Arguments of a call that its form tells."""
MOST_LOOKED_AT = 120
"""Arguments of a call in which names are looked for."""
PATH_CHARS = 40
"""Longest name of an argument; what is longer is a text."""
MOST_WORDS = 3
"""Words of a text that may all be values; a longer one is prose."""
FEWEST_CHARS = 3

_FOR_NAMES = {"<identifier>", "<word>", "<branch>", "<module>"}
"""What is shown of a name in a statement."""

_ARGUMENT_NAME = re.compile(rf"[\w$@-]{{1,{PATH_CHARS}}}")

_VALUES = (
    (re.compile(r"\[REDACTED:[a-z-]+\]"), "<redacted>"),
    (re.compile(r"(?i)\bhttps?://\S+"), "<url>"),
    (re.compile(r"[\w.%+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,6}"), "<email>"),
    (re.compile(r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (
        re.compile(
            r"\b\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ]\d{1,2}:\d\d(?::\d\d)?Z?)?\b|\b\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b"
        ),
        "<date>",
    ),
    (re.compile(r"(?<![\w<])(?:~|\.{1,2})?/[\w.~-]+(?:/[\w.~-]+)*"), "<path>"),
    (
        re.compile(r"\"[^\"\n]{0,200}\"|(?<!\w)'[^'\n]{0,200}'(?!\w)|`[^`\n]{0,200}`|[“„«][^”“»\n]{0,200}[”“»]"),
        "<string>",
    ),
    (re.compile(r"(?<![\w<])#?(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Za-z])[\w-]{2,60}\b"), "<id>"),
    (re.compile(r"(?<![\w<])[#$€£]?[+-]?\d(?:[\d.,:]*\d)?%?(?!\w)"), "<number>"),
    (re.compile(r"\b[A-Za-z]\w*_\w+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\.\w+\.\w+\b"), "<identifier>"),
)
"""What in a text is a value, each looked for in what the ones before it left."""
_PROPER_NAMES = re.compile(r"(?<=[a-z,] )[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+){0,3}")
"""Capitalised words within a sentence."""
_TYPES = (
    ("<email>", re.compile(r"[\w.%+-]+@[\w.-]+\.\w+")),
    ("<url>", re.compile(r"(?i)https?://\S+")),
    ("<date>", re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?(?:[T ][\d:.Z+-]+)?|\d\d?[/.]\d\d?[/.]\d{2,4}")),
    ("<number as text>", re.compile(r"[+-]?\d[\d.,]*")),
    ("<path>", re.compile(r"(?:~|\.{1,2})?/[\w./~-]*")),
    ("<id>", re.compile(r"#?(?=\S*\d)[\w-]+")),
    ("<word>", re.compile(r"[\w-]+")),
)
"""What a short text is as a whole: the first that fits."""
_PLACEHOLDER = re.compile(r"<[a-z]+(?: [a-z0-9]+){0,3}>")


def without_placeholders(text: str) -> str:
    """Returns the words around the placeholders, which mean more to an embedder alone; the text if there are none."""
    return " ".join(_PLACEHOLDER.sub(" ", text).split()) or text


def clean(text: str, longest: int) -> str:
    """Returns the text in one line that Postgres can store, cut to that many characters."""
    known = text[: 4 * longest].encode(errors="replace").decode()
    if not known.isprintable():
        known = "".join(char if char.isprintable() else " " for char in known)
    return shortened(" ".join(known.split()), longest)


def abstract(text: str, known: Iterable[str] = ()) -> str:
    """Returns the text with its concrete values as placeholders.

    Args:
        text: of which the first TEXT_CHARS count.
        known: words that are values, because some call had them in its arguments.
    """
    said = clean(text, TEXT_CHARS)
    for pattern, placeholder in _VALUES:
        said = pattern.sub(placeholder, said)
    values = {word.casefold() for word in known}
    said = re.sub(r"(?<![<\w])\w+(?![\w>])", lambda found: _masked(found[0], values), said)
    named = _PROPER_NAMES.findall(said)
    return said if len(named) > len(said.split()) / 5 else _PROPER_NAMES.sub("<name>", said)


def _masked(word: str, values: set[str]) -> str:
    return "<identifier>" if word.casefold() in values else word


def values_of(given: object) -> set[str]:
    """Returns the words in a call's arguments that are names or values: of short texts and of statements."""
    found = {word for text in _texts(given) for word in _names_in(text) if word.isidentifier()}
    return {word for word in found if word.casefold() not in SQL_WORDS}


def _texts(given: object) -> list[str]:
    values = list(given.values())[:MOST_LOOKED_AT] if isinstance(given, dict) else [given]
    return [value for value in values if isinstance(value, str)]


def _names_in(text: str) -> list[str]:
    language = language_of(text)
    if language is not None:
        named = [token.text for token in tokens(text, language) if token.shown in _FOR_NAMES]
        parts = [part.strip('"`') for name in named for part in (name.split(".") if language == "sql" else [name])]
        return [part for part in parts if len(part) >= FEWEST_CHARS]
    said = words(text[:TEXT_CHARS])
    shortest = FEWEST_CHARS + (len(said) > 1)  # "the" beside a name is no value
    return [word for word in said if len(word) >= shortest] if len(said) <= MOST_WORDS else []


def path_name(key: object) -> str:
    """Returns a key as a part of a path; one that is no name but a text is not repeated."""
    return str(key) if _ARGUMENT_NAME.fullmatch(str(key)[: PATH_CHARS + 1]) else "<key>"


def kind_of(value: object) -> str:
    """Returns the placeholder of the value's type."""
    if isinstance(value, str):
        return _kind_of_text(value)
    if isinstance(value, bool):
        return "<boolean>"
    if isinstance(value, int | float):
        return "<number>"
    if value is None:
        return "<null>"
    if isinstance(value, list):
        return f"<list of {len(value)}>"
    return "<object>"


def _kind_of_text(text: str) -> str:
    if not text.strip():
        return "<empty text>"
    if len(text) > TEXT_CHARS:
        return "<text>"
    return next((name for name, pattern in _TYPES if pattern.fullmatch(text)), "<text>")


def form(given: object, shown: Callable[[object, object], str] | None = None, *, concrete: bool = False) -> str:
    """Returns a call's arguments by their names, with types for values and statements for themselves.

    Args:
        given: the arguments.
        shown: what stands for a value and its name instead of ``form_of``.
        concrete: whether what is safe of a command line is told as it was.
    """
    show = shown or partial(form_of, concrete=concrete)
    if not isinstance(given, dict):
        return "no arguments" if given is None else show(given, "")
    if not given:
        return "no arguments"
    named = [f"{path_name(key)}={show(value, key)}" for key, value in list(given.items())[:MOST_ARGUMENTS]]
    return ", ".join(named + ["…"] * (len(given) > len(named)))


def form_of(value: object, key: object = None, *, concrete: bool = False) -> str:
    """Returns the type of a value, or the form of a statement."""
    language = language_of(value, key) if isinstance(value, str) else None
    if language is None or not isinstance(value, str):
        return kind_of(value)
    shown = [token.shown for token in tokens(value, language, concrete=concrete)[:MOST_SHOWN]]
    return f"`{clean(' '.join(shown), TEXT_CHARS)}`"
