"""Part of a statement that reads a profile's active procedures, each with its nearness to a text and to its parts."""

from typing import Any

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    CTE,
    Boolean,
    ColumnElement,
    Float,
    Integer,
    Text,
    Uuid,
    and_,
    any_,
    case,
    cast,
    column,
    exists,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, REGCONFIG
from sqlalchemy.types import TypeEngine

from retrieval.database.parameters import AGENT_KEY, MODEL, USER_SUB, given_rows, parameter
from retrieval.database.rows import Expression
from retrieval.tables.cases import case_tools, cases
from retrieval.tables.columns import SEARCH_CONFIGURATION
from retrieval.tables.procedures import procedures

FEWEST_WORDS = 3
"""Least divisor of a share of common words, so that one common word alone is no match."""
NAMING = range(2, 5)
"""Numbers of words that a query may have to be compared with the names of tools."""


def near(*, pgvector: bool, by_attributes: bool, by_tool: bool) -> CTE:
    """Returns a CTE of the profile's active procedures with their similarity to each text, or share of common words.

    It has a row for each text, by its ``number`` from 1, and each procedure.

    Args:
        pgvector: true if Postgres compares the vectors; else the parameters have the similarities, if they are known.
        by_attributes: true to leave out procedures without the attributes that the statement's parameters name.
        by_tool: true to mark procedures whose tools' names have all words of a text that ``naming`` marks.
    """
    queries, known = _queries(pgvector=pgvector), _known(pgvector=pgvector, by_attributes=by_attributes)
    each = known.join(queries, true())
    similarity: Expression
    if pgvector:
        distance = known.c.vector.op("<=>", return_type=Float())(queries.c.vector)
        as_long = func.vector_dims(known.c.vector) == func.vector_dims(queries.c.vector)
        similarity = case((as_long, 1 - distance))
    else:
        columns = {"numbers": column("number", Integer), "ids": column("id", Uuid)}
        measured = given_rows({**columns, "similarities": column("similarity", Float)}, "measured")
        each = each.outerjoin(measured, and_(measured.c.id == known.c.id, measured.c.number == queries.c.number))
        similarity = measured.c.similarity
    own = func.tsvector_to_array(known.c.search_vector)
    shared = (
        select(func.count())
        .select_from(func.unnest(own).alias("word"))
        .where(literal_column("word") == any_(queries.c.words))
    )
    fewer = func.least(func.cardinality(own), func.cardinality(queries.c.words))
    share = cast(shared.scalar_subquery(), Float) / func.greatest(fewer, FEWEST_WORDS)
    named: ColumnElement[bool] = false()
    if by_tool:
        of_tools, length = _words_of_tools(queries, known), func.cardinality(queries.c.words)
        each = each.outerjoin(of_tools, and_(of_tools.c.id == known.c.id, of_tools.c.number == queries.c.number))
        named = func.coalesce(and_(length >= NAMING.start, of_tools.c.words == length), false())
    return (
        select(
            queries.c.number,
            known.c.id,
            known.c.version,
            similarity.label("similarity"),
            case((similarity.is_(None), share)).label("share"),
            named.label("named"),
            queries.c.words.is_(None).label("without_text"),
        )
        .select_from(each)
        .cte("near")
        .prefix_with("MATERIALIZED")
    )


def _queries(*, pgvector: bool) -> CTE:
    """Returns a CTE of the texts, each with its number from 1 and its words, and its vector if Postgres compares it."""
    arrays: dict[str, TypeEngine[Any]] = {"texts": Text(), "naming": Boolean()}
    if pgvector:
        arrays["vectors"] = Text()
    texts = given_rows({name: column(name, kind) for name, kind in arrays.items()}, "texts", numbered="number")
    columns = [texts.c.number, lexemes(texts.c.texts).label("words"), texts.c.naming]
    if pgvector:
        columns.append(cast(texts.c.vectors, Vector).label("vector"))
    return select(*columns).cte("queries").prefix_with("MATERIALIZED")


