"""Tells in one line why a case is on the slate: shared words that tell kinds of tasks apart, and its plan's record."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from policy.agreement import SAME, Matrix
from policy.channels import words
from retrieval.ranking.pool import Pool
from retrieval.search.candidates import Candidate

MOST_WORDS = 3
"""Number of shared words that are named."""
LEAST_PART = 0.5
"""Weight of a word that is named, in parts of the heaviest shared word's."""


@dataclass(frozen=True, slots=True, eq=False)
class TellingWords:
    """The words of a query, in the order of its terms, with the weight by which each tells plans apart, (t,)."""

    words: Sequence[str]
    weights: Matrix

    @classmethod
    def of(cls, pool: Pool, query: str) -> Self:
        """Returns the words of the query that the candidates were searched for."""
        return cls(words(query), pool.fit.telling(pool.query)[0])

    def shared(self, pool: Pool, index: int) -> list[str]:
        """Returns the words that the case has and that best tell plans apart, the heaviest first."""
        has = set(pool.terms[index].tolist())
        return self.heaviest(np.array([term in has for term in pool.query.tolist()], dtype=bool))

    def heaviest(self, has: NDArray[np.bool_]) -> list[str]:
        """Returns the heaviest of the words that a text has, at most MOST_WORDS; ``has``: (t,)."""
        weights = self.weights * has
        heaviest = np.argsort(-weights, kind="stable")[:MOST_WORDS]
        return [self.words[place] for place in heaviest if weights[place] >= LEAST_PART * weights.max() > 0]


def why(pool: Pool, index: int, row: Candidate, words: TellingWords, *, drawn: bool) -> str:
    """Returns the reason in words.

    Args:
        pool: the candidates.
        index: index of the case among them.
        row: its row.
        words: the words of the query.
        drawn: true if its slate was tried out.
    """
    shared = words.shared(pool, index)
    kind = f"same kind of task by {', '.join(f'“{word}”' for word in shared)}" if shared else "similar in meaning"
    runs, worked = plan_record(pool, index)
    plan = "this run failed, kept as a warning" if row.failed else f"its plan worked in {worked} of {runs} like it"
    reused = f"; {row.reuse_reward:.1f} of {row.reuse_count:.1f} reuses rewarded" if round(row.reuse_count, 1) else ""
    return f"{kind}; {plan}{reused}{'; on a slate that was tried out' if drawn else ''}"


def plan_record(pool: Pool, index: int) -> tuple[int, int]:
    """Returns how many runs among the candidates have the plan of this one, and how many of them went well."""
    alike = pool.agreement[index] >= SAME
    return int(pool.runs[alike].sum()), int(pool.runs[alike & ~pool.failed].sum())
