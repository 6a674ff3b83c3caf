"""When two queries ask for the same: questions by what they say, patterns and code by every sign.

A wrong "known" costs an agent more than a search that it makes twice. So questions are the same if the same words are
left once their endings, their order and the words that say nothing are taken away; where a word tells a direction, in
the same order. Nothing is guessed from words that are merely near: "enable" and "disable" are.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

MOST_CHARS = 4_000
"""Of a query, that are looked at for its words."""
MOST_TERMS = 60
LONGEST_WORD = 200
_CODE = re.compile(r"[\\^$|*\[\]{}<>=;]|\.\*|\(\?|^\W+$")
"""What only a pattern or a piece of code has."""
_NAME = re.compile(r"[\w./:#@+-]*(?:[_/:#@+]|\d|\w[.-]\w|[a-z][A-Z])[\w./:#@+-]*")
"""A word that names something: a path, an identifier, a version, a number."""
_QUOTES = ".,?!\"'`()\u2026\u201c\u201d\u2018"
_WORD = re.compile(r"[^\W\d_]+", re.UNICODE)
_EMPTY = frozenset(
    """
    a an and are at be been being can could did do does doing done for had has have i in is it its me my of on our
    please that the their them there these they this those us was we were what will with would you your
    """.split()
)
"""Words without which a question asks for the same."""
_DIRECTIONS = frozenset(
    """
    after as before between by from inside into onto outside over than through to under until versus vs
    """.split()
)
_IDLE_TO = frozenset("how where need want used able have going".split())
"""Words after which "to" tells no direction."""
_NOT = {"cannot", "cant", "dont", "doesnt", "didnt", "isnt", "arent", "wasnt", "wont", "without", "no", "never", "nor"}
_REQUEST = re.compile(
    r"(?i)^(?:please |(?:can|could|would) you (?:please )?|i (?:want|need|would like) to (?:know )?)*"
    r"(?:(?:find|find out|show|tell|give|explain|describe|look up|look for|search for|get|list|check)(?: me| us)?"
    r" (?=(?:the|a|an|any|where|how|what|which|who|when|why|whether) ))?"
)
"""How a query begins that is put as a request."""
_STEMMER = snowballstemmer.stemmer("english")


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, so that it can be compared.

    Attributes:
        key: equal for queries that ask for the same.
        terms: the words of one that asks in words; how many two have in common says how near they are.
    """

    key: str
    terms: frozenset[str] = frozenset()


def asked_in_words(text: str) -> Asked:
    """Returns what a query asks for; a pattern, or a piece of code, asks for itself."""
    said = " ".join(text[:MOST_CHARS].replace("\u2019", "'").split())
    if len(text) > MOST_CHARS or _CODE.search(said):
        return exactly(text)
    words = _content(_REQUEST.sub("", said))
    if len(words) < 2 or not any(_WORD.fullmatch(word) for word in words):  # noqa: PLR2004 - one word is a keyword
        return exactly(text)
    directed = any(word in _DIRECTIONS for word in words)
    terms = frozenset(words[:MOST_TERMS])
    return Asked(f"words {' '.join(words if directed else sorted(set(words)))}", terms)


def exactly(text: str) -> Asked:
    """Returns what a pattern asks for: itself, but for blanks around it."""
    return Asked(f"exactly {text.strip()}")


def _content(said: str) -> list[str]:
    """Returns the words that say what is asked for, without their endings, in order; names as they are."""
    found: list[str] = []
    before = ""
    for raw in said.split():
        word = raw[:LONGEST_WORD].strip(_QUOTES)
        name = _NAME.fullmatch(word) is not None and not re.fullmatch(r"[A-Za-z]+'[a-z]{1,2}", word)
        if name:
            found.append(word.strip(".:"))
        else:
            found += _plain(word, before)
        before = word.casefold()
    return found


def _plain(word: str, before: str) -> list[str]:
    lower = word.casefold()
    if lower.endswith("n't") or lower.replace("'", "") in _NOT:
        return ["not"]
    if lower == "to" and before in _IDLE_TO:
        return []
    parts = _WORD.findall(lower.removesuffix("'s"))
    return [stem(part) for part in parts if part not in _EMPTY]


@lru_cache(maxsize=50_000)  # most words come again
def stem(word: str) -> str:
    """Returns the word without its ending, as Snowball's English stemmer has it."""
    stemmed: str = _STEMMER.stemWord(word)
    return stemmed
