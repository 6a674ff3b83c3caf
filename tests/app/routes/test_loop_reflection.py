"""A run that used a procedure and is judged a failure later makes the worker revise the procedure, once."""

from typing import Any
from uuid import uuid4

from tests.app.routes.test_loop_feedback import DELETING, procedures
from tests.service import AGENT, User


async def used_once(alice: User, **more: Any) -> tuple[str, str]:
    """Learns a script, and retains a successful run that used it: the procedure, and the run's case."""
    await alice.retain("close the account of Ann", tool_traces=DELETING)
    await alice.settle()
    (script,) = await procedures(alice)
    traces = {"tool_traces": DELETING[1:]} | more
    run = await alice.retain("close the account of Ben", used_procedure_ids=[script["id"]], **traces)
    return script["id"], run


async def versions(alice: User, procedure_id: str) -> list[dict[str, Any]]:
    return (await alice.http.get(f"/v1/procedures/{procedure_id}/versions")).json()["versions"]


async def test_a_thumb_down_revises_the_procedure_that_the_run_used_and_keeps_the_old_version(alice: User):
    procedure_id, run = await used_once(alice)
    await alice.settle()
    assert len(await versions(alice, procedure_id)) == 1
    await alice.feedback(case_id=run, thumb="down")
    await alice.settle("reflections")
    newest, oldest = await versions(alice, procedure_id)
    assert (newest["version"], newest["kind"], newest["status"]) == (2, "revision", "active")
    assert (oldest["version"], oldest["kind"], oldest["status"]) == (1, "script", "superseded")
    assert "check the result before the end" in str(newest["record"])
    assert "check the result before the end" not in str(oldest["record"])
    (told,) = (await alice.retrieve("close the account of Cem"))["procedures"]
    assert told["version"] == 2


async def test_however_often_it_is_judged_it_is_revised_once(alice: User):
    procedure_id, run = await used_once(alice)
    await alice.settle()
    for thumb in ("down", "down", "up", "down"):
        await alice.feedback(case_id=run, thumb=thumb)
        await alice.settle("reflections")
    assert [each["version"] for each in await versions(alice, procedure_id)] == [2, 1]


async def test_a_judgement_of_the_retrieval_reaches_the_run_that_began_with_it_and_comes_before_its_end(alice: User):
    await alice.retain("close the account of Ann", tool_traces=DELETING)
    await alice.settle()
    slate = await alice.retrieve("close the account of Ben")
    (told,) = slate["procedures"]
    await alice.feedback(retrieval_id=slate["retrieval_id"], thumb="down")
    used = {"used_procedure_ids": [told["id"]], "retrieval_id": slate["retrieval_id"]}
    await alice.retain("close the account of Ben", tool_traces=DELETING[1:], **used)
    await alice.settle()
    await alice.settle("reflections")
    assert [each["version"] for each in await versions(alice, told["id"])] == [2, 1]


async def test_a_thumb_up_a_guess_and_a_run_that_used_none_revise_nothing(alice: User):
    procedure_id, run = await used_once(alice)
    other = await alice.retain("close the account of Dov", tool_traces=DELETING)
    await alice.settle()
    await alice.feedback(case_id=run, thumb="up")
    await alice.feedback(case_id=run, reward=0.1, source="heuristic")
    await alice.feedback(case_id=other, thumb="down")
    assert await alice.rows("SELECT 1 FROM reflections WHERE user_sub = :user_sub") == []
    assert [each["version"] for each in await versions(alice, procedure_id)] == [1]


async def test_a_pinned_procedure_and_a_deleted_run_are_left_alone(alice: User):
    procedure_id, run = await used_once(alice)
    await alice.settle()
    assert (await alice.http.post(f"/v1/procedures/{procedure_id}/pin", json={"version": 1})).status_code == 200
    await alice.feedback(case_id=run, thumb="down")
    await alice.settle("reflections")
    assert [each["version"] for each in await versions(alice, procedure_id)] == [1]
    assert (await alice.http.delete(f"/v1/cases/{run}")).status_code == 204
    assert await alice.rows("SELECT 1 FROM reflections WHERE user_sub = :user_sub") == []


async def test_a_reasoning_run_without_a_tool_error_teaches_what_did_not_do(alice: User):
    plan = ["sum the invoices of March", "convert the sum to euros"]
    await alice.retain("what do the invoices of March come to?", plan=plan)
    await alice.settle()
    (script,) = await procedures(alice)
    other = {"plan": ["guess the sum"], "used_procedure_ids": [script["id"]], "agent": AGENT}
    run = await alice.retain(f"what do the invoices of May come to? {uuid4().hex[:4]}", **other)
    await alice.settle()
    await alice.feedback(case_id=run, thumb="down")
    await alice.settle("reflections")
    newest, _ = await versions(alice, script["id"])
    assert "another plan did not do: guess the sum" in str(newest["record"])
