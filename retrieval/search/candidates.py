"""Searches the bank: statements for a fast connection, which adds the user, and the reader of their candidates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from inspect import get_annotations
from typing import Any, Protocol
from uuid import UUID

import numpy as np
from cachetools import LRUCache
from sqlalchemy import REAL, ColumnElement, and_, cast, func, select, true
from sqlalchemy.dialects.postgresql import ARRAY

from policy.channels import searchable
from retrieval.database.fast_path import FastConnection, FastStatement, Record
from retrieval.database.parameters import MODEL, USER_SUB, may_enter, vector_text
from retrieval.search.bank import Nearness, bank, bank_of_halves, failed, newest_run
from retrieval.search.fusion import fused
from retrieval.search.keywords import in_memory
from retrieval.search.profile_settings import (
    OVERRIDES,
    SETTINGS,
    STATE,
    ProfileSettings,
    profile_settings,
)
from retrieval.search.scope import Scope, in_scope
from retrieval.search.shared_words import shared_words
from retrieval.tables.cases import INDEXED_DIMENSIONS, case_embeddings, cases
from retrieval.tables.kinds import CaseKind, RewardSource, RunOutcome
from retrieval.tables.profiles import profiles

POOL = 32
"""Largest number of candidates that the fusion keeps."""
HALF = 64
"""Number of the first ranks by vector, and by keyword, that count in the fusion."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of cases by tags, kinds and outcomes; an empty list allows all cases."""

    tags: Sequence[str] = ()
    kinds: Sequence[str] = ()
    outcomes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class CaseSearch:
    """A search for cases in one profile, or in all of the user's; a weight of None is the profile's."""

    agent_key: str
    """Agent of the profile; ``ALL_AGENTS`` for all agents of the user."""
    query: str
    vector: list[float] | None = None
    model: str = ""
    parts: Sequence[str] = ()
    """Parts of a query that asks for several things; empty if it asks for one."""
    part_vectors: Sequence[list[float]] = ()
    """Vector of each part; empty if the query has no vector."""
    filters: Filters = field(default_factory=Filters)
    full_text_weight: float | None = None
    semantic_weight: float | None = None
    rrf_k: float | None = None


class Candidate(ProfileSettings, Protocol):
    """A row of the search: the profile's settings, and the columns of a case that a slate shows and a policy weighs."""

    id: UUID
    similarity: float | None
    semantic_rank: int | None
    keyword_rank: int | None
    rrf: float
    agent_key: str
    created_at: datetime
    kind: CaseKind
    task: str
    plan: list[str]
    words: bytes | None
    key_id: UUID
    effects: list[str]
    tags: list[str]
    outcome: RunOutcome
    reward: float | None
    reward_source: RewardSource | None
    step_count: int
    error_count: int
    source: str
    occurrences: int
    reuse_count: float
    reuse_reward: float
    terms: bytes
    """Terms of the case's task, as bytes for ``retrieval.database.rows.integers``."""
    moves: bytes
    """Moves of the case's plan, as bytes like ``terms``."""
    proven: bool
    """True if others than the run confirm that it went as it claims, a success or a failure."""
    shares_rare: bool | None
    """True if the case shares rare words with the query, False if only other telling ones, None if no telling word."""
    failed: bool
    newest_run: datetime
    """Time at which the newest run of the case was retained: its own, or a repeat that was merged into it."""


def candidates(
    search: CaseSearch, measured: Mapping[UUID, float] | None = None, *, approximate: bool = False
) -> tuple[FastStatement[Candidate], dict[str, object]]:
    """Returns the statement that searches the candidates of a query, and its parameters.

    The statement returns a row for each of the profile's best POOL cases, with the profile's settings. For a profile
    without cases it returns one row, whose ``id`` is NULL; for an unknown profile no row. Ties go to the newer case. A
    search of all agents is exact.

    Hybrid search by reciprocal rank fusion (Cormack, Clarke, Büttcher 2009), with weights:
    ``full_text_weight/(rrf_k + keyword_rank) + semantic_weight/(rrf_k + semantic_rank)``, where a missing
    rank contributes 0. Keywords and vectors are compared with all of the profile's cases, so the ranks are exact; but a
    large profile's ranks by vector come from the HNSW index, unless there are filters: the index may miss cases that
    pass them.

    ``measured`` are cosine distances of cases from the query by their ids, which this process computed for a database
    without pgvector. ``approximate``: the profile is in the HNSW index, which is to be searched.
    """
    parameters: dict[str, object] = {
        "agent_key": search.agent_key,
        "query": searchable(search.query),
        "tags": list(search.filters.tags),
        "kinds": list(search.filters.kinds),
        "outcomes": list(search.filters.outcomes),
        **{name: getattr(search, name) for name in OVERRIDES},
    }
    scope = Scope.of(search.agent_key)
    if measured is not None:
        given = {"case_ids": list(measured), "distances": list(measured.values())}
        return _statement(scope, Nearness.MEASURED), parameters | given
    if search.vector is not None:
        filtered = search.filters.tags or search.filters.kinds or search.filters.outcomes
        indexed = bool(approximate and not filtered and len(search.vector) in INDEXED_DIMENSIONS)
        statement = _statement(scope, Nearness.IN_DATABASE, indexed=indexed)
        return statement, parameters | {"vector": vector_text(search.vector), "model": search.model}
    return _statement(scope, Nearness.UNKNOWN), parameters


