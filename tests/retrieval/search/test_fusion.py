"""Reciprocal rank fusion, by the formula, on a bank that is written out."""

from collections.abc import Sequence

import asyncpg
from sqlalchemy import Boolean, Float, Integer, column, literal, select, values
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from app.postgres.pools import dsn
from retrieval.search.fusion import fused

BANK = [(1, 0.1, None, True), (2, 0.2, 0.9, True), (3, None, 0.5, True), (4, 0.3, None, True), (5, None, None, True)]
FULL_TEXT, SEMANTIC, K = 2.0, 1.0, 50.0


async def fusion(url: str, *, half: int, pool: int, given: Sequence[tuple[object, ...]] = BANK) -> list[asyncpg.Record]:
    columns = column("id", Integer), column("distance", Float), column("relevance", Float), column("proven", Boolean)
    bank = select(values(*columns, name="given").data(given)).cte("bank")
    weights = {"full_text_weight": FULL_TEXT, "semantic_weight": SEMANTIC, "rrf_k": K}
    profile = select(*(literal(value, Float).label(name) for name, value in weights.items())).cte("profile")
    best = fused(bank, profile, half=half, pool=pool)
    statement = select(best).order_by(best.c.rrf.desc(), best.c.id.desc())
    sql = str(statement.compile(dialect=PGDialect_asyncpg(), compile_kwargs={"literal_binds": True}))
    connection = await asyncpg.connect(dsn(url))
    rows = await connection.fetch(sql)
    await connection.close()
    return rows


async def test_a_case_counts_by_its_rank_in_either_half_and_who_is_in_none_is_left_out(database_url: str):
    rows = await fusion(database_url, half=10, pool=10)
    found = {row["id"]: (row["semantic_rank"], row["keyword_rank"], round(row["rrf"], 12)) for row in rows}
    assert found == {
        2: (2, 1, round(FULL_TEXT / (K + 1) + SEMANTIC / (K + 2), 12)),
        3: (None, 2, round(FULL_TEXT / (K + 2), 12)),
        1: (1, None, round(SEMANTIC / (K + 1), 12)),
        4: (3, None, round(SEMANTIC / (K + 3), 12)),
    }
    assert [row["id"] for row in rows] == [2, 3, 1, 4]


async def test_a_rank_below_its_half_contributes_nothing_and_the_pool_keeps_the_best(database_url: str):
    rows = await fusion(database_url, half=1, pool=10)
    assert {row["id"]: round(row["rrf"], 12) for row in rows} == {
        2: round(FULL_TEXT / (K + 1), 12),
        1: round(SEMANTIC / (K + 1), 12),
    }
    assert [row["id"] for row in await fusion(database_url, half=10, pool=2)] == [2, 3]


FLOOD = [(number, number / 1_000, 1.0 - number / 1_000, number > 40) for number in range(1, 61)]
"""Forty that nothing proves, ahead of twenty that are proven."""


async def test_a_flood_of_unproven_cases_drives_no_proven_one_out(database_url: str):
    rows = await fusion(database_url, half=10, pool=12, given=FLOOD)
    assert [row["id"] for row in rows] == [1, 2, 3, *range(41, 50)]
    assert (rows[3]["semantic_rank"], rows[3]["keyword_rank"]) == (41, 41)


async def test_where_there_is_but_one_kind_the_pool_is_the_best_of_all(database_url: str):
    alike = [(*row[:3], False) for row in FLOOD]
    assert [row["id"] for row in await fusion(database_url, half=20, pool=12, given=alike)] == list(range(1, 13))
