"""The cases that a retrieval ranks, and the settings of their profile: parts of one statement, see ``queries``."""

from enum import Enum, auto

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    CTE,
    Boolean,
    ColumnElement,
    Float,
    Text,
    Uuid,
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
    union,
)
from sqlalchemy.dialects.postgresql import ARRAY, REGCONFIG, TSQUERY

from retrieval.database.parameters import AGENT_KEY, MODEL, USER_SUB, vector
from retrieval.database.rows import Expression
from retrieval.schema import (
    SEARCH_CONFIGURATION,
    case_embeddings,
    cases,
)


def _texts(name: str) -> Expression:
    return cast(bindparam(name, type_=ARRAY(Text)), ARRAY(Text))


class Nearness(Enum):
    """Where the distances of a whole bank come from."""

    IN_DATABASE = auto()
    MEASURED = auto()
    UNKNOWN = auto()


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


def _relevance(words: CTE) -> ColumnElement[float]:
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
