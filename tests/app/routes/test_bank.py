"""The bank as its owner sees it: pages, tags, deletions, the audit."""

import json
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from retrieval.sealed import UNREADABLE
from tests.app.routes.conftest import LESSON, STEPS, fill, ids
from tests.service import AGENT, User
from writer.rights.export import export


async def test_refunds_of_twenty_five_orders_are_twenty_five_cases(alice: User):
    for number in range(25):
        await alice.retain(f"Refund order {20_504 + 9 * number}", plan=["look up the order", "refund it"])
    await alice.settle()
    assert len(await alice.cases(status="ready", limit=100)) == 25


async def test_a_card_and_a_phone_sent_as_numbers_reach_neither_the_plan_nor_the_prompt(alice: User):
    call = {"tool": "charge", "input": {"card": 4111111111111111, "phone": 4155550123}, "output": "ok", "status": "ok"}
    case_id = await alice.retain("Charge the customer for the annual plan", tool_traces=[call])
    await alice.settle()
    answer = await alice.retrieve("Charge the customer for the annual plan")
    shown = json.dumps([answer, await alice.case(case_id)])
    assert "4111111111111111" not in shown
    assert "4155550123" not in shown


async def export_of(user: User) -> str:
    runtime = user.service.runtime
    return json.dumps([row async for row in export(runtime.database, runtime.keyring, user.name)])


@pytest.mark.parametrize("plain", [False, True])
async def test_a_deleted_case_leaves_its_text_nowhere(alice: User, *, plain: bool):
    task, run_id = "Refund Marta Qvistgaard, order 88123", str(uuid4())
    retrieval_id = (await alice.retrieve(task))["retrieval_id"]
    again = (await alice.retrieve(f" {task} "))["retrieval_id"]  # asked twice, and retained once
    call = {"tool": "pay", "input": {"name": "Qvistgaard"}, "output": "no such Qvistgaard", "status": "error"}
    told = {"agent": AGENT, "task": task, "retrieval_id": retrieval_id, "steps": [{**call, "number": 1}]}
    assert (await alice.http.post(f"/v1/runs/{run_id}/steps", json=told)).status_code == 200
    case_id = await alice.retain(task, run_id=run_id, retrieval_id=retrieval_id, outcome="failure")
    await alice.settle()
    repeat = await alice.retain(task, tool_traces=[call], outcome="failure")
    other = await alice.retain("Water the garden")
    await alice.settle()
    if plain:
        await alice.rows(
            "UPDATE decisions SET query = :task, words = NULL WHERE user_sub = :user_sub RETURNING id", task=task
        )
    assert "Qvistgaard" in await export_of(alice)
    assert (await alice.http.delete(f"/v1/cases/{case_id}")).status_code == 204
    pages = [f"decisions/{retrieval_id}", f"decisions/{again}", "decisions", f"runs/{run_id}", "runs", "cases", "audit"]
    for path in pages:
        answer = await alice.http.get(f"/v1/{path}")
        assert answer.status_code == 200
        assert "Qvistgaard" not in answer.text, path
    assert "Qvistgaard" not in await export_of(alice)
    assert (await alice.http.get(f"/v1/cases/{repeat}")).status_code == 404
    assert (await alice.case(other))["task"] == "Water the garden"
    late = await alice.http.post(f"/v1/runs/{run_id}/steps", json={**told, "steps": [{**call, "number": 2}]})
    assert late.status_code == 409


async def test_pages_have_no_gaps_and_no_repeats(alice: User):
    wanted = [await alice.retain(f"task number {number}") for number in range(11)]
    await alice.settle()
    for limit in (1, 4, 11, 200):
        seen: list[str] = []
        query: dict[str, Any] = {"status": "any", "limit": limit}
        for _ in range(len(wanted) + 1):
            page = (await alice.http.get("/v1/cases", params=query)).json()
            assert len(page["cases"]) <= limit
            seen += [case["case_id"] for case in page["cases"]]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        assert seen == wanted[::-1]


async def test_cases_are_listed_by_agent_and_status(alice: User):
    one, two = await alice.retain("water", agent="one"), await alice.retain("mow", agent="two")
    await alice.settle()
    twin = await alice.retain("water", agent="one")
    await alice.settle()
    for query, expected in [
        ({"agent": "one"}, {one}),
        ({"agent": "two"}, {two}),
        ({}, {one, two}),
        ({"status": "any"}, {one, two, twin}),
        ({"status": "merged"}, {twin}),
        ({"status": "dead"}, set()),
        ({"agent": "three"}, set()),
    ]:
        assert {case["case_id"] for case in await alice.cases(**query)} == expected
    assert (await alice.http.get("/v1/profiles/one")).json()["cases"] == {"merged": 1, "ready": 1}


