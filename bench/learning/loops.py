"""Closed loops: a scripted agent acts on what an order shows it, and its world says whether it succeeded.

The agent practises without memory, and its runs are the bank; then it does other tasks of the same kinds, once with
each order. Features, scores and the rules of a slate are those that serve. What is not here is the write side and the
procedures, so that nothing but the order differs.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np

from app.demo.memory import AgentRun, NoMemory, RememberedCase, RetrievedCases, slate_of
from app.demo.world import Adapter, Own, Size, Task
from bench.learning import bm25, tau
from bench.learning.linucb import Reals
from bench.learning.tau_folds import CONSENSUS_PEERS, RRF_K
from bench.learning.worth import agreement
from examples.clerk.environment import ClerksOffice
from examples.experiment.episode import BudgetedEnvironment, play
from examples.operator.environment import DatabaseOperator
from examples.scienceworld.environment import ScienceWorld
from policy import evidence, features
from policy.decide import score
from policy.logged import Floats
from policy.slate import choose, field_of, order
from retrieval.ports import Embedder
from retrieval.ranking.pool import Query, pool
from retrieval.ranking.tool_counts import ToolVectors, tool_counts
from retrieval.search.candidates import POOL
from writer.analysis.state_changes import effects

SEEDS: Mapping[str, Sequence[int]] = {"operator": (1, 2), "office": (1, 2), "scienceworld": (1,)}
SIZES: Mapping[str, Size] = {
    "operator": Size(practice=8, test=6),
    "office": Size(practice=4, test=8),
    "scienceworld": Size(practice=8, test=4),
}


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """The candidates of one query, n of them: what a policy sees, and how often each tool or step is in each plan."""

    features: features.Features
    plans: Floats


Rule = Callable[[Seen], Reals]
"""Scores the candidates, (n,), higher is better; 0 and below: not to be shown."""


def rrf(seen: Seen) -> Reals:
    """Returns the fused ranks."""
    return features.column(seen.features, "rrf")


def successes(seen: Seen) -> Reals:
    """Returns the fused ranks of what went well."""
    return rrf(seen) * (features.column(seen.features, "reward") > 0)


def consensus(seen: Seen) -> Reals:
    """Returns the similarity-weighted agreement with the nearest successes, of what went well."""
    won = features.column(seen.features, "reward") > 0
    near = np.maximum(np.nan_to_num(features.column(seen.features, "similarity")), 0) * won
    near = np.where(np.argsort(np.argsort(-near, kind="stable")) < CONSENSUS_PEERS, near, 0)
    agreed = np.stack([agreement(plan, seen.plans) for plan in seen.plans], axis=1) @ near
    return np.asarray((agreed / max(near.sum(), evidence.TINY) + rrf(seen) / 1_000) * won)


RULES: Mapping[str, Rule] = {
    "rrf": rrf,
    "rrf + success filter": successes,
    "plan consensus + success filter": consensus,
}
SERVED, NOTHING = "the served default", "no memory"


class Bank:
    """A bank of runs that is searched in this process; it keeps nothing that it is not given."""

    def __init__(self, runs: Sequence[AgentRun], vectors: Floats, embedder: Embedder, least: float) -> None:
        """Takes the runs, the oldest first, the vectors of their tasks, and how near a case must be to be shown."""
        self._rows = [_row(number, run) for number, run in enumerate(runs)]
        self._words = [tau.tokens(run.task) for run in runs]
        self._vectors, self._embedder, self._names, self._least = vectors, embedder, ToolVectors(), least

    @classmethod
    async def of(cls, runs: Sequence[AgentRun], embedder: Embedder, least: float = 0.0) -> "Bank":
        """Returns the bank of these runs."""
        return cls(runs, np.asarray(await embedder.embed([run.task for run in runs]), np.float64), embedder, least)

    async def slate(self, task: str, rule: Rule | None, k: int) -> tuple[RememberedCase, ...]:
        """Returns the first k cases by the rule, or by the served default (None), of those that are near enough."""
        vector = (await self._embedder.embed([task]))[0]
        rows = self._candidates(tau.tokens(task), self._vectors @ vector)
        counts = tool_counts(rows)
        self._names.want(counts)
        if wanted := self._names.wanted():
            named = await self._embedder.embed([name.replace("_", " ") for name in wanted])
            self._names.learn(dict(zip(wanted, named, strict=True)))
        found = pool(rows, [], counts, Query(task, vector), self._names)
        field = field_of(found.features, found.group, found.source, self._least)
        if rule is None:
            chosen = list(choose(field, order(field, score(None, found.features).total), k))
        else:
            scores = rule(Seen(found.features, counts.counts))
            chosen = [place for place in order(field, np.asarray(scores)) if scores[place] > 0][:k]
        return tuple(_remembered(rows[place]) for place in chosen)

    def _candidates(self, words: list[str], similarity: Floats) -> list[Any]:
        relevance = bm25.relevance([words], self._words)[0]
        newest = np.arange(len(self._rows))[::-1]  # ties go to the newer case
        semantic, keyword = _ranks(similarity, newest), np.where(relevance > 0, _ranks(relevance, newest), np.nan)
        fused = 1 / (RRF_K + semantic) + np.nan_to_num(1 / (RRF_K + keyword))
        return [
            replace(
                self._rows[row],
                similarity=float(similarity[row]),
                semantic_rank=float(semantic[row]),
                keyword_rank=float(keyword[row]),
                rrf=float(fused[row]),
            )
            for row in newest[np.argsort(-fused[newest], kind="stable")][:POOL]
        ]


@dataclass(frozen=True, slots=True)
class _Row:
    """A run as the statement of a retrieval answers it, as far as features and rules look at it."""

    id: UUID
    task: str
    plan: tuple[str, ...]
    effects: list[str]
    source: str
    reward: float
    failed: float
    proven: float
    step_count: float
    error_count: float
    plan_steps: float
    similarity: float = 0.0
    semantic_rank: float = 0.0
    keyword_rank: float = 0.0
    rrf: float = 0.0
    words: None = None
    occurrences: float = 1.0
    whole_task: float = 1.0

    def __getitem__(self, name: str) -> float | None:
        """Returns a number by its name; what a young bank has not seen yet is 0."""
        if name == "usual_reward":
            return None
        return float(getattr(self, name, 0.0))


def _row(number: int, run: AgentRun) -> _Row:
    calls = [(trace.tool, trace.status == "error") for trace in run.traces]
    return _Row(
        id=UUID(int=number),
        task=run.task,
        plan=run.plan,
        effects=effects(calls, run.plan),
        source=str(number),
        reward=float(run.success),
        failed=float(not run.success),
        proven=float(run.success),
        step_count=float(len(calls)),
        error_count=float(sum(failed for _, failed in calls)),
        plan_steps=float(len(run.plan)),
    )


def _remembered(row: _Row) -> RememberedCase:
    return RememberedCase(str(row.id), row.task, row.plan, "failure" if row.failed else "success")


def _ranks(values: Floats, newest: np.ndarray) -> Floats:
    ranks = np.empty(len(values))
    ranks[newest[np.argsort(-values[newest], kind="stable")]] = np.arange(1, len(values) + 1)
    return ranks


@dataclass(frozen=True, slots=True)
class _Shown:
    """One slate as an agent's memory: it shows that, and keeps nothing of what comes after."""

    cases: tuple[RememberedCase, ...]

    async def retrieve(self, task: str) -> RetrievedCases:  # noqa: ARG002 (the protocol's)
        """Returns the slate."""
        return slate_of(self.cases)

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:  # noqa: ARG002 (as above)
        """Keeps nothing."""
        return None


