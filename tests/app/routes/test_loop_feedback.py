"""One judgement of a loop reaches the run, what it was shown, and what was learned from it, whichever is named."""

from typing import Any

import pytest

from tests.app.routes.conftest import fill, reuse
from tests.service import AGENT, User

DELETING = [
    {"tool": "find_account", "input": {"email": "a@b.example"}, "output": "account 17"},
    {"tool": "delete_account", "input": {"account": 17}, "output": "deleted"},
]


async def loop(alice: User, task: str = "close the account of a customer", **more: Any) -> tuple[str, str, str]:
    """Fills a slate of one, and retains a run that began with it: the shown case, the retrieval, the run's case."""
    (shown,) = await fill(
        alice,
        [
            "close an account",
        ][:1],
    )
    slate = await alice.retrieve("close the account")
    run = await alice.retain(task, tool_traces=DELETING, retrieval_id=slate["retrieval_id"], **more)
    await alice.settle()
    return shown, slate["retrieval_id"], run


async def procedures(alice: User) -> list[dict[str, Any]]:
    answer = await alice.http.get("/v1/procedures", params={"agent": AGENT})
    assert answer.status_code == 200, answer.text
    return answer.json()["procedures"]


@pytest.mark.parametrize("named", [["retrieval_id"], ["case_id"], ["retrieval_id", "case_id"]], ids="+".join)
async def test_one_thumb_reaches_the_run_its_slate_and_what_it_taught(named: list[str], alice: User):
    shown, retrieval_id, run = await loop(alice)
    assert "delete_account" in (await alice.retrieve("close the account of a customer"))["memory_context"]
    subjects = {"retrieval_id": retrieval_id, "case_id": run}
    answer = await alice.feedback(thumb="down", **{name: subjects[name] for name in named})
    assert (answer["reward"], answer["source"]) == (0, "user")
    assert (answer["case_ids"], answer["retrieval_id"]) == ([run], retrieval_id)
    case = await alice.case(run)
    assert (case["reward"], case["reward_source"]) == (0, "user")
    assert await reuse(alice, shown) == (1, 0)
    taught = [each["id"] for each in await procedures(alice) if "delete_account" in str(each)]
    assert not set(answer["withdrawn_procedure_ids"]) & set(taught)
    assert answer["withdrawn_procedure_ids"]
    again = await alice.retrieve("close the account of a customer")
    assert again["procedures"] == [] or "delete_account" not in str(again["procedures"])
    assert "[P1]" not in again["memory_context"]


async def test_a_run_and_a_retrieval_that_do_not_belong_together_are_a_409_and_change_nothing(alice: User):
    shown, retrieval_id, run = await loop(alice)
    body = {"retrieval_id": retrieval_id, "case_id": shown, "thumb": "down"}
    answer = await alice.http.post("/v1/feedback", json=body)
    assert (answer.status_code, answer.json()["type"]) == (409, "urn:casebank:problem:not-joined")
    assert (await alice.case(run))["reward"] == (await alice.case(shown))["reward"] == 1


async def test_a_thumb_that_comes_before_its_run_reaches_the_run(alice: User):
    await fill(alice, ["close an account"])
    slate = await alice.retrieve("close the account")
    await alice.feedback(retrieval_id=slate["retrieval_id"], thumb="down")
    run = await alice.retain("close the account of Ann", tool_traces=DELETING, retrieval_id=slate["retrieval_id"])
    await alice.settle()
    case = await alice.case(run)
    assert (case["reward"], case["reward_source"]) == (0, "user")
    assert not [each for each in await procedures(alice) if run in str(each)]


async def test_a_thumb_that_comes_while_the_run_waits_for_the_worker_keeps_it_from_teaching(alice: User):
    run = await alice.retain("close the account of Ann", tool_traces=DELETING)
    await alice.feedback(case_id=run, thumb="down")
    await alice.settle()
    assert await procedures(alice) == []


