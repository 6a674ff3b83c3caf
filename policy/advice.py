"""Advice at a failed call: chooses the earlier fix to tell the agent, if any, by a vote of the most similar failures.

A failure is described by three sets of terms: of its error, of its call, and of its run's task. The likeness of two
failures is the weighted mean of the cosines of these sets under idf (``policy.channels``). Each earlier failure votes
for the fix that put it right, with its likeness to the power SHARPNESS; a failure without a fix votes for telling none
(k nearest neighbours, weighted by distance: Dudani 1976). A fix's *confidence* is its share of the votes; fixes that
agree in part lend each other that part.

The threshold of confidence comes from the bank's own failures, in the order of time: each is advised from the failures
before it, and the threshold is the lowest confidence at which the fixes told would have been right often enough (a
reject option: Chow 1970).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from policy.agreement import SAME, Matrix, Moves, agreement, rarity
from policy.channels import TINY, Terms, likeness
from policy.history import is_mostly_proven, unbacked

SHARES = {"error": 1 / 3, "call": 1 / 3, "task": 1 / 3}
"""Weight of each set of terms in the likeness of two failures."""
OTHER_TOOL = 0.5
"""Factor of the likeness of two failures of different tools."""
SHARPNESS = 16
DOUBT = 0.1
"""Votes for telling no fix, beside those of the failures; the most similar failure has one vote."""
VOICE = 0.05
"""Least vote that a failure must have for its fix to be told."""
UNPROVEN = 0.25
"""Factor of the vote of a failure whose run is not proven, in a bank that has proven runs."""
RIGHT = 0.8
"""Share of told fixes that should be right, unless the request asks for another share."""
ALIKE = 0.66
"""Least agreement of a told fix with the fix that worked at which the told fix counts as right."""
CAUTION = 5.0
"""Number of made-up fixes, right as often as their confidence says, that each threshold's share starts with."""
ERRORS = 1.0
"""Standard errors by which the share of right fixes must exceed the share that is required."""
THRESHOLDS = np.arange(2, 20) / 20
ROUNDING = 1e-6
NEVER = 2.0
"""Threshold that no confidence reaches, for a bank in which fixes were not right often enough at any confidence."""
TRUST = 3.0
"""Number of helpful tellings that each fix's record starts with."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Failures:
    """Failures of one bank, the oldest first, n of them.

    Attributes:
        terms: the terms of each failure's error, call and task, under the names of SHARES.
        tool: (n,), number that stands for the name of the failed call's tool.
        run: (n,), number of the run that each failure is from.
        fix: the fix of each failure, as moves; empty if no later call put the failure right.
        proven: (n,), true if the outcome of the failure's run comes from others than the run itself.
        told: (n,), number of times that the fix was told to a run with such a failure.
        helped: (n,), number of these times after which the failure did not come back.
    """

    terms: dict[str, list[Terms]]
    tool: Moves
    run: Moves
    fix: list[Moves]
    proven: Flags
    told: Matrix
    helped: Matrix

    @property
    def fixed(self) -> Flags:
        """Returns which failures have a fix, (n,)."""
        return np.array([len(fix) > 0 for fix in self.fix], dtype=np.bool_)

    @cached_property
    def alike(self) -> Matrix:
        """Agreement of each pair of fixes, (n, n); a failure without a fix agrees with itself alone.

        Equal fixes, which most are, are compared with the others once.
        """
        distinct: dict[bytes, int] = {}
        which = [distinct.setdefault(fix.tobytes(), len(distinct)) for fix in self.fix]
        fixes = [np.frombuffer(each, np.int32) for each in distinct]
        alike = agreement(fixes, rarity(self.fix))[np.ix_(which, which)] * self.fixed[:, None]
        np.fill_diagonal(alike, 1)
        return alike

    @property
    def waiting(self) -> Flags:
        """Returns which failures wait in quarantine, (n,): in a mostly proven bank, unproven ones with another fix.

        "Another" is one that no proven failure has.
        """
        if not is_mostly_proven(self.proven):
            return np.zeros_like(self.proven)
        return unbacked(self.proven, self.alike, SAME)


@dataclass(frozen=True, slots=True, eq=False)
class Advice:
    """Numbers by which the fixes of a bank's n earlier failures are told, or not told, for a new failure.

    Attributes:
        known: (n,), similarity of each earlier failure's error to the new failure's, 0 to 1.
        confidence: (n,), confidence in each earlier failure's fix, 0 to 1; 0 if it has no fix.
    """

    known: Matrix
    confidence: Matrix


def advise(past: Failures, terms: Mapping[str, Terms], tool: int, in_vain: Flags | None = None) -> Advice:
    """Returns for each of n earlier failures the confidence, 0 to 1, that its fix puts a new failure right, too.

    Args:
        past: the earlier failures.
        terms: the terms of the new failure's error, call and task, under the names of SHARES.
        tool: number that stands for the name of the new failure's tool.
        in_vain: (n,), true for earlier failures whose fix is part of the failed call already; they have no vote.
    """
    queries = {name: [terms[name]] for name in SHARES}
    voters = np.ones((1, len(past.tool)), dtype=np.float32)
    if in_vain is not None:
        voters[0, in_vain] = 0
    known, confidence = _confidence(past, queries, np.array([tool], dtype=np.int32), voters)
    record = (past.helped + np.float32(TRUST)) / (past.told + np.float32(TRUST))
    return Advice(known[0], confidence[0] * record)


def threshold(past: Failures, right_share: float = RIGHT) -> float:
    """Returns the lowest confidence at which the given share of the fixes told would have been right in the past.

    Each failure is advised from the failures of earlier runs, whatever came of the fixes that were told since. A fix
    told for a failure that was never put right counts as wrong.
    """
    failures = len(past.tool)
    if not failures:
        return right_share
    earlier = np.tri(failures, k=-1, dtype=np.float32) * (past.run[:, None] != past.run[None, :])
    _, confidence = _confidence(past, past.terms, past.tool, earlier)
    best = confidence.argmax(axis=1)
    each = np.arange(failures)
    sure = confidence[each, best]
    right = past.fixed & (past.alike[each, best] >= ALIKE)
    told = sure[None, :] >= THRESHOLDS[:, None]  # (thresholds, n)
    count = told.sum(axis=1)
    share = ((told & right).sum(axis=1) + CAUTION * THRESHOLDS) / (count + CAUTION)
    share -= ERRORS * np.sqrt(share * (1 - share) * count) / (count + CAUTION)
    enough = share >= right_share - ROUNDING
    return round(float(THRESHOLDS[enough.argmax()]), 2) if enough.any() else NEVER


def _confidence(past: Failures, queries: dict[str, list[Terms]], tool: Moves, earlier: Matrix) -> tuple[Matrix, Matrix]:
    """Returns the similarity of m failures' errors to those of n others, and the confidence in the others' fixes.

    Both are tables, (m, n). The confidence is that before the fixes were told to any run.

    Args:
        past: the n other failures.
        queries: terms of the m failures, under the names of SHARES.
        tool: (m,), number of each failure's tool.
        earlier: (m, n) of 0 and 1, from which of the others each failure may be advised.
    """
    cosines = {name: likeness(queries[name], past.terms[name]) for name in SHARES}
    of_tool = earlier * np.where(tool[:, None] == past.tool[None, :], np.float32(1), np.float32(OTHER_TOOL))
    weighted = np.stack([np.float32(share) * cosines[name] for name, share in SHARES.items()])
    alike = of_tool * weighted.sum(axis=0, dtype=np.float32)
    known = of_tool * cosines["error"]
    waits = ~past.proven & past.proven.any()  # in a bank without proof none does
    trust = np.where(waits, np.float32(UNPROVEN), np.float32(1))
    votes = (alike / np.maximum(alike.max(axis=1, keepdims=True), TINY)) ** SHARPNESS * trust
    fixed = past.fixed.astype(np.float32)
    lent = past.alike * fixed[:, None] * fixed[None, :]
    share = votes @ lent / (votes.sum(axis=1, keepdims=True) + np.float32(DOUBT))
    voice = votes >= VOICE
    both = of_tool * (cosines["error"] + cosines["call"]) / np.float32(2)
    recognised = (both * voice).max(axis=1, keepdims=True)
    nearer = 1 + np.float32(1e-4) * votes  # of equal fixes, the most alike speaks
    return known.astype(np.float32), (share * recognised * voice * fixed * nearer).astype(np.float32)
