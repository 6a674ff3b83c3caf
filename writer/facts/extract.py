"""What a user's turn tells of the user, by rule: goals, preferences, names, roles and places, and dated events.

Better to miss one than to invent one: a rule takes the first person alone, and an object that stands by itself. What is
stored is the sentence as it was said, beside what could be read off it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from retrieval.tables.kinds import FactCategory, FactKind
from writer.facts.forms import (
    ABOUT_ME,
    AHEAD,
    ALL,
    AMOUNT,
    BEEN,
    CATEGORY,
    CLAUSE,
    CUT,
    DOES,
    EVENT,
    FAVOURITE,
    FAVOURITE_LAST,
    FOND,
    GOAL,
    HABIT,
    HAS,
    KIN_NAMED,
    LATELY,
    LIKES,
    NO_GOAL,
    ONE_OF,
    ONGOING,
    POINTS,
    POINTS_FIRST,
    THEIRS,
    THERE,
    UNITS,
    VAGUE,
)
from writer.facts.sentences import statements
from writer.facts.times import Days, days_of


@dataclass(frozen=True, slots=True)
class Told:
    """A fact as somebody told it.

    Attributes:
        text: as it was said.
        subject: whom or what it is about; ``user``: who said it.
        attribute: what of it; of a goal the metric.
        value: without its unit.
        unit: of the value; empty: none.
        about: the days that it speaks of.
        single: whether there can be one value at a time, so that a newer one contradicts it.
    """

    kind: FactKind
    text: str
    subject: str = "user"
    attribute: str = ""
    value: str = ""
    unit: str = ""
    category: FactCategory = "other"
    about: Days | None = None
    single: bool = False


def extract(text: str, said_on: date) -> list[Told]:
    """Returns what a user's turn tells of them, in its order; no sentence tells more than one thing.

    Args:
        text: of the turn.
        said_on: from which its "yesterday" is reckoned.
    """
    found = []
    for sentence in statements(text.replace("\u2019", "'")):
        told = next(_told(sentence, said_on), None)
        if told is not None:
            found.append(told)
    return found


def category_of(sentence: str) -> FactCategory:
    """Returns what a sentence is about, by its words."""
    return next((name for name, words in CATEGORY.items() if words.search(sentence)), "other")


def _told(sentence: str, said_on: date) -> Iterator[Told]:
    category = category_of(sentence)
    for rule in ABOUT_ME:
        if found := rule.form.search(sentence):
            yield Told(
                "fact", sentence, "user", rule.attribute, _clean(found["value"]), "", category, single=rule.single
            )
    if found := KIN_NAMED.search(sentence):
        who = found["who"].lower()
        yield Told("fact", sentence, f"user's {who}", "name", found["value"], "", "people", single=who in ONE_OF)
    yield from _activity(sentence, category)
    yield from _preference(sentence, category)
    yield from _event(sentence, category, days_of(sentence, said_on), said_on)
    yield from _goal(sentence, category)


def _activity(sentence: str, category: FactCategory) -> Iterator[Told]:
    if found := ONGOING.search(sentence):
        value = _clean(found["value"] or found["long"] or "")
        if _stands_alone(value):
            yield Told(
                "fact", sentence, "user", f"has been {(found['verb'] or found['now']).lower()}", value, "", category
            )
    if (found := HABIT.search(sentence)) and _stands_alone(found["value"]):
        yield Told("fact", sentence, "user", found["often"].lower(), _clean(found["value"]), "", category)
    if found := HAS.search(sentence):
        yield Told("fact", sentence, "user", "has", _clean(found["value"]), "", category)
    if found := BEEN.search(sentence):
        yield Told("fact", sentence, "user", "has been to", _clean(found["value"]), "", "travel")
    if found := DOES.search(sentence):
        value = _clean(found["value"])
        if _stands_alone(value):
            yield Told("fact", sentence, "user", (found["now"] or found["ing"]).lower(), value, "", category)


def _event(sentence: str, category: FactCategory, days: Days | None, said_on: date) -> Iterator[Told]:
    rule = LATELY if days is None else AHEAD if days.first > said_on else EVENT
    clauses = (sentence, *CLAUSE.split(sentence)[1:])
    found = next((found for clause in clauses if (found := rule.search(clause))), None)
    if found and not POINTS_FIRST.search(found["what"]) and not THERE.search(sentence):
        yield Told("event", sentence, "user", found["verb"].lower(), _clean(found["what"]), "", category, days)


def _preference(sentence: str, category: FactCategory) -> Iterator[Told]:
    for subject, attribute, value, single in _tastes(sentence):
        if _stands_alone(value):
            yield Told("preference", sentence, subject, attribute, value, "", category, single=single)


def _tastes(sentence: str) -> Iterator[tuple[str, str, str, bool]]:
    """Yields whose taste it is, what they do with what, and whether there is one such thing at a time."""
    if found := FAVOURITE.search(sentence):
        yield "user", f"favourite {found['what'].lower()}", _clean(found["value"]), True
    if found := LIKES.search(sentence):
        how = f"{found['how'].lower()}s" if found["how"] else f"has always {found['since'].lower()}"
        yield "user", how, _clean(found["value"]), False
    if found := THEIRS.search(sentence):
        how = found["how"].lower().removesuffix("s") + "s"
        yield f"user's {found['who'].lower()}", how, _clean(found["value"]), False
    if found := FAVOURITE_LAST.search(sentence):
        yield "user", f"favourite{(found['what'] or '').lower()}", _clean(found["value"]), False
    if found := FOND.search(sentence):
        yield "user", "is fond of", _clean(found["value"]), False


def _goal(sentence: str, category: FactCategory) -> Iterator[Told]:
    found = GOAL.search(sentence)
    if not found or NO_GOAL.search(found["what"]) or POINTS.search(found["what"]) or ALL.search(found["what"]):
        return
    what = _clean(found["what"])
    amount = AMOUNT.search(what)
    if amount is None:
        yield Told("goal", sentence, "user", _metric(what), what, "", category)
        return
    value = amount["value"].replace(",", "") + ("000" if amount["k"] else "")
    unit = unit_of(amount["unit"] or amount["pre"] or "")
    yield Told("goal", sentence, "user", _metric(what), value, unit, category, single=True)


def unit_of(word: str) -> str:
    """Returns the one way in which a unit is written, so that 500 € and 500 euros are the same goal."""
    return next((unit for unit, words in UNITS.items() if word.lower() in words), word.lower())


def _metric(what: str) -> str:
    """Returns what a goal is measured by: its words without the amount, up to the first that begins another thought."""
    words = AMOUNT.sub(" ", what)
    head = re.split(
        r"[,.;!]| (?:(?:by|so|and|because|before|until|this|next|every|per)\b|a (?=day|week|month|year)) ?",
        words,
        maxsplit=1,
    )[0]
    return " ".join(head.lower().split())[:80]


def _stands_alone(value: str) -> bool:
    """Returns whether a value needs nothing that was said before, and was not cut in the middle."""
    return not (VAGUE.search(value) or POINTS.search(value) or CUT.search(value))


def _clean(value: str) -> str:
    return " ".join(value.split()).rstrip(" .,!;")
