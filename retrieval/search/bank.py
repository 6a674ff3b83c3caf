"""The cases that a retrieval ranks, and the settings of their profile: parts of one statement, see ``candidates``."""

from enum import Enum, auto
from uuid import UUID

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    CTE,
    REAL,
    Boolean,
    ColumnElement,
    Float,
    FromClause,
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
    not_,
    null,
    or_,
    select,
    true,
    union,
)
from sqlalchemy.dialects.postgresql import ARRAY, REGCONFIG, TSQUERY

from retrieval.database.parameters import AGENT_KEY, MODEL, USER_SUB, vector
from retrieval.database.rows import Expression
from retrieval.kinds import FAILED
from retrieval.schema import (
    SEARCH_CONFIGURATION,
    case_embeddings,
    cases,
    profiles,
)
from retrieval.search.scope import Scope, in_scope, ready

_FINISHED = cases.c.outcome != literal_column("'aborted'")
"""A run that was broken off shows nothing: it is found where the request asks for such runs, and nowhere else."""


def _texts(name: str) -> Expression:
    return cast(bindparam(name, type_=ARRAY(Text)), ARRAY(Text))


_EVEN = cast(literal_column("'{.1,.1,.1,.1}'"), ARRAY(REAL))
"""Words count alike, whatever their label."""
LONG = 64
"""Different words, without stop words, up to which the length of a text is no matter."""


class Nearness(Enum):
    """Where the distances of a whole bank come from."""

    IN_DATABASE = auto()
    MEASURED = auto()
    UNKNOWN = auto()


def bank(nearness: Nearness, profile: CTE, scope: Scope) -> CTE:
    """Returns the ready cases that pass the filters, each with its distance and its keyword relevance."""
    words = _words()
    near = _NEAR[nearness](profile, scope).prefix_with("MATERIALIZED")  # else the join hashes vectors, on disk if many
    return (
        select(cases.c.id, proven().label("proven"), _relevance(words).label("relevance"), near.c.distance)
        .select_from(cases.join(words, true()).outerjoin(near, near.c.case_id == cases.c.id))
        .where(
            *ready(scope),
            _passes("tags", cases.c.tags.contains(_texts("tags"))),
            _passes("kinds", cases.c.kind == any_(_texts("kinds"))),
            _passes("outcomes", cases.c.outcome == any_(_texts("outcomes"))),
            or_(_FINISHED, literal_column("'aborted'") == any_(_texts("outcomes"))),
        )
        .cte("bank")
        .prefix_with("MATERIALIZED")  # else each sort computes the distances again, and carries the vectors along
    )


def _words() -> CTE:
    """The query for full text: any of its words will do, for a question rarely shares all its words with a case."""
    any_word = cast(func.replace(cast(query_words(), Text), "&", "|"), TSQUERY)
    return select(any_word.label("words")).cte("words").prefix_with("MATERIALIZED")


def query_words() -> ColumnElement[str]:
    """Returns the words of the parameter ``query``, all of them, as Postgres searches for them."""
    return func.plainto_tsquery(cast(literal(SEARCH_CONFIGURATION), REGCONFIG), bindparam("query", type_=Text))


def has_words(searched: ColumnElement[object], words: ColumnElement[object]) -> ColumnElement[bool]:
    """Returns whether what is searched matches the query."""
    return searched.op("@@", return_type=Boolean())(words)


def _matches(words: CTE) -> ColumnElement[bool]:
    return has_words(cases.c.search_vector, words.c.words)


def _relevance(words: CTE) -> ColumnElement[float]:
    """The relevance of a text that has some of the words; NULL of others.

    By itself ts_rank grows with every word of the query that a text has, so that one with all the words in the world is
    the best answer to everything. A text of more than LONG different words is worth as much less as it is longer; how
    often a word comes counts little beyond the first time.
    """
    length = func.greatest(func.length(cases.c.search_vector), literal_column(str(LONG)))
    return case((_matches(words), func.ts_rank(_EVEN, cases.c.search_vector, words.c.words) / length))


