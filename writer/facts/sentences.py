"""Selection of the statements in a turn: no questions, hypotheticals, quotations, negations or sarcasm.

A statement is a sentence, or a clause with a subject of its own. Rules read statements in a plain form: without list
marks, emoji and fillers, and with contractions and capitals as in print.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from writer.facts.goals import WISHED
from writer.facts.languages import OPENS
from writer.facts.own_words import LONGEST, OWN_LABEL, own_words

DOT = "\u2024"
"""Character in place of the dot of an abbreviation, because that dot ends no sentence."""
# Every text is searched for the following patterns. They begin with the first character that a match may have, because
# the search for a character is much faster than that for the beginning of a word.
_ABBREVIATED = re.compile(
    r"\.(?:(?<=\b(?:St|Mt|Ft|Dr|Mr|Ms|Jr|Sr|vs)\.)|(?<=\b(?:Mrs|Ave)\.)|(?<=\b(?:Prof|Blvd)\.)|(?<=\bapprox\.))(?=\s)"
    r"|\.(?<=\b[A-Z]\.)(?=[A-Z])"
)
_END = re.compile(
    r"(?=[\s\"')\]\u2013\u2014-])"
    r"(?:(?<=[.!?…])[\"')\]]*\s+|\n+|\s+[-\u2013\u2014]+\s+|(?<=\w)[-\u2013\u2014]{2}(?=\w))"
)
_SUBJECT = r"(?:I(?:'?m|'?ve|'d|'ll)?|[Mm]y|[Ww]e(?:'re|'ve)?)"
_CLAUSE = re.compile(
    rf"(?=[,;\s])(?:[,;]\s*(?:(?:and|but|so|also|plus)\s+)?(?={_SUBJECT}\b)|\s+(?:and|but)\s+(?=(?:also\s+)?{_SUBJECT}\b)"
    r"|\s*[,;]\s*(?:and\s+)?(?=(?:from|based in|living in|allergic to) )"
    r"|(?:[,;]\s*(?:(?:and|but)\s+)?|\s+(?:and|but)\s+)(?=(?:live in|work (?:at|for|as)|hate|prefer|speak) )"
    r"|[,;]\s*(?:so\s+|and\s+)?(?=(?:what|where|how|which|when|can|could|any|do you|please|pls)\b)"
    r"|\s+(?:and|but)\s+(?=(?:could|would|can|need|want|was) ))"
)
_FIRST_PERSON = re.compile(rf"^\W*(?:\w+,? ){{0,2}}?{_SUBJECT}\b|^(?:love|hate|live|based|working)\b", re.IGNORECASE)
_AND_PLACE = re.compile(r"^(\W*(?:I'?m|I am) (?:an? )?[\w -]{3,40}?) (?=(?:based|living) in )", re.IGNORECASE)
"""A clause that states a role and a place: "I'm a nurse based in Rome"."""
_SMALL_I = re.compile(r"i(?<!\wi)(?=[ ']|m )")
# The following patterns are searched in small letters: to ignore the case costs three times as much.
_HYPOTHETICAL = re.compile(
    r"\b(?:if|unless|wish|imagine|suppose|pretend|hypothetical\w*|what if|let'?s say|as if|as though|for example|e\.g|in case"
    r"|whether|wonder(?:ing)?|guess|dream(?:ed|t) (?:that|i))\b"
)
_MODAL = re.compile(r"\b(?:would|'d|could|might|may|maybe|perhaps|possibly|probably|should)\b|(?<=\w)'d\b")
_MONTH = re.compile(r"May\b(?<=\w May)")
_DENIED = re.compile(
    r"\b(?:not|never|no longer|nobody|nothing|neither|nor|hardly|barely|used to|without|cannot|stopped|quit|almost|nearly)\b"
    r"|n['\u2019]t\b"
)
_IRONY = re.compile(
    r"\b(?:yeah,? right\b|sure,? because\b|just what (?:i|we) needed\b|oh,? (?:great|joy|wonderful|fantastic)\b"
    r"|said no ?one ever\b|kidding\b|joking\b|sarcas|lol\b|not!|as always,? (?:great|perfect)\b)|/s\b(?<!\S/s)|🙄"
)
_REPORTED = re.compile(
    r"\b(?:said|says|told|tells|asked|claims?|claimed|thinks?|thought|believes?|according to|quote|lyrics?)\b"
)
_CORRECTION = re.compile(r"^(?:no|nope|actually|sorry|correction|wait)\b[,.!:;]*\s+", re.IGNORECASE)
_ASKS = re.compile(
    r"^(?:what|where|how|which|when|who|why|can(?!'t)|could|any|do|(?:please|pls)(?! (?:call me|note|remember)))\b"
)

_VERBS = r"live in|been living in|moved(?: back| over)? to|work (?:at|for)|(?:love|hate)(?! (?:and|is|in|are|was|has|can|of|or|you|me|him|her)\b)|can't stand|turned(?= \d)|work as|want to learn"
_PARTICIPLES = (
    r"allergic to|based in|living in|working (?:at|as)|not (?:a fan of|into)|(?:a )?(?:big |huge )?fan of|trying to|hoping to|planning to|aiming (?:to|for)"
    r"|born and|born in(?= (?:19|20)\d)|originally from|saving(?: up)? for(?= (?:an?|my|our)\b)|training for(?= (?:an?|my)\b)"
)
"""Beginnings of sentences that leave out "I" or "I'm"."""
_FILLERS = (
    r"btw|by the way|fyi|haha+|tho|pls|please|thx|thanks|atm|rn|right now|now|these days|at the moment|currently|too|as well"
    r"|hands down|for sure"
)
"""Fillers at the ends of sentences, such as "btw"."""
_PLAIN: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = tuple(
    (re.compile(pattern, flags), by)
    for pattern, by, flags in (
        (r"^\s*(?:[-*\u2022\u2013+]|\d{1,2}[.)])\s+", "", 0),
        (r"\*|_(?:_|(?<!\w_)|(?!\w))", "", 0),
        ("[\u2600-\u27bf\U0001f000-\U0001faff]\ufe0f?[\u200d\ufe0f\U0001f000-\U0001faff]*", ",", 0),
        (r"[:;=<^x](?<!\w.)(?:(?<=[:;=])-?[)(DPp|/3]|(?<=<)3|(?<=\^)\^|(?<=x)D)(?!\w)", ",", 0),
        (
            r"^\s*(?:fyi|note|nb|ps|p\.s\.|btw|by the way|update|edit|correction|reminder|(?:fun )?fact|also)\s*[:,]?\s+",
            "",
            re.IGNORECASE,
        ),
        (
            r"^(?:my )?(budget|(?:goal|target)(?: weight)?|weight (?:goal|target)|aim|(?:new year's )?resolution|diet|time ?zone|allerg\w+|fav\w*(?: \w+){1,2})\s*:\s*(?=\S)",
            lambda match: f"my {match[1].lower()} is ",
            re.IGNORECASE,
        ),
        (rf"^\s*{OWN_LABEL}\s*:\s+", "", re.IGNORECASE),
        (
            r"^((?:goal|target) weight|weight (?:goal|target)|new year's resolution) (?:is )?(?=\d|to )",
            lambda match: f"my {match[1]} is ",
            re.IGNORECASE,
        ),
        (
            r"^(?:since|as of|starting|from) (?:last |this )?\w+(?: \d{4})?,? (?=(?:I|[Ww]e)\b)",
            "",
            re.IGNORECASE,
        ),
        (r"^(?:no longer(?= [\w-]+(?: any ?more)?\W*$)|not(?= [\w -]+ any ?more\b))", "I'm no longer", re.IGNORECASE),
        (
            r"^((?:sold|got rid of|gave away)(?= (?:my|our|the) )|(?:stopped|quit)(?= \w+ing\b)|moved(?= (?:out of|away from) ))",
            lambda match: f"I {match[1].lower()}",
            re.IGNORECASE,
        ),
        (r"^([Bb]udget)(?= (?:is|went|has gone|dropped|rose|increased)\b)", lambda match: f"my {match[1]}", 0),
        (r"^[\s,]+|[\s,]+$", "", 0),
        (rf"(?=[\s,])(?:[\s,]+(?i:{_FILLERS}))+[\s.!,]*$", "", 0),
        (r"i(?<!\wi)(?=[ ']|$)", "I", 0),
        (r"[Ii]m\b(?<!(?s:.)..)|im\b(?<= im)|I am\b(?<!\wI am)", "I'm", 0),
        (
            r"ive\b(?<!\wive)|I have(?<!\wI have)(?= (?:just |recently |always )*(?:been|moved|got|relocated)\b)",
            "I've",
            0,
        ),
        (r"[Nn][Tt]\b(?i:(?<=\b(?:do|is|ca|wo)nt)|(?<=\b(?:did|are|was|has)nt)|(?<=\b(?:does|have)nt))", "n't", 0),
        (r"^(I (?:can't|cannot) (?:stand|bear) .*?) any ?more\b", lambda match: match[1], re.IGNORECASE),
        (r"^(?:[Tt]he )?[Nn]ame(?:'s| is) (?=[^\W\d_a-z])", "my name is ", 0),
        (r"^(?:goal|target|aim)(?= is (?:to |\D{0,12}\d))", "my goal", re.IGNORECASE),
        (
            r"^(?=save \W?\d[^.]* (?:a|per|each|every) (?:day|week|month|year)\b|lose \d+ (?:kg|kilos?|lbs?|pounds)\b)",
            "I want to ",
            re.IGNORECASE,
        ),
        (r"\b[Ll]uv\b", "love", 0),
        (r"[Ww](?i:anna\b(?<!\wwanna))", "want to", 0),
        (r"[Bb](?i:-?day\b(?<!\wbday)(?<!\wb-day))", "birthday", 0),
        (r"^(my )fave?(?= )", lambda match: f"{match[1]}favourite", re.IGNORECASE),
        (rf"^((?:just |recently )?(?:{_VERBS})) ", lambda match: f"I {match[1].lower()} ", re.IGNORECASE),
        (
            rf"^((?:now |currently |still )?(?:{_PARTICIPLES})) ",
            lambda match: f"I'm {match[1].lower()} ",
            re.IGNORECASE,
        ),
    )
)
"""Replacements that put a clause into the plain form, in the order in which they are made."""

_OF_ONESELF = re.compile(
    rf"\b(?:i|im|ive|my|we|our|me|here|any ?more|no longer|sold|stopped|quit|moved|{_VERBS}|{_PARTICIPLES}|budget|goal|target|aim|resolution|diet|time ?zone|allerg\w+|fav\w*|name|save|lose)\b"
)
"""Every sentence that a rule can match has one of these words, in small letters: "Fiona here" has "here"."""
_WISH = re.compile(rf"\bI'd (?:like|love) to (?={WISHED})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a turn.

    Attributes:
        plain: the statement in the plain form that rules read.
        denied: whether the statement has a negation, "no longer" included.
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
        clauses: its clauses that are statements, if it has several clauses.
    """

    text: str
    whole: Statement | None
    clauses: list[Statement]


