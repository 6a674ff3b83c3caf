"""Reads advice for the operator: the repair of its list whose SQL has most of the words that put a failure right."""

import re
from collections import Counter

from app.demo.operator.catalog import Catalog
from app.demo.operator.repairs import REPAIRS, Repair, apply_chain
from app.demo.operator.script import Script

LEAST = 0.35
"""Least F1 of words, 0 to 1, at which a repair counts as meant."""
_FIX = re.compile(r"What put it right: (?P<fixes>.*)\.$", re.DOTALL)
_WORD = re.compile(r"\w+|[\"'.(|:]")
_TYPES = frozenset(("bigint", "boolean", "date", "integer", "numeric", "text", "timestamptz"))
A_TYPE = "a type"
"""Stands for the name of a data type: which one is right, the column's name says."""
OTHER_CASE = "other case"
"""Stands for a word that is there in two spellings, as in Payments and payments."""


def advised(text: str, chain: tuple[Repair, ...], script: Script, catalog: Catalog) -> list[tuple[Repair, ...]]:
    """Returns the repairs, each behind this chain, whose SQL is likest to each fix of the text, the best fix first."""
    match = _FIX.search(text)
    if match is None:
        return []
    wanted = {repair: _difference(script, chain, repair, catalog) for repair in REPAIRS}
    own = {word.casefold() for word in _WORD.findall(" ".join(script.statements)) if word.isidentifier()}
    known = {word for words in wanted.values() if words for word in words}
    found = []
    for fix in match["fixes"].split(" Or: "):
        words = _spellings(_WORD.findall(fix))
        told = Counter({word: count for word, count in words.items() if word in known and word not in own})
        scores = {repair: _f1(told, words) for repair, words in wanted.items() if words}
        best = max(scores, key=scores.__getitem__, default=None)
        if best is not None and scores[best] >= LEAST:
            found.append((*chain, best))
    return found


def _difference(script: Script, chain: tuple[Repair, ...], repair: Repair, catalog: Catalog) -> Counter[str] | None:
    """Returns the words that a repair adds to the statements; None if it does not apply or was applied."""
    current = apply_chain(script, chain, catalog)
    longer = None if current is None or repair in chain else repair.edit(current, catalog)
    if current is None or longer is None:
        return None
    before, after = (_WORD.findall(" ".join(each.statements)) for each in (current, longer))
    added = _spellings([*before, *after]) - _spellings(before)
    return added - _spellings(before)


def _spellings(words: list[str]) -> Counter[str]:
    """Returns the words in lower case with their counts, and OTHER_CASE if one is there in two spellings."""
    counts = Counter(A_TYPE if word.casefold() in _TYPES else word.casefold() for word in words)
    spelt = {word for word in words if word.isidentifier()}
    counts[OTHER_CASE] = int(len({word.casefold() for word in spelt}) < len(spelt))
    return +counts


def _f1(told: Counter[str], words: Counter[str]) -> float:
    return 2 * (told & words).total() / ((told + words).total() or 1)
