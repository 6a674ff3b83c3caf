"""Patterns of sentences that state or end a fact about the user, read from ``patterns.toml``."""

import re
from collections.abc import Iterable
from functools import cache
from itertools import chain

from retrieval.patterns import compiled, patterns, read, whole

PACKAGE = "writer.facts"
_READ = read(PACKAGE)
FORMS = patterns(PACKAGE, "states", "events", "forms", "goals", "endings")
KIN_DOES = patterns(PACKAGE, "kin")
CATEGORY = patterns(PACKAGE, "categories")
SEVERAL = frozenset({"allergy", "health", "intolerance", "is", "system"})
"""Attributes of the user that may have several values at a time."""
PARTNERS = ("wife", "husband", "girlfriend", "boyfriend", "partner", "fiancé", "fiancée", "fiance", "fiancee")
ONE_OF = {*PARTNERS, "boss", "mother", "mom", "mum", "father", "dad"}
_GROUP = re.compile(r"\(\?P<\w+>")


def any_of(forms: Iterable[str]) -> re.Pattern[str]:
    """Returns a pattern that matches where one of the forms does, in a fifth of their time; each form begins with "^".

    The pattern matches the beginning of a sentence once for all of them.
    """
    start, led, others = whole(PACKAGE, "«start»"), list[str](), list[str]()
    for form in forms:
        pattern = _GROUP.sub("(?:", whole(PACKAGE, form))
        if pattern.startswith(start):
            led.append(pattern.removeprefix(start))
        else:
            flag = "i" if pattern.startswith("(?i)") else ""
            others.append(f"(?{flag}:{pattern.removeprefix('(?i)')})")
    return re.compile("|".join([f"{start}(?:{'|'.join(led)})", *others]))


@cache
def about_me() -> list[tuple[str, re.Pattern[str]]]:
    """Returns attributes of the user with the patterns of sentences that state them."""
    return [(attribute, compiled(PACKAGE, form)) for attribute, forms in _READ["about_me"].items() for form in forms]


@cache
def states() -> re.Pattern[str]:
    """Returns the pattern of all sentences that state what the user is, does, has or likes, but for people's names."""
    return any_of((*_READ["states"].values(), *_READ["kin"].values(), *chain(*_READ["about_me"].values())))


@cache
def happens() -> re.Pattern[str]:
    """Returns the pattern of all sentences about an event."""
    return any_of(_READ["events"].values())


def are_compiled() -> bool:
    """Returns whether the largest patterns are compiled: the first sentence that is read waits for that."""
    return all(each.cache_info().currsize for each in (states, happens))


def replaced(text: str, table: str) -> str:
    """Returns a text after the replacements of a table, in order; "{}" stands for the first group in small letters."""
    for form, by in _READ["replacements"][table]:
        pattern = compiled(PACKAGE, form)
        text = pattern.sub((lambda match, by=by: by.format(match[1].lower())) if "{}" in by else by, text)
    return text
