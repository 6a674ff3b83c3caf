"""Values of arguments as moves show them: a value that names a choice as it is, else a placeholder of its type.

A choice, as in ``method=store_credit`` or ``days=30``, belongs to the plan; ids, names, paths, dates and texts are data
that differ in every run. The name of the argument decides first, because "open" may be a state and "bob" a person; then
the form of the value.
"""

import math
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from urllib.parse import parse_qs

import orjson

from policy.channels import searchable
from retrieval.patterns import patterns, word_sets
from writer.analysis.placeholders import kind_of, path_name

DEEPEST = 5
"""Maximum levels of nested objects in a call's arguments whose fields are read."""
MOST_FIELDS = 40
"""Maximum number of fields of an object that are read."""
MOST_ITEMS = 20
"""Maximum number of items of a list that are read."""
LARGEST = 100
"""Largest whole number that counts as a choice; the days of a year count, too."""
YEAR = 365
VALUE_CHARS = 32
"""Maximum characters of a text that may name a choice."""
MOST_WORDS = 3
"""Maximum number of words of a text that may name a choice, as in the pattern few_words."""
TEXT_CHARS = 400
PARSED_CHARS = 20_000
"""Maximum characters of a JSON text that is parsed."""

_FORMS = patterns("writer.analysis", "move_values")
_WORDS = word_sets("writer.analysis", "move_values")
LITTLE = _WORDS["little"]
"""Words without a meaning of their own, such as "the", in English and German."""
CHOICES = _WORDS["choices"]
"""Last words in the names of arguments that take one of a few values."""
SWITCHES = _WORDS["switches"]
"""Words that are a choice in any case, whatever the task says."""
NUMBERED = _FORMS["numbered"]
"""Pattern of an object with its number, as in "mug 1"."""
_FREE = {
    word: placeholder
    for placeholder, words in {
        "<id>": """branch code cursor guid hash id key no nr number password pid secret serial sha sku token uid
            uuid""",
        "<name>": """approver assignee attendee author bcc cc contact customer guest host hostname login member name
            owner participant passenger patient people person recipient reviewer sender user username""",
        "<email>": "email mail",
        "<number>": """amount balance cost count fee k lat latitude length limit line lon longitude max menge min offset
            page pages percentage phone port price qty quantity results sum timeout total width x y""",
        "<date>": """at birthday date datetime day deadline due end month since start time timestamp until week when
            year""",
        "<path>": "cwd dir directory file filename folder path paths uri url workdir",
        "<place>": """address airport city country destination location origin place postcode region street town zip
            zipcode""",
        "<text>": """agenda answer body comment content description details diff document explanation expression goal
            instruction instructions keyword keywords message new note notes old patch pattern prompt q query question
            reasoning regex replacement response search source string subject summary task term text thought title
            topic""",
    }.items()
    for word in words.split()
}
"""Last words in the names of arguments whose values differ in every run, each with the values' placeholder."""
NAMED = "<named>"
"""Placeholder of an object that the run's task names."""
_ALIKE = {"<id>": "<text>", "<word>": "<text>", "<number as text>": "<number>", "<redacted>": "<text>"}
"""Placeholder in place of another: of two codes, "DXYZDZ" is a word and "9PMPVJ" an id by their characters alone."""