@dataclass(frozen=True, slots=True)
class Played:
    """One test task with one order: whether the agent succeeded, and its steps; a failure counts the budget."""

    task: str
    success: bool
    steps: int


Results = dict[str, list[Played]]
"""By arm, the same tasks in the same order."""


async def play_all(adapter: Adapter, embedder: Embedder, rules: Mapping[str, Rule | None]) -> dict[str, Results]:
    """Returns the results by bank: of the agent's own practice, and of an expert's runs where there are any.

    Raises:
        EnvironmentMissing: this machine lacks what the environment needs.
    """
    found: dict[str, Results] = {}
    async with adapter.environment() as environment:
        world = BudgetedEnvironment(environment, adapter.budget)
        for seed in SEEDS[adapter.name]:
            size = replace(SIZES[adapter.name], seed=seed)
            drawn = [await adapter.tasks(environment, family, size) for family in adapter.families]
            practice = [task for each in drawn for task in each.practice]
            random.Random(seed).shuffle(practice)
            for name, bank in (await _banks(adapter, environment, world, practice, embedder)).items():
                results = found.setdefault(name, {})
                for task in (task for each in drawn for task in each.test):
                    shown = {arm: await bank.slate(task.text, rule, size.k) for arm, rule in rules.items()}
                    for arm, played in (await _played(adapter, world, task, {NOTHING: (), **shown})).items():
                        results.setdefault(arm, []).append(replace(played, task=f"{seed} {played.task}"))
    return found


async def _banks(
    adapter: Adapter, environment: Own, world: BudgetedEnvironment, practice: Sequence[Task], embedder: Embedder
) -> dict[str, Bank]:
    own = [(await play(adapter, world, task, NoMemory())).run for task in practice]
    banks = {"own runs": [run for run in own if run is not None]}
    if shown := await adapter.demonstrations(environment, practice):
        banks["expert's runs"] = list(shown)
    return {name: await Bank.of(runs, embedder, adapter.min_similarity) for name, runs in banks.items()}


async def _played(
    adapter: Adapter, world: BudgetedEnvironment, task: Task, slates: Mapping[str, tuple[RememberedCase, ...]]
) -> dict[str, Played]:
    """Plays the task with each slate, once where several arms show the same: world and agent have no other luck."""
    known: dict[tuple[RememberedCase, ...], Played] = {}
    for cases in slates.values():
        if cases not in known:
            episode = (await play(adapter, world, task, _Shown(cases))).episode
            known[cases] = Played(task.id, episode.success, episode.steps if episode.success else adapter.budget)
    return {arm: known[cases] for arm, cases in slates.items()}


def adapters(dsn: str) -> list[Adapter]:
    """Returns the worlds that keep score, the quickest first."""
    return [ClerksOffice(), DatabaseOperator(dsn), ScienceWorld()]
