"""The statements that read the bank; each takes ``user_sub`` first and has a total order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    ARRAY,
    CTE,
    REAL,
    ColumnElement,
    Float,
    Select,
    Text,
    Uuid,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import REGCONFIG, TSQUERY

from retrieval.schema import SEARCH_CONFIGURATION, case_embeddings, cases, profiles

POOL = 32
"""How many candidates the fusion keeps."""
HALF = 64
"""How deep each half, vector and keyword, looks before the fusion."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which cases may be candidates; an empty list lets everything through."""

    tags: Sequence[str] = ()
    kinds: Sequence[str] = ()
    outcomes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """Cosine distances of cases from the query, in two lists of one length."""

    case_ids: list[UUID]
    distances: list[float]


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for in one profile; a weight of None is the profile's own."""

    agent_key: str
    query: str
    vector: list[float] | None = None
    model: str = ""
    filters: Filters = field(default_factory=Filters)
    full_text_weight: float | None = None
    semantic_weight: float | None = None
    rrf_k: float | None = None
    measured: Measured | None = None
    """Distances that were computed outside the database, which then needs no pgvector."""


def candidates(user_sub: str, search: Search) -> Select[*tuple[Any, ...]]:
    """Returns the one statement of a retrieval: the profile's settings beside each of its best POOL cases.

    Hybrid search by reciprocal rank fusion (Cormack, Clarke, Büttcher 2009), as SOURCES row A3 has it:
    ``full_text_weight/(rrf_k + keyword_rank) + semantic_weight/(rrf_k + semantic_rank)``, where a missing
    rank contributes 0. Both halves scan the profile's own rows, so the vector half is exact. Ties go to the
    newer case. A profile without cases still answers one row, whose ``id`` is NULL; no profile answers none.
    """
    profile = _profile(user_sub, search)
    bank = _bank(user_sub, search, profile)
    ranked = _ranked(bank)
    fused = _fused(ranked, profile)
    settings = [
        profile.c[name] for name in ("enabled", "k", "embedding_model", "full_text_weight", "semantic_weight", "rrf_k")
    ]
    return (
        select(*settings, *fused.c, *_contents())
        .select_from(
            profile.outerjoin(fused, literal(value=True)).outerjoin(
                cases,
                and_(cases.c.user_sub == user_sub, cases.c.id == fused.c.id),
            ),
        )
        .order_by(fused.c.rrf.desc(), fused.c.id.desc())
    )


def _profile(user_sub: str, search: Search) -> CTE:
    def setting(name: str) -> ColumnElement[float]:
        return func.coalesce(cast(bindparam(None, getattr(search, name)), Float), profiles.c[name]).label(name)

    return (
        select(
            profiles.c.enabled,
            profiles.c.k,
            profiles.c.embedding_model,
            setting("full_text_weight"),
            setting("semantic_weight"),
            setting("rrf_k"),
        )
        .where(profiles.c.user_sub == user_sub, profiles.c.agent_key == search.agent_key)
        .cte("profile")
        .prefix_with("MATERIALIZED")
    )


def _any_word(query: str) -> ColumnElement[object]:
    """Returns the tsquery that any word of the query satisfies; a question rarely shares all its words with a case."""
    every = func.plainto_tsquery(cast(literal(SEARCH_CONFIGURATION), REGCONFIG), query)
    return cast(func.replace(cast(every, Text), "&", "|"), TSQUERY)


def _bank(user_sub: str, search: Search, profile: CTE) -> CTE:
    """The profile's ready cases that pass the filters, each with its distance and its keyword relevance."""
    words = select(_any_word(search.query).label("words")).cte("words").prefix_with("MATERIALIZED")
    near = _near(user_sub, search, profile)
    relevance = case(
        (cases.c.search_vector.op("@@")(words.c.words), func.ts_rank(cases.c.search_vector, words.c.words)),
    )
    return (
        select(cases.c.id, relevance.label("relevance"), near.c.distance)
        .select_from(
            cases.join(words, literal(value=True)).outerjoin(near, near.c.case_id == cases.c.id),
        )
        .where(
            cases.c.user_sub == user_sub,
            cases.c.agent_key == search.agent_key,
            cases.c.status == "ready",
            *_passing(search.filters),
        )
        .cte("bank")
    )


