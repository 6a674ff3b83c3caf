"""The cases that a retrieval ranks, and the settings of their profile: parts of one statement, see ``queries``."""

from enum import Enum, auto
from typing import Any

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    CTE,
    REAL,
    Boolean,
    ColumnElement,
    Float,
    ScalarSelect,
    Text,
    Uuid,
    any_,
    bindparam,
    case,
    cast,
    column,
    exists,
    func,
    literal,
    literal_column,
    null,
    or_,
    select,
    true,
    union,
)
from sqlalchemy.dialects.postgresql import ARRAY, REGCONFIG, TSQUERY

from retrieval.schema import (
    SEARCH_CONFIGURATION,
    SHARED,
    case_embeddings,
    cases,
    decisions,
    policies,
    procedures,
    profiles,
)

OVERRIDES = ("full_text_weight", "semantic_weight", "rrf_k")
"""Settings of the profile that a request may override."""
SETTINGS = (
    "enabled",
    "k",
    "embedding_model",
    "approximate",
    "learning",
    "explore",
    "canary",
    "rewrite",
    "procedures",
    "procedure_similarity",
    *OVERRIDES,
)
"""Settings of the profile that stand beside each candidate."""

STATE = ("serving", "serving_since", "candidate", "candidate_since", "usual_reward", "has_procedures")
"""What else stands there: version and time of the live policies, the mean reward of the LATEST decisions, and
whether there is a procedure to tell.
"""
LATEST = 100

USER_SUB = bindparam("user_sub", type_=Text)
AGENT_KEY = bindparam("agent_key", type_=Text)
MODEL = bindparam("model", type_=Text)


def _texts(name: str) -> ColumnElement[Any]:
    return cast(bindparam(name, type_=ARRAY(Text)), ARRAY(Text))


class Nearness(Enum):
    """Where the distances of a whole bank come from."""

    IN_DATABASE = auto()
    MEASURED = auto()
    UNKNOWN = auto()


def profile_settings() -> CTE:
    """Returns the settings of the profile, overridden by those of the request that are not NULL; no profile, no row."""
    overridden = [
        func.coalesce(cast(bindparam(name), Float), cast(profiles.c[name], Float)).label(name) for name in OVERRIDES
    ]
    state: dict[str, Any] = {
        "serving": _live("serving", policies.c.version),
        "serving_since": _live("serving", policies.c.created_at),
        "candidate": _live("candidate", policies.c.version),
        "candidate_since": _live("candidate", policies.c.created_at),
        "usual_reward": _usual_reward(),
        "has_procedures": exists().where(
            procedures.c.user_sub == USER_SUB,
            procedures.c.agent_key == AGENT_KEY,
            procedures.c.status == literal_column("'active'"),
        ),
    }
    columns = [profiles.c[name] for name in SETTINGS if name not in OVERRIDES]
    return (
        select(*columns, *overridden, *(state[name].label(name) for name in STATE))
        .where(profiles.c.user_sub == USER_SUB, profiles.c.agent_key == AGENT_KEY)
        .cte("profile")
        .prefix_with("MATERIALIZED")
    )


def _usual_reward() -> ScalarSelect[Any]:
    latest = (
        select(decisions.c.reward)
        .where(decisions.c.user_sub == USER_SUB, decisions.c.agent_key == AGENT_KEY, decisions.c.reward.is_not(None))
        .order_by(decisions.c.id.desc())
        .limit(literal_column(str(LATEST)))
        .subquery()
    )
    return select(func.avg(latest.c.reward)).scalar_subquery()


def _live(status: str, column: ColumnElement[Any]) -> ScalarSelect[Any]:
    """The column of the profile's policy of this status; none whose shared prior has since been erased."""
    return (
        select(column)
        .where(
            policies.c.user_sub == USER_SUB,
            policies.c.agent_key == AGENT_KEY,
            policies.c.status == literal_column(f"'{status}'"),
            prior_stands(),
        )
        .scalar_subquery()
    )


def prior_stands() -> ColumnElement[bool]:
    """Returns whether the shared prior that a policy began at, if any, is still there.

    A prior of that version that is newer than the policy is another one: it has taken the number of an erased one.
    """
    prior = policies.alias("prior")
    there = exists().where(
        prior.c.user_sub == SHARED,
        prior.c.agent_key == SHARED,
        prior.c.version == policies.c.prior_version,
        prior.c.created_at <= policies.c.created_at,
    )
    return or_(policies.c.prior_version.is_(None), there)