async def test_a_case_says_whether_its_lessons_are_learned(alice: User):
    case_id = await alice.retain("water the garden")
    await alice.settle()
    case = await alice.case(case_id)
    assert (case["status"], case["lessons"], case["procedure"]) == ("ready", "ready", {"status": "no_failure_detected"})
    dead = (
        "INSERT INTO reflections (user_sub, id, agent_key, status, is_new)"
        " VALUES (:user_sub, :id, :agent, 'dead', true) RETURNING id"
    )
    await alice.rows(dead, id=case_id, agent=AGENT)
    case = await alice.case(case_id)
    assert (case["status"], case["lessons"], case["procedure"]) == ("ready", "dead", None)


async def test_every_change_is_in_the_audit_with_its_actor(alice: User):
    case_id = await alice.retain("water the garden")
    await alice.settle()
    await alice.http.patch(f"/v1/cases/{case_id}", json={"tags": ["green"]})
    await alice.feedback(case_id=case_id, thumb="up")
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"k": 2})
    await alice.http.delete(f"/v1/cases/{case_id}")
    entries, cursor = [], None
    for _ in range(5):
        page = (await alice.http.get("/v1/audit", params={"limit": 1} | ({"cursor": cursor} if cursor else {}))).json()
        entries += page["entries"]
        cursor = page["next_cursor"]
    actions = [(entry["action"], entry["subject_id"]) for entry in reversed(entries)]
    assert actions == [
        ("insert_case", case_id),
        ("update_case", case_id),
        ("reward", case_id),
        ("update_profile", None),
        ("delete_case", case_id),
    ]
    assert {(entry["actor"], entry["agent"]) for entry in entries} == {(alice.name, AGENT)}
    assert (await alice.http.get("/v1/audit", params={"agent": "another"})).json()["entries"] == []


async def test_feedback_a_merge_and_new_tags_each_move_the_time_of_the_last_change(alice: User):
    case_id = (await fill(alice, ["water the garden"]))[0]
    seen = [await alice.case(case_id)]
    await alice.feedback(case_id=case_id, thumb="up")
    seen += await alice.cases()
    await fill(alice, ["water the garden"])  # which is merged into it
    seen.append(await alice.case(case_id))
    seen.append((await alice.http.patch(f"/v1/cases/{case_id}", json={"tags": ["green"]})).json())
    times = [case["updated_at"] for case in seen]
    assert times == sorted(set(times))
    assert {case["created_at"] for case in seen} == {seen[0]["created_at"]}
    assert seen[0]["created_at"] < times[0]  # the worker finished it
    assert times[-1].rstrip("Z") in await export_of(alice)


async def test_new_tags_are_searched_and_old_ones_are_not(alice: User):
    case_id = (await fill(alice, ["water the garden", "mow the lawn"], tags=["zebra"]))[0]
    answer = await alice.http.patch(f"/v1/cases/{case_id}", json={"tags": ["quagga"]})
    assert answer.json()["tags"] == ["quagga"]
    keyword_ranks = {slot["case_id"]: slot["keyword_rank"] for slot in (await alice.retrieve("quagga"))["cases"]}
    assert [case for case, rank in keyword_ranks.items() if rank] == [case_id]
    assert ids(await alice.retrieve("mow in the garden", filters={"tags": ["quagga"]})) == [case_id]


async def test_a_deleted_case_is_gone_from_everywhere(alice: User):
    (case_id,) = await fill(alice, ["water the garden"], procedure={"data": LESSON})
    await alice.feedback(case_id=case_id, thumb="up")
    assert (await alice.http.delete(f"/v1/cases/{case_id}")).status_code == 204
    for method in ("GET", "DELETE"):
        assert (await alice.http.request(method, f"/v1/cases/{case_id}")).status_code == 404
    assert await alice.cases(status="any") == []
    assert ids(await alice.retrieve("water")) == []
    for table in ("cases", "case_embeddings", "procedures", "rewards"):
        assert await alice.rows(f"SELECT 1 FROM {table} WHERE user_sub = :user_sub") == []  # noqa: S608


async def test_what_a_run_was_told_with_comes_back_whole(alice: User):
    told = {
        "plan": STEPS,
        "tool_traces": [
            {"tool": "sql", "input": {"statement": "SELECT 1"}, "output": [1], "status": "ok", "duration_ms": 2.5},
        ],
        "turns": [{"role": "user", "content": "is it up?"}],
        "prompt_snapshot": {"system": "be brief"},
        "tags": ["a"],
    }
    case = await alice.case(await alice.retain("ask the database", **told))
    assert {name: case[name] for name in told} == told
    assert (case["tools"], case["step_count"], case["error_count"]) == (["sql"], 1, 0)


