"""Tells in one line why a case is on the slate: the words that it shares with the query, and how its plan went."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from policy.agreement import SAME, Matrix
from policy.channels import words
from retrieval.ranking.pool import Pool
from retrieval.search.candidates import Candidate

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


def why(pool: Pool, index: int, row: Candidate, words: TellingWords, *, slate_drawn: bool) -> str:
    """Returns the line that tells why a case is on the slate; ``slate_drawn``: chance changed the slate."""
    shared = words.shared(pool, index)
    kind = f"same kind of task by {', '.join(f'“{word}”' for word in shared)}" if shared else "similar in meaning"
    runs, worked = plan_record(pool, index)
    plan = "this run failed, kept as a warning" if row.failed else f"its plan worked in {worked} of {runs} like it"
    reused = f"; {row.reuse_reward:.1f} of {row.reuse_count:.1f} reuses rewarded" if round(row.reuse_count, 1) else ""
    return f"{kind}; {plan}{reused}{'; on a slate that was tried out' if slate_drawn else ''}"


def plan_record(pool: Pool, index: int) -> tuple[int, int]:
    """Returns how many of the candidates' runs have the plan of the candidate at this index, and how many went well."""
    alike = pool.agreement[index] >= SAME
    return int(pool.runs[alike].sum()), int(pool.runs[alike & pool.went_well].sum())
