"""A fact as it is read off a sentence or written by hand, before it is stored."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from retrieval.tables.kinds import FactKind
from retrieval.text import folded
from writer.facts.forms import CATEGORY, FORMS
from writer.facts.times import Days

_AVERSIONS = ("hates", "dislikes")
PLACES = ("home", "origin")
REGULARLY = "regularly"
TAKING = "takes"
"""Beginning of the attribute of a medicine, whatever it is taken for."""
_ARTICLE = re.compile(r"^(?:the|an?|my) ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A fact before it is stored.

    Attributes:
        text: the sentence, verbatim.
        subject: the person or thing that the fact is about; ``user`` is the user.
        attribute: the attribute of the subject; the metric of a goal.
        value: the value, without its unit.
        unit: the unit of the value; empty: the value has no unit.
        about: the days of an event; None without a date.
        category: the part of life to which the fact belongs, such as work; empty: not yet determined.
        single: true if the attribute has only one value at a time, so that a newer value closes this one.
        ends: true if the fact no longer holds; with an empty value, the attribute's fact ends whatever its value was.
    """

    kind: FactKind
    text: str
    subject: str = "user"
    attribute: str = ""
    value: str = ""
    unit: str = ""
    category: str = ""
    about: Days | None = None
    single: bool = False
    ends: bool = False

    @property
    def slot(self) -> str:
        """Name of the slot, an attribute or a taste that holds one fact at a time; empty: the fact has no slot."""
        if self.single:
            return self.attribute
        if self.attribute == REGULARLY:
            return f"{REGULARLY} {FORMS['how_often'].sub('', self.value)}"
        if self.attribute.startswith(TAKING):
            return f"{TAKING} {self.value}"
        return f"taste of {_ARTICLE.sub('', self.value)}" if self.kind == "preference" and self.value else ""

    def takes_back(self, held: Mapping[str, str]) -> bool:
        """Returns whether this draft ends a stored fact of its slot.

        A taste ends another of its kind, a liking or an aversion. A habit always ends one. A place ends the same place,
        however exactly it was named. Any other draft ends a fact if one value has all words of the other.
        """
        if self.kind == "preference" and not self.single:
            return (self.attribute in _AVERSIONS) == (held["attribute"] in _AVERSIONS)
        if self.attribute == REGULARLY:
            return True
        mine, its = folded(self.value), folded(held["value"])
        if self.attribute in PLACES:
            return _is_place(mine, its) or _is_place(its, mine)
        return set(mine.split()) <= set(its.split()) or set(its.split()) <= set(mine.split())


def _is_place(one: str, other: str) -> bool:
    """Returns whether a part of the other place begins with the one: of "York, England" with "York", not of "New York"."""
    return one == other or any(f"{part} ".startswith(f"{one} ") for part in other.split(", "))


def category_of(sentence: str) -> str:
    """Returns the part of life that a sentence is about, such as work, judged by its words."""
    return next((name for name, words in CATEGORY.all().items() if words.search(sentence)), "other")