def bank(nearness: Nearness, profile: CTE) -> CTE:
    """Returns the profile's ready cases that pass the filters, each with its distance and its keyword relevance."""
    words = _words()
    near = _NEAR[nearness](profile)
    return (
        select(cases.c.id, _relevance(words).label("relevance"), near.c.distance)
        .select_from(cases.join(words, true()).outerjoin(near, near.c.case_id == cases.c.id))
        .where(
            *_ready(),
            _passes("tags", cases.c.tags.contains(_texts("tags"))),
            _passes("kinds", cases.c.kind == any_(_texts("kinds"))),
            _passes("outcomes", cases.c.outcome == any_(_texts("outcomes"))),
        )
        .cte("bank")
        .prefix_with("MATERIALIZED")  # else each sort computes the distances again, and carries the vectors along
    )


def _words() -> CTE:
    """The query for full text: any of its words will do, for a question rarely shares all its words with a case."""
    every_word = func.plainto_tsquery(cast(literal(SEARCH_CONFIGURATION), REGCONFIG), bindparam("query", type_=Text))
    any_word = cast(func.replace(cast(every_word, Text), "&", "|"), TSQUERY)
    return select(any_word.label("words")).cte("words").prefix_with("MATERIALIZED")


def _matches(words: CTE) -> ColumnElement[bool]:
    return cases.c.search_vector.op("@@", return_type=Boolean())(words.c.words)


def _relevance(words: CTE) -> ColumnElement[Any]:
    return case((_matches(words), func.ts_rank(cases.c.search_vector, words.c.words)))


def _ready() -> tuple[ColumnElement[bool], ...]:
    return (
        cases.c.user_sub == USER_SUB,
        cases.c.agent_key == AGENT_KEY,
        cases.c.status == literal_column("'ready'"),
    )


def _passes(name: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition, unless its list is empty."""
    return or_(func.cardinality(_texts(name)) == 0, condition)


def bank_of_halves(profile: CTE, half: int) -> CTE:
    """Returns the profile's ``half`` nearest cases, by the HNSW index, and its ``half`` most relevant ones.

    They come with distance and relevance as in ``bank``. Among them the first of either half have the ranks that
    they have in the whole bank, so that the fusion is the same.
    """
    words, near = _words(), _near_in_database(profile)
    depth: ColumnElement[int] = literal_column(str(half))
    function = func.casebank_nearest(USER_SUB, AGENT_KEY, MODEL, vector(), profile.c.approximate, depth)
    indexed = function.table_valued(column("id", Uuid), name="indexed").render_derived().lateral()
    nearest = select(indexed.c.id).select_from(profile.join(indexed, profile.c.embedding_model == MODEL))
    matching = (
        select(cases.c.id)
        .select_from(cases.join(words, _matches(words)))
        .where(*_ready())
        .order_by(func.ts_rank(cases.c.search_vector, words.c.words).desc(), cases.c.id.desc())
        .limit(depth)
        .cte("matching")
    )
    either = union(nearest, select(matching.c.id)).cte("either")
    # subqueries, for a join might read the whole profile: the planner takes it for as small as the others
    relevance = select(_relevance(words)).where(cases.c.user_sub == USER_SUB, cases.c.id == either.c.id)
    distance = select(near.c.distance).where(near.c.case_id == either.c.id)
    return (
        select(
            either.c.id,
            relevance.correlate(either).scalar_subquery().label("relevance"),
            distance.correlate(either).scalar_subquery().label("distance"),
        )
        .cte("bank")
        .prefix_with("MATERIALIZED")
    )


def _near_in_database(profile: CTE) -> CTE:
    """Distances by pgvector.

    A bank that is being re-embedded has vectors of two spaces: only the one that the profile has chosen counts.
    """
    distance = case_embeddings.c.embedding.op("<=>")(cast(vector(), Vector))
    return (
        select(case_embeddings.c.case_id, distance.label("distance"))
        .select_from(case_embeddings.join(profile, profile.c.embedding_model == MODEL))
        .where(
            case_embeddings.c.user_sub == USER_SUB,
            case_embeddings.c.agent_key == AGENT_KEY,
            case_embeddings.c.model == MODEL,
        )
        .cte("near")
    )


def vector() -> ColumnElement[Any]:
    """Returns the query's vector as the statement takes it."""
    return cast(bindparam("vector", type_=ARRAY(REAL)), ARRAY(REAL))


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
