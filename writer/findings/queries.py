"""Compares queries: questions by their words, patterns and code character by character.

Two questions are the same if they have the same words, apart from endings, order and empty words; with a word for a
direction ("before"), the order must be the same, too. Words with similar meanings never count as the same, because
"enable" and "disable" are similar, and a wrong "known" costs an agent more than a repeated search.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

MOST_CHARS = 4_000
"""Maximum characters of a query that is compared by its words; a longer query is compared character by character."""
MOST_TERMS = 60
LONGEST_WORD = 200
_CODE = re.compile(r"[\\^$|*\[\]{}<>=;]|\.\*|\(\?|^\W+$")
"""Characters that occur only in patterns and code, not in questions."""
_NAME = re.compile(r"[\w./:#@+-]*(?:[_/:#@+]|\d|\w[.-]\w|[a-z][A-Z])[\w./:#@+-]*")
"""Words that are names: paths, identifiers, versions, numbers."""
_QUOTES = ".,?!\"'`()\u2026\u201c\u201d\u2018"
_WORD = re.compile(r"[^\W\d_]+", re.UNICODE)
_EMPTY = frozenset(
    """
    a an and are at be been being can could did do does doing done for had has have i in is it its me my of on our
    please that the their them there these they this those us was we were what will with would you your
    """.split()
)
"""Words that do not change the meaning of a question."""
_DIRECTIONS = frozenset(
    """
    after as before between by from inside into onto outside over than through to under until versus vs
    """.split()
)
_IDLE_TO = frozenset("how where need want used able have going".split())
"""Words after which "to" is no direction, as in "how to"."""
_NOT = {"cannot", "cant", "dont", "doesnt", "didnt", "isnt", "arent", "wasnt", "wont", "without", "no", "never", "nor"}
_REQUEST = re.compile(
    r"(?i)^(?:please |(?:can|could|would) you (?:please )?|i (?:want|need|would like) to (?:know )?)*"
    r"(?:(?:find|find out|show|tell|give|explain|describe|look up|look for|search for|get|list|check)(?: me| us)?"
    r" (?=(?:the|a|an|any|where|how|what|which|who|when|why|whether) ))?"
)
"""Opening phrases of a request."""
_STEMMER = snowballstemmer.stemmer("english")
_ASKING = frozenset(_STEMMER.stemWords("how long many much what when where which who whom whose why".split()))
"""Stems of question words, such as "why": questions that differ in one are not the same; similarity ignores them."""
_SORTS = frozenset(
    _STEMMER.stemWords("class declaration definition enum function interface method module struct type".split())
)
"""Stems of the words for sorts of things in code, such as "class"; beside a name they are ignored."""


@dataclass(frozen=True, slots=True)
class QueryKey:
    """The form in which a query is compared.

    Attributes:
        key: a text that is equal for queries with the same meaning.
        terms: words of a question, except question words, whose common share is the similarity; empty for patterns.
    """

    key: str
    terms: frozenset[str] = frozenset()


def question_key(text: str) -> QueryKey:
    """Returns the key of a question, by its words; for a pattern, code or a single word, the key of the exact text."""
    line = " ".join(text[:MOST_CHARS].replace("\u2019", "'").split())
    if len(text) > MOST_CHARS or _CODE.search(line):
        return exact_key(text)
    words = _content(_REQUEST.sub("", line))
    if any(_NAME.fullmatch(word) for word in words):
        words = [word for word in words if word not in _SORTS] or words
    if len(words) == 1 and " " in line:
        return exact_key(words[0])
    if len(words) < 2 or not any(_WORD.fullmatch(word) for word in words):  # noqa: PLR2004 - one word is a keyword
        return exact_key(text)
    directed = any(word in _DIRECTIONS for word in words)
    terms = frozenset(words[:MOST_TERMS])
    terms = terms - _ASKING or terms
    return QueryKey(f"words {' '.join(words if directed else sorted(set(words)))}", terms)


def exact_key(text: str) -> QueryKey:
    """Returns the key under which the pattern of a search tool is compared with others: its exact text, stripped."""
    return QueryKey(f"exactly {text.strip()}")


def _content(line: str) -> list[str]:
    """Returns the meaningful words of a question in order, without their endings; names are kept whole."""
    content: list[str] = []
    before = ""
    for raw in line.split():
        word = raw[:LONGEST_WORD].strip(_QUOTES)
        name = _NAME.fullmatch(word) is not None and not re.fullmatch(r"[A-Za-z]+'[a-z]{1,2}", word)
        lower = word.casefold()
        if name:
            content.append(word.strip(".:"))
        elif lower.endswith("n't") or lower.replace("'", "") in _NOT:
            content.append("not")
        elif lower != "to" or before not in _IDLE_TO:
            parts = _WORD.findall(lower.removesuffix("'s"))
            content += [stem(part) for part in parts if part not in _EMPTY]
        before = lower
    return content


@lru_cache(maxsize=50_000)  # most words occur many times
def stem(word: str) -> str:
    """Returns the stem of a word by Snowball's English stemmer."""
    stemmed: str = _STEMMER.stemWord(word)
    return stemmed
