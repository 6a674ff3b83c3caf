"""Patterns of sentences that state or end a fact about the user, read from ``patterns.toml``."""

import re
from collections.abc import Iterable

from retrieval.patterns import patterns, read, whole

PACKAGE = "writer.facts"
_READ = read(PACKAGE)
_STATES, _EVENTS = patterns(PACKAGE, "states"), patterns(PACKAGE, "events")
FORMS = _STATES | _EVENTS | patterns(PACKAGE, "forms") | patterns(PACKAGE, "goals") | patterns(PACKAGE, "endings")
KIN_DOES = patterns(PACKAGE, "kin")
CATEGORY = patterns(PACKAGE, "categories")
ABOUT_ME = [
    (attribute, re.compile(whole(PACKAGE, form))) for attribute, forms in _READ["about_me"].items() for form in forms
]
"""Attributes of the user with the patterns of sentences that state them."""
SEVERAL = frozenset({"allergy", "health", "is", "system"})
"""Attributes of the user that may have several values at a time."""
PARTNERS = ("wife", "husband", "girlfriend", "boyfriend", "partner", "fiancé", "fiancée", "fiance", "fiancee")
ONE_OF = {*PARTNERS, "boss", "mother", "mom", "mum", "father", "dad"}
_START = whole(PACKAGE, "«start»")
_REPLACEMENTS: dict[str, list[tuple[re.Pattern[str], str]]] = {
    table: [(re.compile(whole(PACKAGE, form)), by) for form, by in pairs]
    for table, pairs in _READ["replacements"].items()
}
_GROUP = re.compile(r"\(\?P<\w+>")


def any_of(forms: Iterable[re.Pattern[str]]) -> re.Pattern[str]:
    """Returns a pattern that matches where one of the forms does, in a fifth of their time; each form begins with "^".

    The pattern matches the beginning of a sentence once for all of them.
    """
    led, others = list[str](), list[str]()
    for form in forms:
        pattern = _GROUP.sub("(?:", form.pattern)
        if pattern.startswith(_START):
            led.append(pattern.removeprefix(_START))
        else:
            flag = "i" if form.flags & re.IGNORECASE else ""
            others.append(f"(?{flag}:{pattern.removeprefix('(?i)')})")
    return re.compile("|".join([f"{_START}(?:{'|'.join(led)})", *others]))


STATES = any_of((*_STATES.values(), *KIN_DOES.values(), *(form for _, form in ABOUT_ME)))
"""Pattern of all sentences that state what the user is, does, has or likes; the names of the user's people apart."""
HAPPENS = any_of(_EVENTS.values())
"""Pattern of all sentences about an event."""


def replaced(text: str, table: str) -> str:
    """Returns a text after the replacements of a table, in order; "{}" stands for the first group in small letters."""
    for pattern, by in _REPLACEMENTS[table]:
        text = pattern.sub((lambda match, by=by: by.format(match[1].lower())) if "{}" in by else by, text)
    return text
