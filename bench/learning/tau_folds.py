"""The questions of benchmark 2: the worth of reusing each run for another run's query, in folds by user.

A query is a run's first user message; a candidate is another run, known by its text, tool calls and reward. Its worth
to the query is its reward times the F1 of its successful state-changing tools with the query's gold ones. Gold and the
query's own run serve only to compute that. All queries count, also those whose right answer changes nothing; left out
are only queries for which no case of the bank is of any use. No test user's run is in a training bank, no test user's
query is trained on.

Cold: the bank has up to 4 runs a task, none of the query's user. Warm: up to 5 runs a task, the query's own user and
task included, the run itself left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from bench.learning import bm25, tau
from bench.learning.worth import PLACES, Worth, agreement, ideal, ndcg
from policy import evidence, features
from policy.logged import Floats, Ints
from retrieval.search.candidates import POOL
from retrieval.search.fusion import PROVEN_PART

Bools = NDArray[np.bool_]
Random = np.random.Generator

FOLDS = 5
RRF_K = 50.0
CONSENSUS_PEERS = 40
FIXED = (
    "random",
    "recency",
    "vector",
    "keyword",
    "rrf",
    "rrf + success filter",
    "plan consensus + success filter",
)
"""The rules that need no pool and no log."""


class Mode(Enum):
    """Cold: the bank has no run of the query's user; warm: it has. The value is the bank's number of runs a task."""

    COLD = 4
    WARM = 5


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One query with the candidates a policy may choose from, at most POOL, as the search keeps and orders them.

    Attributes:
        run: the run with the query as its first message.
        user: user of the run; intervals cluster by user.
        candidates: (k,), runs of the bank.
        known: (k, len(features.NAMES)), the candidates' own features.
        evidence: (k, len(evidence.NAMES)), evidence of the similar successes among them on each.
        worth: the worth of each candidate.
    """

    run: int
    user: str
    candidates: Ints
    known: features.Features
    evidence: NDArray[np.float32]
    worth: Worth

    @property
    def utility(self) -> Floats:
        """Returns the worth of each candidate by the agreement of plans, (k,)."""
        return self.worth.utility

    @property
    def ideal(self) -> float:
        """Returns the best DCG@4 that the whole bank allows; 0: no case of it is of use."""
        return self.worth.ideal

    @property
    def fixed(self) -> Mapping[str, float]:
        """Returns the nDCG@4 of each fixed rule."""
        return self.worth.fixed

    @property
    def failed(self) -> Bools:
        """Returns a mask of the failed candidates, (k,)."""
        return features.column(self.known, "failed") > 0


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """The questions of four fifths of the users to train on, and of the rest to test on, by mode."""

    seed: int
    number: int
    train: Mapping[Mode, list[Question]]
    test: Mapping[Mode, list[Question]]


@dataclass(frozen=True, slots=True, eq=False)
class _Dealt:
    """One fifth of the users, and the runs that the banks keep."""

    seed: int
    number: int
    bank: Mapping[Mode, Ints]
    """Runs in the bank of a test user's query."""
    train: Mapping[Mode, Ints]
    test: Mapping[Mode, Ints]
    random: Random


def folds(domain: tau.Domain, seeds: Iterable[int]) -> Iterator[Fold]:
    """Yields five folds by user for each seed; the seed deals the users and draws the runs that the banks keep."""
    for dealt in _dealt(domain, seeds):
        train = {mode: _questions(domain, mode, dealt.train[mode], dealt.train[mode], dealt.random) for mode in Mode}
        yield Fold(dealt.seed, dealt.number, train, _tested(domain, dealt))


def _tested(domain: tau.Domain, dealt: _Dealt) -> dict[Mode, list[Question]]:
    return {mode: _questions(domain, mode, dealt.test[mode], dealt.bank[mode], dealt.random) for mode in Mode}


def _dealt(domain: tau.Domain, seeds: Iterable[int]) -> Iterator[_Dealt]:
    for seed in seeds:
        random = np.random.default_rng(seed)
        place_of = {user: place % FOLDS for place, user in enumerate(random.permutation(np.unique(domain.user)))}
        fold_of = np.array([place_of[user] for user in domain.user])
        drawn = random.permutation(len(domain.user))
        kept = {mode: _kept(domain, drawn, mode.value) for mode in Mode}
        for number in range(FOLDS):
            train = {mode: runs[fold_of[runs] != number] for mode, runs in kept.items()}
            test = {mode: runs[fold_of[runs] == number] for mode, runs in kept.items()}
            yield _Dealt(seed, number, {**kept, Mode.COLD: train[Mode.COLD]}, train, test, random)


def _kept(domain: tau.Domain, drawn: Ints, runs_a_task: int) -> Ints:
    """Returns the first runs of each task in the drawn order, ascending."""
    seen: Counter[str] = Counter()
    kept = []
    for run in drawn:
        seen[domain.task[run]] += 1
        if seen[domain.task[run]] <= runs_a_task:
            kept.append(run)
    return np.sort(np.array(kept, dtype=np.int64))


def _questions(domain: tau.Domain, mode: Mode, queries: Ints, bank: Ints, random: Random) -> list[Question]:
    relevance = bm25.relevance([domain.words[run] for run in queries], [domain.words[run] for run in bank])
    questions = []
    for query, row in zip(queries, relevance, strict=True):
        mine = domain.user[bank] == domain.user[query] if mode is Mode.COLD else bank == query
        questions.append(_question(domain, int(query), bank[~mine], row[~mine], random))
    return questions


