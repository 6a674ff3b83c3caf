"""The statements that read the bank, for a hot connection, which brings the user; each has a total order."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    CTE,
    REAL,
    ColumnClause,
    ColumnElement,
    Float,
    Select,
    Text,
    Uuid,
    and_,
    any_,
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
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, REGCONFIG, TSQUERY

from retrieval.database import entered
from retrieval.hot import HotStatement
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


def candidates(search: Search) -> tuple[HotStatement, dict[str, Any]]:
    """Returns the one statement of a retrieval and its parameters.

    It answers the profile's settings beside each of its best POOL cases. A profile without cases still answers
    one row, whose ``id`` is NULL; no profile answers none. Ties go to the newer case.

    Hybrid search by reciprocal rank fusion (Cormack, Clarke, Büttcher 2009), as SOURCES row A3 has it:
    ``full_text_weight/(rrf_k + keyword_rank) + semantic_weight/(rrf_k + semantic_rank)``, where a missing
    rank contributes 0. Both halves scan the profile's own rows, so the vector half is exact.
    """
    parameters: dict[str, Any] = {
        "agent_key": search.agent_key,
        "query": search.query,
        "tags": list(search.filters.tags),
        "kinds": list(search.filters.kinds),
        "outcomes": list(search.filters.outcomes),
        **{name: getattr(search, name) for name in OVERRIDES},
    }
    if search.measured is not None:
        measured = {"case_ids": search.measured.case_ids, "distances": search.measured.distances}
        return _STATEMENTS[Nearness.MEASURED], parameters | measured
    if search.vector is not None:
        return _STATEMENTS[Nearness.IN_DATABASE], parameters | {"vector": search.vector, "model": search.model}
    return _STATEMENTS[Nearness.UNKNOWN], parameters


class Nearness(Enum):
    """Where the distances come from."""

    IN_DATABASE = auto()
    MEASURED = auto()
    UNKNOWN = auto()


OVERRIDES = ("full_text_weight", "semantic_weight", "rrf_k")
"""Settings of the profile that a request may override."""

_USER_SUB = bindparam("user_sub", type_=Text)
_AGENT_KEY = bindparam("agent_key", type_=Text)
_MODEL = bindparam("model", type_=Text)


def _texts(name: str) -> ColumnElement[Any]:
    return cast(bindparam(name, type_=ARRAY(Text)), ARRAY(Text))


def _statement(nearness: Nearness) -> Select[*tuple[Any, ...]]:
    """Built once: a statement of this size takes longer to build than to run."""
    profile = _profile()
    fused = _fused(_ranked(_bank(nearness, profile)), profile)
    settings = [profile.c[name] for name in ("enabled", "k", "embedding_model", *OVERRIDES)]
    return (
        select(*settings, *fused.c, *_contents())
        .select_from(
            profile.outerjoin(fused, true()).outerjoin(
                cases,
                and_(cases.c.user_sub == _USER_SUB, cases.c.id == fused.c.id),
            ),
        )
        .where(_may_enter())
        .order_by(fused.c.rrf.desc(), fused.c.id.desc())
    )


def _may_enter() -> ColumnElement[bool]:
    """Enters as the user before the first row is read: a subquery that needs no row is asked before all others."""
    return select(entered().c.entered).scalar_subquery()


def _profile() -> CTE:
    overridden = [
        func.coalesce(cast(bindparam(name), Float), cast(profiles.c[name], Float)).label(name) for name in OVERRIDES
    ]
    return (
        select(profiles.c.enabled, profiles.c.k, profiles.c.embedding_model, *overridden)
        .where(profiles.c.user_sub == _USER_SUB, profiles.c.agent_key == _AGENT_KEY)
        .cte("profile")
        .prefix_with("MATERIALIZED")
    )


def _bank(nearness: Nearness, profile: CTE) -> CTE:
    """The profile's ready cases that pass the filters, each with its distance and its keyword relevance."""
    # Any word of the query will do: a question rarely shares all its words with a case.
    every_word = func.plainto_tsquery(cast(literal(SEARCH_CONFIGURATION), REGCONFIG), bindparam("query", type_=Text))
    any_word = cast(func.replace(cast(every_word, Text), "&", "|"), TSQUERY)
    words = select(any_word.label("words")).cte("words").prefix_with("MATERIALIZED")
    near = _NEAR[nearness](profile)
    relevance = case(
        (cases.c.search_vector.op("@@")(words.c.words), func.ts_rank(cases.c.search_vector, words.c.words)),
    )
    return (
        select(cases.c.id, relevance.label("relevance"), near.c.distance)
        .select_from(cases.join(words, true()).outerjoin(near, near.c.case_id == cases.c.id))
        .where(
            cases.c.user_sub == _USER_SUB,
            cases.c.agent_key == _AGENT_KEY,
            cases.c.status == literal_column("'ready'"),
            _passes("tags", cases.c.tags.contains(_texts("tags"))),
            _passes("kinds", cases.c.kind == any_(_texts("kinds"))),
            _passes("outcomes", cases.c.outcome == any_(_texts("outcomes"))),
        )
        .cte("bank")
        .prefix_with("MATERIALIZED")  # else each sort computes the distances again, and carries the vectors along
    )


