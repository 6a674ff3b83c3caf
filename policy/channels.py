"""Channels: numbers, free of content, that each measure in another way how near a past run is to a query.

No order by one of them is right for every bank. A text is a set of *terms*, numbers that stand for its words; all words
count, also those that a stop list drops ("after the" and "has a new" tell kinds of tasks apart). Three channels compare
terms under different weights (cosine of Salton & Buckley 1988), one compares vectors, one tells how recent a run is:

    words    every term weighs the same
    rare     a term weighs its idf, log(1 + runs / runs that have it)
    telling  a term weighs idf * (gain + LEAST_GAIN): the gain tells how much sharing the term raises the agreement of
             two runs' plans above the usual, over the pairs of the bank's own successes
    meaning  cosine of the embeddings
    recent   -log(1 + runs since)

    gain(w) = min(1, max(0, (mean agreement of pairs that share w - mean) / (1 - mean))) * m / (m + CAUTION),
    m = runs with w - 1, each run and pair by its weight (``History.voices``)
"""

import re
from collections.abc import Sequence
from typing import Any
from unicodedata import category, normalize

import numpy as np
from numpy.typing import NDArray

from policy.agreement import Counts, Matrix

Numbers = NDArray[np.floating[Any]] | float
Terms = NDArray[np.int32]
"""The distinct terms of one text, as numbers (hashes), in any order."""

LEAST_GAIN = 0.03
"""Number added to each term's gain: a term without a gain does not predict plans, but still distinguishes texts."""
CAUTION = 2.0
"""Number m of runs (less one) at which half of a term's gain counts: two runs that share it may agree by chance."""
MOST_WORDS = 512
"""Largest number of distinct words of a text that count, half from its beginning and half from its end."""
TINY = np.float32(1e-9)
LEAST_UNLIKE = np.float32(1e-3)
"""Least value of 1 - mean agreement in a gain; below it, plans differ by rounding alone."""

_WORD = re.compile(r"[^\W_]+")
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
"""Ranges of the scripts that are written without spaces; in these, each two neighbouring letters count as a word."""
_UNSPACED = re.compile(rf"[{UNSPACED}]+")
_LONG = re.compile(r"\S{1000}")
"""Part of a text without spaces: Postgres reads one in a time that grows with the square of its length."""
_MARKS = re.compile("[" + "".join(sign for sign in map(chr, range(0x300, 0x3100)) if category(sign)[0] == "M") + "]")
"""Vowel signs, tones and accents that are no part of a letter's normal form; for Postgres they are no letters."""


def normalised(text: str) -> str:
    """Returns the text in Unicode's normal form NFKC, in which composed, wide and other forms of a letter are equal."""
    return normalize("NFKC", text)


def searchable(text: str) -> str:
    """Returns the text in the form in which its words are indexed and searched: normalised, with spaces between words.

    Marks that are no part of a composed letter, such as vowel signs, are left out. In scripts that are written without
    spaces, each two neighbouring letters become a word, separate from words of other scripts beside them.
    """
    return _LONG.sub(r"\g<0> ", _UNSPACED.sub(_pairs, _MARKS.sub("", normalised(text))))


def words(text: str) -> list[str]:
    """Returns at most MOST_WORDS distinct words of a text, with their case folded, in the order of first use."""
    folded = _MARKS.sub("", searchable(text).casefold())  # folded, some letters are a letter and a mark
    distinct = list(dict.fromkeys(_WORD.findall(folded)))
    if len(distinct) <= MOST_WORDS:
        return distinct
    return distinct[: MOST_WORDS // 2] + distinct[-MOST_WORDS // 2 :]


def _pairs(run: re.Match[str]) -> str:
    """Returns each pair of neighbouring letters of a text without spaces as a word."""
    letters = run[0]
    return f" {' '.join(letters[at : at + 2] for at in range(max(len(letters) - 1, 1)))} "


def incidence(texts: Sequence[Terms]) -> tuple[Matrix, Terms]:
    """Returns a table of 0 and 1, (n texts, k), of which text has which term, and the k distinct terms of all texts."""
    counts = Counts.of(texts, 1)
    return counts.table(), counts.numbers


def alone(counts: Counts) -> Matrix:
    """Returns the number of terms that each of n texts has and no other text has, (n,)."""
    return counts.sums((counts.having() == 1).astype(np.float32))


def cosine(queries: Matrix, bank: Matrix, weight: Matrix) -> Matrix:
    """Returns the cosine of each query to each run, (m, n), with the weights of terms that each query sets.

    Args:
        queries: (m, t) of 0 and 1, which query has which term.
        bank: (n, t) of 0 and 1, which run has which term.
        weight: (m, t) or (1, t), weight of each term for each query.
    """
    squared = weight * weight
    shared = (queries * squared) @ bank.T
    length = (queries * squared).sum(axis=1)[:, None] * (squared @ bank.T)
    return np.asarray(shared / np.sqrt(np.maximum(length, TINY)), dtype=np.float32)


def likeness(queries: Sequence[Terms], bank: Sequence[Terms]) -> Matrix:
    """Returns the cosine of each of m texts to each of n texts of a bank under the bank's idf, (m, n), 0 to 1."""
    counts, runs = Counts.of([*bank, *queries], 1), len(bank)
    of_bank = counts.row < runs
    row, column = counts.row[of_bank], counts.column[of_bank]
    squared = idf(float(runs), np.bincount(column, minlength=len(counts.numbers)).astype(np.float32)) ** 2
    lengths = counts.sums(squared)
    shared = np.zeros((len(queries), runs), dtype=np.float32)
    for query in range(len(queries)):  # without a table, which has a column for each distinct term
        asked = np.zeros_like(squared)
        asked[counts.column[counts.row == runs + query]] = 1
        shared[query] = np.bincount(row, (squared * asked)[column], runs)
    return np.asarray(shared / np.sqrt(np.maximum(lengths[runs:, None] * lengths[:runs], TINY)), dtype=np.float32)


def idf(runs: Numbers, having: Matrix) -> Matrix:
    """Returns each term's idf, log(1 + runs / runs that have it); a term without runs counts as if one run had it."""
    return np.asarray(np.log1p(runs / np.maximum(having, 1)), dtype=np.float32)


def weight_of_pairs(total: Numbers, squares: Numbers) -> Numbers:
    """Returns the weight of all pairs of runs, from the sum of the runs' weights and the sum of their squares."""
    return (total * total - squares) / 2


def gain(shared: Matrix, pairs: Numbers, having: Matrix, mean: Numbers) -> Matrix:
    """Returns the gain of each term, 0 to 1, by the formula at the head of this module.

    Args:
        shared: weighted sum of the plans' agreement over the pairs of runs that share a term, for each term.
        pairs: weight of these pairs, for each term.
        having: weight of the runs that have a term, for each term.
        mean: mean agreement of the plans over all pairs of runs.
    """
    above = np.where(pairs > TINY, shared / np.maximum(pairs, TINY) - mean, 0)
    above = np.clip(above / np.maximum(1 - mean, LEAST_UNLIKE), 0, 1)
    others = np.maximum(having - 1, 0)
    return np.asarray(above * others / (others + CAUTION), dtype=np.float32)