@dataclass(frozen=True, slots=True, eq=False)
class _Bank:
    """A bank as one query meets it; arrays over its m runs."""

    runs: Ints
    similarity: Floats
    semantic_rank: Floats
    keyword_rank: Floats
    """Ranks, 1-based; runs that share no word with the query come last."""
    matched: Bools
    rrf: Floats
    utility: Floats


def _question(domain: tau.Domain, query: int, runs: Ints, relevance: Floats, random: Random) -> Question:
    similarity = domain.vectors[runs] @ domain.vectors[query]
    reward = domain.reward[runs]
    semantic_rank, keyword_rank = _ranks(similarity, random), _ranks(relevance, random)
    bank = _Bank(
        runs=runs,
        similarity=similarity,
        semantic_rank=semantic_rank,
        keyword_rank=keyword_rank,
        matched=relevance > 0,
        rrf=1 / (RRF_K + semantic_rank) + 1 / (RRF_K + keyword_rank),
        utility=agreement(domain.gold[query], domain.effects[runs]) * reward,
    )
    pool = _pool(bank.rrf, reward > 0)
    cases = _cases(domain, bank, pool)
    orders = _fixed(domain, bank, random)
    return Question(
        run=query,
        user=str(domain.user[query]),
        candidates=runs[pool],
        known=_known(domain, bank)[pool],
        evidence=evidence.features(cases, cases, _tools(domain, query)),
        worth=_worth(bank.utility, pool, orders),
    )


def _worth(utility: Floats, pool: Ints, orders: Mapping[str, Ints]) -> Worth:
    best = ideal(utility)
    reached = {name: ndcg(utility, chosen, best) for name, chosen in orders.items()} if best > 0 else {}
    return Worth(utility[pool], best, reached)


def _pool(rrf: Floats, proven: Bools) -> Ints:
    """Returns the candidates that the search keeps, best first: each kind up to its part, then the best of all."""
    first = np.argsort(-rrf, kind="stable")
    place = np.where(proven[first], np.cumsum(proven[first]), np.cumsum(~proven[first]))
    part = round(POOL * PROVEN_PART)
    beyond = place > np.where(proven[first], part, POOL - part)
    kept: Ints = first[np.argsort(beyond, kind="stable")][:POOL]
    return kept[np.argsort(-rrf[kept], kind="stable")]


def _ranks(values: Floats, random: Random) -> Floats:
    """Returns ranks, 1-based, the highest value first; ties at random."""
    shuffled = random.permutation(len(values))
    ranks = np.empty(len(values))
    ranks[shuffled[np.argsort(-values[shuffled], kind="stable")]] = np.arange(1, len(values) + 1)
    return ranks


def _known(domain: tau.Domain, bank: _Bank) -> features.Features:
    reward = domain.reward[bank.runs]
    table = {
        "semantic_rank": bank.semantic_rank,
        "keyword_rank": np.where(bank.matched, bank.keyword_rank, np.nan),
        "similarity": bank.similarity,
        "rrf": bank.rrf,
        "reward": reward,
        "occurrences": np.ones(len(reward)),
        "step_count": domain.steps[bank.runs],
        "error_count": domain.errors[bank.runs],
        "failed": reward == 0,
        "proven": reward > 0,
    }
    nothing = np.zeros(len(reward))
    return np.stack([table.get(name, nothing) for name in features.NAMES], axis=1).astype(np.float32)


def _cases(domain: tau.Domain, bank: _Bank, rows: Ints) -> evidence.Cases:
    runs = bank.runs[rows]
    return evidence.Cases(
        similarity=bank.similarity[rows],
        keyword_rank=np.where(bank.matched, bank.keyword_rank, np.nan)[rows],
        reward=domain.reward[runs],
        effects=domain.effects[runs],
        steps=domain.steps[runs],
        errors=domain.errors[runs],
    )


def _tools(domain: tau.Domain, query: int) -> evidence.Tools:
    query_stems = tau.stems(domain.words[query])
    overlap = np.array([len(stems & query_stems) / len(stems) for stems in domain.tool_stems])
    return evidence.Tools(domain.tool_vectors, domain.vectors[query], overlap)


def _fixed(domain: tau.Domain, bank: _Bank, random: Random) -> dict[str, Ints]:
    """Returns the first PLACES of each fixed rule over the whole bank."""
    success = domain.reward[bank.runs] > 0
    scores = (
        random.random(len(bank.runs)),
        domain.began[bank.runs],
        -bank.semantic_rank,
        -bank.keyword_rank,
        bank.rrf,
        bank.rrf * success,
        (_consensus(domain, bank) + bank.rrf / 1_000) * success,
    )
    return {name: np.argsort(-score, kind="stable")[:PLACES] for name, score in zip(FIXED, scores, strict=True)}


def _consensus(domain: tau.Domain, bank: _Bank) -> Floats:
    """Returns each run's similarity-weighted agreement with the plans of the 40 most similar successes, (m,)."""
    won = np.flatnonzero(domain.reward[bank.runs] > 0)
    near = won[np.argsort(bank.semantic_rank[won])][:CONSENSUS_PEERS]
    weight, plans = np.maximum(bank.similarity[near], 0), domain.effects[bank.runs]
    agreed = np.stack([agreement(domain.effects[run], plans) for run in bank.runs[near]], axis=1)
    consensus: Floats = agreed @ weight / max(weight.sum(), evidence.TINY)
    return consensus