def _known(*, pgvector: bool, by_attributes: bool) -> CTE:
    """Returns a CTE of the active procedures, with vectors that are unpacked once and not again for each text."""
    names = ("id", "version", "search_vector", "source_case_ids")
    columns: list[ColumnElement[Any]] = [procedures.c[name] for name in names]
    if pgvector:
        vector = case((procedures.c.embedding_model == MODEL, cast(procedures.c.embedding, Vector())))
        columns.append(vector.label("vector"))
    conditions = (*active(), *(_have_attributes() if by_attributes else ()))
    return select(*columns).where(*conditions).cte("known").prefix_with("MATERIALIZED")


def _words_of_tools(queries: CTE, known: CTE) -> CTE:
    """Returns a CTE of the number of a text's words that stand in names of tools that worked in a procedure's runs.

    It has a row for each text that ``naming`` marks, by its ``number``, and each procedure with such a word, by its id.
    """
    mine = (case_tools.c.user_sub == USER_SUB, case_tools.c.agent_key == AGENT_KEY)
    tools = select(case_tools.c.tool).where(*mine).distinct().cte("tools").prefix_with("MATERIALIZED")
    separate = func.regexp_replace(tools.c.tool, "([[:lower:]])([[:upper:]])|[^[:alnum:]]", r"\1 \2", "g")
    spoken = select(tools.c.tool, lexemes(separate).label("words")).cte("spoken").prefix_with("MATERIALIZED")
    each = select(queries.c.number, func.unnest(queries.c.words).label("word")).where(queries.c.naming).cte("each")
    worked = (
        select(each.c.number, each.c.word, case_tools.c.case_id)
        .select_from(each.join(spoken, each.c.word == any_(spoken.c.words)))
        .join(case_tools, and_(*mine, case_tools.c.tool == spoken.c.tool))
        .where(case_tools.c.calls > case_tools.c.errors)
        .cte("worked")
        .prefix_with("MATERIALIZED")
    )
    runs = select(known.c.id, func.unnest(known.c.source_case_ids).label("case_id")).cte("runs")
    # in full, which takes no nested loop: a plan for any user takes both for small, and would compare all with all
    joined = runs.outerjoin(worked, worked.c.case_id == runs.c.case_id, full=True)
    return (
        select(runs.c.id, worked.c.number, func.count(worked.c.word.distinct()).label("words"))
        .select_from(joined)
        .where(runs.c.id.is_not(None), worked.c.number.is_not(None))
        .group_by(runs.c.id, worked.c.number)
        .cte("words_of_tools")
    )


def lexemes(text: ColumnElement[str]) -> ColumnElement[list[str]]:
    """Returns an SQL expression for the stems of a text's words, as an array."""
    vector = func.to_tsvector(cast(literal(SEARCH_CONFIGURATION), REGCONFIG), text)
    return func.tsvector_to_array(vector, type_=ARRAY(Text))


def _have_attributes() -> list[ColumnElement[bool]]:
    """Returns the conditions on a procedure's attributes; a parameter of None, or an empty list, allows all."""
    attributes = {name: parameter(name, Text) for name in ("task_type", "domain", "query_kind")}
    least, most = (parameter(name, Float) for name in ("min_success_score", "max_duration_ms"))
    tags, kinds, outcomes = (parameter(n, ARRAY(Text)) for n in ("tags", "kinds", "outcomes"))
    # any of the runs behind it may pass the filters; without a filter all procedures do, also those of pruned runs
    unfiltered = func.cardinality(tags) + func.cardinality(kinds) + func.cardinality(outcomes) == 0
    from_run = exists().where(
        cases.c.user_sub == USER_SUB,
        cases.c.id == any_(procedures.c.source_case_ids),
        cases.c.tags.contains(tags),
        or_(func.cardinality(kinds) == 0, cases.c.kind == any_(kinds)),
        or_(func.cardinality(outcomes) == 0, cases.c.outcome == any_(outcomes)),
    )
    return [
        *(
            or_(value.is_(None), func.lower(procedures.c[name]) == func.lower(value))
            for name, value in attributes.items()
        ),
        or_(least.is_(None), procedures.c.success_score >= least),
        or_(most.is_(None), procedures.c.duration_ms <= most),
        or_(unfiltered, from_run),
    ]


def active() -> tuple[ColumnElement[bool], ...]:
    """Returns the conditions that select the profile's active procedures, in the form that their index serves."""
    return (
        procedures.c.user_sub == USER_SUB,
        procedures.c.agent_key == AGENT_KEY,
        procedures.c.status == literal_column("'active'"),
    )
