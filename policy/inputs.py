"""Turns features into the network's inputs: log scales, filled gaps, and the default's log odds as the prior."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from policy import default
from policy.default import LEAST_AGREEMENT
from policy.evidence import NAMES as EVIDENCE
from policy.experience import NAMES as EXPERIENCE
from policy.experience import RECORD
from policy.features import COLUMN, Features
from policy.network import Head, untrained

Array = NDArray[np.float32]

LAST_RANK = 65.0
"""Rank of a case that is not in a half of the search."""

_KEPT = [name for name in EVIDENCE if name != "agreement"]
CASE = (
    "log_rrf",  # relative to the best candidate's
    "log_agreement",
    "log_posterior",
    "log_semantic_rank",
    "log_keyword_rank",
    "similarity",
    "log_age",
    "log_idle",
    "log_occurrences",
    "log_reuses",
    "log_plan_steps",
    "tag_count",
    "whole_task",
    "reward_unknown",
    *_KEPT,
    *(name for name in EXPERIENCE if name not in RECORD),  # the posterior has these
)
FIRST = 4
"""Number of the default's first candidates that describe a query."""
QUERY = (
    "unknown",
    "top_similarity",
    "top_agreement",
    "top_vote",
    "mean_log_posterior",
    "log_candidates",
    *(f"first_{name}" for name in CASE),  # mean over the default's FIRST
)
"""Inputs of the query part. The means of all case inputs are among them, so that the case part cannot gain by telling
easy queries from hard ones, only by how a case differs from those that the default would show (Mundlak 1978)."""

_SOURCES = {
    "log_rrf": "rrf",
    "log_agreement": "agreement",
    "log_posterior": "reward",
    "log_semantic_rank": "semantic_rank",
    "log_keyword_rank": "keyword_rank",
    "log_age": "age_days",
    "log_idle": "idle_days",
    "log_occurrences": "occurrences",
    "log_reuses": "reuse_count",
    "log_plan_steps": "plan_steps",
    "reward_unknown": "reward",
}
"""Feature behind each input that is not a feature itself."""
_RANKS, _COUNTS = ("log_semantic_rank", "log_keyword_rank", "log_occurrences"), ("log_age", "log_idle", "log_reuses")
_FLOORS = dict.fromkeys(_RANKS, (1.0, 0.0)) | dict.fromkeys((*_COUNTS, "log_plan_steps"), (0.0, 1.0))
_FLOORS["log_agreement"] = (0.0, LEAST_AGREEMENT)
"""Least value of each input on a log scale, and the number added before the logarithm."""
_SOURCE = np.array([COLUMN[_SOURCES.get(name, name)] for name in CASE])
_MISSING = np.array([LAST_RANK if name.endswith("_rank") else 0.0 for name in CASE], dtype=np.float32)
_LOGGED = np.array([CASE.index(name) for name in _FLOORS])
_LEAST, _ADDED = np.array(list(_FLOORS.values()), dtype=np.float32).T
_RRF, _POSTERIOR, _UNKNOWN, _SIMILARITY, _AGREEMENT, _VOTE = (
    CASE.index(name)
    for name in ("log_rrf", "log_posterior", "reward_unknown", "similarity", "log_agreement", "past_vote")
)


@dataclass(frozen=True, eq=False)
class Inputs:
    """The network's inputs for the n candidates of one query; each is computed when first read."""

    features: Features
    log_rrf: Array
    log_posterior: Array

    @cached_property
    def prior(self) -> Array:
        """The default's log odds, (n,), up to a constant of the query."""
        return default.parts(self.features, self.log_rrf, self.log_posterior).total

    @cached_property
    def case(self) -> Array:
        """The case part's inputs, (n, len(CASE)), always finite."""
        raw = self.features[:, _SOURCE]  # a copy
        case = np.where(np.isnan(raw), _MISSING, raw)
        case[:, _LOGGED] = np.log(np.maximum(case[:, _LOGGED], _LEAST) + _ADDED)
        case[:, _RRF], case[:, _POSTERIOR] = self.log_rrf, self.log_posterior
        case[:, _UNKNOWN] = np.isnan(raw[:, _UNKNOWN])
        return case

    @cached_property
    def query(self) -> Array:
        """Inputs of the query part, which describe how hard the query is, (1, len(QUERY))."""
        return _query(self.case, self.prior) if len(self.case) else np.zeros((1, len(QUERY)), np.float32)


def inputs_of(features: Features) -> Inputs:
    """Returns what a policy needs to score the candidates of a query: their features, RRF and expected rewards."""
    return Inputs(features, default.log_rrf(features), default.log_posterior(features))


def _query(case: Array, base: Array) -> Array:
    top = case.max(axis=0)
    own = (
        case[0, CASE.index("unknown")],
        top[_SIMILARITY],
        np.exp(top[_AGREEMENT]) - LEAST_AGREEMENT,
        top[_VOTE],
        case[:, _POSTERIOR].mean(),
        np.log(len(case)),
    )
    first = np.argsort(-base, kind="stable")[:FIRST]
    return np.concatenate([own, case[first].mean(axis=0)], dtype=np.float32)[None]


def factory(members: int) -> Head:
    """Returns the head that training starts from: it orders as the default does."""
    return untrained(len(CASE), len(QUERY), members)
