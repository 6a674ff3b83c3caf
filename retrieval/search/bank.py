"""Parts of the search statement (``candidates``): the cases to rank, each with its distance and keyword relevance."""

from datetime import datetime
from enum import Enum, auto
from uuid import UUID

from sqlalchemy import (
    CTE,
    REAL,
    ColumnElement,
    Float,
    FromClause,
    Select,
    Text,
    Uuid,
    and_,
    any_,
    case,
    cast,
    column,
    func,
    literal_column,
    not_,
    null,
    or_,
    select,
    true,
    union,
)
from sqlalchemy.dialects.postgresql import ARRAY

from retrieval.database.parameters import AGENT_KEY, MODEL, USER_SUB, given_rows, parameter, vector
from retrieval.search.keywords import in_memory, keywords, matches, relevance
from retrieval.search.scope import Scope, in_scope, ready
from retrieval.tables.cases import case_embeddings, cases
from retrieval.tables.kinds import FAILED, FAILED_BELOW
from retrieval.tables.profiles import profiles

_FINISHED = cases.c.outcome != literal_column("'aborted'")
"""Condition that leaves out aborted runs."""


class Nearness(Enum):
    """Origin of the distances between the query and a bank's cases: pgvector, this process, or none are known."""

    IN_DATABASE = auto()
    MEASURED = auto()
    UNKNOWN = auto()


def bank(nearness: Nearness, profile: CTE, scope: Scope) -> tuple[CTE, CTE]:
    """Returns a CTE of the ready cases that pass the filters, each with its distance and its keyword relevance.

    The second CTE has the query's words, see ``keywords``.
    """
    if nearness is Nearness.IN_DATABASE:
        near = _near_in_database(profile, scope)
    elif nearness is Nearness.MEASURED:
        columns = {"case_ids": column("case_id", Uuid), "distances": column("distance", Float)}
        near = select(*given_rows(columns, "given").c).cte("near")
    else:
        near = select(cast(null(), Uuid).label("case_id"), cast(null(), Float).label("distance")).cte("near")
    near = near.prefix_with("MATERIALIZED")  # else the join hashes vectors, on disk if many
    filtered = (
        select(cases.c.id, in_memory(cases.c.search_vector).label("search_vector"), proven().label("proven"))
        .where(
            *ready(scope),
            _passes("tags", cases.c.tags.contains(parameter("tags", ARRAY(Text)))),
            _passes("kinds", cases.c.kind == any_(parameter("kinds", ARRAY(Text)))),
            _passes("outcomes", cases.c.outcome == any_(parameter("outcomes", ARRAY(Text)))),
            or_(_FINISHED, literal_column("'aborted'") == any_(parameter("outcomes", ARRAY(Text)))),
        )
        .cte("filtered")
        .prefix_with("MATERIALIZED")
    )
    words, each_word = keywords(select(filtered.c.id, filtered.c.search_vector))
    relevant = relevance(filtered.c.search_vector, words).label("relevance")
    # In full, which takes no nested loop: a plan for any user takes both for small, and would compare all with all
    beside = filtered.join(words, true()).outerjoin(near, near.c.case_id == filtered.c.id, full=True)
    measured = (
        select(filtered.c.id, filtered.c.proven, relevant, near.c.distance)
        .select_from(beside)
        .cte("measured")
        .prefix_with("MATERIALIZED")  # else each sort computes distances and relevance again
    )
    return select(measured).where(measured.c.id.is_not(None)).cte("bank"), each_word


def failed() -> ColumnElement[bool]:
    """Returns the condition that the case's run failed, as ``kinds.has_failed`` defines it."""
    outcomes: list[ColumnElement[str]] = [literal_column(f"'{outcome}'") for outcome in FAILED]
    is_judged = and_(cases.c.reward.is_not(None), cases.c.reward_source != literal_column("'heuristic'"))
    return case((is_judged, cases.c.reward < literal_column(str(FAILED_BELOW))), else_=cases.c.outcome.in_(outcomes))


def newest_run() -> ColumnElement[datetime]:
    """Returns the time at which the newest run of a case was retained: its own, or a repeat that was merged into it."""
    return func.greatest(cases.c.created_at, cases.c.repeated_at)  # greatest ignores NULL


