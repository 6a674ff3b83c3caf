"""How relevant documents are to queries by their words (Robertson and Zaragoza 2009)."""

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
    for word, found in postings.items():
        rows, times_found = np.array(found).T
        rarity = np.log1p((len(documents) - len(found) + 0.5) / (len(found) + 0.5))
        weights[word] = rows, rarity * times_found * (K1 + 1) / (times_found + norm[rows])
    relevances = np.zeros((len(queries), len(documents)))
    for number, query in enumerate(queries):
        for word in set(query) & weights.keys():
            rows, weight = weights[word]
            relevances[number, rows] += weight
    return relevances