async def test_arguments_that_are_json_in_a_text_are_kept_as_the_object(alice: User):
    call = {"tool": "sql", "input": '{"query": "ALTER TABLE users ADD COLUMN age int"}', "output": "ALTER TABLE"}
    case = await alice.case(await alice.retain("add a column", tool_traces=[call]))
    assert case["tool_traces"][0]["input"] == {"query": "ALTER TABLE users ADD COLUMN age int"}
    assert case["plan"] == ["sql(query=ALTER TABLE users ADD COLUMN age int)"]


@pytest.mark.parametrize(
    "text",
    ["{a, b}", '["a"]', "7", '{"a": NaN}', '{"a": "\\ud800"}', '{"a":' * 20_000 + "1" + "}" * 20_000],
    ids=["braces", "list", "number", "no JSON", "lone surrogate", "deep"],
)
async def test_another_text_as_the_input_of_a_call_stays_a_text(text: str, alice: User):
    case = await alice.case(await alice.retain("call it", tool_traces=[{"tool": "sql", "input": text, "output": ""}]))
    assert case["tool_traces"][0]["input"] == text


@pytest.mark.parametrize("depth", [50, 200, 300, 900])
async def test_a_deep_object_in_a_text_is_kept(depth: int, alice: User):
    text = '{"a":' * depth + "1" + "}" * depth
    case_id = await alice.retain("call it", tool_traces=[{"tool": "sql", "input": text, "output": ""}])
    await alice.settle()
    assert (await alice.case(case_id))["tool_traces"][0]["input"] in (text, json.loads(text))


async def test_a_learned_procedure_is_stored_apart_and_comes_back_with_its_case(alice: User):
    learned = {"status": "procedure_learned", "data": LESSON}
    case_id = await alice.retain("add a column", procedure={"data": LESSON})
    assert (await alice.case(case_id))["procedure"] == learned  # before the worker has it, too
    await alice.settle()
    assert (await alice.case(case_id))["procedure"] == learned
    rows = await alice.rows("SELECT case_id, version, record FROM procedures WHERE user_sub = :user_sub")
    assert [(str(row.case_id), row.version, row.record) for row in rows] == [(case_id, 1, LESSON)]
    plain = await alice.retain("remove a column")
    await alice.settle()
    assert (await alice.case(plain))["procedure"] == {"status": "no_failure_detected"}


async def test_each_step_of_a_plan_may_name_its_cases_and_a_run_its_files(alice: User):
    first, second = [await alice.retain(f"water plant {number}", plan=[f"can {number}"]) for number in range(2)]
    plan = [{"step": "fill the can", "reference_case_ids": [first, second]}, "go there", {"step": "pour"}]
    files = ["notes/plants.md", "watering.py"]
    case_id = await alice.retain("water the garden", plan=plan, files=files)
    case = await alice.case(case_id)
    assert case["plan"] == ["fill the can", "go there", "pour"]
    assert case["plan_references"] == [[first, second], [], []]
    assert (case["files"], case["reference_case_ids"]) == (files, [first, second])
    plain = await alice.case(first)
    assert (plain["files"], plain["plan_references"]) == ([], [])


async def test_a_step_cannot_name_a_case_that_the_user_does_not_have(alice: User, bob: User):
    theirs = await bob.retain("water the garden")
    body = {"agent": AGENT, "task": "water it", "plan": [{"step": "pour", "reference_case_ids": [theirs]}]}
    refused = await alice.http.post("/v1/retain", json=body)
    assert refused.status_code == 422
    assert "a step of the plan, names a case" in refused.json()["detail"]


async def test_a_run_whose_backend_found_no_failure_is_kept_as_such_and_no_lesson_is_made_of_it(alice: User):
    calls = [
        {"tool": "sql", "input": {"statement": "ALTER TABLE t ADD COLUMN c;"}, "output": "ERROR", "status": "error"},
        {"tool": "sql", "input": {"statement": "ALTER TABLE t ADD COLUMN c text;"}, "output": "ALTER TABLE"},
    ]
    found = {"status": "no_failure_detected"}
    case_id = await alice.retain("add a column", tool_traces=calls, procedure=found)
    assert (await alice.case(case_id))["procedure"] == found
    await alice.settle()
    assert (await alice.case(case_id))["procedure"] == found
    assert await alice.rows("SELECT 1 FROM procedures WHERE user_sub = :user_sub AND level IS NULL") == []


@pytest.mark.parametrize(
    "procedure", [{"status": "procedure_learned"}, {"status": "no_failure_detected", "data": LESSON}, {}]
)
async def test_a_learned_procedure_has_a_record_and_no_failure_has_none(alice: User, procedure: dict[str, Any]):
    body = {"agent": AGENT, "task": "add a column", "procedure": procedure}
    assert (await alice.http.post("/v1/retain", json=body)).status_code == 422


