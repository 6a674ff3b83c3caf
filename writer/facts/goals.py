"""Metrics, amounts and units of goals."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from retrieval.patterns import read
from writer.facts.forms import FORMS, PACKAGE

UNITS: Mapping[str, list[str]] = read(PACKAGE)["units"]
METRIC_OF_UNIT: Mapping[str, str] = read(PACKAGE)["metric_of_unit"]
"""Metric of a goal that names only a unit, by the unit."""
_COUNTED = {"EUR", "USD", "GBP", "chf", "steps", "calories", "words", "pages"}
"""Units of amounts with a dot before thousands; of 1.500 kg, the dot may stand before a fraction."""

_THOUSAND = {"k", "thousand", "tausend", "mil", "mille"}
"""Words for a thousand; other words behind a number are for a million, or begin with "b" and are for a billion."""


def amount_of(amount: re.Match[str]) -> tuple[str, str]:
    """Returns the value and the unit of a match of AMOUNT; the unit is empty if the amount has none."""
    unit = unit_of(amount["unit"] or amount["pre"] or "")
    value = re.sub(r"[,'\u2019\s](?=\d{3})", "", amount["value"])
    if unit in _COUNTED and FORMS["dotted_thousands"].fullmatch(value):  # 30.000 euros, as in most of Europe
        value = value.replace(".", "")
    if times := (amount["times"] or "").strip().lower():
        zeros = 3 if times in _THOUSAND else 9 if times.startswith("b") else 6
        try:
            value = f"{Decimal(value.replace(',', '.')).scaleb(zeros):f}"
        except InvalidOperation:  # 1.2.3k
            value += zeros * "0"
    return value, unit


def target_of(what: str) -> re.Match[str] | None:
    """Returns the amount that a goal is to reach: the one behind a word such as "under", else the first."""
    amounts = list(FORMS["amount"].finditer(what))
    return next(
        (each for each in amounts if FORMS["bound"].search(what, 0, each.start())), amounts[0] if amounts else None
    )


def unit_of(word: str) -> str:
    """Returns the standard form of a unit, so that 500 € and 500 euros are the same goal; else the word in small letters."""
    return next((unit for unit, words in UNITS.items() if word.lower() in words), word.lower())


def words_of_metric(what: str, target: re.Match[str] | None = None) -> str:
    """Returns the metric that a goal names: its words without the amount, up to a comma or a conjunction."""
    begin, rest = ("", what) if target is None else (what[: target.start()], what[target.start() :])
    words = re.sub(r"\0(?: of\b)?", " ", begin + FORMS["amount"].sub("\0", rest))
    head = re.split(
        r"[,.;!]| (?:(?:by|so|and|because|before|until|this|next|every|per|instead|rather than|daily|weekly|monthly|yearly|in total)\b|a (?=day|week|month|year)) ?",
        words,
        maxsplit=1,
    )[0]
    return " ".join(head.lower().split())[:80]


def metric_of(what: str, about: str, unit: str, target: re.Match[str]) -> str:
    """Returns the metric of a goal with an amount: from its own words, else the words before "goal", else the unit.

    Args:
        what: words of the goal, with the amount.
        about: words before "goal": "weight" in "my weight goal".
        unit: unit of the amount.
        target: the amount.
    """
    own = FORMS["metric_filler"].sub("", FORMS["metric_filler"].sub("", words_of_metric(what, target)))
    return own or FORMS["plain_goal"].sub("", about).strip().lower() or METRIC_OF_UNIT.get(unit, unit) or "amount"
