"""Finds candidates that are unrelated to the query; they are never shown, however few other candidates there are.

The nearest case need not be near. A case whose similarity the embedding model's calibration calls unrelated stays only
if it shares a rare word with the query, such as a name or an error message that the model does not know. The
calibration uses English sentences. If unlike cases of the profile are nearer to each other than these, because of their
language or subject, a case must be nearer to the query than they are, or share some word with it. A profile with too
few unlike cases is held to the similarity of the query to sentences in its language.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from retrieval.search.candidates import Candidate


@dataclass(frozen=True, slots=True)
class Floor:
    """Least similarities at which a text counts as related to a query.

    Attributes:
        of_model: similarity measured for the embedding model on English sentences.
        of_profile: similarity measured on the profile's own texts, in their language; at least ``of_model``.
    """

    of_model: float
    of_profile: float


def unrelated(found: Iterable[Candidate], floor: Floor | None) -> frozenset[UUID]:
    """Returns the ids of the candidates that are unrelated to the query.

    A case less similar than ``floor.of_model`` is unrelated unless it shares a rare word with the query; one less
    similar than ``floor.of_profile``, unless it shares any telling word. A case without a similarity, which was found
    by keywords only, is always related.

    Without a floor all candidates count as related.
    """
    if floor is None:
        return frozenset()
    far = [(row, row.similarity) for row in found if row.similarity is not None and row.similarity < floor.of_profile]
    related = {row.id for row, near in far if row.shares_rare or (row.shares_rare is False and near >= floor.of_model)}
    return frozenset(row.id for row, _ in far) - related
