"""Replaces concrete values by typed placeholders, so that a lesson reveals no data of the run that it came from."""

import re
from collections.abc import Callable, Iterable
from functools import partial

from retrieval.patterns import read
from retrieval.text import shortened
from writer.analysis.statements import SQL_WORDS, language_of, tokens, words

TEXT_CHARS = 400
"""Maximum characters of a text that are read, and of a form."""
MOST_SHOWN = 40
"""Maximum number of tokens of a statement that its form shows."""
MOST_ARGUMENTS = 8
"""Maximum number of arguments of a call that its form shows."""
MOST_LOOKED_AT = 120
"""Maximum number of arguments of a call that are searched for names."""
PATH_CHARS = 40
"""Maximum characters of an argument's name; a longer key counts as a text."""
MOST_WORDS = 3
"""Maximum words of a text whose words count as names and values; a longer text is prose."""
FEWEST_CHARS = 3

_FOR_NAMES = {"<identifier>", "<word>", "<branch>", "<module>"}
"""Placeholders that replace names in a statement."""

_ARGUMENT_NAME = re.compile(rf"[\w$@-]{{1,{PATH_CHARS}}}")

_READ = read("writer.analysis")["placeholders"]
_VALUES = [(sign, re.compile(form), placeholder) for sign, form, placeholder in _READ["values"]]
"""Patterns of values in a text, each after a sign that all its values have, in the order of replacement."""
PROPER_NAMES = re.compile(r"(?<=[a-z,] )[A-Z][a-zà-ÿ]+(?: [A-Z][a-zà-ÿ]+){0,3}")
"""Pattern of capitalised words within a sentence, which may be names."""
_GERMAN = re.compile(r"\b(?:auf|bei|bitte|das|dem|den|der|des|die|eine?[mnrs]?|für|hat|im|ist|mit|und|von|zu[mr]?)\b")
MOST_NAMES = 2
"""Number of names that a short task may have; with more, its capitals are no signs of names."""
_TYPES: dict[str, str] = _READ["types"]
"""Placeholders for the type of a short text, each with its pattern; the first pattern that matches the text counts."""
_TYPE = re.compile("|".join(f"({pattern})" for pattern in _TYPES.values()))
_TYPE_NAMES = ("<text>", *_TYPES)
_PLACEHOLDER = re.compile(r"<[a-z]+(?: [a-z0-9]+){0,3}>")


def without_placeholders(text: str) -> str:
    """Returns a text without its placeholders, which harm an embedding; unchanged if it has only placeholders."""
    return " ".join(_PLACEHOLDER.sub(" ", text).split()) or text


def clean(text: str, longest: int) -> str:
    """Returns the text as one printable line that Postgres can store, at most `longest` characters."""
    line = text[: 4 * longest].encode(errors="replace").decode()
    if not line.isprintable():
        line = "".join(char if char.isprintable() else " " for char in line)
    return shortened(" ".join(line.split()), longest)


def abstract(text: str, known: Iterable[str] = (), *, is_task: bool = False) -> str:
    """Returns a text in one line, with placeholders for its concrete values.

    Args:
        text: the text.
        known: further words that are values, because a call had them in its arguments.
        is_task: true if the text is a task or a step of a plan; of such a text, names are replaced even if it is short.
            The capitalised words of a short error may tell it from others.
    """
    line = clean(text, TEXT_CHARS)
    for sign, pattern, placeholder in _VALUES:
        if sign in line:
            line = pattern.sub(placeholder, line)
    if values := {word.casefold() for word in known}:
        line = re.sub(
            r"(?<![<\w])\w+(?![\w>])", lambda at: "<identifier>" if at[0].casefold() in values else at[0], line
        )
    named = len(PROPER_NAMES.findall(line))
    if named <= len(line.split()) / 5 or (is_task and named <= MOST_NAMES and not _GERMAN.search(line)):
        return PROPER_NAMES.sub("<name>", line)
    # two such words in a row are a name in German, too
    return PROPER_NAMES.sub(lambda at: "<name>" if " " in at[0] else at[0], line) if is_task else line


def values_of(arguments: object) -> set[str]:
    """Returns the words in a call's arguments that are names or values: words of short texts, names in statements."""
    values = list(arguments.values())[:MOST_LOOKED_AT] if isinstance(arguments, dict) else [arguments]
    names = {word for text in values if isinstance(text, str) for word in _names_in(text) if word.isidentifier()}
    return {word for word in names if word.casefold() not in SQL_WORDS}


def _names_in(text: str) -> list[str]:
    language = language_of(text)
    if language is not None:
        named = [token.text for token in tokens(text, language) if token.shown in _FOR_NAMES]
        parts = [part.strip('"`') for name in named for part in (name.split(".") if language == "sql" else [name])]
        return [part for part in parts if len(part) >= FEWEST_CHARS]
    some = words(text[:TEXT_CHARS])
    shortest = FEWEST_CHARS + (len(some) > 1)  # "the" beside a name is no value
    return [word for word in some if len(word) >= shortest] if len(some) <= MOST_WORDS else []


def path_name(key: object) -> str:
    """Returns a key of an argument as it is if it is a name, else "<key>"."""
    return str(key) if _ARGUMENT_NAME.fullmatch(str(key)[: PATH_CHARS + 1]) else "<key>"


def kind_of(value: object) -> str:
    """Returns the placeholder for the type of a value, such as "<number>"."""
    if isinstance(value, str):
        match = _TYPE.fullmatch(value) if len(value) <= TEXT_CHARS else None
        return _TYPE_NAMES[match.lastindex or 0 if match else 0] if value.strip() else "<empty text>"
    if isinstance(value, bool):
        return "<boolean>"
    if isinstance(value, int | float):
        return "<number>"
    if value is None:
        return "<null>"
    if isinstance(value, list):
        return f"<list of {len(value)}>"
    return "<object>"


def form(arguments: object, shown: Callable[[object, object], str] | None = None, *, concrete: bool = False) -> str:
    """Returns the form of a call's arguments: the name of each with the type of its value, or its statement's form.

    Args:
        arguments: the arguments.
        shown: returns the form of a value, given the value and its name; None: ``form_of``.
        concrete: true if harmless words of command lines are kept, in place of placeholders.
    """
    show = shown or partial(form_of, concrete=concrete)
    if not isinstance(arguments, dict):
        return "no arguments" if arguments is None else show(arguments, "")
    if not arguments:
        return "no arguments"
    named = [f"{path_name(key)}={show(value, key)}" for key, value in list(arguments.items())[:MOST_ARGUMENTS]]
    return ", ".join(named + ["…"] * (len(arguments) > len(named)))


def form_of(value: object, key: object = None, *, concrete: bool = False) -> str:
    """Returns the placeholder for a value's type; for a statement, its words with placeholders for the data."""
    language = language_of(value, key) if isinstance(value, str) else None
    if language is None or not isinstance(value, str):
        return kind_of(value)
    shown = [token.shown for token in tokens(value, language, concrete=concrete)[:MOST_SHOWN]]
    return f"`{clean(' '.join(shown), TEXT_CHARS)}`"