@cache  # built once, when it is first used, for that takes longer than a run
def _statement(scope: Scope, nearness: Nearness, *, indexed: bool = False) -> FastStatement[Candidate]:
    """Returns the statement of ``candidates``; the payload of a case, which is sealed, is not among its columns."""
    profile = profile_settings(scope)
    every, words = bank_of_halves(profile, HALF) if indexed else bank(nearness, profile, scope)
    best = fused(every, profile, half=HALF, pool=POOL)
    numbers = ("terms", "moves")
    names = [name for name in get_annotations(Candidate) if name in cases.c and name not in (*numbers, "id")]
    columns: list[ColumnElement[Any]] = [
        *best.c,
        *(cases.c[name] for name in names),
        *(func.array_send(cases.c[name]).label(name) for name in numbers),  # else each number would be an object
        failed().label("failed"),
        newest_run().label("newest_run"),
    ]
    of_case = and_(cases.c.user_sub == USER_SUB, cases.c.id == best.c.id)
    found = (
        select(*columns, in_memory(cases.c.search_vector).label("search_vector"))
        .join(cases, of_case)
        .cte("found")
        .prefix_with("MATERIALIZED")
    )
    sharing = shared_words(found, words)
    return FastStatement(
        select(
            *(profile.c[name] for name in (*SETTINGS, *STATE)),
            *(found.c[column.name] for column in columns),
            sharing.c.rare.label("shares_rare"),
        )
        .select_from(profile.outerjoin(found, true()).outerjoin(sharing, sharing.c.id == found.c.id))
        .where(may_enter())
        .order_by(found.c.rrf.desc(), found.c.id.desc())
    )


@cache
def vectors(scope: Scope) -> FastStatement[Record]:
    """Returns the statement for the vectors that the parameter ``model`` made of a profile's cases, with their ids.

    A profile that uses another embedding model gives no rows. A search of all agents reads all of the user's
    profiles.
    """
    mine = (case_embeddings.c.user_sub == USER_SUB, in_scope(scope, case_embeddings.c.agent_key))
    of_profile = and_(
        profiles.c.user_sub == USER_SUB,
        profiles.c.agent_key == case_embeddings.c.agent_key,
        profiles.c.embedding_model == MODEL,
    )
    return FastStatement(
        select(case_embeddings.c.case_id, cast(case_embeddings.c.embedding, ARRAY(REAL)).label("embedding"))
        .join(profiles, of_profile)
        .where(may_enter(), *mine, case_embeddings.c.model == MODEL)
        .order_by(case_embeddings.c.case_id)
    )


@dataclass(frozen=True, slots=True)
class CandidateReader:
    """Reads candidates, and remembers which profiles are in the HNSW index: only their first search is exact."""

    _indexed: LRUCache[tuple[str, str], bool] = field(default_factory=lambda: LRUCache(10_000))

    async def read(
        self, connection: FastConnection, search: CaseSearch, *, pgvector: bool
    ) -> tuple[ProfileSettings | None, list[Candidate]]:
        """Returns the settings of the profile, None if there is no such profile yet, and the candidates.

        ``pgvector`` says whether the database compares vectors; otherwise this process does.
        """
        profile = connection.user_sub, search.agent_key
        measured: dict[UUID, float] | None = None
        if search.vector is not None and not pgvector:
            of_bank = await connection.all(
                vectors(Scope.of(search.agent_key)), {"agent_key": search.agent_key, "model": search.model}
            )
            usable = [row for row in of_bank if len(row.embedding) == len(search.vector)]
            bank = np.array([row.embedding for row in usable], dtype=np.float32)  # (cases, dimension)
            distances = 1 - bank @ np.array(search.vector, dtype=np.float32) if usable else bank  # cosine
            measured = dict(zip([row.case_id for row in usable], distances.tolist(), strict=True))
        rows = await connection.all(*candidates(search, measured, approximate=profile in self._indexed))
        self._indexed.pop(profile, None)
        if not rows:
            return None, []
        if rows[0].approximate:
            self._indexed[profile] = True
        return rows[0], [row for row in rows if row.id is not None]
