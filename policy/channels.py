"""Channels: how near a past run is to a query, each a content-free number; no order is right for every bank.

A text is a set of *terms*, numbers that stand for its words; all words count, also those that a stop list drops ("after
the" and "has a new" tell kinds of tasks apart). Three channels compare terms under different weights (cosine of
Salton & Buckley 1988), one compares vectors, one tells how recent a run is:

    words    every term weighs the same
    rare     a term weighs its idf, log(1 + runs / runs that have it)
    telling  a term weighs idf * (gain + LEAST_GAIN): the gain tells how much sharing the term raises the agreement of
             two runs' plans above the usual, over the pairs of the bank's own successes
    meaning  cosine of the embeddings
    recent   -log(1 + runs since)

    gain(w) = max(0, (mean agreement of pairs that share w - mean) / (1 - mean)) * m / (m + CAUTION),
    m = runs with w - 1
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policy.agreement import Matrix, counts

Numbers = NDArray[np.floating[Any]] | float
Terms = NDArray[np.int32]
"""The distinct terms of one text, as numbers (hashes), in any order."""

LEAST_GAIN = 0.03
"""Gain added to each term's: a term that tells nothing of plans still tells texts apart."""
CAUTION = 2.0
"""Number of runs whose word counts half: a term that two runs share may agree by chance."""
MOST_WORDS = 512
"""Distinct words of a text that count, half of them from its beginning and half from its end."""
TINY = np.float32(1e-9)

_WORD = re.compile(r"[^\W_]+")
# scripts that are written without spaces: a word of them is each two neighbours
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+"
)


def words(text: str) -> list[str]:
    """Returns the distinct words of a text in the order of first use, at most MOST_WORDS.

    The text is normalised first (NFKC, folded case), so that forms of one letter are one letter. Scripts that are
    written without spaces give each two neighbouring characters as a word.
    """
    distinct = list(dict.fromkeys(_words(unicodedata.normalize("NFKC", text).casefold())))
    if len(distinct) <= MOST_WORDS:
        return distinct
    return distinct[: MOST_WORDS // 2] + distinct[-MOST_WORDS // 2 :]


def _words(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        whole, end = match[0], 0
        for part in _UNSPACED.finditer(whole):
            if part.start() > end:
                yield whole[end : part.start()]
            run, end = part[0], part.end()
            yield from (run[at : at + 2] for at in range(max(len(run) - 1, 1)))
        if end < len(whole):
            yield whole[end:]


def incidence(texts: Sequence[Terms]) -> tuple[Matrix, Terms]:
    """Returns which text has which term, (n texts, number of distinct terms) of 0 and 1, and the distinct terms."""
    return counts(texts, 1)


def cosine(asked: Matrix, bank: Matrix, weight: Matrix) -> Matrix:
    """Returns the cosine of each query to each run, (m, n), under the query's own weights of terms.

    Args:
        asked: (m, t), which query has which term.
        bank: (n, t), which run has which term.
        weight: (m, t) or (1, t), weight of each term for each query.
    """
    squared = weight * weight
    shared = (asked * squared) @ bank.T
    length = (asked * squared).sum(axis=1)[:, None] * (squared @ bank.T)
    return np.asarray(shared / np.sqrt(np.maximum(length, TINY)), dtype=np.float32)


def idf(runs: Numbers, having: Matrix) -> Matrix:
    """Returns log(1 + runs / runs that have the term); a term that no run has weighs as one that one run has."""
    return np.asarray(np.log1p(runs / np.maximum(having, 1)), dtype=np.float32)


def gain(shared: Matrix, having: Matrix, mean: Numbers) -> Matrix:
    """Returns the gain of each term, 0 to 1.

    Args:
        shared: sum of the agreement over the pairs of runs that share the term.
        having: number of runs that have the term.
        mean: mean agreement of all pairs.
    """
    pairs = np.maximum(having * (having - 1) / 2, 1)
    above = (shared / pairs - mean) / np.maximum(1 - mean, TINY)
    others = np.maximum(having - 1, 0)
    return np.asarray(np.maximum(above, 0) * others / (others + CAUTION), dtype=np.float32)
