"""A bank's runs as numbers, free of content, in the order of time; ``policy.replay`` learns from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policy.agreement import SAME, Matrix, Moves
from policy.channels import Terms

UNPROVEN_TRUST = 0.25
"""Weight, as a neighbour and as a question, of a run whose own claim alone tells how it went; a proven run weighs 1."""
MOSTLY = 0.65
"""Least share of a bank's successes that are proven at which the bank counts as mostly proven."""
SELDOM = 0.5
"""Share of proven successes below which such a bank no longer counts as mostly proven."""


def trust_of(proven: NDArray[np.bool_]) -> Matrix:
    """Returns the weight of each run as a neighbour, (n,), in serving and in replay.

    ``proven`` is true for runs, successes and failures alike, of which others than the run confirm how they went.
    """
    return np.where(proven, 1, UNPROVEN_TRUST).astype(np.float32)


def is_mostly_proven(proven: NDArray[np.bool_]) -> bool:
    """Returns whether runs, given in the order of time, are mostly proven, so that an unproven one may be planted.

    A bank is mostly proven from a share of MOSTLY on until the share falls below SELDOM. Plants are unproven and lower
    the share: to end the quarantine, they must outnumber the proven runs.
    """
    share = np.cumsum(proven) / np.arange(1, len(proven) + 1)
    began, ended = (np.flatnonzero(each) for each in (share >= MOSTLY, share < SELDOM))
    return int(began.max(initial=-1)) > int(ended.max(initial=-1))


def unbacked(proven: NDArray[np.bool_], alike: Matrix, least: float) -> NDArray[np.bool_]:
    """Returns which of n runs are unproven and agree with no proven one, (n,): these wait in quarantine.

    Args:
        proven: (n,), true for proven runs.
        alike: (n, n), agreement of the runs.
        least: least agreement with a proven run that backs an unproven one, above 0 to 1.
    """
    return np.asarray(~proven & (np.where(proven, alike, 0).max(axis=1, initial=0) < least), dtype=np.bool_)


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The newest n runs of a bank in the order of time; a run that was repeated stands for its repeats.

    Attributes:
        times: (n,), seconds since 1970 at which each run was retained, sorted.
        vectors: (n, d), unit vector of each run's task; a row of zeros for a task without a vector.
        failed: (n,), true if the run failed; a run with an unknown result neither failed nor went well.
        trust: (n,), above 0 to 1, weight of each run as a neighbour in the vote of plans, as ``trust_of`` computes it.
        weight: (n,), 0 to 1, weight of each run as a question of the replay; small for a repeat of a task and for a run
            that only calls itself a success.
        newest: (n,), seconds since 1970 at which each run, or its newest repeat, was retained.
    """

    times: NDArray[np.float64]
    terms: Sequence[Terms]
    vectors: Matrix
    moves: Sequence[Moves]
    went_well: NDArray[np.bool_]
    failed: NDArray[np.bool_]
    trust: Matrix
    weight: NDArray[np.float32]
    newest: NDArray[np.float64]

    def newer(self, alike: Matrix) -> tuple[Matrix, Matrix]:
        """Returns how much of the bank is newer than each earlier run: two matrices, (n, n), a row for each question.

        The first has the number of newer runs, the second the trust of those with the run's plan. A run is as new as
        its newest repeat at questions after that repeat, and as its own time at the others, because the times of
        earlier repeats are unknown.

        Args:
            alike: (n, n), agreement of the runs' plans.
        """
        count = len(self.times)
        number, trust = np.zeros((2, count, count), dtype=np.float32)
        heard = np.where(alike >= SAME, self.trust[:, None], 0)
        repeated = np.flatnonzero(self.newest > self.times)
        runs = np.append(np.arange(count), repeated)
        events = np.argsort(np.append(self.times, self.newest[repeated]), kind="stable")
        last = np.full(count, -1)  # place of each run's latest event so far
        now = np.zeros((2, count), dtype=np.float32)
        for place, event in enumerate(events):
            run = runs[event]
            if event < count:
                number[run], trust[run] = now
            passed = last > last[run]
            now[:, passed] += np.stack([np.ones(count), heard[run]])[:, passed]
            now[:, run], last[run] = 0, place
        return number, trust

    @property
    def mostly_proven(self) -> bool:
        """Returns whether the bank's successes are mostly proven."""
        return is_mostly_proven(self.trust[self.went_well] >= 1)

    @property
    def voices(self) -> Matrix:
        """Returns the weight of each run where pairs of runs tell the gains of terms, (n,): 0 for a failed run.

        In a mostly proven bank it is the run's trust; elsewhere every success weighs 1.
        """
        return np.asarray(self.went_well * (self.trust if self.mostly_proven else 1), dtype=np.float32)
