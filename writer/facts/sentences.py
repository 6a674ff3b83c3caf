"""Selection of the statements in a turn: no questions, hypotheticals, quotations, negations or sarcasm."""

import re
from collections.abc import Iterator

LONGEST = 300
"""Longest sentence that is read; in a longer one a rule would miss the context."""

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED = re.compile(r"^\s*>.*$|[\"“][^\"”\n]*[\"”]|(?<!\w)'[^'\n]{3,}'(?!\w)", re.MULTILINE)
_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|\n+|\s+[-\u2013\u2014]+\s+|(?<=\w)[-\u2013\u2014]{2}(?=\w)")
_NOT_SAID = re.compile(
    r"\b(?:if|unless|would|'d|could|might|may|maybe|perhaps|possibly|probably|wish|imagine|suppose|pretend|hypothetical\w*"
    r"|what if|let'?s say|as if|as though|for example|e\.g|in case|whether|should|wonder(?:ing)?|guess|dream(?:ed|t) (?:that|i))\b"
    r"|(?<=\w)'d\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:not|never|no longer|nobody|nothing|neither|nor|hardly|barely|used to|without|cannot|stopped|quit|almost|nearly)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
_IRONY = re.compile(
    r"(?:^|\s)/s\b|\byeah,? right\b|\bsure,? because\b|\bjust what (?:i|we) needed\b|\boh,? (?:great|joy|wonderful|fantastic)\b"
    r"|\bsaid no ?one ever\b|\bkidding\b|\bjoking\b|\bsarcas\w*|\blol\b|\bnot!|🙄|\bas always,? (?:great|perfect)\b",
    re.IGNORECASE,
)
_REPORTED = re.compile(
    r"\b(?:said|says|told|tells|asked|claims?|claimed|thinks?|thought|believes?|according to|quote|lyrics?)\b",
    re.IGNORECASE,
)
_CORRECTION = re.compile(r"^(?:no|nope|actually|sorry|correction|wait)\b[,.!:;]*\s+", re.IGNORECASE)


def statements(text: str) -> Iterator[str]:
    """Yields the sentences of a text that are statements in the writer's own words, verbatim."""
    own = _QUOTED.sub(" … ", _CODE.sub(" … ", text))
    for part in _END.split(own):
        sentence = part.strip()
        if sentence and is_stated(sentence):
            yield sentence


def is_stated(sentence: str) -> bool:
    """Returns whether a sentence is a direct statement."""
    if len(sentence) > LONGEST or "?" in sentence or "…" in sentence:
        return False
    plain = _CORRECTION.sub("", sentence)  # the "no" of "no, I moved to Leeds" negates an earlier sentence
    return not any(rule.search(plain) for rule in (_NOT_SAID, _DENIED, _IRONY, _REPORTED))
