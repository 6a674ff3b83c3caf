"""Tells in one line why a case is on the slate: the words that it shares with the query, and how its plan went."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from policy.agreement import SAME, Matrix
from policy.channels import words
from retrieval.ranking.pool import Pool
from retrieval.search.candidates import Candidate
from retrieval.tables.kinds import went_well

MOST_WORDS = 3
"""Largest number of shared words that the line names."""
LEAST_PART = 0.5
"""Least weight of a named word, as a share of the weight of the heaviest shared word."""


@dataclass(slots=True, eq=False)
class TellingWords:
    """The t words of a query and their weights, (t,): the more a word says about a run's plan, the more it weighs."""

    words: Sequence[str]
    weights: Matrix
    _heaviest_first: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._heaviest_first = np.argsort(-self.weights, kind="stable").tolist()

    @classmethod
    def of(cls, pool: Pool, query: str) -> Self:
        """Returns the words of a query with their weights, from the fit that ranked its candidates."""
        return cls(words(query), pool.fit.telling(pool.query)[0])

    def shared(self, pool: Pool, index: int) -> list[str]:
        """Returns the heaviest of the query's words that the candidate at this index has, too, the heaviest first."""
        has = set(pool.terms[index].tolist())
        return self.heaviest([term in has for term in pool.query.tolist()])

    def heaviest(self, has: Sequence[bool]) -> list[str]:
        """Returns the heaviest of the words for which ``has`` is true, at most MOST_WORDS, the heaviest first."""
        shared = [place for place in self._heaviest_first if has[place]][:MOST_WORDS]
        least = LEAST_PART * self.weights[shared[0]] if shared else 0
        return [self.words[place] for place in shared if self.weights[place] >= least > 0]


def why(pool: Pool, rows: Sequence[Candidate], index: int, words: TellingWords, *, slate_drawn: bool) -> str:
    """Returns the line that tells why a case is on the slate.

    Args:
        pool: the candidates.
        rows: rows of the candidates.
        index: index of the case among them.
        words: words of the query.
        slate_drawn: true if chance changed the slate.
    """
    row, shared = rows[index], words.shared(pool, index)
    kind = f"same kind of task by {', '.join(f'“{word}”' for word in shared)}" if shared else "similar in meaning"
    # a row may stand for several runs
    alike = [rows[place] for place in np.flatnonzero(pool.agreement[index] >= SAME).tolist()]
    worked = sum(each.occurrences for each in alike if went_well(each.outcome, each.reward, each.reward_source))
    plan = f"its plan worked in {worked} of {sum(each.occurrences for each in alike)} like it"
    if row.failed:
        plan = "this run failed, kept as a warning"
    reused = f"; {row.reuse_reward:.1f} of {row.reuse_count:.1f} reuses rewarded" if round(row.reuse_count, 1) else ""
    return f"{kind}; {plan}{reused}{'; on a slate that was tried out' if slate_drawn else ''}"