def _near(user_sub: str, search: Search, profile: CTE) -> CTE:
    """The distance of each case that has a vector in the query's space; no rows without a query vector.

    A bank that is being re-embedded has vectors of two spaces: only the one that the profile has chosen counts.
    """
    if search.measured is not None:
        given = (
            func.unnest(
                cast(literal(search.measured.case_ids, ARRAY(Uuid)), ARRAY(Uuid)),
                cast(literal(search.measured.distances, ARRAY(REAL)), ARRAY(REAL)),
            )
            .table_valued(column("case_id", Uuid), column("distance", Float), name="given")
            .render_derived()
        )
        return select(given.c.case_id, given.c.distance).cte("near")
    if search.vector is None:
        return select(cast(null(), Uuid).label("case_id"), cast(null(), Float).label("distance")).cte("near")
    distance = cosine_distance(search.vector)
    return (
        select(case_embeddings.c.case_id, distance.label("distance"))
        .select_from(case_embeddings.join(profile, profile.c.embedding_model == search.model))
        .where(_space(user_sub, search.agent_key, search.model))
        .cte("near")
    )


def stored(vector: list[float]) -> ColumnElement[Any]:
    """Returns the vector as a value for ``case_embeddings.embedding``, whichever type that column has."""
    return cast(literal(vector, ARRAY(REAL)), ARRAY(REAL))


def cosine_distance(vector: list[float]) -> ColumnElement[float]:
    """Returns the distance, 0 to 2, of each stored vector from this one; needs pgvector."""
    return case_embeddings.c.embedding.op("<=>", return_type=Float())(cast(stored(vector), Vector(len(vector))))


def vectors(user_sub: str, agent_key: str, model: str) -> Select[UUID, list[float]]:
    """Returns the statement for every vector of the profile in the model's space, if that is the profile's space."""
    return (
        select(case_embeddings.c.case_id, cast(case_embeddings.c.embedding, ARRAY(REAL)).label("embedding"))
        .join(
            profiles,
            and_(
                profiles.c.user_sub == user_sub,
                profiles.c.agent_key == agent_key,
                profiles.c.embedding_model == model,
            ),
        )
        .where(_space(user_sub, agent_key, model))
        .order_by(case_embeddings.c.case_id)
    )


def _space(user_sub: str, agent_key: str, model: str) -> ColumnElement[bool]:
    return and_(
        case_embeddings.c.user_sub == user_sub,
        case_embeddings.c.agent_key == agent_key,
        case_embeddings.c.model == model,
    )


def _passing(filters: Filters) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if filters.tags:
        conditions.append(cases.c.tags.contains(list(filters.tags)))
    if filters.kinds:
        conditions.append(cases.c.kind.in_(filters.kinds))
    if filters.outcomes:
        conditions.append(cases.c.outcome.in_(filters.outcomes))
    return conditions


def _ranked(bank: CTE) -> CTE:
    """Gives each case its 1-based rank in either half; NULL where it is not in that half."""

    def rank(by: ColumnElement[object], present: ColumnElement[object]) -> ColumnElement[object]:
        return case((present.is_not(None), func.row_number().over(order_by=[by, bank.c.id.desc()])))

    return select(
        bank.c.id,
        bank.c.distance,
        rank(bank.c.distance.asc().nulls_last(), bank.c.distance).label("semantic_rank"),
        rank(bank.c.relevance.desc().nulls_last(), bank.c.relevance).label("keyword_rank"),
    ).cte("ranked")


def _fused(ranked: CTE, profile: CTE) -> CTE:
    def part(weight: str, rank: str) -> ColumnElement[object]:
        rank_column = ranked.c[rank]
        term = profile.c[weight] / (profile.c.rrf_k + cast(rank_column, Float))
        return case((rank_column <= HALF, term), else_=0.0)

    rrf = (part("full_text_weight", "keyword_rank") + part("semantic_weight", "semantic_rank")).label("rrf")
    return (
        select(
            ranked.c.id,
            (1 - ranked.c.distance).label("similarity"),
            ranked.c.semantic_rank,
            ranked.c.keyword_rank,
            rrf,
        )
        .select_from(ranked.join(profile, literal(value=True)))
        .where(or_(ranked.c.semantic_rank <= HALF, ranked.c.keyword_rank <= HALF))
        .order_by(literal_column("rrf").desc(), ranked.c.id.desc())
        .limit(POOL)
        .cte("fused")
    )


def _contents() -> list[ColumnElement[object]]:
    """What the slate shows and the policy weighs; the sealed payload stays where it is."""
    names = (
        "kind",
        "task",
        "plan",
        "tags",
        "outcome",
        "reward",
        "reward_source",
        "step_count",
        "error_count",
        "occurrences",
        "reuse_count",
        "reuse_reward",
    )
    age_days = func.extract("epoch", func.now() - cases.c.created_at) / 86400.0
    return [*(cases.c[name] for name in names), cast(age_days, Float).label("age_days")]