def _passes(name: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition, unless its list is empty."""
    return or_(func.cardinality(_texts(name)) == 0, condition)


def _near_in_database(profile: CTE) -> CTE:
    """Distances by pgvector.

    A bank that is being re-embedded has vectors of two spaces: only the one that the profile has chosen counts.
    """
    vector = cast(cast(bindparam("vector", type_=ARRAY(REAL)), ARRAY(REAL)), Vector)
    return (
        select(case_embeddings.c.case_id, case_embeddings.c.embedding.op("<=>")(vector).label("distance"))
        .select_from(case_embeddings.join(profile, profile.c.embedding_model == _MODEL))
        .where(
            case_embeddings.c.user_sub == _USER_SUB,
            case_embeddings.c.agent_key == _AGENT_KEY,
            case_embeddings.c.model == _MODEL,
        )
        .cte("near")
    )


def _near_measured(_profile: CTE) -> CTE:
    given = (
        func.unnest(
            cast(bindparam("case_ids", type_=ARRAY(Uuid)), ARRAY(Uuid)),
            cast(bindparam("distances", type_=ARRAY(Float)), ARRAY(Float)),
        )
        .table_valued(column("case_id", Uuid), column("distance", Float), name="given")
        .render_derived()
    )
    return select(given.c.case_id, given.c.distance).cte("near")


def _near_unknown(_profile: CTE) -> CTE:
    return select(cast(null(), Uuid).label("case_id"), cast(null(), Float).label("distance")).cte("near")


_NEAR = {
    Nearness.IN_DATABASE: _near_in_database,
    Nearness.MEASURED: _near_measured,
    Nearness.UNKNOWN: _near_unknown,
}


def stored(vector: list[float]) -> ColumnElement[Any]:
    """Returns the vector as a value for ``case_embeddings.embedding``, whichever type that column has."""
    return cast(literal(vector, ARRAY(REAL)), ARRAY(REAL))


def cosine_distance(vector: list[float]) -> ColumnElement[float]:
    """Returns the distance, 0 to 2, of each stored vector from this one; needs pgvector."""
    return case_embeddings.c.embedding.op("<=>", return_type=Float())(cast(stored(vector), Vector(len(vector))))


def vectors(search: Search) -> tuple[HotStatement, dict[str, Any]]:
    """Returns the statement for every vector of the profile in the model's space, if that is the profile's space."""
    return _VECTORS, {"agent_key": search.agent_key, "model": search.model}


def _vectors() -> Select[*tuple[Any, ...]]:
    mine = (case_embeddings.c.user_sub == _USER_SUB, case_embeddings.c.agent_key == _AGENT_KEY)
    return (
        select(case_embeddings.c.case_id, cast(case_embeddings.c.embedding, ARRAY(REAL)).label("embedding"))
        .join(
            profiles,
            and_(
                profiles.c.user_sub == _USER_SUB,
                profiles.c.agent_key == _AGENT_KEY,
                profiles.c.embedding_model == _MODEL,
            ),
        )
        .where(_may_enter(), *mine, case_embeddings.c.model == _MODEL)
        .order_by(case_embeddings.c.case_id)
    )


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
        return case((rank_column <= _HALF, term), else_=literal_column("0.0"))

    rrf = (part("full_text_weight", "keyword_rank") + part("semantic_weight", "semantic_rank")).label("rrf")
    return (
        select(
            ranked.c.id,
            (literal_column("1") - ranked.c.distance).label("similarity"),
            ranked.c.semantic_rank,
            ranked.c.keyword_rank,
            rrf,
        )
        .select_from(ranked.join(profile, true()))
        .where(or_(ranked.c.semantic_rank <= _HALF, ranked.c.keyword_rank <= _HALF))
        .order_by(literal_column("rrf").desc(), ranked.c.id.desc())
        .limit(literal_column(str(POOL)))
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
    failed = case((cases.c.outcome.in_([literal_column("'failure'"), literal_column("'aborted'")]), 1.0), else_=0.0)
    return [*(cases.c[name] for name in names), cast(age_days, Float).label("age_days"), failed.label("failed")]


_HALF: ColumnClause[int] = literal_column(str(HALF))
_STATEMENTS = {nearness: HotStatement.of(_statement(nearness)) for nearness in Nearness}
_VECTORS = HotStatement.of(_vectors())
