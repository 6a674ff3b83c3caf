"""What a run refers to: its parent, its retrieval and the cases it used are the user's own, or the run is refused."""

from typing import Any
from uuid import uuid4

import pytest

from tests.app.routes.conftest import fill, ids
from tests.service import AGENT, User

UNKNOWN = "urn:casebank:problem:unknown-reference"


async def problem(user: User, key: str = "", **more: Any) -> dict[str, Any]:
    body = {"agent": AGENT, "task": "repot the fern", "outcome": "success", **more}
    headers = {"Idempotency-Key": key} if key else {}
    answer = await user.http.post("/v1/retain", json=body, headers=headers)
    assert answer.status_code == 422, answer.text
    return dict(answer.json())


@pytest.mark.parametrize("name", ["parent_case_id", "used_case_ids"])
async def test_a_case_of_somebody_else_is_refused_as_one_that_there_is_not(name: str, alice: User, bob: User):
    def named(case_id: str) -> dict[str, Any]:
        return {name: [case_id] if name == "used_case_ids" else case_id}

    (own,) = await fill(alice, ["water the garden"])
    (foreign,) = await fill(bob, ["water the garden"])
    refused = [await problem(alice, **named(each)) for each in (foreign, str(uuid4()))]
    assert refused[0] == refused[1]
    assert refused[0]["type"] == UNKNOWN
    assert name in refused[0]["detail"]
    assert len(await alice.cases(status="any")) == 1
    await alice.retain("repot the fern", **named(own))


async def test_a_retrieval_of_another_agent_is_refused_and_one_that_is_not_known_leaves_the_run(alice: User, bob: User):
    await fill(alice, ["water the garden"])
    another = (await alice.retrieve("water the garden", agent="another"))["retrieval_id"]
    refused = await problem(alice, retrieval_id=another)
    assert (refused["type"], "retrieval_id" in refused["detail"]) == (UNKNOWN, True)
    foreign = (await bob.retrieve("water the garden"))["retrieval_id"]
    for unknown in (foreign, str(uuid4())):
        body = {"agent": AGENT, "task": "repot the fern", "outcome": "success", "retrieval_id": unknown}
        first, answer = [
            (await alice.http.post("/v1/retain", json=body, headers={"Idempotency-Key": unknown})).json()
            for _ in range(2)
        ]
        assert answer == {**first, "status": answer["status"]}  # which the worker may have changed meanwhile
        assert answer["warnings"] == [f"retrieval_id: no retrieval {unknown} is known; the run is stored without one"]
        assert (await alice.case(answer["case_id"]))["retrieval_id"] is None


async def test_what_a_slate_showed_may_be_named_though_it_was_deleted_since(alice: User):
    (shown,) = await fill(alice, ["water the garden"])
    slate = await alice.retrieve("water the garden")
    assert ids(slate) == [shown]
    await alice.http.delete(f"/v1/cases/{shown}")
    used = {"retrieval_id": slate["retrieval_id"], "used_case_ids": [shown]}
    await alice.retain("repot the fern", **used)
    await problem(alice, used_case_ids=[shown])


async def test_a_repeat_of_an_acknowledged_run_is_acknowledged_though_its_parent_is_gone(alice: User):
    (parent,) = await fill(alice, ["water the garden"])
    run = {"kind": "subtask", "parent_case_id": parent}
    first = await alice.retain("repot the fern", key="once", **run)
    await alice.http.delete(f"/v1/cases/{parent}")
    assert await alice.retain("repot the fern", key="once", **run) == first
    await problem(alice, key="twice", **run)


@pytest.mark.parametrize(("said", "referred"), [({}, 2), ({"used_case_ids": None}, 2), ({"used_case_ids": []}, 0)])
async def test_a_run_that_cannot_say_what_it_used_refers_to_its_whole_slate(
    said: dict[str, Any], referred: int, alice: User
):
    await fill(alice, ["water the garden", "water the lawn"])
    slate = await alice.retrieve("water the garden")
    case_id = await alice.retain("repot the fern", retrieval_id=slate["retrieval_id"], **said)
    assert (await alice.case(case_id))["reference_case_ids"] == ids(slate)[:referred]
    (listed,) = [each for each in await alice.cases(status="any") if each["case_id"] == case_id]
    assert listed["reference_case_ids"] == ids(slate)[:referred]


async def test_the_id_of_something_else_is_no_retrieval(alice: User):
    fact = {"agent": AGENT, "kind": "goal", "text": "I want to run a marathon"}
    fact_id = (await alice.http.post("/v1/facts", json=fact)).json()["fact_id"]
    case_id = await alice.retain("water the garden")
    for wrong in (fact_id, case_id):
        body = {"agent": AGENT, "task": "mow the lawn", "retrieval_id": wrong}
        answer = await alice.http.post("/v1/retain", json=body)
        assert (answer.status_code, "of something else" in answer.text) == (422, True), answer.text
        step = {"number": 1, "tool": "mow"}
        answer = await alice.http.post(f"/v1/runs/{uuid4()}/steps", json={**body, "steps": [step]})
        assert (answer.status_code, "of something else" in answer.text) == (422, True), answer.text
