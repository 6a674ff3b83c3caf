"""Retrieve: embed the query, find candidates in one statement, order them, and log the decision."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import uuid_utils.compat as uuids
from numpy.typing import NDArray
from prometheus_client import Counter

from policy import default, features
from retrieval.context import MemoryContext, Remembered, memory_context
from retrieval.database import Database
from retrieval.decisions import log_decision
from retrieval.diversity import entry, pick
from retrieval.errors import EmbedderError, TextNotEmbeddable
from retrieval.hot import HotConnection
from retrieval.ports import Embedder
from retrieval.queries import Measured, Search, candidates, vectors
from retrieval.stages import stage

RETRIEVALS = Counter("casebank_retrievals_total", "Retrievals by the mode that answered", ["mode"])
HITS = Counter("casebank_retrieval_hits_total", "Retrievals that returned at least one case")
CONTEXT_TOKENS = Counter("casebank_context_tokens_total", "Tokens added to prompts by memory_context")


@dataclass(frozen=True, slots=True)
class Question:
    """What a backend asks before it acts."""

    search: Search
    k: int | None = None
    token_budget: int = 1500
    min_similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One place of the slate: the case as it was read, what the policy knew of it, and why it is there."""

    row: Any
    propensity: float
    score: float
    posterior: float
    why: str


@dataclass(frozen=True, slots=True)
class Slate:
    """The answer to a question, as it was logged."""

    retrieval_id: UUID
    choices: list[Choice]
    context: MemoryContext
    mode: str
    policy_version: str = default.VERSION
    degraded: list[str] = field(default_factory=list)


class LargeProfiles:
    """The profiles that were last seen in the HNSW index, at most ``capacity`` of them, the latest."""

    def __init__(self, capacity: int = 10_000) -> None:
        self._capacity = capacity
        self._seen: OrderedDict[tuple[str, str], None] = OrderedDict()

    def __contains__(self, profile: tuple[str, str]) -> bool:
        return profile in self._seen

    def learn(self, profile: tuple[str, str], *, large: bool) -> None:
        """Remembers the profile, or forgets it."""
        self._seen.pop(profile, None)
        if large:
            self._seen[profile] = None
        if len(self._seen) > self._capacity:
            self._seen.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Reader:
    """The read side: where the cases are, and what turns a query into a vector."""

    database: Database
    embedder: Embedder
    pgvector: bool = True
    """Whether the database compares vectors; otherwise the process does."""
    _large: LargeProfiles = field(default_factory=LargeProfiles)
    """Learnt from each answer: only the first retrieve of a large profile is exact, and slow."""

    async def retrieve(self, user_sub: str, authorised_at: datetime, question: Question) -> Slate:
        """Returns up to k cases that may help, and logs the decision with the probability of each place.

        Whatever is missing, the rest answers: ``mode`` says what carried the search (hybrid, keyword, off or
        empty) and ``degraded`` what was missing. An unknown agent has an empty slate.

        Raises:
            UserErased, DatabaseUnavailable: see Database.as_user.
        """
        with stage("retrieve"):
            search, degraded = await self._embed(question.search)
            async with self.database.hot(user_sub, authorised_at) as connection:
                with stage("retrieve.candidates"):
                    rows, search = await self._candidates(connection, search, degraded)
                with stage("retrieve.rank"):
                    slate, table = _rank(rows, replace(question, search=search), degraded)
                with stage("retrieve.log"):
                    await _log(connection, search, slate, table)
        _count(slate)
        return slate

    async def _embed(self, search: Search) -> tuple[Search, list[str]]:
        with stage("retrieve.embed"):
            try:
                (vector,) = await self.embedder.embed([search.query])
            except TextNotEmbeddable:
                return search, ["query_not_embeddable"]
            except EmbedderError:
                return search, ["embedder"]
        return replace(search, vector=vector.tolist(), model=self.embedder.model), []

    async def _candidates(
        self,
        connection: HotConnection,
        search: Search,
        degraded: list[str],
    ) -> tuple[Sequence[Any], Search]:
        profile = connection.user_sub, search.agent_key
        if search.vector is not None and not self.pgvector:
            degraded.append("pgvector")
            search = replace(search, measured=await _measure(connection, search))
        elif profile in self._large:
            search = replace(search, large=True)
        rows = await connection.all(*candidates(search))
        self._large.learn(profile, large=bool(rows) and rows[0].approximate)
        return rows, search