def statements(text: str) -> Iterator[Sentence]:
    """Yields the sentences of a text that are in its writer's own words, and are no hypothesis, report or irony."""
    own = _ABBREVIATED.sub(lambda match: match[0][:-1] + DOT, own_words(text))
    for part in _END.split(own):
        sentence = part.strip()
        if not sentence or len(sentence) > LONGEST or "…" in sentence:
            continue
        small = sentence.lower()
        if not _OF_ONESELF.search(small) and not OPENS.search(small):
            continue
        if _HYPOTHETICAL.search(small) or _IRONY.search(small) or _REPORTED.search(small):
            continue
        clauses = [_statement(clause) for clause in _clauses(sentence) if _is_stated(clause)]
        whole = _statement(sentence) if _is_stated(sentence) else None
        yield Sentence(sentence.replace(DOT, "."), whole, clauses)


def is_denied(text: str) -> bool:
    """Returns whether a text has a negation."""
    return bool(_DENIED.search(text.lower()))


def _is_stated(text: str) -> bool:
    if "?" in text:
        return False
    said = _MONTH.sub("", _WISH.sub("", text) if "'" in text else text)
    return not _MODAL.search(said.lower()) and not _ASKS.search(text.lower())


def _clauses(sentence: str) -> list[str]:
    """Returns the clauses of a sentence that has several."""
    apart = _AND_PLACE.sub(lambda match: f"{match[1]}, ", _SMALL_I.sub("I", sentence))
    first, *others = [clause for clause in _CLAUSE.split(apart) if clause.strip()]
    if not _FIRST_PERSON.search(first):
        others = [clause for clause in others if _FIRST_PERSON.search(clause)]  # of a clause without a subject
    return [first, *(f"I'm {clause}" if clause.startswith("from ") else clause for clause in others)] if others else []


def _statement(text: str) -> Statement:
    plain = text.lower() if text.isupper() else text
    for pattern, by in _PLAIN:
        plain = pattern.sub(by, plain)
    # the "no" of "no, I moved to Leeds" negates an earlier sentence
    return Statement(text.replace(DOT, "."), plain.strip(), is_denied(_CORRECTION.sub("", plain)))
