"""Which of the ordered candidates go on the slate: no two that say the same, and at most one failure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

NEAR_DUPLICATE = 0.8
"""Share of common words (Jaccard) from which two cases of one plan count as the same."""
FAILURES_ON_SLATE = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """What the rules look at: the words of the task, the plan, and whether the case failed."""

    words: frozenset[str]
    plan: tuple[str, ...]
    failed: bool


def entry(task: str, plan: Sequence[str], *, failed: bool) -> Entry:
    """Returns the candidate as the rules see it."""
    return Entry(frozenset(task.casefold().split()), tuple(plan), failed)


def pick(ordered: Iterable[Entry], k: int) -> list[int]:
    """Returns the indices of the slate, at most k, in the order given.

    A near-duplicate of a case that is already on the slate is passed over, and so is every failure after the
    first. A slate may end up shorter than k: an empty place is worth more than a place that misleads.
    """
    slate: dict[int, Entry] = {}
    if k == 0:
        return []
    for index, candidate in enumerate(ordered):
        failures = sum(taken.failed for taken in slate.values())
        if candidate.failed and failures >= FAILURES_ON_SLATE:
            continue
        if any(_same(candidate, taken) for taken in slate.values()):
            continue
        slate[index] = candidate
        if len(slate) == k:
            break
    return list(slate)


def _same(one: Entry, other: Entry) -> bool:
    if one.plan != other.plan or one.failed != other.failed:
        return False
    union = len(one.words | other.words)
    return union == 0 or len(one.words & other.words) / union >= NEAR_DUPLICATE
