"""Facts in German, Spanish and French: name, home, work, likes and goals, where the form of the sentence is clear.

Each rule of ``languages.toml`` matches a clause from its beginning, in the first person. Clauses with a condition or a report are left out.
A clause with a negation states only an aversion; a clause with "no longer" ends a fact.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files

from retrieval.tables.kinds import FactKind
from writer.facts.forms import CAPITAL
from writer.facts.own_words import OWN_LABEL


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of a clause that states a fact.

    Attributes:
        attribute: attribute that the clause states; empty for a goal, whose words give the metric.
        form: the pattern; its group ``value`` is the value of the fact.
        single: whether the attribute has only one value at a time.
    """

    kind: FactKind
    attribute: str
    form: re.Pattern[str]
    single: bool = True


@dataclass(frozen=True, slots=True)
class Language:
    """The rules of a language.

    Attributes:
        opens: words; every clause that a rule can match has one of them.
        rules: rules for clauses without a negation.
        endings: rules for clauses that end the fact with that value, such as "I left …".
        aversions: rules for clauses with a negation, which state a dislike.
        unstated: words of sentences that state nothing, such as conditions; such sentences are skipped.
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


_NAME = (
    rf"(?P<value>{CAPITAL}[\w'.-]+(?: (?:(?:de|del|la|las|los|am|an der|der|le|sur|d')\s?)?{CAPITAL}[\w'-]+){{0,3}})"
)
_WORDS = r"(?P<value>(?:(?!(?:und|aber|weil|denn|da|wie|pero|porque|aunque|y|et|mais|car|parce|que)\b)[\w'-]+ ?){1,6})"
_END = r"(?=$|[.,;!)]| (?:und|aber|weil|denn|seit|mit|als|y|pero|porque|desde|con|el (?:mes|año|lunes|martes|viernes)|la semana|hace|et|mais|car|depuis|avec|comme|le mois|l'an|il y a|jetzt|ahora|maintenant|im|letzte[ns]?|vor)\b)"
_HELLO = r"(?:(?:desde|depuis) \w+,? )?(?:(?:hallo|hi|hey|hola|bonjour|salut|moin|servus|also|übrigens|por cierto|au fait|und|y|et)\b[,!.]*\s+)?"


_TASTES = {"likes", "loves", "hates", "prefers", "favourite", "dislikes"}
_SINGLE = {"name", "home", "origin", "employer", "role", "age", "diet", "favourite", "weight"}


def _rules(forms: Mapping[str, str]) -> tuple[Rule, ...]:
    """Returns the rules of these forms by the attribute that they state; NAME and WORDS stand for the value."""
    return tuple(
        Rule(
            "preference" if name in _TASTES else "goal" if name in {"goal", "weight"} else "fact",
            "" if name == "goal" else name,
            re.compile(f"^(?i:{_HELLO})" + form.replace("NAME", _NAME).replace("WORDS", _WORDS) + _END),
            name in _SINGLE,
        )
        for name, form in forms.items()
    )


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)


_READ = tomllib.loads(files("writer.facts").joinpath("languages.toml").read_text(encoding="utf-8"))
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
    for each in _READ["languages"]
]


OPENS = re.compile("|".join(language.opens.pattern for language in LANGUAGES))
"""Every German, Spanish or French sentence with a fact has one of these words, in small letters."""
PERIOD = re.compile(
    r"\b(?:im|pro|am|al|por|cada|par|chaque) (?:tag|woche|monat|jahr|día|semana|mes|año|jour|semaine|mois|an)\b",
    re.IGNORECASE,
)
"""A period in the words of a goal, such as "per week", which is no part of the metric."""
_ELISION = re.compile(r"^je (?=[aeéhiou])", re.IGNORECASE)
_LABEL = re.compile(rf"^{OWN_LABEL}\s*:\s+", re.IGNORECASE)
_CLAUSE = re.compile(r"\s*[,;]\s*|\s+(?:und|aber|y|e|pero|et|mais)\s+")


@dataclass(frozen=True, slots=True)
class Reading:
    """A fact that a clause states, or ends if `ends` is true."""

    text: str
    kind: FactKind
    attribute: str
    value: str
    single: bool
    ends: bool = False


def readings(sentence: str) -> Iterator[Reading]:
    """Yields the facts that a sentence in German, Spanish or French states or ends, as a whole and in its clauses."""
    plain = _LABEL.sub("", sentence.replace("\u2019", "'").strip("-*_ \t"))
    if "?" in plain:
        return
    for language in LANGUAGES:
        if not language.opens.search(plain) or language.unstated.search(plain):
            continue
        for clause in (plain, *_CLAUSE.split(plain)):
            if language.no_longer.search(clause):
                positive = re.sub(r"\b(?:mehr|plus)\b", "", language.no_longer.sub(" ", clause))
                positive = _ELISION.sub("j'", " ".join(positive.split()))
                yield from _matches(language, language.rules, clause, positive, ends=True)
            elif language.denied.search(clause):
                yield from _matches(language, language.aversions, clause, clause)
            else:
                yield from _matches(language, language.rules, clause, clause)
                yield from _matches(language, language.endings, clause, clause, ends=True)


def _matches(
    language: Language, rules: tuple[Rule, ...], text: str, plain: str, *, ends: bool = False
) -> Iterator[Reading]:
    """Yields what the rules read off a clause in its plain form."""
    for rule in rules:
        match = rule.form.search(plain)
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
            yield Reading(text, rule.kind, attribute, value, rule.single, ends)
