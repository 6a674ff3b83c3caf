"""Chooses the cases of a slate by their scores and four rules, which apply one after the other.

1. **Exclusion.** Left out are cases that the request's limits exclude, cases that say the same as one on the slate, and
   every failed run after the first. Only this rule leaves a place empty: an empty place is worth more than a case that
   misleads.
2. **Quarantine.** Proven cases take their places first, and unproven cases the places that are left. Beyond that an
   unproven case takes the place of a proven one only if it is much nearer to the query than every proven case on the
   slate, and a failed run only the place of a case that ranks below it. The number of such places is limited: a case
   without proof that is about as near as the others waits, however high it ranks and however many such cases there are.
   A text padded with the words of many queries is nearer to each query than a case of another task, but hardly ever
   nearer than all cases of the query's own task. This rule holds in a mostly proven bank; elsewhere no case counts as
   proven here, because where few runs are confirmed it says little of a run that it is not.
3. **Sources.** Among proven cases, and among unproven ones, no source takes more than half of the places as long as
   cases of other sources are near the top. If all cases come from one source there is no limit.
4. **Order.** The chosen cases are shown by score.

Proof comes before sources because a source is only a name, and a forger may use many names, while a proof comes from
somebody else. Neither rule leaves a place empty: a case that it holds back gets the place if no other case can.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.features import Features, column

FAILURES_ON_SLATE = 1
SIMILARITY_ERROR = 0.0005
"""Largest error of a similarity that is stored in half precision."""
DEPTH = 8
"""Number of first cases, of the proven or of the unproven, that exploration and the rule of sources look at."""
UNPROVEN_PART = 4
"""Number of places for which one unproven case is allowed while there are proven cases; any slate may have one."""
MUCH_NEARER = 0.1
"""Margin of similarity over all proven cases on a slate with which an unproven case takes the place of one."""

Slate = tuple[int, ...]
"""Indices of the candidates on the slate, in the order of places; empty: no case is served."""


@dataclass(frozen=True, slots=True, eq=False)
class Traits:
    """Traits of n candidates that a slate's rules look at, in the order in which the candidates are logged.

    Attributes:
        group: (n,), number of the candidate's group; candidates of one group have the same plan and outcome.
        failed: (n,), true if the candidate's run failed.
        allowed: (n,), true if the request's limits allow the candidate.
        source: (n,), number of the writer of the case.
        proven: (n,), true for a success that others than the run confirm, in a mostly proven bank.
        similarity: (n,), similarity to the query; NaN: unknown, and the case is never much nearer than another.
    """

    group: NDArray[np.int16]
    failed: NDArray[np.bool_]
    allowed: NDArray[np.bool_]
    source: NDArray[np.int16]
    proven: NDArray[np.bool_]
    similarity: NDArray[np.float32]

    def unproven(self, slate: Slate) -> int:
        """Returns the number of unproven cases on the slate."""
        return sum(not self.proven[index] for index in slate)


def traits_of(
    features: Features, group: NDArray[np.int16], source: NDArray[np.int16], min_similarity: float | None
) -> Traits:
    """Returns the traits of the candidates.

    Args:
        features: the candidates' features.
        group: (n,), number of each candidate's group; candidates of one group have the same plan and outcome.
        source: (n,), number of the writer of each case.
        min_similarity: least similarity to the query of an allowed candidate, -1 to 1; None: all are allowed.
    """
    similarity = column(features, "similarity")
    near = np.ones(len(features), dtype=bool)
    if min_similarity is not None:  # False where there is no similarity
        near = similarity >= np.float32(min_similarity - SIMILARITY_ERROR)
    failed = column(features, "failed") > 0
    proven = (column(features, "proven") > 0) & ~failed
    return Traits(group, failed, near, source, proven, similarity)


def ranking(traits: Traits, scores: NDArray[np.float32]) -> list[int]:
    """Returns the indices of the allowed candidates, the highest score first, equal ones in the log's order."""
    return [int(index) for index in np.argsort(-scores, kind="stable") if traits.allowed[index]]