async def test_secrets_within_a_plan_are_taken_out_of_what_is_read_and_told(alice: User):
    plan = ["mysql -psecret123 -u root shop", "look for the SSN 078-05-1120"]
    case_id = await alice.retain("water the garden", plan=plan)
    await alice.settle()
    clean = ["mysql -p[REDACTED:password] -u root shop", "look for the SSN [REDACTED:ssn]"]
    assert (await alice.case(case_id))["plan"] == clean
    answer = await alice.retrieve("water the garden")
    assert answer["cases"][0]["plan"] == clean
    assert not {"secret123", "078-05-1120"} & set(answer["memory_context"].replace('"', " ").split())


async def test_numbers_come_out_as_they_were_sent(alice: User):
    await alice.retain("water the garden", reward=0.05)
    (case,) = await alice.cases(status="any")
    assert case["reward"] == 0.05
    profile = (await alice.http.put(f"/v1/profiles/{AGENT}", json={"explore": 0.07, "shares": {"facts": 0.3}})).json()
    assert (profile["explore"], profile["shares"]) == (0.07, {"session": 0.4, "facts": 0.3, "procedures": 0.33333334})


@pytest.mark.parametrize("field", ["rrf_k", "least_success", "session_share", "no_such_setting"])
async def test_a_setting_that_a_profile_does_not_have_is_refused_by_its_name(field: str, alice: User):
    answer = await alice.http.put(f"/v1/profiles/{AGENT}", json={field: 0.5})
    assert answer.status_code == 422
    assert field in answer.text


@pytest.mark.parametrize("agent", ["a/b", "a/b/c", "ä b"])
async def test_an_agent_is_read_by_whatever_name_it_was_retained_under(agent: str, alice: User):
    await alice.retain("water the garden", agent=agent)
    for written in (quote(agent), quote(agent, safe="")):
        answer = await alice.http.get(f"/v1/profiles/{written}")
        assert (answer.status_code, answer.json()["agent"]) == (200, agent)
        assert (await alice.http.get(f"/v1/profiles/{written}/usage")).status_code == 200


@pytest.mark.parametrize(
    ("agent", "why"),
    [
        ("team/statistics", "must not end in /statistics or /usage"),
        ("team/usage", "must not end in /statistics or /usage"),
        (".", "must not be . or .."),
        ("..", "must not be . or .."),
    ],
)
async def test_a_name_that_would_make_a_profile_unreachable_is_refused(agent: str, why: str, alice: User):
    answer = await alice.http.post("/v1/retain", json={"agent": agent, "task": "weed", "outcome": "success"})
    assert answer.status_code == 422, answer.text
    assert why in answer.text


async def test_the_agents_of_a_user_are_listed_with_their_numbers(alice: User, bob: User):
    for agent in ("b", "a", "a"):
        await alice.retain(f"water the garden for {agent}", agent=agent)
    await bob.retain("water the garden", agent="c")
    listed = (await alice.http.get("/v1/profiles")).json()["profiles"]
    assert [(each["agent"], sum(each["cases"].values())) for each in listed] == [("a", 2), ("b", 1)]


async def test_what_is_wrong_is_said_without_the_words_of_the_library(alice: User):
    answer = await alice.http.post("/v1/feedback", json={"thumb": "up"})
    assert [each["message"] for each in answer.json()["errors"]] == ["name retrieval_id or case_id"]


@pytest.mark.parametrize("kind", ["cases", "decisions", "facts", "knowledge", "runs"])
async def test_a_row_that_was_changed_in_the_database_says_so_and_hides_no_other(alice: User, kind: str):
    entry = {"agent": AGENT, "category": "prices", "type": "rule"}
    for thing in ("lamp", "table"):
        await alice.retain(f"paint the {thing}", plan=["mix", f"paint the {thing}"])
        await alice.retrieve(f"paint the {thing}")
        body = {"agent": AGENT, "text": f"I own a {thing}", "kind": "fact"}
        assert (await alice.http.post("/v1/facts", json=body)).status_code == 201
        body = {**entry, "title": thing, "text": f"a {thing} costs 20 euros"}
        assert (await alice.http.post("/v1/knowledge", json=body)).status_code == 201
        body = {"agent": AGENT, "task": f"paint the {thing}", "steps": [{"number": 1, "tool": "look"}]}
        assert (await alice.http.post(f"/v1/runs/{uuid4()}/steps", json=body)).status_code == 200
    await alice.settle()
    newest = f"(SELECT id FROM {kind} WHERE user_sub = :user_sub ORDER BY id DESC LIMIT 1)"  # noqa: S608 - our own names
    await alice.damage(kind, "words", f"id = {newest}")
    answer = await alice.http.get(f"/v1/{kind}")
    assert answer.status_code == 200, answer.text
    changed, other = answer.json()[kind]
    assert UNREADABLE in changed.values()
    assert UNREADABLE not in other.values()