async def _measure(connection: HotConnection, search: Search) -> Measured:
    """Computes the cosine distances that the database cannot."""
    rows = await connection.all(*vectors(search))
    if not rows:
        return Measured([], [])
    bank = np.array([row.embedding for row in rows], dtype=np.float32)  # (cases, dimension)
    distances = 1 - bank @ np.array(search.vector, dtype=np.float32)
    return Measured([row.case_id for row in rows], distances.tolist())


@dataclass(frozen=True, slots=True)
class _Table:
    """The candidates as the policy saw them, for the log."""

    ids: list[UUID]
    features: NDArray[np.float32]
    scores: NDArray[np.float32]


def _rank(rows: Sequence[Any], question: Question, degraded: list[str]) -> tuple[Slate, _Table]:
    settings = rows[0] if rows else None
    found = [row for row in rows if row.id is not None] if settings and settings.enabled else []
    if settings and found and question.search.vector is not None and settings.embedding_model != question.search.model:
        degraded.append("embedding_model")
    seen = features.matrix(found)
    scores, posterior = default.scores(seen), default.posterior_mean(seen)
    order = [index for index in np.argsort(-scores, kind="stable") if _near_enough(found[index], question)]
    k = question.k or (settings.k if settings else 0)
    entries = (entry(found[i].task, found[i].plan, failed=bool(found[i].failed)) for i in order)
    choices = [
        Choice(found[i], 1.0, float(scores[i]), float(posterior[i]), _why(found[i], float(posterior[i])))
        for i in (order[picked] for picked in pick(entries, k))
    ]
    told = [Remembered(c.row.task, c.row.plan, c.row.outcome, c.row.reward) for c in choices]
    slate = Slate(
        retrieval_id=uuids.uuid7(),
        choices=choices,
        context=memory_context(told, question.token_budget),
        mode=_mode(rows, found, degraded),
        degraded=degraded,
    )
    return slate, _Table([row.id for row in found], seen, scores)


def _near_enough(row: Any, question: Question) -> bool:
    """Returns whether the case passes the question's similarity threshold; without vectors there is none to pass."""
    if question.min_similarity is None or question.search.vector is None:
        return True
    return row.similarity is not None and row.similarity >= question.min_similarity


def _mode(rows: Sequence[Any], found: Sequence[Any], degraded: list[str]) -> str:
    if rows and not rows[0].enabled:
        return "off"
    if not found:
        return "empty"
    return "keyword" if set(degraded) - {"pgvector"} else "hybrid"


def _why(row: Any, posterior: float) -> str:
    """Returns in one line which half found the case, and what its record is."""
    halves = [
        f"{name} match {rank}"
        for name, rank in (("semantic", row.semantic_rank), ("keyword", row.keyword_rank))
        if rank is not None
    ]
    record = f"{row.outcome}, expected reward {posterior:.2f}"
    kept = "; kept as a warning: this run failed" if row.failed else ""
    return f"{' and '.join(halves)}; {record}{kept}"


async def _log(connection: HotConnection, search: Search, slate: Slate, table: _Table) -> None:
    """Writes the decision and its slots in one statement."""
    await connection.value(
        log_decision(),
        {
            "id": slate.retrieval_id,
            "agent_key": search.agent_key,
            "query": search.query,
            "mode": slate.mode,
            "degraded": slate.degraded,
            "policy_version": slate.policy_version,
            "feature_version": features.VERSION,
            "seed": slate.retrieval_id.int & 0x7FFF_FFFF_FFFF_FFFF,
            "candidate_ids": table.ids,
            "features": table.features.ravel().tolist(),
            "scores": table.scores.tolist(),
            "tokens": slate.context.tokens,
            "case_ids": [choice.row.id for choice in slate.choices],
            "propensities": [choice.propensity for choice in slate.choices],
        },
    )


def _count(slate: Slate) -> None:
    RETRIEVALS.labels(slate.mode).inc()
    HITS.inc(bool(slate.choices))
    CONTEXT_TOKENS.inc(slate.context.tokens)
