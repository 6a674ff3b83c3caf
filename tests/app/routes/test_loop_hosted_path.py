"""The path and body of the hosted-Postgres flow: all agents where none is named, procedures, and rewards."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from tests.app.routes.conftest import STEPS, fill, reuse
from tests.lessons import LEARNED, RECORD
from tests.service import AGENT, User
from writer.run import LearnedProcedure

PATH = "/functions/v1/hybrid-search-context-eng"
FAILED_ONCE = [
    {"tool": "sql", "input": "ALTER TABLE users ADD COLUMN last_name;", "output": "syntax error", "status": "error"},
    {"tool": "sql", "input": "ALTER TABLE users ADD COLUMN last_name text;", "output": "ALTER TABLE"},
]


async def search(user: User, query: str, **more: Any) -> tuple[list[dict[str, Any]], str]:
    answer = await user.http.post(PATH, json={"query": query, **more})
    assert answer.status_code == 200, answer.text
    return answer.json(), answer.headers["X-Casebank-Retrieval-Id"]


def found(memories: list[dict[str, Any]]) -> set[str]:
    return {each["id"] for each in memories}


async def test_it_answers_a_plain_list_of_memories(alice: User):
    (case_id,) = await fill(alice, ["water the garden"], plan=STEPS, tags=["green"])
    ((memory,), _) = await search(alice, "water")
    assert memory.pop("created_dt") == (await alice.case(case_id))["created_at"]
    assert memory == {
        "id": case_id,
        "content": "water the garden",
        "metadata": {"status": "no_failure_detected", "data": None},
        "agent": AGENT,
        "plan": STEPS,
        "outcome": "success",
        "reward": 1.0,
        "tags": ["green"],
    }


async def test_where_no_agent_is_named_all_of_the_users_are_searched_and_nobody_elses(alice: User, bob: User):
    (one,) = await fill(alice, ["water the garden"], agent="gardener")
    (other,) = await fill(alice, ["water the indoor plants"], agent="butler")
    await fill(bob, ["water the garden"], agent="gardener")
    memories, _ = await search(alice, "water the plants")
    assert {each["id"]: each["agent"] for each in memories} == {one: "gardener", other: "butler"}
    memories, _ = await search(alice, "water the plants", agent="butler")
    assert found(memories) == {other}


async def test_the_best_of_all_agents_fill_one_slate_in_which_what_several_did_alike_has_one_place(alice: User):
    for agent in ("a", "b", "c"):
        for plant in ("fern", "rose", "oak", "lily", "mint", "basil"):
            await alice.retain(
                f"water the {plant}", agent=agent, tool_traces=[{"tool": f"water_{plant}", "status": "ok"}]
            )
    await alice.settle()
    memories, _ = await search(alice, "water the rose")
    told = [each["content"] for each in memories]
    assert (len(told), len(set(told)), told[0]) == (4, 4, "water the rose")
    memories, _ = await search(alice, "water the rose", match_count=2)
    assert (len(memories), memories[0]["content"]) == (2, "water the rose")


async def test_an_agent_whose_memory_is_off_is_left_out(alice: User):
    (one,) = await fill(alice, ["water the garden"], agent="gardener")
    await fill(alice, ["water the indoor plants"], agent="butler")
    await alice.http.put("/v1/profiles/butler", json={"enabled": False})
    assert found((await search(alice, "water the plants"))[0]) == {one}
    await alice.http.put("/v1/profiles/gardener", json={"enabled": False})
    assert (await search(alice, "water the plants"))[0] == []


async def test_what_has_nothing_to_do_with_the_query_is_not_answered_whosever_it_is(alice: User):
    await fill(alice, ["restart the web server"], agent="operator")
    await fill(alice, ["rotate the log files of the database"], agent="keeper")
    assert (await search(alice, "bake a chocolate cake"))[0] == []


async def test_a_user_without_an_agent_gets_an_empty_list_that_can_be_rewarded(alice: User):
    memories, retrieval_id = await search(alice, "water")
    assert memories == []
    assert (await alice.feedback(retrieval_id=retrieval_id, reward=1))["retrieval_id"] == retrieval_id


@pytest.mark.parametrize("named", [{}, {"agent": AGENT}])
async def test_a_memory_comes_with_the_procedure_that_its_run_taught(alice: User, named: dict[str, str]):
    task = "Add a last_name column to the users table"
    (case_id,) = await fill(alice, [task], tool_traces=FAILED_ONCE)
    ((memory,), _) = await search(alice, "add a column", **named)
    assert memory["metadata"] == (await alice.case(case_id))["procedure"]
    assert LearnedProcedure.model_validate(memory["metadata"]).data.learned_procedure_steps


async def test_a_procedure_that_was_taken_out_of_use_is_not_answered_any_more(alice: User):
    (case_id,) = await fill(alice, ["Add a last_name column to the users table"], tool_traces=FAILED_ONCE)
    await alice.feedback(case_id=case_id, thumb="down")
    ((memory,), _) = await search(alice, "add a column")
    assert memory["metadata"] == {"status": None, "data": None}


# Rewards


async def test_a_reward_reaches_the_memories_of_every_agent_and_their_procedures(alice: User):
    (lesson,) = await fill(alice, ["Add a last_name column to the users table"], agent="one", tool_traces=FAILED_ONCE)
    (other,) = await fill(alice, ["Add a first_name column to the orders table"], agent="two")
    memories, retrieval_id = await search(alice, "add a column to the table")
    assert found(memories) == {lesson, other}
    await alice.feedback(retrieval_id=retrieval_id, reward=0.25)
    assert await reuse(alice, lesson) == await reuse(alice, other) == (0.5, 0.125)
    used = "SELECT uses, use_reward FROM procedures WHERE user_sub = :user_sub AND level IS NULL"
    assert [tuple(row) for row in await alice.rows(used)] == [(1, 0.25)]


async def test_a_run_of_any_agent_may_say_that_it_began_with_a_search_of_all(alice: User):
    (shown,) = await fill(alice, ["water the garden"], agent="gardener")
    _, retrieval_id = await search(alice, "water the plants")
    run = await alice.retain("water the balcony", agent="butler", retrieval_id=retrieval_id, reward=1.0)
    await alice.settle()
    assert (await alice.case(run))["retrieval_id"] == retrieval_id
    assert await reuse(alice, shown) == (1, 1)
    await alice.feedback(case_id=run, thumb="down")
    assert await reuse(alice, shown) == (1, 0)


async def test_rewards_of_two_searches_that_showed_one_memory_are_both_counted_at_once(alice: User):
    (shown,) = await fill(alice, ["water the garden"], agent="gardener")
    retrieval_ids = [(await search(alice, "water the plants"))[1] for _ in range(6)]
    retrieval_ids += [(await search(alice, "water the plants", agent="gardener"))[1] for _ in range(6)]
    await asyncio.gather(*(alice.feedback(retrieval_id=each, reward=1) for each in retrieval_ids))
    assert await reuse(alice, shown) == (12, 12)


async def test_a_retrieval_of_another_agent_is_refused_all_the_same(alice: User):
    await fill(alice, ["water the garden"], agent="gardener")
    _, retrieval_id = await search(alice, "water the plants", agent="gardener")
    body = {"agent": "butler", "task": "water", "outcome": "success", "retrieval_id": retrieval_id}
    assert (await alice.http.post("/v1/retain", json=body)).status_code == 422


async def test_the_audit_of_such_a_reward_names_no_agent(alice: User):
    await fill(alice, ["water the garden"])
    _, retrieval_id = await search(alice, "water the plants")
    await alice.feedback(retrieval_id=retrieval_id, reward=1)
    entries = (await alice.http.get("/v1/audit")).json()["entries"]
    assert [entry["agent"] for entry in entries if entry["subject_id"] == retrieval_id] == [None]


async def test_no_agents_policy_is_trained_on_a_search_of_all(alice: User):
    await fill(alice, ["water the garden"])
    for _ in range(3):
        _, retrieval_id = await search(alice, "water the plants")
        await alice.feedback(retrieval_id=retrieval_id, reward=1)
    policy = (await alice.http.get("/v1/policy", params={"agent": AGENT})).json()
    assert policy["rewarded_decisions"] == 0
    logged = await alice.rows("SELECT agent_key, policy_version, arm FROM decisions WHERE user_sub = :user_sub")
    assert {(row.agent_key, row.arm) for row in logged} == {("", "default")}


@pytest.mark.parametrize("agent", ["", " " * 201, str(uuid4()) * 6])
async def test_an_agent_that_can_be_none_is_refused(alice: User, agent: str):
    assert (await alice.http.post(PATH, json={"query": "water", "agent": agent})).status_code == 422


# A flow's own memories


async def test_a_memory_that_a_flow_inserts_becomes_a_procedure_of_its_user(alice: User, bob: User):
    memory = {"content": RECORD["semantic_description"], "metadata": LEARNED, "embedding": [0.1, 0.2]}
    kept = await alice.http.post("/rest/v1/context_eng_memories", json=memory)
    assert kept.status_code == 201, kept.text
    await alice.settle()
    ((found_memory,), _) = await search(alice, RECORD["semantic_description"])
    assert (found_memory["id"], found_memory["content"]) == (kept.json()["case_id"], memory["content"])
    assert found_memory["metadata"] == LEARNED
    records = await alice.rows("SELECT record FROM procedures WHERE user_sub = :user_sub")
    assert [row.record for row in records] == [RECORD]
    assert (await search(bob, memory["content"]))[0] == []


async def test_a_list_of_memories_is_stored_one_by_one_and_answered_as_a_list(alice: User):
    """As n8n's node for a hosted Postgres inserts rows; a field that is JSON arrives as a text from its form."""
    learned = {"content": RECORD["semantic_description"], "metadata": json.dumps(LEARNED)}
    rows = [learned, {"content": "add a column", "metadata": {"status": "no_failure_detected"}}]
    for _ in range(2):  # the same key keeps each of them once
        kept = await alice.http.post("/rest/v1/context_eng_memories", json=rows, headers={"Idempotency-Key": "flow-7"})
        assert kept.status_code == 201, kept.text
    await alice.settle()
    ids = [each["case_id"] for each in kept.json()]
    assert [(await alice.case(each))["procedure"]["status"] for each in ids] == [
        "procedure_learned",
        "no_failure_detected",
    ]
    assert len(await alice.rows("SELECT 1 FROM cases WHERE user_sub = :user_sub")) == 2
    for wrong, field in (({}, "body.memory.content"), ([{}], "body.memories.0.content"), ([], "body.memories")):
        refused = await alice.http.post("/rest/v1/context_eng_memories", json=wrong)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)


async def test_a_memory_without_a_failure_is_kept_as_such(alice: User):
    memory = {"content": "add a column", "metadata": {"status": "no_failure_detected"}, "agent": AGENT}
    case_id = (await alice.http.post("/rest/v1/context_eng_memories", json=memory)).json()["case_id"]
    await alice.settle()
    assert (await alice.case(case_id))["procedure"] == {"status": "no_failure_detected"}
    assert await alice.rows("SELECT 1 FROM procedures WHERE user_sub = :user_sub") == []


async def test_metadata_that_is_nested_too_deep_is_refused(alice: User):
    body = {"content": "Add an age column", "metadata": "[" * 20_000}
    assert (await alice.http.post("/rest/v1/context_eng_memories", json=body)).status_code == 422
