"""The features of a candidate: their names, their order and their version, for serving and training alike.

The features are the candidate's place by the order that serves, its nearness to the query, the vote for its plan, and
how its own run and its earlier uses went. All are numbers, free of content. They are logged and scored at half
precision, so that the logged features are to the bit those that the policy saw.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policy.agreement import SAME, Matrix, Moves, agreement
from policy.channels import Terms, cosine, incidence
from policy.fit import FIRST_ORDER, Fit, fit_of
from policy.history import History, trust_of, unbacked
from policy.orders import ORDERS, Comparison, mixture

VERSION = 8

NAMES = (
    "order",  # 0 for the first case by the order that serves, -1 for the next; quarantined ones, then failed ones last
    "similarity",  # cosine of the embeddings, -1 to 1; NaN: no vector
    "vote",  # above 0 to 1 + DOUBT: expected agreement of its plan with the needed one, leaning to near runs
    "reward",  # the case's own, 0 to 1; NaN: unknown
    "record",  # 0 to 1: expected reward where it was followed, shrunk to USUAL_REWARD
    "step_count",
    "proven",  # 1: a success that others than the run confirmed, in a mostly proven bank; in another bank always 0
    "failed",  # 1: the run failed
)
COLUMN = {name: index for index, name in enumerate(NAMES)}

Features = NDArray[np.float32]
"""Matrix (candidates, len(NAMES)), in the order of NAMES."""

USUAL_REWARD = 0.7
"""Expected reward of a decision that follows a case which was never followed before."""
FEW_USES = 2.0
"""Number of uses of a case whose mean reward weighs as much as USUAL_REWARD in the case's expected reward."""
BACKED = 0.6
"""Least agreement with the plan of a proven success at which the plan of an unproven one counts as known to work."""
_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Numbers of the n cases that may be served for a query, known before the agent acts.

    Attributes:
        times: (n,), seconds since 1970 at which the newest run of each case was retained: its own, or a repeat.
        similarity: (n,), cosine of each case's vector to the query's; NaN: one of the two has no vector.
        reward: (n,), reward of the case's own run, 0 to 1; NaN: unknown.
        record: (n,), expected reward of decisions that follow the case, 0 to 1, as the function ``record`` computes it.
        steps: (n,), number of calls of the case's run.
        proven: (n,), true if others than the run confirm that it went as it claims, which may be that it failed.
        failed: (n,), true if the run failed.
    """

    times: NDArray[np.float64]
    terms: Sequence[Terms]
    moves: Sequence[Moves]
    similarity: Matrix
    reward: Matrix
    record: Matrix
    steps: Matrix
    proven: NDArray[np.bool_]
    failed: NDArray[np.bool_]

    def history(self) -> History:
        """Returns the candidates as a history, the oldest first, for a bank whose own history was never replayed."""
        old = np.argsort(self.times, kind="stable")
        count = len(old)
        return History(
            self.times[old],
            [self.terms[row] for row in old],
            np.zeros((count, 0), np.float32),
            [self.moves[row] for row in old],
            ~self.failed[old],
            self.failed[old],
            trust_of(self.proven[old]),
            np.ones(count, np.float32),
            newest=self.times[old],
        )


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """Features of n candidates, (n, len(NAMES)), agreement of their plans, (n, n), and the fit behind both."""

    features: Features
    agreement: Matrix
    fit: Fit


def features(query: Terms, candidates: Candidates, fit: Fit | None, first_order: str = FIRST_ORDER) -> FeatureTable:
    """Returns the candidates' features for a query, rounded as the log keeps them.

    In a bank that was never replayed, which has no fit, the candidates serve as the bank.
    """
    fit = fit or fit_of(candidates.history(), first_order)
    comparison = comparison_with(query, candidates, fit)
    mixed = mixture(comparison, fit.weights)
    scores = {name: ORDERS[name](comparison, mixed)[0] for name in {"vote", fit.order}}
    alike = comparison.agreement
    waits = quarantined(candidates, alike) if fit.mostly_proven else np.zeros(len(alike))
    places = np.empty(len(alike), dtype=np.float32)
    newest = -candidates.times  # decides between equal scores, as in replay
    places[np.lexsort((newest, -scores[fit.order], waits, candidates.failed))] = -np.arange(len(alike))
    columns = {
        "order": places,
        "similarity": candidates.similarity,
        "vote": scores["vote"],
        "reward": candidates.reward,
        "record": candidates.record,
        "step_count": candidates.steps,
        "proven": candidates.proven & ~candidates.failed & fit.mostly_proven,
        "failed": candidates.failed,
    }
    matrix = np.array([columns[name] for name in NAMES], dtype=np.float32).T
    return FeatureTable(unpacked(packed(matrix.reshape(-1, len(NAMES)))), alike, fit)


def comparison_with(query: Terms, candidates: Candidates, fit: Fit) -> Comparison:
    """Returns the comparison of one query with the candidates, by the fit of their bank."""
    has, distinct = incidence([query, *candidates.terms])
    question, bank = has[:1], has[1:]
    near = {
        "words": cosine(question, bank, np.ones((1, len(distinct)), np.float32)),
        "rare": cosine(question, bank, fit.rare(distinct)),
        "telling": cosine(question, bank, fit.telling(distinct)),
        "meaning": np.nan_to_num(candidates.similarity)[None],  # 0 where it is not known, as in replay
        "recent": -np.log1p(fit.runs_since(candidates.times))[None],
    }
    alike = agreement(candidates.moves, fit.moves)
    trust = trust_of(candidates.proven)
    is_newer = (candidates.times[:, None] > candidates.times) & (alike >= SAME)
    failed = candidates.failed[None]
    return Comparison(near, ~failed, trust, alike, failed, (trust @ is_newer)[None], candidates.record)


def quarantined(candidates: Candidates, alike: Matrix) -> NDArray[np.bool_]:
    """Returns which candidates wait behind the other successes, (n,), in a bank whose successes are mostly proven.

    An unproven success waits until a proven one has a plan like its own: it may be planted, however near it is. Where
    fewer runs are proven, it says little of a run that it is not.

    Args:
        candidates: the n candidates.
        alike: (n, n), agreement of their plans.
    """
    went_well = ~candidates.failed
    return went_well & unbacked(candidates.proven & went_well, alike, BACKED)


def record(count: NDArray[np.floating[Any]], reward: NDArray[np.floating[Any]]) -> Matrix:
    """Returns the expected reward of decisions that follow each case, (n,), above 0 to 1.

    A few uses of a case move it little from USUAL_REWARD (shrinkage: James & Stein 1961).

    Args:
        count: (n,), number of rewarded decisions that followed the case; one that followed several counts in part.
        reward: (n,), sum of the case's shares of these decisions' rewards.
    """
    return ((FEW_USES * USUAL_REWARD + reward) / (FEW_USES + count)).astype(np.float32)


def packed(features: Features) -> bytes:
    """Returns the features as bytes for the log: float16, row by row."""
    return np.clip(features, -_LARGEST, _LARGEST).astype("<f2").tobytes()


def unpacked(logged: bytes) -> Features:
    """Returns the features from the bytes that ``packed`` made of them."""
    return np.frombuffer(logged, dtype="<f2").astype(np.float32).reshape(-1, len(NAMES))


def column(features: Features, name: str) -> Matrix:
    """Returns the feature of this name for every candidate, (n,)."""
    return features[:, COLUMN[name]]
