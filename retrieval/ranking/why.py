"""Tells in one line why a case is on the slate: shared words that tell kinds of tasks apart, and its plan's record."""

import numpy as np

from policy.agreement import SAME
from policy.channels import words
from retrieval.ranking.pool import Pool
from retrieval.search.candidates import Candidate

MOST_WORDS = 3
"""Number of shared words that are named."""
LEAST_PART = 0.5
"""Weight of a word that is named, in parts of the heaviest shared word's."""


def why(pool: Pool, index: int, row: Candidate, query: str, *, drawn: bool) -> str:
    """Returns the reason in words.

    Args:
        pool: the candidates.
        index: index of the case among them.
        row: its row.
        query: text that was searched for.
        drawn: true if its slate was tried out.
    """
    shared = shared_words(pool, index, query)
    kind = f"same kind of task by {', '.join(f'“{word}”' for word in shared)}" if shared else "similar in meaning"
    runs, worked = plan_record(pool, index)
    plan = "this run failed, kept as a warning" if row.failed else f"its plan worked in {worked} of {runs} like it"
    reused = f"; {row.reuse_reward:.1f} of {row.reuse_count:.1f} reuses rewarded" if round(row.reuse_count, 1) else ""
    return f"{kind}; {plan}{reused}{'; on a slate that was tried out' if drawn else ''}"


def shared_words(pool: Pool, index: int, query: str) -> list[str]:
    """Returns the words of the query that the case has and that best tell plans apart, the heaviest first."""
    has = np.isin(pool.query, pool.terms[index])
    if not has.any():
        return []
    weights = pool.fit.telling(pool.query)[0] * has
    heaviest = np.argsort(-weights, kind="stable")[:MOST_WORDS]
    spoken = words(query)
    return [spoken[place] for place in heaviest if weights[place] >= LEAST_PART * weights.max() > 0]


def plan_record(pool: Pool, index: int) -> tuple[int, int]:
    """Returns how many runs among the candidates have the plan of this one, and how many of them went well."""
    alike = pool.agreement[index] >= SAME
    return int(pool.runs[alike].sum()), int(pool.runs[alike & ~pool.failed].sum())