def most_unproven(places: int) -> int:
    """Returns how many of these places unproven cases may take as long as proven cases could fill them."""
    return max(1, places // UNPROVEN_PART)


def choose(traits: Traits, ordered: Sequence[int], k: int) -> Slate:
    """Returns the slate of at most k candidates by the rules of this module; fewer if the rules exclude the others."""
    proven, unproven = parted(traits, ordered)
    slate = _filled(traits, _filled(traits, (), proven, k), unproven, k)
    for index in unproven if len(slate) == k else ():
        if traits.unproven(slate) >= most_unproven(k):
            break
        slate = _with(traits, slate, index, ordered)
    return _by_score(slate, ordered)


def parted(traits: Traits, ordered: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns the proven and the unproven ones of the ordered candidates as two lists, each in the same order."""
    proven = [index for index in ordered if traits.proven[index]]
    return proven, [index for index in ordered if not traits.proven[index]]


def _filled(traits: Traits, slate: Slate, ordered: Sequence[int], k: int) -> Slate:
    """Returns the slate with its free places filled by these candidates, as far as the rules allow."""
    half = max(1, k // 2)
    for index in ordered[:DEPTH]:
        of_its_source = sum(bool(traits.source[other] == traits.source[index]) for other in slate)
        if len(slate) < k and of_its_source < half and may_join(traits, slate, index):
            slate += (index,)
    for index in ordered:
        if len(slate) == k:
            break
        if may_join(traits, slate, index):
            slate += (index,)
    return slate


def _with(traits: Traits, slate: Slate, index: int, ordered: Sequence[int]) -> Slate:
    """Returns the slate with the candidate in place of its last proven case, if it is much nearer than all of these.

    A failed run takes only the place of a case that ranks below it: nearness makes a failure no better than a success.
    """
    proven = [other for other in slate if traits.proven[other]]
    near = traits.similarity
    if not all(near[index] - near[other] > MUCH_NEARER for other in proven):  # False where one is NaN
        return slate
    for other in reversed(_by_score(proven, ordered)):
        rest = tuple(each for each in slate if each != other)
        behind = not traits.failed[index] or ordered.index(other) > ordered.index(index)
        if behind and traits.group[index] != traits.group[other] and may_join(traits, rest, index):
            return (*rest, index)
    return slate


def _by_score(slate: Sequence[int], ordered: Sequence[int]) -> Slate:
    return tuple(index for index in ordered if index in slate)


def may_join(traits: Traits, slate: Slate, index: int) -> bool:
    """Returns whether the slate has no case of the candidate's group, and room for its run if that failed."""
    if index in slate or any(traits.group[other] == traits.group[index] for other in slate):
        return False
    return not traits.failed[index] or sum(traits.failed[other] for other in slate) < FAILURES_ON_SLATE


def contenders(traits: Traits, ordered: Sequence[int], slate: Slate) -> list[int]:
    """Returns the slate's last candidate and those of the first DEPTH that could take its place, in order.

    The place of a proven case is for proven cases only; unproven cases have random draws of their own, see ``waiting``.
    """
    proven, last = parted(traits, ordered)[0], slate[-1]
    top = (proven if traits.proven[last] else ordered)[:DEPTH]
    return [index for index in ordered if index == last or (index in top and may_join(traits, slate[:-1], index))]


def waiting(traits: Traits, ordered: Sequence[int], slate: Slate) -> list[int]:
    """Returns the unproven cases that could be tried in the slate's last place.

    The list is empty if the last place is an unproven case's already, or the slate has as many of them as it may.
    """
    if not traits.proven[slate[-1]] or traits.unproven(slate) >= most_unproven(len(slate)):
        return []
    return [index for index in parted(traits, ordered)[1] if may_join(traits, slate[:-1], index)]
