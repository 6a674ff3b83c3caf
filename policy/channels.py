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
from collections.abc import Sequence
from typing import Any
from unicodedata import category, normalize

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
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
"""Ranges of the scripts that are written without spaces: a word of them is each two neighbouring letters."""
_UNSPACED = re.compile(rf"[{UNSPACED}]+")
_MARKS = re.compile("[" + "".join(sign for sign in map(chr, range(0x300, 0x3100)) if category(sign)[0] == "M") + "]")
"""Vowel signs, tones and accents that are no part of a letter's normal form; Postgres takes them for no letters."""


def normalised(text: str) -> str:
    """Returns the text in the one form (NFKC) in which forms of one letter, composed or wide, are one letter."""
    return normalize("NFKC", text)


def searchable(text: str) -> str:
    """Returns the text as it is indexed and searched by words: normalised, with spaces between its words.

    Marks that no letter is composed with, such as vowel signs, are left out. Scripts that are written without spaces
    give each two neighbouring letters as a word, apart from words of other scripts beside them.
    """
    return _UNSPACED.sub(_pairs, _MARKS.sub("", normalised(text)))


def words(text: str) -> list[str]:
    """Returns the distinct words of a text, in folded case and the order of first use, at most MOST_WORDS."""
    distinct = list(dict.fromkeys(_WORD.findall(searchable(text).casefold())))
    if len(distinct) <= MOST_WORDS:
        return distinct
    return distinct[: MOST_WORDS // 2] + distinct[-MOST_WORDS // 2 :]


def _pairs(run: re.Match[str]) -> str:
    """Returns the pairs of neighbouring letters as words."""
    letters = run[0]
    return f" {' '.join(letters[at : at + 2] for at in range(max(len(letters) - 1, 1)))} "


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
