"""Facts in German, Spanish and French: name, home, work, likes and goals, where the form of the sentence is clear.

Each rule of ``languages.toml`` matches a clause from its beginning, in the first person. Clauses with a condition or a report are left out.
A clause with a negation states only an aversion; a clause with "no longer" ends a fact.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from retrieval.patterns import compiled, patterns, read
from retrieval.tables.kinds import FactKind
from writer.facts.forms import PACKAGE


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of a clause that states a fact.

    Attributes:
        attribute: attribute that the clause states; empty for a goal, whose words give the metric.
        form: the form of the clause; its group ``value`` is the value of the fact.
        single: true if the attribute has only one value at a time.
    """

    kind: FactKind
    attribute: str
    form: str
    single: bool = True


@dataclass(frozen=True, slots=True)
class Language:
    """The rules of a language.

    Attributes:
        opens: words; every clause that a rule can match has one of them.
        rules: rules for clauses without a negation.
        endings: rules for clauses that end the fact with that value, such as "I left …".
        aversions: rules for clauses with a negation, which state a dislike.
        unstated: words of sentences without a statement, such as conditions; such sentences are skipped.
        denied: words that negate a clause.
        no_longer: words for "no longer"; without them, the clause is the fact that it ends.
        vague: beginnings of values that refer to something outside the clause, such as "this".
        article: an article at the beginning of a value, which is cut off.
    """

    opens: re.Pattern[str]
    rules: tuple[Rule, ...]
    endings: tuple[Rule, ...]
    aversions: tuple[Rule, ...]
    unstated: re.Pattern[str]
    denied: re.Pattern[str]
    no_longer: re.Pattern[str]
    vague: re.Pattern[str]
    article: re.Pattern[str]


_FORMS = patterns(PACKAGE, "other_languages")
_TASTES = {"likes", "loves", "hates", "prefers", "favourite", "dislikes"}
_SINGLE = {"name", "home", "origin", "employer", "role", "age", "diet", "favourite", "weight"}


def _rules(forms: Mapping[str, str]) -> tuple[Rule, ...]:
    """Returns the rules of these forms by the attribute that they state."""
    return tuple(
        Rule(
            "preference" if name in _TASTES else "goal" if name in {"goal", "weight"} else "fact",
            "" if name == "goal" else name,
            f"^(?i:«hello»){form}«end»",
            name in _SINGLE,
        )
        for name, form in forms.items()
    )


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)


LANGUAGES = [
    Language(
        opens=_any(each["opens"]),
        rules=_rules(each["rules"]),
        aversions=_rules(each["aversions"]),
        endings=_rules(each["endings"]),
        unstated=_any(each["unstated"]),
        denied=re.compile(each["denied"], re.IGNORECASE),
        no_longer=re.compile(each["no_longer"], re.IGNORECASE),
        vague=_any(each["vague"]),
        article=re.compile(each["article"], re.IGNORECASE),
    )
    for each in read(PACKAGE, "languages.toml")["languages"]
]


OPENS = re.compile("|".join(language.opens.pattern for language in LANGUAGES))
"""Every German, Spanish or French sentence with a fact has one of these words, in small letters."""


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that a clause states, or ends if `ends` is true."""

    text: str
    kind: FactKind
    attribute: str
    value: str
    single: bool
    ends: bool = False


def readings(sentence: str) -> Iterator[StatedFact]:
    """Yields the facts that a sentence in German, Spanish or French states or ends, as a whole and in its clauses."""
    plain = _FORMS["label"].sub("", sentence.replace("\u2019", "'").strip("-*_ \t"))
    if "?" in plain:
        return
    for language in LANGUAGES:
        if not language.opens.search(plain) or language.unstated.search(plain):
            continue
        for clause in (plain, *_FORMS["clause"].split(plain)):
            if language.no_longer.search(clause):
                positive = re.sub(r"\s*\b(?:mehr|plus)\b", "", language.no_longer.sub(" ", clause))
                positive = _FORMS["elision"].sub("j'", " ".join(positive.split()))
                yield from _matches(language, language.rules, clause, positive, ends=True)
            elif language.denied.search(clause):
                yield from _matches(language, language.aversions, clause, clause)
            else:
                yield from _matches(language, language.rules, clause, clause)
                yield from _matches(language, language.endings, clause, clause, ends=True)


def _matches(
    language: Language, rules: tuple[Rule, ...], text: str, plain: str, *, ends: bool = False
) -> Iterator[StatedFact]:
    """Yields what the rules read off a clause in its plain form."""
    for rule in rules:
        match = compiled(PACKAGE, rule.form).search(plain)
        if match is None:
            continue
        groups = match.groupdict()
        value = " ".join((groups["value"] or groups.get("value2") or "").split()).rstrip(" .,!;")
        if rule.kind == "preference":
            if language.vague.match(value):
                continue
            value = language.article.sub("", value)
        attribute = f"{rule.attribute} {groups['what'].lower()}" if "what" in groups else rule.attribute
        if value:
            yield StatedFact(text, rule.kind, attribute, value, rule.single, ends)


def without_period(value: str) -> str:
    """Returns the words of a goal without a period such as "per week", which is no part of the metric."""
    return _FORMS["period"].sub("", value)
