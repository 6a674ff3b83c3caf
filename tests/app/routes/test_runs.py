"""A run under way: its steps come one by one, a retain ends it, and one that dies is ended as aborted."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import update

from app.jobs.schedule import upkeep
from app.routes.runs import WholeRunOut
from retrieval.tables.keys import user_keys
from tests.service import AGENT, Service, User
from tests.writer.conftest import calls_on_the_loop
from writer.privacy.words import Words, WordsOfPage
from writer.rights.erase import erase
from writer.rights.export import export
from writer.upkeep.prune import prune_all
from writer.upkeep.silent_runs import abort_all

TASK = "move the piano upstairs"


def step(number: int, output: str = "done", **more: Any) -> dict[str, Any]:
    return {"number": number, "tool": "lift", "input": {"by": number}, "output": output, **more}


def trace(number: int, output: str = "done") -> dict[str, Any]:
    return {"tool": "lift", "input": {"by": number}, "output": output, "status": "ok", "duration_ms": None}


async def tell(user: User, run_id: str, *steps: dict[str, Any], **more: Any) -> httpx.Response:
    body = {"agent": AGENT, "task": TASK, "steps": list(steps), **more}
    return await user.http.post(f"/v1/runs/{run_id}/steps", json=body)


async def told(user: User, run_id: str, *steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await tell(user, run_id, *steps, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def run_of(user: User, run_id: str) -> dict[str, Any]:
    answer = await user.http.get(f"/v1/runs/{run_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def give_up(service: Service, after: timedelta = timedelta()) -> int:
    return await abort_all(service.runtime.database, service.runtime.keyring, silent_for=after)


async def store_key(user: User, wrapped_key: bytes) -> None:
    """Stores this as the user's wrapped key, which the service reads anew."""
    async with user.service.runtime.database.as_worker({user.name: datetime.now(UTC)}) as connection:
        mine = update(user_keys).where(user_keys.c.user_sub == user.name)
        assert (await connection.execute(mine.values(wrapped_key=wrapped_key))).rowcount == 1
    user.service.runtime.keyring.forget(user.name)


@pytest.fixture
def run_id() -> str:
    return str(uuid4())