def fields_of(arguments: object, name: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Yields the plain values in the arguments of a call, each with its dotted name; list items have the list's name.

    A JSON text in an argument such as "body" is read as its fields. None is left out, because many clients write it for
    arguments that were not passed.
    """
    if isinstance(arguments, str) and last_word(name) in _WORDS["payloads"]:
        arguments = parsed(arguments)
    if isinstance(arguments, Mapping) and depth < DEEPEST:
        for key, value in islice(arguments.items(), MOST_FIELDS):
            part = path_name(key)
            if not _FORMS["field"].fullmatch(part):
                part = "<key>"
            yield from fields_of(value, f"{name}.{part}" if name else part, depth + 1)
    elif isinstance(arguments, list | tuple) and arguments and depth < DEEPEST:
        for item in arguments[:MOST_ITEMS]:
            yield from fields_of(item, name, depth + isinstance(item, list | tuple))
    elif arguments is not None:
        yield name, arguments


def query_fields(text: str) -> Iterator[tuple[str, object]]:
    """Yields the fields of a URL's query or of a form, as in "action=list&id=1", or of a JSON text."""
    given = parsed(text)
    return fields_of(parse_qs(given[:TEXT_CHARS]) if isinstance(given, str) else given)


def parsed(text: str) -> object:
    """Returns the object or the list that a text has as JSON; another text unchanged."""
    if len(text) <= PARSED_CHARS and text.lstrip()[:1] in {"{", "["}:
        with suppress(orjson.JSONDecodeError, UnicodeError):  # a text may begin with a brace
            return orjson.loads(text)
    return text


def singular(word: str) -> str:
    """Returns a word without the ending of an English plural, so that "two mugs" names "mug 1"."""
    return word.removesuffix("s")


def value_of(name: str, value: object, named: Collection[str] = ()) -> str:
    """Returns an argument's value if it names a choice, else the placeholder of its type; empty for a blank text.

    A text whose words are all in ``named``, the words of the run's task, is NAMED: it is an object of the task, as in
    "mug 1" or "kitchen_lamp". Values of arguments such as "method" and "size" are choices all the same. A number that
    the task states for the argument ("ticket 55" is in ``named``) is data, too, but 0 is a choice.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(name, value, named)
    if isinstance(value, int | float):
        return _number(name, value, named)
    return "<empty>" if isinstance(value, list | tuple) and not value else "<object>"


def label_of(value: object, named: Collection[str]) -> str:
    """Returns the words of a label that is pressed, as "delete_account_button"; empty: the value is no few words.

    ``value_of`` shows no labels, because lessons quote the values that it shows, and a label may have a person's name.
    """
    if not isinstance(value, str) or len(value) > VALUE_CHARS or not _FORMS["few_words"].fullmatch(value.strip()):
        return ""
    return _unless_named(value.strip().lstrip("#."), named)


def route_of(url: str) -> str:
    """Returns the path of a URL without ids, as in "/orders/refunds"; empty: the URL has no path."""
    path = _FORMS["host"].sub("", url[:TEXT_CHARS]).partition("?")[0]
    return "".join(f"/{normal(part)}" for part in path.split("/") if _FORMS["route_part"].fullmatch(part))


def normal(text: str) -> str:
    """Returns a text in the form in which texts are compared: folded case, NFKC characters."""
    return unicodedata.normalize("NFKC", text).casefold()


@lru_cache(maxsize=4096)  # the same few arguments come in every run
def last_word(name: str) -> str:
    """Returns the last word in the name of an argument, in lower case."""
    words = _FORMS["name_word"].findall(name.rsplit(".", 1)[-1])
    return words[-1].casefold() if words else ""


@lru_cache(maxsize=4096)
def is_label(name: str) -> bool:
    """Returns whether an argument of this name holds the label of what is pressed, such as a button."""
    return name.rsplit(".", 1)[-1] in _WORDS["labels"]


@lru_cache(maxsize=4096)
def placeholder_of(name: str) -> str | None:
    """Returns the placeholder for an argument of this name, whose values differ in every run; None: they do not."""
    word = last_word(name)
    singular = _FREE.get(word.removesuffix("s"))
    return _FREE.get(word) or (None if singular == "<date>" else singular)  # "days" is a number, and "day" a date


def _number(name: str, value: float, named: Collection[str]) -> str:
    if (placeholder := placeholder_of(name)) is not None:
        return "0" if placeholder == "<number>" and value == 0 else placeholder  # "fee=0" charges nothing
    if isinstance(value, float):
        if 0 < value < 1 and round(value, 2) == value:
            return repr(value)
        if not math.isfinite(value) or not value.is_integer():
            return "<number>"
    if abs(value) > LARGEST and value != YEAR:
        return "<number>"
    word, shown = last_word(name), str(int(value))
    is_stated = value and word not in CHOICES and f"{singular(word)} {shown}" in named
    return "<number>" if is_stated else shown


def _text(name: str, value: str, named: Collection[str]) -> str:
    text = value[: TEXT_CHARS + 1].strip()
    if not text:
        return "" if len(value) <= TEXT_CHARS else "<text>"
    if len(text) <= VALUE_CHARS:
        if numbered := NUMBERED.fullmatch(text):
            if text == text.lower() and (placeholder := placeholder_of(name)) not in {"<id>", "<name>", "<text>"}:
                shown = _unless_named(numbered["kind"], named)
                return placeholder if placeholder == "<place>" and shown != NAMED else shown
        elif _FORMS["integer"].fullmatch(text):
            return _number(name, int(text), named)
        elif _tells(name, text):
            is_choice = last_word(name) in CHOICES or text.casefold() in SWITCHES
            return _unless_named(text.lstrip("#."), () if is_choice else named)
    if (placeholder := placeholder_of(name)) is not None:
        return placeholder
    kind = kind_of(text)
    return _ALIKE.get(kind, kind)


def _unless_named(text: str, named: Collection[str]) -> str:
    """Returns the words of a text, or NAMED if the task names each; little words, such as "on", do not count."""
    words = _FORMS["between_words"].split(normal(searchable(text)).strip())
    is_named = all(singular(word) in named and word not in LITTLE for word in words)
    return NAMED if is_named else "_".join(words)


def _tells(name: str, text: str) -> bool:
    """Returns whether a short text names a choice: a few words, in lower case unless the name allows capitals.

    A switch, such as "Yes", is a choice in any case. A sign of a selector or a channel may stand before the words, as
    in "#checkout".
    """
    if not _FORMS["few_words"].fullmatch(text):
        return False
    if last_word(name) in CHOICES:
        return True
    return (text == text.lower() or text.casefold() in SWITCHES) and placeholder_of(name) is None