async def test_a_thumb_on_a_run_that_was_merged_reaches_the_case_that_stands_for_it(alice: User):
    kept = await alice.retain("close the account", tool_traces=DELETING, reward=1.0, reward_source="user")
    await alice.settle()
    again = await alice.retain("close the account", tool_traces=DELETING, reward=1.0, reward_source="user")
    await alice.settle()
    assert (await alice.case(again))["status"] == "merged"
    await alice.feedback(case_id=again, thumb="down")
    assert (await alice.case(kept))["reward"] == 0.5


async def test_a_judge_who_confirms_a_failure_leaves_what_the_failure_taught(alice: User):
    await alice.retain("close the account of Ann", tool_traces=DELETING)
    await alice.settle()
    (script,) = await procedures(alice)
    failing = [DELETING[0], {**DELETING[1], "output": "Error: the account has an open order", "status": "error"}]
    used = {"outcome": "failure", "used_procedure_ids": [script["id"]]}
    run = await alice.retain("close the account of Ben", tool_traces=failing, **used)
    await alice.settle()
    taught = await procedures(alice)
    assert (2, "revision") in [(each["version"], each["kind"]) for each in taught]
    answer = await alice.feedback(case_id=run, thumb="down")
    assert answer["withdrawn_procedure_ids"] == []
    assert await procedures(alice) == taught


async def test_what_another_run_taught_as_well_stays(alice: User):
    first = await alice.retain("close the account of Ann", tool_traces=DELETING)
    await alice.settle()
    await alice.retain("close the account of Ann, please", tool_traces=DELETING)
    await alice.settle()
    assert [each["occurrences"] for each in await procedures(alice)] == [2]
    answer = await alice.feedback(case_id=first, thumb="down")
    assert answer["withdrawn_procedure_ids"] == []
    assert [each["occurrences"] for each in await procedures(alice)] == [1]


async def test_two_runs_of_one_retrieval_that_failed_are_two_fewer_that_taught(alice: User):
    await alice.retain("close the account of Ann", tool_traces=DELETING)
    retrieval_id = (await alice.retrieve("close the account"))["retrieval_id"]
    for name in ("Ben", "Eve"):
        await alice.retain(f"close the account of {name}", tool_traces=DELETING, retrieval_id=retrieval_id)
    await alice.settle()
    assert [each["occurrences"] for each in await procedures(alice)] == [3]
    await alice.feedback(retrieval_id=retrieval_id, thumb="down")
    assert [each["occurrences"] for each in await procedures(alice)] == [1]


@pytest.mark.parametrize("run", [{"outcome": "unknown"}, {"outcome": "aborted"}], ids=["unknown", "aborted"])
async def test_a_run_that_says_nothing_credits_nobody(run: dict[str, str], alice: User):
    shown, _, case_id = await loop(alice, **run)
    case = await alice.case(case_id)
    assert (case["reward"], case["reward_source"]) == (None, None)
    assert await reuse(alice, shown) == (0, 0)
    taught = [each for each in await procedures(alice) if case_id in str(each)]
    assert bool(taught) == (run["outcome"] == "unknown")  # its calls show a way, though nobody said how it went


async def test_an_outcome_that_is_left_out_is_unknown_and_a_later_thumb_credits_what_was_used(alice: User):
    shown = await fill(alice, ["close an account", "close a window"])
    slate = await alice.retrieve("close the account")
    assert len(slate["cases"]) == 2
    body = {
        "agent": AGENT,
        "task": "close the account of Ann",
        "retrieval_id": slate["retrieval_id"],
        "used_case_ids": shown[:1],
    }
    answer = await alice.http.post("/v1/retain", json=body)
    assert answer.status_code == 202, answer.text
    await alice.settle()
    case = await alice.case(answer.json()["case_id"])
    assert (case["outcome"], case["reward"]) == ("unknown", None)
    await alice.feedback(retrieval_id=slate["retrieval_id"], thumb="up")
    assert [await reuse(alice, each) for each in shown] == [(1, 1), (0, 0)]


