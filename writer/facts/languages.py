"""Facts in German, Spanish and French: name, home, work, likes and goals, where the form of the sentence is clear.

Each rule of ``languages.toml`` matches a clause from its beginning, in the first person. Clauses with a condition or a report are left out.
A clause with a negation states only an aversion; a clause with "no longer" ends a fact.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from retrieval.patterns import compiled, patterns, read
from retrieval.tables.kinds import FactKind
from writer.facts.draft import FactDraft, category_of
from writer.facts.forms import FORMS, PACKAGE
from writer.facts.goals import amount_of, words_of_metric

_FORMS = patterns(PACKAGE, "other_languages")
_TASTES = {"likes", "loves", "hates", "prefers", "favourite", "dislikes"}
_SINGLE = {"name", "home", "origin", "employer", "role", "age", "diet", "favourite", "weight"}


LANGUAGES: list[dict[str, Any]] = [
    {
        **{
            table: {name: f"^(?i:«hello»){form}«end»" for name, form in each[table].items()}
            for table in ("rules", "endings", "aversions")
        },
        **{
            name: re.compile(rf"(?<!\w)(?:{each[name]})(?!\w)", re.IGNORECASE)
            for name in ("opens", "unstated", "vague")
        },
        **{name: re.compile(each[name], re.IGNORECASE) for name in ("denied", "no_longer", "article")},
    }
    for each in read(PACKAGE, "languages.toml")["languages"]
]
"""The tables of ``languages.toml`` with their patterns; the rules are compiled when they are first used."""

OPENS = re.compile("|".join(language["opens"].pattern for language in LANGUAGES))
"""Every German, Spanish or French sentence with a fact has one of these words, in small letters."""


def of_other_language(sentence: str) -> list[FactDraft]:
    """Returns the facts of a sentence in German, Spanish or French, and of its clauses, each fact once."""
    plain = _FORMS["label"].sub("", sentence.replace("\u2019", "'").strip("-*_ \t"))
    facts: dict[tuple[str, str, bool], FactDraft] = {}
    for language in LANGUAGES if "?" not in plain else ():
        if not language["opens"].search(plain) or language["unstated"].search(plain):
            continue
        for clause in (plain, *_FORMS["clause"].split(plain)):
            for draft in _of_clause(language, clause):
                facts.setdefault((draft.kind, draft.attribute, draft.ends), draft)
    return list(facts.values())


def _of_clause(language: Mapping[str, Any], clause: str) -> Iterator[FactDraft]:
    if language["no_longer"].search(clause):
        positive = re.sub(r"\s*\b(?:mehr|plus)\b", "", language["no_longer"].sub(" ", clause))
        positive = _FORMS["elision"].sub("j'", " ".join(positive.split()))
        yield from _matches(language, "rules", clause, positive, ends=True)
    elif language["denied"].search(clause):
        yield from _matches(language, "aversions", clause, clause)
    else:
        yield from _matches(language, "rules", clause, clause)
        yield from _matches(language, "endings", clause, clause, ends=True)


def _matches(
    language: Mapping[str, Any], table: str, text: str, plain: str, *, ends: bool = False
) -> Iterator[FactDraft]:
    """Yields what the rules of a table read off a clause in its plain form; a rule's name is the fact's attribute."""
    for name, form in language[table].items():
        match = compiled(PACKAGE, form).search(plain)
        if match is None:
            continue
        groups = match.groupdict()
        value, unit = " ".join((groups["value"] or groups.get("value2") or "").split()).rstrip(" .,!;"), ""
        kind: FactKind = "preference" if name in _TASTES else "goal" if name in {"goal", "weight"} else "fact"
        if kind == "preference":
            if language["vague"].match(value):
                continue
            value = language["article"].sub("", value)
        if not value:
            continue
        attribute, single = f"{name} {groups['what'].lower()}" if "what" in groups else name, name in _SINGLE
        if kind == "goal":
            amount = FORMS["amount"].search(value)
            if name == "goal":  # without a period such as "per week", which is no part of the metric
                attribute = words_of_metric(_FORMS["period"].sub("", value) if amount else value)
            if amount:
                single, (value, unit) = True, amount_of(amount)
        yield FactDraft(kind, text, "user", attribute, value, unit, category_of(text), single=single, ends=ends)
