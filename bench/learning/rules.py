"""Benchmark 1, what the learned policy is measured against: fixed rules, and the oracle."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.learning.banking import Log, Pools, Questions, Scorer, World, earned, posterior
from policy.evaluate import Interval
from policy.logged import Floats

Reals = NDArray[np.floating[Any]]

SHARPNESS = 8
"""Power of the similarity, relative to the pool's best, with which candidates vouch for one another."""
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
    return blended(pools.similarity, posterior(world.bank, log, prior=1.0)[pools.case])


def blended(similarity: Reals, q: Reals) -> Floats:
    """Returns the sum of both as z-scores within each pool, (..., n)."""
    return _standard(similarity) + _standard(q)


def _standard(values: Reals) -> Floats:
    spread = values.std(axis=-1, keepdims=True)
    return np.asarray((values - values.mean(axis=-1, keepdims=True)) / np.where(spread > 0, spread, 1))


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


def rewards(world: World, log: Log) -> dict[str, Floats]:
    """Returns each rule's rewards on the test queries, (test,), by name."""
    by_rule = {"none": np.zeros(len(world.test.texts)), "oracle": oracle(world)}
    for name, scorer in RULES.items():
        by_rule[name] = earned(world, scorer(world, world.test, world.test_pools, log))
    return by_rule


def interval(by_seed: Sequence[Floats], seed: int = 0, level: float = 0.95) -> Interval:
    """Returns the mean over seeds and queries, with a bootstrap over the test queries as clusters.

    A query is drawn with its rewards of all seeds; give differences of two policies for a paired interval.
    """
    query = np.mean(by_seed, axis=0)  # (test,)
    low, high = np.quantile(_drawn(len(query), seed) @ query, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(query.mean()), float(low), float(high))


@lru_cache(maxsize=2)
def _drawn(count: int, seed: int) -> Floats:
    """Returns the share that each query has in each resample, (RESAMPLES, count): the same for every row."""
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    return drawn / count