async def test_a_run_that_was_broken_off_is_found_only_where_such_runs_are_asked_for(alice: User):
    aborted = await alice.retain("water the garden", outcome="aborted")
    await alice.settle()
    assert (await alice.retrieve("water the garden"))["cases"] == []
    found = await alice.retrieve("water the garden", filters={"outcomes": ["aborted"]})
    assert [each["case_id"] for each in found["cases"]] == [aborted]


async def test_a_success_that_was_judged_a_failure_is_a_warning(alice: User):
    run = await alice.retain("water the garden", plan=["open the valve"])
    await alice.settle()
    await alice.feedback(case_id=run, thumb="down")
    text = (await alice.retrieve("water the garden"))["memory_context"]
    assert "success (but it was judged to have failed: what it did was wrong or not enough)" in text


async def test_a_call_that_failed_by_its_output_is_no_step_of_the_plan(alice: User):
    calls = [("v1", "Error 410: switched off"), ("v2", "done")]
    traces = [{"tool": "post_order", "input": {"version": version}, "output": output} for version, output in calls]
    case_id = await alice.retain("post the order of the garden", tool_traces=traces)
    await alice.settle()
    assert (await alice.case(case_id))["plan"] == ["post_order(version=v2)"]
    (found,) = (await alice.retrieve("post the order of the garden"))["cases"]
    assert found["plan"] == ["post_order(version=v2)"]


async def test_messages_of_a_chat_are_enough_for_a_case_with_a_plan(alice: User):
    calls = [{"id": "1", "type": "function", "function": {"name": "delete_account", "arguments": '{"account": 17}'}}]
    turns = [
        {"role": "user", "content": "close my account"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "1", "content": "deleted"},
        {"role": "assistant", "content": "It is closed."},
    ]
    case = await alice.case(await alice.retain("close the account", turns=turns))
    assert case["tool_traces"][0] | {"tool": "delete_account", "output": "deleted"} == case["tool_traces"][0]
    assert case["plan"] == ["delete_account(account=17)"]
    await alice.settle()
    assert "delete_account(account=17)" in (await alice.retrieve("close the account"))["memory_context"]


async def test_a_secret_in_a_call_does_not_reach_the_plan(alice: User):
    call = {"tool": "log_in", "input": {"user": "ann", "password": "correct-horse-9"}, "output": "ok"}
    case = await alice.case(await alice.retain("log in", tool_traces=[call]))
    assert case["plan"] == ["log_in(user=ann, password=[REDACTED:password])"]


async def test_a_query_parameter_that_a_route_does_not_have_is_refused_by_name(alice: User):
    answer = await alice.http.get("/v1/cases", params={"tag": "green", "limit": 3})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == "query.tag"
    assert "agent" in error["message"]
    assert (await alice.http.post("/v1/feedback", params={"a": 1}, json={})).status_code == 422
    assert (await alice.http.get("/healthz", params={"probe": 1})).status_code == 200


@pytest.mark.parametrize(
    "slip",
    [
        {"task": " \n\t"},
        {"reward": True},
        {"reward": "0.5"},
        {"kind": "subtask"},
    ],
    ids=str,
)
async def test_a_slip_in_a_run_is_refused(slip: dict[str, Any], alice: User):
    body = {"agent": AGENT, "task": "water the garden", "outcome": "success", **slip}
    answer = await alice.http.post("/v1/retain", json=body)
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("slip", [{"query": "  "}, {"query": "x", "filters": {"tag": ["a"]}}], ids=str)
async def test_a_slip_in_a_question_is_refused(slip: dict[str, Any], alice: User):
    assert (await alice.http.post("/v1/retrieve", json={"agent": AGENT, **slip})).status_code == 422
