"""Selection of the statements in a turn: no questions, hypotheticals, quotations, negations or sarcasm.

A statement is a sentence, or a clause with a subject of its own. Rules read statements in a plain form: without list
marks, emoji and fillers, and with contractions and capitals as in print.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.patterns import patterns
from writer.facts.forms import PACKAGE, replaced
from writer.facts.languages import OPENS
from writer.facts.own_words import LONGEST, own_words

DOT = "\u2024"
"""Character in place of the dot of an abbreviation, because that dot ends no sentence."""
_FORMS = patterns(PACKAGE, "sentences")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a turn.

    Attributes:
        plain: the statement in the plain form that rules read.
        denied: true if the statement has a negation, "no longer" included.
    """

    text: str
    plain: str
    denied: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in the writer's own words.

    Attributes:
        text: the sentence as the user wrote it.
        whole: the sentence as one statement; None if only clauses of it are statements.
        clauses: clauses that are statements, if the sentence has several clauses.
    """

    text: str
    whole: Statement | None
    clauses: list[Statement]


def statements(text: str) -> Iterator[Sentence]:
    """Yields the sentences of a text that are in its writer's own words, and are no hypothesis, report or irony."""
    own = _FORMS["abbreviated"].sub(lambda match: match[0][:-1] + DOT, own_words(text))
    for part in _FORMS["end"].split(own):
        sentence = part.strip()
        if not sentence or len(sentence) > LONGEST or "…" in sentence:
            continue
        small = sentence.lower()
        if not _FORMS["of_oneself"].search(small) and not OPENS.search(small):
            continue
        if _FORMS["hypothetical"].search(small) or _FORMS["irony"].search(small) or _FORMS["reported"].search(small):
            continue
        clauses = [_statement(clause) for clause in _clauses(sentence) if _is_stated(clause)]
        whole = _statement(sentence) if _is_stated(sentence) else None
        yield Sentence(sentence.replace(DOT, "."), whole, clauses)


def is_denied(text: str) -> bool:
    """Returns whether a text has a negation."""
    return bool(_FORMS["denied"].search(text.lower()))


def _is_stated(text: str) -> bool:
    if "?" in text:
        return False
    said = _FORMS["month"].sub("", _FORMS["wish"].sub("", text) if "'" in text else text)
    return not _FORMS["modal"].search(said.lower()) and not _FORMS["asks"].search(text.lower())


def _clauses(sentence: str) -> list[str]:
    """Returns the clauses of a sentence that has several."""
    apart = _FORMS["and_place"].sub(lambda match: f"{match[1]}, ", _FORMS["small_i"].sub("I", sentence))
    first, *others = [clause for clause in _FORMS["clause"].split(apart) if clause.strip()]
    if not _FORMS["first_person"].search(first):
        others = [clause for clause in others if _FORMS["first_person"].search(clause)]  # of a clause without a subject
    return [first, *(f"I'm {clause}" if clause.startswith("from ") else clause for clause in others)] if others else []


def _statement(text: str) -> Statement:
    plain = replaced(text.lower() if text.isupper() else text, "plain")
    # the "no" of "no, I moved to Leeds" negates an earlier sentence
    return Statement(text.replace(DOT, "."), plain.strip(), is_denied(_FORMS["correction"].sub("", plain)))
