"""The one statement of a recall is planned well for any user, not for the one whose rows were counted alone."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg

from retrieval.recall.memory import KINDS
from retrieval.recall.statement import BY_WORDS
from tests.app.conftest import AGENT, User, alice, service  # noqa: F401 - the fixtures of the service

SESSIONS, TURNS = 20, 40


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "'{" + ",".join(map(str, value)) + "}'"
    return "'" + str(value).replace("'", "''") + "'"


async def plan_for_anybody(url: str, parameters: dict[str, Any]) -> str:
    """What the plan that serves every user did for one, with what it compared in vain."""
    connection = await asyncpg.connect(url.replace("+asyncpg", ""), server_settings={"jit": "off"})
    try:
        await connection.execute("SET ROLE casebank_service; SET plan_cache_mode = force_generic_plan")
        prepared = await connection.prepare(BY_WORDS.sql)
        types = ", ".join(each.name for each in prepared.get_parameters())
        await connection.execute(f"PREPARE asked ({types}) AS {BY_WORDS.sql}")
        given = ", ".join(literal(each) for each in BY_WORDS.arguments(parameters))
        return "\n".join(
            row[0] for row in await connection.fetch(f"EXPLAIN (ANALYZE, TIMING OFF) EXECUTE asked({given})")
        )
    finally:
        await connection.close()


async def test_the_plan_for_any_user_compares_no_memory_with_each_other(
    alice: User,  # noqa: F811 - the fixture
):
    for number in range(SESSIONS):
        turns = [{"role": "user", "content": f"The piano number {number} {turn}"} for turn in range(TURNS)]
        body = {"agent": AGENT, "turns": turns}
        assert (await alice.http.post(f"/v1/sessions/{uuid4()}/turns", json=body)).status_code == 200
    asked = {"user_sub": alice.name, "authorised_at": datetime.now(UTC), "agent_key": AGENT, "query": "the piano 7"}
    more = {"kinds": list(KINDS), "session": None, "as_of": None, "least": 2.0, "top_k": 10}
    plan = await plan_for_anybody(str(alice.service.settings.database_url), {**asked, **more})
    in_vain = [int(found) for found in re.findall(r"Rows Removed by Join Filter: (\d+)", plan)]
    assert sum(in_vain) < SESSIONS * TURNS * 4, plan
