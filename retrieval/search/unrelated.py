"""Finds candidates that are unrelated to the query; they are never shown, however few others there are.

The nearest case need not be near. A case that the model's calibration calls unrelated stays only if it shares a rare
word with the query: a name or an error message that the model cannot place.
"""

from collections.abc import Sequence
from functools import cache
from typing import Protocol
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Float,
    Uuid,
    any_,
    bindparam,
    cast,
    func,
    literal,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSQUERY

from retrieval.database.fast_path import FastConnection, FastStatement
from retrieval.database.parameters import USER_SUB, may_enter
from retrieval.search.candidates import BankRow, Search, is_candidate
from retrieval.search.keywords import each_word, has_words
from retrieval.search.scope import Scope, ready
from retrieval.tables.cases import cases

SAMPLE = 1_000
"""Cases, the newest, among which it is counted how rare a word is."""
RARE_PART = 0.1
"""Largest share of them that has a rare word."""
RARE_CASES = 3
"""Number of cases that may always share a rare word, for in a small bank rarity cannot be counted."""


class Sharing(Protocol):
    """A case that shares a rare word with the query."""

    id: UUID


async def unrelated(
    connection: FastConnection, search: Search, rows: Sequence[BankRow], floor: float | None
) -> frozenset[UUID]:
    """Returns the candidates less similar to the query than ``floor`` that share no rare word with it.

    Empty without a floor; a case without a similarity, which keywords alone found, is never among them.
    """
    if floor is None:
        return frozenset()
    far = [row for row in rows if is_candidate(row) and row.similarity is not None and row.similarity < floor]
    worded = [row.id for row in far if row.keyword_rank is not None]
    parameters = {"agent_key": search.agent_key, "query": search.query, "case_ids": worded}
    sharing = await connection.all(_sharing(Scope.of(search.agent_key)), parameters) if worded else []
    return frozenset(row.id for row in far) - {each.id for each in sharing}


@cache
def _sharing(scope: Scope) -> FastStatement[Sharing]:
    """Returns the statement for those of the cases that share a rare word with the query."""
    words = select(each_word().label("word")).cte("words")
    newest = select(cases.c.search_vector).where(*ready(scope)).order_by(cases.c.created_at.desc(), cases.c.id.desc())
    sample = newest.limit(literal_column(str(SAMPLE))).cte("sample").prefix_with("MATERIALIZED")
    count = select(func.count()).select_from(sample)
    having = count.where(has_words(sample.c.search_vector, cast(words.c.word, TSQUERY))).scalar_subquery()
    most: ColumnElement[float] = func.greatest(
        literal_column(str(RARE_CASES), Float), literal_column(str(RARE_PART), Float) * count.scalar_subquery()
    )
    together = cast(func.string_agg(words.c.word, literal(" | ")), TSQUERY)
    rare = select(together.label("words")).where(having <= most).cte("rare").prefix_with("MATERIALIZED")
    these = cast(bindparam("case_ids", type_=ARRAY(Uuid)), ARRAY(Uuid))
    return FastStatement.of(
        select(cases.c.id)
        .select_from(cases.join(rare, true()))
        .where(may_enter(), cases.c.user_sub == USER_SUB, cases.c.id == any_(these))
        .where(has_words(cases.c.search_vector, rare.c.words))
    )
