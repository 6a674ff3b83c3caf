"""Calibrates an embedding model: measures the least similarity of two texts that mean the same, on ``sentences.toml``.

Models differ: texts with the similarity 0.7 under one model may have 0.4 under another. Each sentence is compared with
one that asks for the same, about other things or in other words, and with one that shares words or a subject with it
but asks for something else.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policy.agreement import Matrix
from retrieval.patterns import read
from retrieval.ports import Vector
from retrieval.search.unrelated import Floor

SOURCE_THRESHOLD = 0.7
"""Least similarity of a trigger and a query, for a model that could not be measured."""
UNRELATED_PART = 0.95
"""Share of the pairs of unrelated sentences whose similarity lies below the floor."""

_READ = read("retrieval.procedures", "sentences.toml")
TRIPLES: list[list[str]] = _READ["triples"]
OTHER_LANGUAGES: list[str] = _READ["other_languages"]
ENGLISH = 3 * len(TRIPLES)
"""Number of English sentences, which come before those of other languages."""
MOST_TRIES = 5
"""Number of calls without vectors of the sentences after which a model is not measured any more."""
MARGIN = 0.05
"""Similarity by which a sentence in another language must be nearer to a query than any in English, to be its language.

With it, 2 % of banking77's English texts are taken for another language; without it, 11 %.
"""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least similarity of a query and a procedure's trigger, or a run that taught it, and the origin of the number.

    Attributes:
        similarity: cosine, -1 to 1.
        origin: "measured" for the embedding model, set by the profile or the request, or "source": SOURCE_THRESHOLD.
        right: share of the pairs of sentences that it sorts correctly, 0 to 1; None if not measured.
    """

    similarity: float = SOURCE_THRESHOLD
    origin: str = "source"
    right: float | None = None

    @property
    def is_set(self) -> bool:
        """True if the profile or the request set the threshold."""
        return self.origin in {"profile", "request"}


def sentences() -> list[str]:
    """Returns the English sentences by which a model is measured."""
    return [sentence for triple in TRIPLES for sentence in triple]


def calibrated(vectors: Sequence[Vector]) -> Threshold:
    """Returns the threshold that sorts the most pairs of sentences correctly: the middle of the widest such range."""
    units = np.asarray(vectors, dtype=np.float64).reshape(len(TRIPLES), 3, -1)
    same = np.einsum("nd,nd->n", units[:, 0], units[:, 1])
    other = np.einsum("nd,nd->n", units[:, 0], units[:, 2])
    similarities = np.sort(np.concatenate([same, other]))
    cuts, gaps = (similarities[1:] + similarities[:-1]) / 2, np.diff(similarities)
    right = np.array([((same >= cut).mean() + (other < cut).mean()) / 2 for cut in cuts])
    best = max(range(len(cuts)), key=lambda index: (right[index], gaps[index]))
    return Threshold(float(cuts[best]), "measured", float(right[best]))


@dataclass(frozen=True, slots=True)
class Unrelated:
    """Similarities that an embedding model gives to unrelated English sentences.

    Attributes:
        mean: mean similarity of the pairs.
        most: similarity below which UNRELATED_PART of the pairs lie.
    """

    mean: float
    most: float

    def floor(self, unlike: float | None) -> Floor:
        """Returns the least similarities at which two texts of a profile count as related.

        Args:
            unlike: mean similarity of unlike texts of the profile, in whatever language; it takes the place of
                ``mean``; the floor lies above it by the same share of its distance to 1 as ``most`` above ``mean``.
                None: the profile has too few texts.
        """
        if unlike is None:
            return Floor(self.most, self.most)
        own = unlike + (self.most - self.mean) / (1 - self.mean) * (1 - unlike)
        return Floor(self.most, max(self.most, own))


def unrelated(vectors: Sequence[Vector]) -> Unrelated:
    """Returns the similarities of the unrelated sentences, from the vectors of all sentences."""
    units = np.asarray(vectors, dtype=np.float64).reshape(3 * len(TRIPLES), -1)
    triple = np.repeat(np.arange(len(TRIPLES)), 3)
    strangers = triple[:, None] != triple[None, :]
    similarities = (units @ units.T)[strangers]
    return Unrelated(float(similarities.mean()), float(np.quantile(similarities, UNRELATED_PART)))


@dataclass(frozen=True, slots=True, eq=False)
class _Measured:
    """An embedding model's threshold, its similarities of unrelated sentences, and its vectors of all sentences."""

    threshold: Threshold
    unrelated: Unrelated
    vectors: Matrix


class Calibrations:
    """The thresholds of the embedding models that were measured in this process.

    A call may give no vectors by chance, or by the other texts in it. A model that gave none MOST_TRIES times is not
    measured, and keeps SOURCE_THRESHOLD.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Measured] = {}
        self._tries = Counter[str]()
        """Numbers of calls in which models gave no vectors."""

    def wanted(self, model: str) -> list[str]:
        """Returns the sentences whose vectors calibrate a model, if the model was not measured yet; else none."""
        left = model in self._known or self._tries[model] >= MOST_TRIES
        return [] if left else [*sentences(), *OTHER_LANGUAGES]

    def learn(self, model: str, vectors: Sequence[Vector]) -> None:
        """Measures the model by its vectors of `wanted`'s sentences; counts a try if there are none."""
        if len(vectors) == ENGLISH + len(OTHER_LANGUAGES):
            english = vectors[:ENGLISH]
            self._known[model] = _Measured(calibrated(english), unrelated(english), np.asarray(vectors))
        else:
            self._tries[model] += 1

    def of(self, model: str) -> Threshold:
        """Returns the threshold of the embedding model."""
        known = self._known.get(model)
        return Threshold() if known is None else known.threshold

    def threshold(self, model: str, of_profile: float | None, of_request: float | None = None) -> Threshold:
        """Returns the threshold of procedures: the profile's, or else the model's; a request may only raise it."""
        least = self.of(model) if of_profile is None else Threshold(of_profile, "profile")
        return least if of_request is None or of_request <= least.similarity else Threshold(of_request, "request")

    def floor(self, model: str, unlike: float | None = None, query: Sequence[float] | None = None) -> Floor | None:
        """Returns the similarities below which two texts count as unrelated; None: the model was not measured.

        ``unlike`` is the mean similarity of unlike texts of the profile, see ``Unrelated.floor``. Where the profile has
        too few texts, the similarity of the query to the nearest sentence of other languages counts, if that one is
        nearer by MARGIN than each one in English.
        """
        known = self._known.get(model)
        if known is None:
            return None
        if unlike is None and query is not None:
            near = known.vectors @ np.asarray(query, dtype=np.float32)
            nearest = float(near[ENGLISH:].max())
            unlike = nearest if nearest > near[:ENGLISH].max() + MARGIN else None
        return known.unrelated.floor(unlike)
