"""Extraction of facts about the user from the user's turns, by rule: goals, preferences, names, places, dated events.

The rules prefer a missed fact to an invented one: they match the first person only, and objects that are clear without
context. The sentence is stored verbatim beside the extracted values.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from functools import cache

from retrieval.patterns import compiled
from retrieval.patterns import read as read_patterns
from writer.facts.draft import REGULARLY, TAKING, FactDraft, category_of
from writer.facts.forms import (
    FORMS,
    KIN_DOES,
    ONE_OF,
    PACKAGE,
    PARTNERS,
    SEVERAL,
    about_me,
    happens,
    replaced,
    states,
)
from writer.facts.goals import amount_of, metric_of, target_of, words_of_metric
from writer.facts.languages import of_other_language
from writer.facts.sentences import DOT, Sentence, Statement, is_denied, statements
from writer.facts.times import days_of, without_time

MOST_OF_TURN = 50
"""Maximum number of stated facts that are read from a turn."""
MOST_DRAFTS = 500
"""Maximum number of facts, stated or ended, that are read from a turn."""
EVERY_DAY = " every day"
"""End of a positive sentence that may only end a routine."""
_OF_ONESELF = re.compile(r"\b(?:i|my|we|our|me|here)\b")
"""Every statement that a rule can match has one of these words, in small letters: "Fiona here" has "here"."""


def read(text: str, day: date) -> list[FactDraft]:
    """Returns the first MOST_OF_TURN facts that a user's turn states, and those that it ends, in the order of the text.

    Words such as "yesterday" refer to ``day``, the day of the turn.
    """
    drafts: list[FactDraft] = []
    left = MOST_OF_TURN
    for sentence in statements(unicodedata.normalize("NFC", text).replace("\u2019", "'")):
        for draft in _of_sentence(sentence, day) or of_other_language(sentence.text):
            if len(drafts) == MOST_DRAFTS or not (left or draft.ends):
                return drafts
            drafts.append(draft)
            left -= not draft.ends
    return drafts


def _of_sentence(sentence: Sentence, day: date) -> list[FactDraft]:
    """Returns the facts of a sentence and of its clauses, each fact once."""
    facts = [draft for clause in sentence.clauses for draft in _of_statement(clause, day)]
    for draft in _of_statement(sentence.whole, day) if sentence.whole else ():
        same = next((each for each in facts if _name(each) == _name(draft)), None)
        if same is None:
            facts.insert(0, draft)
        elif same.value != draft.value:
            facts[facts.index(same)] = draft
    return [replace(facts[0], text=sentence.text)] if len(facts) == 1 else facts


def _name(draft: FactDraft) -> tuple[str, str, str, str | None]:
    return draft.kind, draft.subject, draft.attribute, draft.value if draft.ends else None


def _of_statement(statement: Statement, day: date) -> Iterator[FactDraft]:
    """Yields the fact that a statement makes, and those that it ends."""
    text, plain = statement.text, statement.plain
    if not _OF_ONESELF.search(plain.lower()):
        return
    stated = _denied(plain) if statement.denied else _drafts(plain, day)
    if (fact := next(stated, None)) is not None:
        yield _finished(fact, text)
    if FORMS["ends"].search(plain):
        yield from _left_behind(plain, text, stated=fact)
    for positive in _positives(plain, denied=statement.denied):
        ended = next(_denied(positive) if is_denied(positive) else _drafts(positive, day), None)
        if ended is None or ended.kind == "event":
            continue
        if positive.endswith(EVERY_DAY) and ended.attribute != REGULARLY:
            continue
        # "I sold my car radio" leaves the car
        if statement.denied or ended.attribute != "has" or _clean(positive).endswith(ended.value):
            yield replace(_finished(ended, text), ends=True)


def _positives(plain: str, *, denied: bool) -> list[str]:
    """Returns the positive sentences that a sentence takes back: "I quit Acme" takes back "I work at Acme"."""
    forms = _ended() if FORMS["ends"].search(plain) else ()
    found = [match.expand(each) for form, to in forms if (match := form.search(plain)) for each in to]
    if denied and not found and (FORMS["former"].search(plain) or not FORMS["limited"].search(plain)):
        positive = replaced(plain, "undenied")
        found = [positive] if positive != plain else []
    found += [each.replace("I play ", "I play the ", 1) for each in found if "I play " in each]
    return [*found, *(f"{each.rstrip(' .!')}{EVERY_DAY}" for each in found)]  # a routine, however often


@cache
def _ended() -> list[tuple[re.Pattern[str], list[str]]]:
    return [(compiled(PACKAGE, form), positives) for form, *positives in read_patterns(PACKAGE)["ended"]["by"]]


def _left_behind(plain: str, text: str, *, stated: FactDraft | None) -> Iterator[FactDraft]:
    """Yields the facts that end without their value being named: the employer, the partner, a medicine for a purpose."""
    if FORMS["lost_job"].search(plain):
        yield FactDraft("fact", text, "user", "employer", category="work", single=True, ends=True)
    if FORMS["parted"].search(plain):
        if stated is None or stated.attribute != "marital status":
            yield FactDraft("fact", text, "user", "marital status", category="people", single=True, ends=True)
        for who in PARTNERS:
            yield FactDraft("fact", text, f"user's {who}", "name", category="people", single=True, ends=True)
    if match := FORMS["stopped_taking"].search(plain):
        yield FactDraft("fact", text, "user", TAKING, match["value"], category="health", ends=True)


def _finished(draft: FactDraft, text: str) -> FactDraft:
    value, attribute = draft.value.replace(DOT, "."), draft.attribute.replace(DOT, ".")
    category = draft.category or category_of(draft.text)
    return replace(draft, text=text, category=category, value=value, attribute=attribute)


def _denied(plain: str) -> Iterator[FactDraft]:
    """Yields what a negated sentence says of the user: a goal to avoid something, or an aversion."""
    goal = FORMS["goal"].search(plain)
    if goal and not is_denied(plain[: goal.start("what")]):
        yield from _goal(plain)
    if match := FORMS["does_not"].search(plain):
        how, value = match["how"].lower(), _clean(match["value"])
        # "I can't speak right now" says nothing for good
        if (value and not FORMS["points"].search(value)) or (not value and how in {"drink", "drive", "smoke"}):
            yield FactDraft("fact", plain, "user", f"does not {how}", value, single=not value)
    if match := FORMS["stopped"].search(plain):
        yield FactDraft("fact", plain, "user", "stopped", _clean(match["value"]))
    if FORMS["former"].search(plain):
        return
    if (match := FORMS["dislikes"].search(plain)) and _stands_alone(_clean(match["value"])):
        yield FactDraft("preference", plain, "user", "dislikes", _clean(match["value"]))


def _drafts(sentence: str, day: date) -> Iterator[FactDraft]:
    """Yields the facts in a sentence, the most certain form first."""
    if states().match(sentence) or FORMS["kin_named"].search(sentence):
        for facts_of in (_about_the_user, _people, _activity, _preference):
            yield from facts_of(sentence)
    clauses = (sentence, *FORMS["clause"].split(sentence)[1:])
    if any(map(happens().match, clauses)):
        yield from _event(sentence, clauses, day)
    yield from _goal(sentence)


def _about_the_user(sentence: str) -> Iterator[FactDraft]:
    if match := FORMS["measure"].search(sentence):
        what = match["what"] or ("income" if match["earn"] else "weight" if match["weigh"] else "budget")
        if amount := FORMS["amount"].search(match["value"]):
            what = f"{match['whose'] or ''}{what}".lower()
            yield FactDraft("fact", sentence, "user", what, *amount_of(amount), single=True)
    for attribute, form in about_me():
        if match := form.search(sentence):
            value = _clean(match["value"])
            yield FactDraft("fact", sentence, "user", attribute, value, single=attribute not in SEVERAL)
    if match := FORMS["mine"].search(sentence):
        what = (match["thing"] or match["trait"]).replace("color", "colour")
        yield FactDraft("fact", sentence, "user", what, _clean(match["which"] or match["what"]), single=True)


def _event(sentence: str, clauses: Sequence[str], day: date) -> Iterator[FactDraft]:
    days = days_of(sentence, day)
    form = FORMS["lately"] if days is None else FORMS["ahead"] if days.first > day else FORMS["event"]
    event = next((match for match in map(form.search, clauses) if match), None)
    if event and not FORMS["points_first"].search(event["what"]) and not FORMS["there"].search(sentence):
        value, unit = _clean(event["what"]), ""
        if (amount := FORMS["amount"].fullmatch(without_time(value))) and amount["unit"]:
            value, unit = amount_of(amount)
        yield FactDraft("event", sentence, "user", event["verb"].lower(), value, unit, about=days)


def _people(sentence: str) -> Iterator[FactDraft]:
    if match := FORMS["kin_named"].search(sentence):
        who = match["who"].lower()
        yield FactDraft("fact", sentence, f"user's {who}", "name", match["value"], "", "people", single=who in ONE_OF)
    for attribute, form in KIN_DOES.all().items():
        if match := form.search(sentence):
            who, value = f"user's {match['who'].lower()}", _clean(match["value"])
            single = who.removeprefix("user's ") in ONE_OF and attribute != "is"
            yield FactDraft("fact", sentence, who, attribute, value, "", "people", single=single)


def _activity(sentence: str) -> Iterator[FactDraft]:
    if match := FORMS["ongoing"].search(sentence):
        value = _clean(match["value"] or match["long"] or "")
        if _stands_alone(value):
            verb = (match["verb"] or match["now"]).lower()
            yield FactDraft("fact", sentence, "user", f"has been {verb}", value)
    if match := FORMS["takes"].search(sentence):
        yield FactDraft("fact", sentence, "user", f"takes for {match['for']}", _clean(match["value"]), "", "health")
    if (match := FORMS["routine"].search(sentence)) and not FORMS["points"].search(match["value"]):
        yield FactDraft("fact", sentence, "user", REGULARLY, _clean(match["value"]))
    if (match := FORMS["habit"].search(sentence)) and _stands_alone(match["value"]):
        yield FactDraft("fact", sentence, "user", match["often"].lower(), _clean(match["value"]))
    if match := FORMS["has"].search(sentence):
        yield FactDraft("fact", sentence, "user", "has", _clean(match["value"]))
    if match := FORMS["been"].search(sentence):
        yield FactDraft("fact", sentence, "user", "has been to", _clean(match["value"]), "", "travel")
    if match := FORMS["does"].search(sentence):
        verb, value = match["now"] or match["ing"], _clean(match["value"])
        if _stands_alone(value.removeprefix("the ") if verb in {"play", "learning"} else value):
            yield FactDraft("fact", sentence, "user", verb.lower(), value)


def _preference(sentence: str) -> Iterator[FactDraft]:
    tastes: list[tuple[str, str, str, bool]] = []  # subject, attribute, value, single
    if match := FORMS["favourite"].search(sentence):
        tastes.append(("user", f"favourite {match['what'].lower().replace('color', 'colour')}", match["value"], True))
    if match := FORMS["likes"].search(sentence):
        how = f"{match['how'].lower()}s" if match["how"] else f"has always {match['since'].lower()}"
        tastes.append(("user", how, match["value"], False))
    if match := FORMS["theirs"].search(sentence):
        how = match["how"].lower().removesuffix("s") + "s"
        tastes.append((f"user's {match['who'].lower()}", how, match["value"], False))
    if match := FORMS["favourite_last"].search(sentence):
        tastes.append(("user", f"favourite{(match['what'] or '').lower()}", match["value"], False))
    fond = [match["value"] for form in (FORMS["fond"], FORMS["fan"]) if (match := form.search(sentence))]
    tastes += [("user", "is fond of", value, False) for value in fond]
    for subject, attribute, value, single in tastes:
        if _stands_alone(_clean(value)):
            yield FactDraft("preference", sentence, subject, attribute, _clean(value), single=single)


def _goal(sentence: str) -> Iterator[FactDraft]:
    match = FORMS["goal"].search(sentence)
    if not match or (not match["named"] and FORMS["no_goal"].search(match["what"])):
        return
    if FORMS["points"].search(FORMS["this_time"].sub("", match["what"])) or FORMS["all"].search(match["what"]):
        return
    what = _clean(match["what"])
    amount = target_of(what)
    if amount is None:
        yield FactDraft("goal", sentence, "user", words_of_metric(what), what)
        return
    value, unit = amount_of(amount)
    metric = metric_of(what, match["of"] or match["about"] or "", unit, amount)
    yield FactDraft("goal", sentence, "user", metric, value, unit, single=True)


def _stands_alone(value: str) -> bool:
    """Returns whether a value is clear without context and not cut in the middle."""
    return not (FORMS["vague"].search(value) or FORMS["points"].search(value) or FORMS["cut"].search(value))


def _clean(value: str) -> str:
    return " ".join(value.split()).rstrip(" .,!;")
