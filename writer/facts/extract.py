"""Extraction of facts about the user from the user's turns, by rule: goals, preferences, names, places, dated events.

The rules prefer a missed fact to an invented one: they match the first person only, and objects that are clear without
context. The sentence is stored verbatim beside the extracted values.
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
class FactDraft:
    """A fact before it is stored.

    Attributes:
        text: the sentence, verbatim.
        subject: the person or thing that the fact is about; ``user`` is the user.
        attribute: the attribute of the subject; the metric of a goal.
        value: the value, without its unit.
        unit: the unit of the value; empty without one.
        about: the days of an event; None without a date.
        single: whether only one value holds at a time, so that a newer value closes this one.
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


def extract(text: str, day: date) -> list[FactDraft]:
    """Returns the facts in a user's turn, in its order, at most one for each sentence.

    Args:
        text: the text of the turn.
        day: the day of the turn, to which words such as "yesterday" refer.
    """
    drafts = (next(_drafts(sentence, day), None) for sentence in statements(text.replace("\u2019", "'")))
    return [draft for draft in drafts if draft is not None]


def category_of(sentence: str) -> FactCategory:
    """Returns the category of a sentence by its words."""
    return next((name for name, words in CATEGORY.items() if words.search(sentence)), "other")


def _drafts(sentence: str, day: date) -> Iterator[FactDraft]:
    """Yields the facts in a sentence, the most certain form first."""
    category = category_of(sentence)
    for rule in ABOUT_ME:
        if match := rule.form.search(sentence):
            value = _clean(match["value"])
            yield FactDraft("fact", sentence, "user", rule.attribute, value, "", category, single=rule.single)
    if match := KIN_NAMED.search(sentence):
        who = match["who"].lower()
        yield FactDraft("fact", sentence, f"user's {who}", "name", match["value"], "", "people", single=who in ONE_OF)
    yield from _activity(sentence, category)
    yield from _preference(sentence, category)
    days = days_of(sentence, day)
    form = LATELY if days is None else AHEAD if days.first > day else EVENT
    matches = (form.search(clause) for clause in (sentence, *CLAUSE.split(sentence)[1:]))
    event = next((match for match in matches if match), None)
    if event and not POINTS_FIRST.search(event["what"]) and not THERE.search(sentence):
        yield FactDraft("event", sentence, "user", event["verb"].lower(), _clean(event["what"]), "", category, days)
    yield from _goal(sentence, category)


def _activity(sentence: str, category: FactCategory) -> Iterator[FactDraft]:
    if match := ONGOING.search(sentence):
        value = _clean(match["value"] or match["long"] or "")
        if _stands_alone(value):
            verb = (match["verb"] or match["now"]).lower()
            yield FactDraft("fact", sentence, "user", f"has been {verb}", value, "", category)
    if (match := HABIT.search(sentence)) and _stands_alone(match["value"]):
        yield FactDraft("fact", sentence, "user", match["often"].lower(), _clean(match["value"]), "", category)
    if match := HAS.search(sentence):
        yield FactDraft("fact", sentence, "user", "has", _clean(match["value"]), "", category)
    if match := BEEN.search(sentence):
        yield FactDraft("fact", sentence, "user", "has been to", _clean(match["value"]), "", "travel")
    if match := DOES.search(sentence):
        value = _clean(match["value"])
        if _stands_alone(value):
            yield FactDraft("fact", sentence, "user", (match["now"] or match["ing"]).lower(), value, "", category)


def _preference(sentence: str, category: FactCategory) -> Iterator[FactDraft]:
    tastes: list[tuple[str, str, str, bool]] = []  # subject, attribute, value, single
    if match := FAVOURITE.search(sentence):
        tastes.append(("user", f"favourite {match['what'].lower()}", match["value"], True))
    if match := LIKES.search(sentence):
        how = f"{match['how'].lower()}s" if match["how"] else f"has always {match['since'].lower()}"
        tastes.append(("user", how, match["value"], False))
    if match := THEIRS.search(sentence):
        how = match["how"].lower().removesuffix("s") + "s"
        tastes.append((f"user's {match['who'].lower()}", how, match["value"], False))
    if match := FAVOURITE_LAST.search(sentence):
        tastes.append(("user", f"favourite{(match['what'] or '').lower()}", match["value"], False))
    if match := FOND.search(sentence):
        tastes.append(("user", "is fond of", match["value"], False))
    for subject, attribute, value, single in tastes:
        if _stands_alone(_clean(value)):
            yield FactDraft("preference", sentence, subject, attribute, _clean(value), "", category, single=single)


def _goal(sentence: str, category: FactCategory) -> Iterator[FactDraft]:
    match = GOAL.search(sentence)
    if not match or NO_GOAL.search(match["what"]) or POINTS.search(match["what"]) or ALL.search(match["what"]):
        return
    what = _clean(match["what"])
    amount = AMOUNT.search(what)
    if amount is None:
        yield FactDraft("goal", sentence, "user", _metric(what), what, "", category)
        return
    value = amount["value"].replace(",", "") + ("000" if amount["k"] else "")
    unit = unit_of(amount["unit"] or amount["pre"] or "")
    yield FactDraft("goal", sentence, "user", _metric(what), value, unit, category, single=True)


def unit_of(word: str) -> str:
    """Returns the standard form of a unit, so that 500 € and 500 euros are the same goal; else the word itself."""
    return next((unit for unit, words in UNITS.items() if word.lower() in words), word.lower())


def _metric(what: str) -> str:
    """Returns the metric of a goal: its words without the amount, up to the beginning of another thought."""
    words = AMOUNT.sub(" ", what)
    head = re.split(
        r"[,.;!]| (?:(?:by|so|and|because|before|until|this|next|every|per)\b|a (?=day|week|month|year)) ?",
        words,
        maxsplit=1,
    )[0]
    return " ".join(head.lower().split())[:80]


def _stands_alone(value: str) -> bool:
    """Returns whether a value is clear without context and not cut in the middle."""
    return not (VAGUE.search(value) or POINTS.search(value) or CUT.search(value))


def _clean(value: str) -> str:
    return " ".join(value.split()).rstrip(" .,!;")