def failed() -> ColumnElement[bool]:
    """Returns whether the run says itself that it failed."""
    outcomes: list[ColumnElement[str]] = [literal_column(f"'{outcome}'") for outcome in FAILED]
    return cases.c.outcome.in_(outcomes)


def proven() -> ColumnElement[bool]:
    """Returns whether a case is a proven success, see ``writer.rewards.proof``.

    A failure, proven or not, is no reason to hold a success back: it stands by its score, and one on a slate at most.
    """
    return and_(cases.c.proven, not_(failed()))


def _passes(name: str, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """The condition, unless its list is empty."""
    return or_(func.cardinality(_texts(name)) == 0, condition)


def bank_of_halves(profile: CTE, half: int) -> CTE:
    """Returns the profile's ``half`` nearest cases, by the HNSW index, and its ``half`` most relevant ones.

    Of the proven ones there are as many again by relevance; the index cannot look for those alone. They come as in
    ``bank``. Among them the first of either half have the ranks that they have in the whole bank, so that the fusion
    is the same.
    """
    words, near = _words(), _near_in_database(profile, Scope.ONE_AGENT)
    depth: ColumnElement[int] = literal_column(str(half))
    function = func.casebank_nearest(USER_SUB, AGENT_KEY, MODEL, vector(), profile.c.approximate, depth)
    indexed = function.table_valued(column("id", Uuid), name="indexed").render_derived().lateral()
    nearest = select(indexed.c.id).select_from(profile.join(indexed, profile.c.embedding_model == MODEL))
    matching, proven_matching = _most_relevant(words, depth), _most_relevant(words, depth, proven())
    either = union(nearest, matching, proven_matching).cte("either")
    # subqueries, for a join might read the whole profile: the planner takes it for as small as the others
    this = cases.c.user_sub == USER_SUB, cases.c.id == either.c.id
    relevance, trusted = select(_relevance(words)).where(*this), select(proven()).where(*this)
    distance = select(near.c.distance).where(near.c.case_id == either.c.id)
    finished = select(_FINISHED).where(*this)
    return (
        select(
            either.c.id,
            trusted.correlate(either).scalar_subquery().label("proven"),
            relevance.correlate(either).scalar_subquery().label("relevance"),
            distance.correlate(either).scalar_subquery().label("distance"),
        )
        .where(finished.correlate(either).scalar_subquery())
        .cte("bank")
        .prefix_with("MATERIALIZED")
    )


def _most_relevant(words: CTE, depth: ColumnElement[int], *only: ColumnElement[bool]) -> Select[UUID]:
    found = (
        select(cases.c.id)
        .select_from(cases.join(words, _matches(words)))
        .where(*ready(), _FINISHED, *only)
        .order_by(_relevance(words).desc(), cases.c.id.desc())
        .limit(depth)
        .subquery()
    )
    return select(found.c.id)


def _near_in_database(profile: CTE, scope: Scope) -> CTE:
    """Distances by pgvector.

    A bank that is being re-embedded has vectors of two spaces: only the one that the profile has chosen counts.
    """
    distance = case_embeddings.c.embedding.op("<=>")(cast(vector(), Vector))
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
            func.vector_dims(case_embeddings.c.embedding) == func.cardinality(vector()),  # or the one spoils them all
        )
        .cte("near")
    )


def _near_measured(_profile: CTE, _scope: Scope) -> CTE:
    given = (
        func.unnest(
            cast(bindparam("case_ids", type_=ARRAY(Uuid)), ARRAY(Uuid)),
            cast(bindparam("distances", type_=ARRAY(Float)), ARRAY(Float)),
        )
        .table_valued(column("case_id", Uuid), column("distance", Float), name="given")
        .render_derived()
    )
    return select(given.c.case_id, given.c.distance).cte("near")


def _near_unknown(_profile: CTE, _scope: Scope) -> CTE:
    return select(cast(null(), Uuid).label("case_id"), cast(null(), Float).label("distance")).cte("near")


_NEAR = {
    Nearness.IN_DATABASE: _near_in_database,
    Nearness.MEASURED: _near_measured,
    Nearness.UNKNOWN: _near_unknown,
}
