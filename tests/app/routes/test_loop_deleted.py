"""A retrieval keeps no copy of a memory that was deleted or edited while it was under way."""

from collections.abc import Awaitable, Callable

import asyncpg
import pytest

from app.postgres.pools import dsn
from tests.app.routes import test_facts, test_knowledge
from tests.cluster import one_postgres
from tests.service import AGENT, User
from tests.writer.blocked import begin_blocked

TASK = "paint the harbour wall"
SAID = "The harbour wall is to be painted blue."


async def session(alice: User) -> tuple[str, dict[str, object]]:
    await test_facts.say(alice, "chat", SAID, role="assistant")
    return "/v1/sessions/chat", {"session_id": "chat"}


async def recalled_turn(alice: User) -> tuple[str, dict[str, object]]:
    await test_facts.say(alice, "chat", SAID, role="assistant")
    await alice.settle("memories")
    return "/v1/sessions/chat", {"recall": True}


async def fact(alice: User) -> tuple[str, dict[str, object]]:
    return f"/v1/facts/{(await test_facts.written(alice, SAID))['fact_id']}", {}


async def recalled_fact(alice: User) -> tuple[str, dict[str, object]]:
    path, _ = await fact(alice)
    await alice.settle("memories")
    return path, {"recall": True}


async def knowledge(alice: User) -> tuple[str, dict[str, object]]:
    entry = await test_knowledge.written(alice, text=SAID)
    await alice.settle("memories")
    return f"/v1/knowledge/{entry['knowledge_id']}", {"recall": True}


@one_postgres
@pytest.mark.parametrize(
    ("memory", "method"),
    [
        *((each, "DELETE") for each in (session, recalled_turn, fact, recalled_fact, knowledge)),
        (knowledge, "PUT"),
    ],
)
async def test_a_retrieval_that_read_a_memory_before_its_deletion_or_edit_keeps_no_text_of_it(
    alice: User, database_url: str, memory: Callable[[User], Awaitable[tuple[str, dict[str, object]]]], method: str
):
    await alice.retain(TASK, plan=["paint it"])
    await alice.settle()
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"procedures": 0})
    path, asked = await memory(alice)
    kept = await alice.retrieve(TASK, tool_memory=True, **asked)
    owner = await asyncpg.connect(dsn(database_url))
    async with owner.transaction():
        await owner.execute("LOCK TABLE case_tools")  # without procedures, a retrieval reads them last
        asking = await begin_blocked(owner, alice.retrieve(TASK, tool_memory=True, **asked))
        body = None if method == "DELETE" else {**test_knowledge.ENTRY, "text": "The harbour wall stays as it is."}
        assert (await alice.http.request(method, path, json=body)).is_success
    found = await asking
    await owner.close()
    assert SAID in kept["memory_context"]
    assert SAID in found["memory_context"]
    after = await alice.retrieve(TASK, tool_memory=True, **asked)
    told = {str(row.id): row.told is not None for row in await alice.rows(TOLD)}
    assert [told[each["retrieval_id"]] for each in (kept, found, after)] == [False, False, True]


TOLD = "SELECT id, told FROM decisions WHERE user_sub = :user_sub"
