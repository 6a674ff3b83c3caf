"""Evidence of similar past runs for a candidate: agreement of its plan with theirs, and with the query's words.

A case helps when its plan is what the query needs. What the query needs is unknown, but its neighbours' successful
plans are known, so the expected agreement of a candidate with the unknown right plan is a weighted mean over them:

    agreement(c) = (sum_j w_j F1(c, j) + PRIOR_MASS * m(c)) / (sum_j w_j + PRIOR_MASS)
    w_j = reward_j * ((1 - TYPICAL) / (1 + JITTER - similarity_j)) ^ SHARPNESS * (1 + KEYWORD_BOOST / keyword_place_j)

The kernel is inverse distance (Shepard 1968): it grows without bound as a neighbour becomes the same task, so that a
task that comes back is answered by its own earlier runs, and a new one by a broad vote. ``m`` is how well the
names of the candidate's tools fit the query's words; it counts as PRIOR_MASS neighbours and thus matters only
without near neighbours. No text, id or tool name is read here: the features are content-free numbers.
"""

from dataclasses import dataclass
from functools import cached_property
from statistics import median

import numpy as np
from numpy.typing import NDArray

NAMES = (
    "agreement",  # 0 to 1: expected agreement with the right plan, neighbours and tool names together
    "agreement_kernel",  # 0 to 1: the same by the neighbours alone; 0 without any
    "agreement_near",  # 0 to 1: by the very nearest, similarity relative to the top success to the 16th power
    "agreement_broad",  # 0 to 1: by the BROAD nearest, weighted by similarity
    "agreement_keyword",  # 0 to 1: by keyword places alone, 1 / (1 + place) squared
    "commonness",  # 0 to 1: mean agreement with all successful peers, near or not
    "plan_similarity",  # 0 to 1: cosine of the query and the candidate's tool names together
    "tool_similarity",  # 0 to 1: cosine of the query and the best of its tool names
    "plan_words",  # 0 to 1: mean share of a tool name's words that the query has
    "query_words",  # 0 to 1: of the tool words that the query has, the share that this plan's tools stand for
    "similarity_gap",  # 0 to 2: behind the most similar candidate; 0 without a vector
    "unknown",  # 0 to 1, same for all candidates of a query: the weight of PRIOR_MASS, 1 when nothing is near
    "plan_similarity_unknown",  # plan_similarity * unknown
    "agreement_near_unknown",  # agreement_near * unknown
    "peer_success",  # 0 to 1: reward of the near peers of a similar plan, failures included, itself left out
    "relative_steps",  # log of its steps over the peers' median
    "errors",  # log(1 + errors)
    "effects",  # log(1 + state-changing calls that succeeded)
    "distinct_effects",  # log(1 + their distinct tools)
    "no_effect",  # 1: the run changed nothing
)

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

PRIOR_MASS = 16.0
"""Weight of the fit of tool names, in neighbours at TYPICAL similarity."""
PRIOR_SCALE = 2.0
"""Expected F1 of a plan, per cosine to the query."""
TYPICAL = 0.6
"""The similarity at which a neighbour counts as one: about that of the nearest other task."""
JITTER = 0.02
"""Offset that keeps the weight of an identical text finite."""
SHARPNESS = 4.0
KEYWORD_BOOST = 3.0
BROAD = 40
NEAR_POWER = 16.0
PEER_POWER = 8.0
MOST_REPEATS = 8
"""Largest count of one tool in one plan."""
TINY = 1e-9


@dataclass(frozen=True)
class Cases:
    """The numbers of n cases that are known before acting; t is the number of state-changing tools of the profile."""

    similarity: Vector
    """(n,) cosine to the query, -1 to 1; NaN: no vector."""
    keyword_rank: Vector
    """(n,) 1-based; NaN: shares no word with the query."""
    reward: Vector
    """(n,) 0 to 1; NaN: unknown, which is no evidence."""
    effects: Matrix
    """(n, t) how often each state-changing tool succeeded in the run; a row of zeros changed nothing."""
    steps: Vector
    """(n,) tool calls of the run."""
    errors: Vector
    """(n,) tool calls that failed."""

    @cached_property
    def agreement(self) -> Matrix:
        """Agreement of each two plans, (n, n): see ``agreement``."""
        return agreement(self.effects, self.effects)


@dataclass(frozen=True, slots=True)
class Tools:
    """Fit of the names of the t state-changing tools to the query; zeros if unknown."""

    vectors: Matrix
    """(t, dimension) unit vectors of the names as words."""
    query: Vector
    """(dimension,) unit vector of the query; empty dimension: no embedder."""
    overlap: Vector
    """(t,) share of the name's words that the query has, 0 to 1."""