def proven() -> ColumnElement[bool]:
    """Returns the condition that a case is a proven success, see ``writer.rewards.proof``.

    A proven failure holds back no success: it is ranked by its score, and a slate has at most one failure.
    """
    return and_(cases.c.proven, not_(failed()))


def _passes(name: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """Returns the condition of a filter; it is true if the filter's list, the parameter ``name``, is empty."""
    return or_(func.cardinality(parameter(name, ARRAY(Text))) == 0, condition)


def bank_of_halves(profile: CTE, half: int) -> tuple[CTE, CTE]:
    """Returns a CTE of the profile's ``half`` nearest cases, by the HNSW index, and its ``half`` most relevant ones.

    As many of the most relevant proven cases are added, which the index cannot search separately. The columns are those
    of ``bank``. The first cases by distance and by relevance have the same ranks as in the whole bank, so that the
    fusion is the same. The second CTE has the query's words.
    """
    searched = select(cases.c.id, in_memory(cases.c.search_vector).label("search_vector"))
    words, each_word = keywords(searched.where(*ready(), _FINISHED))
    near = _near_in_database(profile, Scope.ONE_AGENT)
    depth: ColumnElement[int] = literal_column(str(half))
    function = func.casebank_nearest(
        USER_SUB, AGENT_KEY, MODEL, cast(vector(), ARRAY(REAL)), profile.c.approximate, depth
    )
    indexed = function.table_valued(column("id", Uuid), name="indexed").render_derived().lateral()
    nearest = select(indexed.c.id).select_from(profile.join(indexed, profile.c.embedding_model == MODEL))
    matching, proven_matching = _most_relevant(words, depth), _most_relevant(words, depth, proven())
    either = union(nearest, matching, proven_matching).cte("either")
    # subqueries, for a join might read the whole profile: the planner takes it for as small as the others
    this = cases.c.user_sub == USER_SUB, cases.c.id == either.c.id
    relevant, trusted = select(relevance(cases.c.search_vector, words)).where(*this), select(proven()).where(*this)
    distance = select(near.c.distance).where(near.c.case_id == either.c.id)
    finished = select(_FINISHED).where(*this)
    found = (
        select(
            either.c.id,
            trusted.correlate(either).scalar_subquery().label("proven"),
            relevant.correlate(either).scalar_subquery().label("relevance"),
            distance.correlate(either).scalar_subquery().label("distance"),
        )
        .where(finished.correlate(either).scalar_subquery())
        .cte("bank")
        .prefix_with("MATERIALIZED")
    )
    return found, each_word


def _most_relevant(words: CTE, depth: ColumnElement[int], *only: ColumnElement[bool]) -> Select[UUID]:
    relevant = (
        select(cases.c.id)
        .select_from(cases.join(words, matches(cases.c.search_vector, words)))
        .where(*ready(), _FINISHED, *only)
        .order_by(relevance(cases.c.search_vector, words).desc(), cases.c.id.desc())
        .limit(depth)
        .subquery()
    )
    return select(relevant.c.id)


def _near_in_database(profile: CTE, scope: Scope) -> CTE:
    """Returns a CTE of the cases' distances from the query, computed by pgvector.

    A bank that is being re-embedded has vectors of two models: only those of the profile's chosen model are compared.
    """
    once = select(vector()).scalar_subquery()  # else it is converted again for each case
    distance = case_embeddings.c.embedding.op("<=>")(once)
    embeddings: FromClause = case_embeddings
    if scope is Scope.ONE_AGENT:
        embeddings = case_embeddings.join(profile, profile.c.embedding_model == MODEL)
    return (
        select(case_embeddings.c.case_id, distance.label("distance"))
        .select_from(embeddings)
        .where(
            case_embeddings.c.user_sub == USER_SUB,
            in_scope(scope, case_embeddings.c.agent_key, profiles.c.embedding_model == MODEL),
            case_embeddings.c.model == MODEL,
            func.vector_dims(case_embeddings.c.embedding) == func.vector_dims(once),  # or the one spoils them all
        )
        .cte("near")
    )