def slug(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


async def test_a_deleted_run_is_gone_with_its_steps(alice: User):
    run_id = str(uuid4())
    step = {"number": 1, "tool": "sql", "input": {"statement": "SELECT 1"}, "output": "1"}
    body = {"agent": AGENT, "task": "count the rows", "steps": [step]}
    assert (await alice.http.post(f"/v1/runs/{run_id}/steps", json=body)).status_code == 200
    assert (await alice.http.delete(f"/v1/runs/{run_id}")).status_code == 204
    assert (await alice.http.get(f"/v1/runs/{run_id}")).status_code == 404
    assert (await alice.http.delete(f"/v1/runs/{run_id}")).status_code == 404
    assert await alice.rows("SELECT number FROM run_steps WHERE user_sub = :user_sub") == []


async def test_the_steps_of_a_run_are_the_tool_traces_of_its_case(alice: User, run_id: str):
    assert (await told(alice, run_id, step(1), step(2)))["step_count"] == 2
    assert (await told(alice, run_id, step(3)))["step_count"] == 3
    seen = await run_of(alice, run_id)
    assert (seen["status"], seen["task"], seen["case_id"]) == ("under_way", TASK, None)
    assert seen["steps"] == [{"number": n, **trace(n)} for n in (1, 2, 3)]
    case_id = await alice.retain(TASK, run_id=run_id)
    await alice.settle()
    case = await alice.case(case_id)
    assert case["tool_traces"] == [trace(1), trace(2), trace(3)]
    assert (case["step_count"], case["tools"], case["outcome"]) == (3, ["lift"], "success")
    ended = await run_of(alice, run_id)
    assert (ended["status"], ended["case_id"], ended["steps"]) == ("retained", case_id, [])


async def test_steps_that_come_out_of_order_stand_in_their_order(alice: User, run_id: str):
    for number in (3, 1, 2):
        await told(alice, run_id, step(number))
    case = await alice.case(await alice.retain(TASK, run_id=run_id))
    assert case["tool_traces"] == [trace(1), trace(2), trace(3)]


async def test_a_run_is_decrypted_beside_the_event_loop_to_be_shown_and_for_advice(alice: User, run_id: str):
    await told(alice, run_id, step(1))
    with calls_on_the_loop(WordsOfPage.open) as callers:
        assert len((await alice.http.get(f"/v1/runs/{run_id}")).json()["steps"]) == 1
    assert callers == ["open_run"]  # the task's
    with calls_on_the_loop(Words.open) as callers:
        assert (await told(alice, run_id, step(2, "Error: too heavy")))["advice"] is not None
    assert "<lambda>" not in callers


async def test_a_run_s_steps_are_not_checked_again_before_they_are_shown(alice: User, run_id: str):
    await told(alice, run_id, step(1))
    shown = WholeRunOut.model_validate(await run_of(alice, run_id))
    again = WholeRunOut.model_validate({**shown.model_dump(), "steps": (steps := [{"number": 1, "output": ["small"]}])})
    assert again.steps is steps


async def test_a_step_that_is_sent_again_is_not_doubled(alice: User, run_id: str):
    await told(alice, run_id, step(1, "the key is ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"))
    again = await told(alice, run_id, step(1, "the key is ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"), step(2))
    assert again["step_count"] == 2
    assert [each["number"] for each in (await run_of(alice, run_id))["steps"]] == [1, 2]


@pytest.mark.parametrize("written", ['{"litres": 1e999}', '{"litres": NaN}', '{"litres": 1e15}'])
async def test_a_step_whose_input_is_a_text_of_json_can_be_sent_again(written: str, alice: User, run_id: str):
    for _ in range(2):
        assert (await told(alice, run_id, {**step(1), "input": written}))["step_count"] == 1


async def test_the_same_steps_sent_at_once_are_kept_once(alice: User, run_id: str):
    answers = await asyncio.gather(*(tell(alice, run_id, step(1), step(2)) for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert (await run_of(alice, run_id))["step_count"] == 2


async def test_another_step_under_the_same_number_is_refused_and_nothing_of_the_call_is_kept(alice: User, run_id: str):
    await told(alice, run_id, step(1))
    assert slug(await tell(alice, run_id, step(2), step(1, "something else"))) == (409, "idempotency-conflict")
    assert (await run_of(alice, run_id))["step_count"] == 1


async def test_a_run_is_ended_once_however_often_its_retain_is_sent(alice: User, run_id: str):
    await told(alice, run_id, step(1))
    body = {"agent": AGENT, "task": TASK, "outcome": "success", "run_id": run_id}
    answers = await asyncio.gather(*(alice.http.post("/v1/retain", json=body) for _ in range(6)))
    assert len({answer.json()["case_id"] for answer in answers}) == 1
    other = await alice.http.post("/v1/retain", json={**body, "outcome": "failure"})
    assert slug(other) == (409, "idempotency-conflict")
    assert slug(await tell(alice, run_id, step(2))) == (409, "run-ended")


@pytest.mark.parametrize("keys", [("one", "two"), (None, "two"), ("one", None)])
async def test_a_run_that_ended_has_one_case_under_whatever_key_its_retain_is_sent(
    keys: tuple[str | None, str | None], alice: User, run_id: str
):
    await told(alice, run_id, step(1))
    first = await alice.retain(TASK, run_id=run_id, key=keys[0])
    for key in keys:
        assert await alice.retain(TASK, run_id=run_id, key=key) == first
    other = {"agent": AGENT, "task": TASK, "outcome": "failure", "run_id": run_id}
    answer = await alice.http.post("/v1/retain", json=other, headers={"Idempotency-Key": "three"})
    assert slug(answer) == (409, "run-ended")
    assert len(await alice.cases(status="any")) == 1


async def test_tool_traces_of_the_retain_count_in_place_of_the_steps_and_calls_in_turns_do_not(alice: User):
    own, turned = str(uuid4()), str(uuid4())
    for run_id in (own, turned):
        await told(alice, run_id, step(1))
    case = await alice.case(await alice.retain(TASK, run_id=own, tool_traces=[{"tool": "crane"}]))
    assert [each["tool"] for each in case["tool_traces"]] == ["crane"]
    call = {"id": "c1", "type": "function", "function": {"name": "shout", "arguments": "{}"}}
    turns = [{"role": "assistant", "tool_calls": [call]}]
    case = await alice.case(await alice.retain(TASK, run_id=turned, turns=turns))
    assert [each["tool"] for each in case["tool_traces"]] == ["lift"]


async def test_a_run_keeps_the_retrieval_that_it_began_with(alice: User, run_id: str):
    retrieval_id = (await alice.retrieve(TASK))["retrieval_id"]
    await told(alice, run_id, step(1), retrieval_id=retrieval_id)
    case = await alice.case(await alice.retain(TASK, run_id=run_id))
    assert case["retrieval_id"] == retrieval_id


async def test_a_run_keeps_the_search_of_all_agents_that_it_began_with(alice: User, run_id: str):
    searched = await alice.http.post("/functions/v1/hybrid-search-context-eng", json={"query": TASK})
    retrieval_id = searched.headers["X-Casebank-Retrieval-Id"]
    await told(alice, run_id, step(1), retrieval_id=retrieval_id)
    case = await alice.case(await alice.retain(TASK, run_id=run_id))
    assert case["retrieval_id"] == retrieval_id


async def test_a_retrieval_that_nobody_knows_keeps_no_run_from_ending(alice: User, run_id: str):
    await told(alice, run_id, step(1), retrieval_id=str(uuid4()))
    case = await alice.case(await alice.retain(TASK, run_id=run_id))
    assert case["retrieval_id"] is None
    assert case["tool_traces"] == [trace(1)]


async def test_what_belongs_to_another_agent_or_to_nobody_is_refused(alice: User, run_id: str):
    other = await alice.http.post("/v1/retrieve", json={"agent": "mover", "query": TASK})
    answer = await tell(alice, run_id, step(1), retrieval_id=other.json()["retrieval_id"])
    assert slug(answer) == (422, "unknown-reference")
    assert (await alice.http.get(f"/v1/runs/{run_id}")).status_code == 404
    await told(alice, run_id, step(1))
    assert slug(await tell(alice, run_id, step(2), agent="mover")) == (422, "unknown-reference")
    for named, agent in ((run_id, "mover"), (str(uuid4()), AGENT)):
        body = {"agent": agent, "task": TASK, "outcome": "success", "run_id": named}
        assert slug(await alice.http.post("/v1/retain", json=body)) == (422, "unknown-reference")
    assert (await run_of(alice, run_id))["status"] == "under_way"


@pytest.mark.parametrize(
    "steps",
    [
        [],
        [step(0)],
        [step(10_001)],
        [step(1), step(1)],
        [{"tool": "lift"}],
        [step(number) for number in range(1, 202)],
    ],
    ids=["none", "below 1", "past the most", "one number twice", "no number", "too many at once"],
)
async def test_steps_of_another_form_are_refused(steps: list[dict[str, Any]], alice: User, run_id: str):
    assert slug(await tell(alice, run_id, *steps)) == (422, "invalid-request")


async def test_a_run_takes_no_more_than_its_case_could_hold(alice: User, run_id: str):
    big = "z " * 1_400_000
    for number in range(1, 6):
        await told(alice, run_id, step(number, big))
    assert slug(await tell(alice, run_id, step(6, big))) == (413, "payload-too-large")
    assert (await run_of(alice, run_id))["step_count"] == 5
    case = await alice.case(await alice.retain(TASK, run_id=run_id))
    assert len(case["tool_traces"]) == 5


async def test_a_run_that_dies_is_a_case_marked_aborted_that_teaches_and_credits_nobody(service: Service, alice: User):
    learned = await alice.retain(TASK, tool_traces=[{"tool": "lift"}], plan=["lift with the knees"])
    await alice.settle()
    before = await alice.case(learned)
    asked = await alice.retrieve(TASK)
    assert [slot["case_id"] for slot in asked["cases"]] == [learned]
    run_id = str(uuid4())
    failed = step(1, "error: too heavy", status="error")
    await told(alice, run_id, failed, step(2), retrieval_id=asked["retrieval_id"])
    assert await give_up(service, timedelta(hours=1)) == 0
    assert await give_up(service) >= 1
    await alice.settle()
    ended = await run_of(alice, run_id)
    assert ended["status"] == "aborted"
    case = await alice.case(ended["case_id"])
    assert (case["outcome"], case["reward"], case["task"]) == ("aborted", None, TASK)
    assert [each["tool"] for each in case["tool_traces"]] == ["lift", "lift"]
    assert case["procedure"] is None
    after = await alice.case(learned)
    assert (after["reuse_count"], after["reward"]) == (before["reuse_count"], before["reward"])
    again = await alice.retrieve(TASK)
    assert case["case_id"] not in {slot["case_id"] for slot in again["cases"]}
    assert await give_up(service) == 0


async def test_a_run_that_was_given_up_may_go_on_and_be_retained_with_all_its_steps(
    service: Service, alice: User, run_id: str
):
    await told(alice, run_id, step(1))
    await give_up(service)
    await alice.settle()
    presumed = (await run_of(alice, run_id))["case_id"]
    assert (await told(alice, run_id, step(2)))["status"] == "under_way"
    assert (await alice.http.get(f"/v1/cases/{presumed}")).status_code == 404
    await give_up(service)
    case_id = await alice.retain(TASK, run_id=run_id)
    assert (await alice.case(case_id))["tool_traces"] == [trace(1), trace(2)]
    assert [case["case_id"] for case in await alice.cases(status="any")] == [case_id]


async def test_upkeep_gives_up_runs_that_are_silent_for_as_long_as_the_setting_says(
    service: Service, alice: User, run_id: str
):
    await told(alice, run_id, step(1))
    await upkeep(service.runtime)
    assert (await run_of(alice, run_id))["status"] == "under_way"
    await alice.rows("UPDATE runs SET last_step_at = now() - interval '2 hours 1 second' RETURNING 1")
    await upkeep(service.runtime)
    assert (await run_of(alice, run_id))["status"] == "aborted"


async def test_a_users_key_that_does_not_open_keeps_no_other_users_run_under_way(service: Service):
    first, second = sorted([await service.user(), await service.user()], key=lambda user: user.name)
    ids = {user.name: str(uuid4()) for user in (first, second)}
    for user in (first, second):
        await told(user, ids[user.name], step(1))
    (key,) = await first.rows("SELECT wrapped_key FROM user_keys WHERE user_sub = :user_sub")
    await store_key(first, b"damaged")
    assert await give_up(service) == 1
    await store_key(first, key.wrapped_key)
    assert (await run_of(second, ids[second.name]))["status"] == "aborted"


async def test_runs_are_listed_by_agent_and_status_and_only_to_their_owner(alice: User, bob: User):
    ids = sorted((str(uuid4()) for _ in range(3)), reverse=True)
    for run_id in ids:
        await told(alice, run_id, step(1))
    await alice.retain(TASK, run_id=ids[0])
    page = (await alice.http.get("/v1/runs", params={"limit": 2})).json()
    rest = (await alice.http.get("/v1/runs", params={"limit": 2, "cursor": page["next_cursor"]})).json()
    assert [run["run_id"] for run in (*page["runs"], *rest["runs"])] == ids
    under_way = (await alice.http.get("/v1/runs", params={"status": "under_way", "agent": AGENT})).json()
    assert [run["run_id"] for run in under_way["runs"]] == ids[1:]
    assert (await bob.http.get("/v1/runs")).json()["runs"] == []
    assert (await bob.http.get(f"/v1/runs/{ids[1]}")).status_code == 404
    await told(bob, ids[1], step(1, "Bob's own"))
    assert (await run_of(alice, ids[1]))["steps"] == [{"number": 1, **trace(1)}]


async def test_the_audit_tells_each_change_of_a_run(alice: User, run_id: str):
    await told(alice, run_id, step(1))
    await told(alice, run_id, step(1), step(2))
    await told(alice, run_id, step(2))
    case_id = await alice.retain(TASK, run_id=run_id)
    entries = (await alice.http.get("/v1/audit")).json()["entries"]
    told_of = [(entry["action"], entry["payload"]) for entry in entries if entry["subject_id"] == run_id]
    assert told_of == [
        ("end_run", {"status": "retained", "case_id": case_id}),
        ("append_steps", {"steps": [2]}),
        ("begin_run", {"steps": [1]}),
    ]


async def test_a_run_is_exported_opened_and_goes_with_its_user(service: Service, alice: User, run_id: str):
    await told(alice, run_id, step(1))
    runtime = service.runtime
    rows = [row async for row in export(runtime.database, runtime.keyring, alice.name)]
    (run,) = [row for row in rows if row["type"] == "runs"]
    (kept,) = [row for row in rows if row["type"] == "run_steps"]
    assert (run["task"], kept["payload"]) == (TASK, trace(1))
    receipt = await erase(runtime.database, alice.name)
    assert receipt.clean
    assert (receipt.rows["runs"], receipt.rows["run_steps"]) == (1, 1)


async def test_runs_that_ended_long_ago_are_pruned_and_those_under_way_are_not(service: Service, alice: User):
    over, going = str(uuid4()), str(uuid4())
    for run_id in (over, going):
        await told(alice, run_id, step(1))
    case_id = await alice.retain(TASK, run_id=over)
    await prune_all(service.runtime.database, now=datetime.now(UTC) + timedelta(days=31))
    assert (await alice.http.get(f"/v1/runs/{over}")).status_code == 404
    assert (await run_of(alice, going))["status"] == "under_way"
    assert await alice.retain(TASK, run_id=over) == case_id


async def test_nothing_that_a_run_says_stands_readable_in_the_database(alice: User, run_id: str):
    await told(alice, run_id, step(1, "the piano fell"))
    (run,) = await alice.rows("SELECT runs::text || encode(words, 'escape') FROM runs WHERE user_sub = :user_sub")
    (kept,) = await alice.rows("SELECT encode(payload, 'escape') FROM run_steps WHERE user_sub = :user_sub")
    assert "piano" not in run[0] + kept[0]


async def test_a_request_may_do_without_memory_and_the_log_tells_such_from_others(alice: User):
    case_id = await alice.retain(TASK, tool_traces=[{"tool": "lift"}])
    await alice.settle()
    without = await alice.retrieve(TASK, memory=False)
    assert (without["cases"], without["procedures"], without["memory_context"]) == ([], [], "")
    assert (without["mode"], without["why_empty"]) == ("off", "memory is switched off for this request")
    assert [slot["case_id"] for slot in (await alice.retrieve(TASK))["cases"]] == [case_id]
    await alice.retain(TASK, retrieval_id=without["retrieval_id"], reward=0.25, reward_source="user")
    await alice.settle()
    logged = await alice.rows("SELECT mode, k, reward FROM decisions WHERE user_sub = :user_sub ORDER BY id")
    assert [(row.mode, row.reward) for row in logged] == [("off", 0.25), ("hybrid", None)]
    assert (await alice.case(case_id))["reuse_count"] == 0


async def test_an_answer_says_so_where_the_agents_memory_is_off(alice: User):
    await alice.retain(TASK)
    await alice.settle()
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"enabled": False})
    answer = await alice.retrieve(TASK)
    assert (answer["mode"], answer["why_empty"]) == ("off", "memory is switched off for this agent")
