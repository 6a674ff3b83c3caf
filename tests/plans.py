"""What the plan of a fast statement that serves any user does, after Postgres has planned it five times for one."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import asyncpg

from app.postgres.pools import dsn
from retrieval.database.fast_path import FastStatement


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "'{" + ",".join(map(str, value)) + "}'"
    return "'" + str(value).replace("'", "''") + "'"


async def plan(url: str, statement: FastStatement[Any], parameters: Mapping[str, object]) -> str:
    connection = await asyncpg.connect(dsn(url), server_settings={"jit": "off"})
    try:
        await connection.execute("SET ROLE casebank_service; SET plan_cache_mode = force_generic_plan")
        prepared = await connection.prepare(statement.sql)
        types = ", ".join(_type(each) for each in prepared.get_parameters())
        await connection.execute(f"PREPARE asked ({types}) AS {statement.sql}")
        given = ", ".join(literal(each) for each in statement.arguments(parameters))
        rows = await connection.fetch(f"EXPLAIN (ANALYZE, TIMING OFF, VERBOSE) EXECUTE asked({given})")
    finally:
        await connection.close()
    return "\n".join(row[0] for row in rows)


async def compared_in_vain(url: str, statement: FastStatement[Any], parameters: Mapping[str, object]) -> int:
    """How many pairs of rows the plan that serves every user compared for one that do not belong together."""
    removed = re.findall(r"Rows Removed by Join Filter: (\d+)", await plan(url, statement, parameters))
    return sum(int(found) for found in removed)


def _type(of: asyncpg.Type) -> str:
    return of.name if of.schema == "pg_catalog" else f"{of.schema}.{of.name}"
