"""From features to what the network takes: log scales, filled gaps, and the default's log odds as the prior."""

import numpy as np
from numpy.typing import NDArray

from policy import default
from policy.default import counted
from policy.evidence import NAMES as EVIDENCE
from policy.experience import NAMES as EXPERIENCE
from policy.features import COLUMN, Features, column
from policy.network import Head, untrained

Array = NDArray[np.float32]

LAST_RANK = 65.0
"""Where a case stands that is not in a half of the search."""
LEAST_AGREEMENT = 0.02

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
    *EXPERIENCE,
)
FIRST = 4
"""How many of the default's first candidates say what a query is like."""
QUERY = (
    "unknown",
    "top_similarity",
    "top_agreement",
    "top_vote",
    "mean_log_posterior",
    "log_candidates",
    *(f"first_{name}" for name in CASE),  # mean over the default's FIRST
)
"""With the means of all inputs of the case part among them, that part earns nothing by telling easy queries from hard
ones: what is left for it is how a case differs from those that the default would have shown (Mundlak 1978)."""

_FACTORY = {"log_agreement": 1.0, "log_rrf": -0.8}
"""Where training begins: the default with most of its RRF exchanged for the agreement of plans. No user's number is in
it; it was found on public runs of two domains, and like everything learned it serves only where it proves itself."""


def prior(features: Features) -> Array:
    """Returns the default's log odds of each candidate, up to a constant of the query, (n,)."""
    return default.scores(features)


def case_inputs(features: Features) -> Array:
    """Returns the case part's inputs, (n, len(CASE)), always finite."""
    table = {
        "log_rrf": default.log_rrf(features),
        "log_agreement": np.log(counted(features, "agreement") + LEAST_AGREEMENT),
        "log_posterior": default.log_posterior(features),
        "log_semantic_rank": np.log(np.maximum(_filled(features, "semantic_rank", LAST_RANK), 1)),
        "log_keyword_rank": np.log(np.maximum(_filled(features, "keyword_rank", LAST_RANK), 1)),
        "log_age": np.log1p(counted(features, "age_days")),
        "log_idle": np.log1p(counted(features, "idle_days")),
        "log_occurrences": np.log(np.maximum(counted(features, "occurrences"), 1)),
        "log_reuses": np.log1p(counted(features, "reuse_count")),
        "log_plan_steps": np.log1p(counted(features, "plan_steps")),
        "reward_unknown": np.isnan(column(features, "reward")),
    }
    plain = [table[name] if name in table else _filled(features, name, 0.0) for name in CASE]
    return np.stack(plain, axis=1).astype(np.float32)


def query_inputs(features: Features) -> Array:
    """Returns the query part's inputs, (1, len(QUERY)): what the candidates together say of how hard the query is."""
    if not len(features):
        return np.zeros((1, len(QUERY)), np.float32)
    table = {
        "unknown": _filled(features, "unknown", 0.0)[0],
        "top_similarity": _filled(features, "similarity", 0.0).max(),
        "top_agreement": _filled(features, "agreement", 0.0).max(),
        "top_vote": _filled(features, "past_vote", 0.0).max(),
        "mean_log_posterior": default.log_posterior(features).mean(),
        "log_candidates": np.log(len(features)),
    }
    first = np.argsort(-prior(features), kind="stable")[:FIRST]
    return np.array([[*table.values(), *case_inputs(features)[first].mean(axis=0)]], dtype=np.float32)


def factory(members: int, hidden: int) -> Head:
    """Returns the head that training starts from when no shared prior was trained."""
    head = untrained(len(CASE), len(QUERY), members, hidden)
    linear = head.linear.copy()
    for name, weight in _FACTORY.items():
        linear[:, CASE.index(name)] = weight
    return Head(**(head.arrays() | {"linear": linear}))


def _filled(features: Features, name: str, missing: float) -> Array:
    values = features[:, COLUMN[name]]
    return np.where(np.isnan(values), np.float32(missing), values)
