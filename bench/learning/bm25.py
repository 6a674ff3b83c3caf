"""BM25: relevance of documents to queries by their words (Robertson and Zaragoza 2009)."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from policy.logged import Floats

K1, B = 1.5, 0.75


def relevance(queries: Sequence[Sequence[str]], documents: Sequence[Sequence[str]]) -> Floats:
    """Returns the relevance of each document to each query, (queries, documents) (Robertson and Zaragoza 2009)."""
    lengths = np.array([len(document) for document in documents])
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, document in enumerate(documents):
        for word, times in Counter(document).items():
            postings.setdefault(word, []).append((number, times))
    weights = {}
    for word, places in postings.items():
        rows, times_in_row = np.array(places).T
        rarity = np.log1p((len(documents) - len(places) + 0.5) / (len(places) + 0.5))
        weights[word] = rows, rarity * times_in_row * (K1 + 1) / (times_in_row + norm[rows])
    relevances = np.zeros((len(queries), len(documents)))
    for number, query in enumerate(queries):
        for word in set(query) & weights.keys():
            rows, weight = weights[word]
            relevances[number, rows] += weight
    return relevances
