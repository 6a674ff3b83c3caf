"""The one statement of a recall is planned well for any user, not for the one whose rows were counted alone."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from retrieval.database.fast_path import FastStatement, Record
from retrieval.recall.memory import KINDS
from retrieval.recall.statement import BY_WORDS, SAMPLED_BY_WORDS
from tests.cluster import one_postgres
from tests.plans import compared_in_vain
from tests.service import AGENT, User, alice, service  # noqa: F401 - the fixtures of the service

SESSIONS, TURNS = 20, 40


@one_postgres
@pytest.mark.parametrize("statement", [BY_WORDS, SAMPLED_BY_WORDS], ids=["exact", "sampled"])
async def test_the_plan_for_any_user_compares_no_memory_with_each_other(
    statement: FastStatement[Record],
    alice: User,  # noqa: F811 - the fixture
):
    for number in range(SESSIONS):
        turns = [{"role": "user", "content": f"The piano number {number} {turn}"} for turn in range(TURNS)]
        body = {"agent": AGENT, "turns": turns}
        assert (await alice.http.post(f"/v1/sessions/{uuid4()}/turns", json=body)).status_code == 200
    asked = {"user_sub": alice.name, "authorised_at": datetime.now(UTC), "agent_key": AGENT, "query": "the piano 7"}
    more = {"kinds": list(KINDS), "session": None, "as_of": None, "least": 2.0, "top_k": 10}
    size = {"texts": SESSIONS * TURNS, "sample": 200}
    url = str(alice.service.settings.database_url)
    assert await compared_in_vain(url, statement, {**asked, **more, **size}) < SESSIONS * TURNS * 4