def features(candidates: Cases, peers: Cases, tools: Tools) -> NDArray[np.float32]:
    """Returns the candidates' evidence, (n, len(NAMES)), always finite; peers may be the candidates themselves.

    Peers without reward are no evidence, and of those without a vector only the keyword place counts; when none has a
    vector all are equally near.
    """
    plans = candidates.agreement if peers is candidates else agreement(candidates.effects, peers.effects)  # (n, m)
    reward = known_or_zero(peers.reward)
    near = near_of(peers.similarity)
    if not np.isfinite(peers.similarity).any():
        near = np.full(len(near), TYPICAL)
    # 1-based places in the keyword order among rewarded peers; infinite for the others and for unranked ones
    ranked = np.flatnonzero((reward > 0) & np.isfinite(peers.keyword_rank))
    places = np.full(len(reward), np.inf)
    places[ranked[np.argsort(peers.keyword_rank[ranked], kind="stable")]] = np.arange(1, len(ranked) + 1)
    kernel_weight = ((1 - TYPICAL) / (1 + JITTER - near)) ** SHARPNESS
    weight = reward * kernel_weight * (1 + KEYWORD_BOOST / places)
    unknown = PRIOR_MASS / (PRIOR_MASS + weight.sum())
    used = (candidates.effects > 0).astype(np.float64)  # (n, t)
    fit = _fit(used, tools)
    top = max(near[reward > 0].max(initial=0.0), TINY)  # of those that count: a nearer failure dims no success
    earned = reward * near
    weights = (
        weight,
        reward * np.minimum(near / top, 1) ** NEAR_POWER,
        earned * (np.argsort(np.argsort(-earned, kind="stable"), kind="stable") < BROAD),  # the first by place
        reward * (1 / (1 + places)) ** 2,
        reward,
    )
    kernel, sharp, broad, by_keywords, common = _means(plans, np.array(weights))
    done = candidates.effects.sum(1)
    steps, errors, effects, distinct = np.log1p((candidates.steps, candidates.errors, done, used.sum(1)))
    most_similar = np.fmax.reduce(candidates.similarity, initial=np.nan)  # NaN where none is known
    columns = (
        (1 - unknown) * kernel + unknown * np.minimum(PRIOR_SCALE * fit[0], 1),
        kernel,
        sharp,
        broad,
        by_keywords,
        common,
        *fit,
        known_or_zero(most_similar - candidates.similarity),
        np.full(len(plans), unknown),
        fit[0] * unknown,
        sharp * unknown,
        _peer_success(plans, near**PEER_POWER, peers, candidates),
        steps - np.log1p(median(peers.steps.tolist()) if len(peers.steps) else 0),
        errors,
        effects,
        distinct,
        done == 0,
    )
    return np.array(columns, dtype=np.float32).T


def agreement(left: Matrix, right: Matrix) -> Matrix:
    """Returns the F1 between plans as multisets of tools, (n, m).

    An empty plan is a plan: two runs without effects agree, and disagree with any other.
    """
    left, right = np.minimum(left, MOST_REPEATS), np.minimum(right, MOST_REPEATS)
    total = left.sum(1)[:, None] + right.sum(1)[None, :]
    shared = np.zeros_like(total, dtype=np.float64)
    # min(a, b) counts the levels that both reach: one product of matrices a level beats a pass a tool
    for level in range(1, int(min(left.max(initial=0), right.max(initial=0))) + 1):
        shared += (left >= level).astype(np.float64) @ (right >= level).astype(np.float64).T
    f1: Matrix = np.where(total > 0, 2 * shared / np.maximum(total, 1), 1.0)
    return f1


def known_or_zero(values: Vector) -> Vector:
    """Returns the values with zeros for NaN."""
    return np.where(np.isnan(values), 0.0, values)


def near_of(similarity: Vector) -> Vector:
    """Returns the similarities as weights, 0 to 1, zeros for NaN."""
    return np.minimum(np.fmax(similarity, 0), 1)


def _means(plans: Matrix, weights: Matrix) -> Matrix:
    """Returns each weight's mean of the plans' agreements, (weights, n), zeros for a weight of 0."""
    total = weights.sum(1)
    means: Matrix = weights @ plans.T / np.where(total > TINY, total, np.inf)[:, None]
    return means


def _fit(used: Matrix, tools: Tools) -> tuple[Vector, Vector, Vector, Vector]:
    """Returns plan_similarity, tool_similarity, plan_words and query_words."""
    together = used @ tools.vectors
    length = np.linalg.norm(together, axis=1)
    plan = (together @ tools.query) / np.maximum(length, TINY)
    each = tools.vectors @ tools.query
    best = (used * np.maximum(each, 0)).max(axis=1, initial=0.0)
    words = used @ tools.overlap
    return np.maximum(plan, 0), best, words / np.maximum(used.sum(1), 1), words / max(tools.overlap.sum(), TINY)


def _peer_success(plans: Matrix, near: Vector, peers: Cases, candidates: Cases) -> Vector:
    """Returns the kernel-weighted reward of the peers by their plans' agreement, shrunk to the mean of all peers.

    A candidate among the peers is known by its place when both are the same object; its own reward is left out.
    """
    known = np.isfinite(peers.reward)
    reward, near = known_or_zero(peers.reward), near * known
    if near.sum() <= TINY:
        return np.full(len(plans), 0.5)
    weight = plans * near
    if peers is candidates:
        np.fill_diagonal(weight, 0.0)
    prior = near.sum() / max(known.sum(), 1)
    success: Vector = (weight @ reward + prior * (near @ reward) / near.sum()) / (weight.sum(1) + prior)
    return success
