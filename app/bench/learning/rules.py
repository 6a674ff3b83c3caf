"""Benchmark 1, what the learned policy is measured against: fixed rules, LinUCB, the oracle, and negative controls."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.bench.learning.banking import (
    Fit,
    Log,
    Pools,
    Questions,
    Scorer,
    World,
    earlier_posterior,
    earned,
    posterior,
)
from policy.evaluate import Interval
from policy.logged import Floats, Ints

SHARPNESS = 8
"""Power of the similarity, relative to the pool's best, with which candidates vouch for one another."""
LINUCB_RIDGE, LINUCB_WIDTH = 1.0, 0.1
RESAMPLES = 2_000


def random(_world: World, questions: Questions, pools: Pools, _log: Log) -> Floats:
    """Returns an order by lot, the same for the same questions."""
    return np.random.default_rng(len(questions.texts)).random(pools.case.shape)


def recency(_world: World, _questions: Questions, pools: Pools, _log: Log) -> Floats:
    """Returns the newest case first."""
    return pools.case.astype(np.float64)


def vector(_world: World, _questions: Questions, pools: Pools, _log: Log) -> Floats:
    """Returns the order by cosine similarity."""
    return pools.similarity


def keyword(_world: World, _questions: Questions, pools: Pools, _log: Log) -> Floats:
    """Returns the order by BM25."""
    return pools.relevance


def rrf(_world: World, _questions: Questions, pools: Pools, _log: Log) -> Floats:
    """Returns the order of the fused ranks; every stored run calls itself a success, so a success filter keeps it."""
    return pools.rrf


def plan_consensus(world: World, _questions: Questions, pools: Pools, _log: Log) -> Floats:
    """Returns the share of the other candidates, weighted by similarity, that store the same answer."""
    weight = nearness(pools.similarity, pools)
    answers = world.bank.answers[pools.case]
    same = (answers[:, :, None] == answers[:, None, :]) & ~np.eye(answers.shape[1], dtype=bool)
    others = np.maximum(weight.sum(axis=1, keepdims=True) - weight, np.finfo(np.float64).tiny)
    return np.asarray((same * weight[:, None, :]).sum(axis=2) / others)


def nearness(similarity: Floats, pools: Pools) -> Floats:
    """Returns the similarities as weights, 0 to 1, relative to the best of each pool."""
    top = np.maximum(pools.similarity.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return np.asarray(np.clip(similarity / top, 0, 1) ** SHARPNESS)


def reuse_posterior(world: World, _questions: Questions, pools: Pools, log: Log) -> Floats:
    """Returns each case's own record of reuse; ties go to the higher RRF."""
    return posterior(world.bank, log)[pools.case]


def blend(world: World, _questions: Questions, pools: Pools, log: Log) -> Floats:
    """Returns similarity and Q in equal parts, each as a z-score within the pool; Q is the mean reward of reuse."""
    return np.asarray(_standard(pools.similarity) + _standard(posterior(world.bank, log, prior=1.0)[pools.case]))


def _standard(values: Floats) -> Floats:
    spread = values.std(axis=1, keepdims=True)
    return np.asarray((values - values.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1))


def lin_ucb(world: World, log: Log) -> Scorer:
    """Returns LinUCB (Li et al. 2010, disjoint arms made one) over ranks, similarities and the reuse record."""
    context = _context(world, world.pools.take(log.row), earlier_posterior(world, log))
    seen = context[np.arange(len(log.row)), log.place]
    inverse = np.linalg.inv(seen.T @ seen + LINUCB_RIDGE * np.eye(seen.shape[1]))
    weights = inverse @ seen.T @ log.reward

    def score(world: World, _questions: Questions, pools: Pools, log: Log) -> Floats:
        context = _context(world, pools, posterior(world.bank, log)[pools.case])
        width = np.sqrt(np.einsum("nki,ij,nkj->nk", context, inverse, context))
        scores: Floats = context @ weights + LINUCB_WIDTH * width
        return scores

    return score


def _context(world: World, pools: Pools, record: Floats) -> Floats:
    """Returns (n, POOL, 6): level, similarity, RRF relative to the top, two ranks, the reuse record."""
    ranks = (np.log(pools.semantic_rank), np.log(np.nan_to_num(pools.keyword_rank, nan=len(world.bank.answers))))
    relative = pools.rrf / pools.rrf.max(axis=1, keepdims=True)
    return np.stack([np.ones(pools.case.shape), pools.similarity, relative, *ranks, record], axis=-1)


RULES: Mapping[str, Scorer] = {
    "random": random,
    "recency": recency,
    "vector": vector,
    "keyword": keyword,
    "RRF": rrf,
    "RRF + success filter": rrf,
    "plan consensus": plan_consensus,
    "reuse posterior alone": reuse_posterior,
    "fixed blend of similarity and Q": blend,
}


def oracle(world: World) -> Floats:
    """Returns the reward, (test,), of a policy that knows which candidate helps."""
    return np.asarray(world.test_works().any(axis=1), dtype=np.float64)


def rewards(world: World, log: Log, learners: Mapping[str, Fit]) -> dict[str, Floats]:
    """Returns by name what each policy earns on each test query, (test,)."""
    scorers = {**RULES, "LinUCB": lin_ucb(world, log), **{name: fit(world, log) for name, fit in learners.items()}}
    found = {"none": np.zeros(len(world.test.texts)), "oracle": oracle(world)}
    for name, scorer in scorers.items():
        found[name] = earned(world, scorer(world, world.test, world.test_pools, log))
    return found


def interval(by_seed: Sequence[Floats], seed: int = 0, level: float = 0.95) -> Interval:
    """Returns the mean over seeds and queries, with a bootstrap over the test queries as clusters.

    A query is drawn with its rewards of all seeds; give differences of two policies for a paired interval.
    """
    query = np.mean(by_seed, axis=0)  # (test,)
    draws = np.random.default_rng(seed).multinomial(len(query), np.full(len(query), 1 / len(query)), RESAMPLES)
    low, high = np.quantile(draws @ query / len(query), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(query.mean()), float(low), float(high))


Classifier = Callable[[Floats, Floats, Floats], Floats]
"""Fits features (decisions, d) and labels (decisions,), and returns scores, (others,), for other features."""


@dataclass(frozen=True, slots=True)
class SplitGap:
    """How well one classifier seems to do when decisions are split at random, and when queries are."""

    by_decision: float
    by_query: float


def split_gap(world: World, queries: int, classify: Classifier, rng: np.random.Generator) -> SplitGap:
    """Returns the AUC of telling helpful pairs of raw query and case vectors, by either split in halves.

    Queries come back, as they do in service: four decisions for each pair on average, drawn with replacement.
    """
    size = world.pools.case.shape[1]
    pair = rng.integers(0, queries * size, 4 * queries * size)
    group, place = pair // size, pair % size
    case = world.pools.case[group, place]
    seen = np.hstack([world.asked.vectors[group], world.bank.vectors[case]]).astype(np.float64)
    works = world.works()[group, place].astype(np.float64)

    def measured(unit: Ints) -> float:
        train = rng.permutation(int(unit.max()) + 1)[unit] % 2 == 0
        return auc(classify(seen[train], works[train], seen[~train]), works[~train])

    return SplitGap(measured(np.arange(len(pair))), measured(group))


def auc(scores: Floats, labels: Floats) -> float:
    """Returns the chance that a positive scores above a negative, ties counted half."""
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    positives = float(labels.sum())
    above = float(rank[labels > 0].sum()) - positives * (positives + 1) / 2
    return above / (positives * (len(labels) - positives))
