"""The n8n workflows: files that n8n can import, whose requests do against the service what they are for."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from retrieval.quoting import quoted
from tests.app.conftest import AGENT, Service, User
from tests.app.n8n import FLOWS, FlowFailed, Item, Replay, following, kind, trigger
from writer.run import LearnedProcedure

SCHEMA = json.loads((Path(__file__).parent / "n8n_workflow.schema.json").read_text())
EACH = pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)
TASK = 'Add a "last_name" column to the {{ users }} table'


def nodes(*kinds: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    return ((flow, node) for flow in FLOWS.values() for node in flow["nodes"] if kind(node) in kinds)


# The files


def test_there_are_a_rewriter_an_analyst_and_a_master():
    assert list(FLOWS) == ["analyst", "master", "rewriter"]


@EACH
def test_each_file_has_the_form_of_an_n8n_export(flow: dict[str, Any]):
    jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(flow)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("typeVersion",), 9),
        (("position",), [1]),
        (("parameters", "method"), "FETCH"),
        (("parameters", "specifyBody"), "json"),
        (("parameters", "headers"), {}),
        (("credentials", "httpHeaderAuth"), {"id": "1", "name": "n", "value": "Bearer x"}),
        (("type",), "n8n-nodes-base.unknown"),
    ],
)
def test_the_form_refuses_what_n8n_would_not_understand(place: tuple[str, ...], value: Any):
    broken = json.loads(json.dumps(FLOWS["rewriter"]))
    (part,) = [node for node in broken["nodes"] if node["name"] == "Rewrite"]
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, SCHEMA)


@EACH
def test_every_connection_leads_from_a_node_to_a_node_and_every_node_is_reached(flow: dict[str, Any]):
    names = [node["name"] for node in flow["nodes"]]
    assert len(names) == len(set(names))
    reached, pending = set(), [trigger(flow)["name"]]
    while pending:
        name = pending.pop()
        reached.add(name)
        after = [each for output in range(2) for each in following(flow, name, output)]
        pending += set(after) - reached
    assert set(flow["connections"]) <= set(names)
    assert reached == {node["name"] for node in flow["nodes"] if kind(node) != "stickyNote"}


@EACH
def test_expressions_name_nodes_of_their_workflow(flow: dict[str, Any]):
    named = set(re.findall(r"\$\('([^']+)'\)", json.dumps([node["parameters"] for node in flow["nodes"]])))
    assert named <= {node["name"] for node in flow["nodes"]}


def test_workflows_call_each_other_with_the_inputs_that_these_declare():
    ids = {flow["id"]: flow for flow in FLOWS.values()}
    assert len(ids) == len(FLOWS)
    calls = [node for _, node in nodes("executeWorkflow")]
    assert len(calls) == 2
    for call in calls:
        called = ids[call["parameters"]["workflowId"]["value"]]
        declared = trigger(called)["parameters"]["workflowInputs"]["values"]
        assert {each["name"] for each in declared} == set(call["parameters"]["workflowInputs"]["value"])
        assert call["parameters"]["workflowId"]["cachedResultName"] == called["name"]


def test_no_file_holds_a_token_and_every_request_goes_where_the_settings_say():
    assert not re.search(r"Bearer [\w.-]{5,}|eyJ", json.dumps(FLOWS))
    for _, node in nodes("httpRequest"):
        assert node["parameters"]["url"].startswith("={{ $('Settings').first().json.casebank_url }}/")
    for flow in FLOWS.values():
        (settings,) = [node for node in flow["nodes"] if node["name"] == "Settings"]
        (url,) = [
            each for each in settings["parameters"]["assignments"]["assignments"] if each["name"] == "casebank_url"
        ]
        assert not url["value"].startswith("="), "whoever calls the workflow must not choose where the token goes"


# Their requests


def operation(service: Service, method: str, path: str) -> dict[str, Any] | None:
    """What the service documents of the request; None of a path that it has not."""
    for template, methods in service.app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", template), path):
            return methods.get(method.lower())
    return None


def valid(service: Service, method: str, path: str, body: Any) -> None:
    documented = operation(service, method, path)
    assert documented is not None, (method, path)
    if body is not None:
        schema = documented["requestBody"]["content"]["application/json"]["schema"]
        jsonschema.validate(body, {**schema, "components": service.app.openapi()["components"]})


@EACH
async def test_every_request_is_one_that_the_service_documents(service: Service, flow: dict[str, Any]):
    found = [node["parameters"] for owner, node in nodes("httpRequest") if owner is flow]
    assert found
    for parameters in found:
        path = re.sub(r"\{\{.*?\}\}", "x", parameters["url"].split("casebank_url }}")[1])
        assert operation(service, parameters["method"], path) is not None, path


def replay(user: User, **pinned: Any) -> Replay:
    return Replay(user.http, user.settle, pinned)


def webhook(task: str, agent: str = AGENT) -> Item:
    return {"headers": {}, "params": {}, "query": {}, "body": {"agent": agent, "task": task}}


FAILED_ONCE = [
    {
        "tool": "sql",
        "input": {"statement": "ALTER TABLE users ADD COLUMN last_name;"},
        "output": 'syntax error at or near ";"',
        "status": "error",
    },
    {
        "tool": "sql",
        "input": {"statement": "ALTER TABLE users ADD COLUMN last_name text;"},
        "output": "ALTER TABLE",
        "status": "ok",
    },
]
DONE = {"answer": "done", "outcome": "success", "plan": ["ALTER TABLE with the type"], "turns": [], "reward": 1}
ACT = "Act (replace me)"


async def test_the_rewriter_answers_a_query_and_sends_what_is_documented(alice: User):
    run = replay(alice)
    answer = await run.run(FLOWS["rewriter"], {"agent": AGENT, "query": TASK})
    assert set(answer) == {"query"}
    assert answer["query"]
    (request,) = run.sent
    valid(alice.service, *request)
    assert request[2] == {"agent": AGENT, "query": TASK}


async def test_the_rewriter_gives_the_message_back_where_the_service_refuses(service: Service):
    stranger = User("stranger", service, await service.http(None))
    assert await replay(stranger).run(FLOWS["rewriter"], {"agent": AGENT, "query": TASK}) == {"query": TASK}


async def test_the_analyst_answers_with_the_procedure_that_was_learned(alice: User):
    run = replay(alice)
    finished = {"agent": AGENT, "task": TASK, "outcome": "success", "tool_traces": FAILED_ONCE}
    answer = await run.run(FLOWS["analyst"], {"run": finished})
    case = await alice.case(answer.pop("case_id"))
    assert answer == case["procedure"]
    assert "syntax error" in LearnedProcedure.model_validate(answer).data.initial_failure_summary
    for request in run.sent:
        valid(alice.service, *request)


async def test_the_analyst_says_that_no_failure_was_detected(alice: User):
    finished = {"agent": AGENT, "task": TASK, "outcome": "success", "tool_traces": FAILED_ONCE[1:]}
    answer = await replay(alice).run(FLOWS["analyst"], {"run": finished})
    assert answer["status"] == "no_failure_detected"
    assert set(answer) == {"status", "case_id"}


async def test_the_analyst_fails_where_the_run_cannot_be_retained(alice: User):
    with pytest.raises(FlowFailed):
        await replay(alice).run(FLOWS["analyst"], {"run": {"agent": AGENT}})


@pytest.mark.parametrize(
    ("status", "times", "again"), [("pending", 0, True), ("pending", 29, True), ("pending", 30, False)]
)
def test_the_analyst_waits_while_the_case_is_pending_but_not_for_ever(
    alice: User, status: str, times: int, *, again: bool
):
    (node,) = [node for _, node in nodes("if") if node["name"] == "Still pending?"]
    run = replay(alice)
    run.runs[node["name"]] = times
    assert run.holds(node, {"status": status}) is again
    assert not run.holds(node, {"status": "ready"})
    assert following(FLOWS["analyst"], node["name"], 0) == ["Wait"]


async def test_the_master_retrieves_what_the_analyst_stored_and_rewards_the_retrieval(alice: User):
    seen: list[Item] = []

    def act(prompt: Item) -> Item:
        seen.append(prompt)
        return {**DONE, "tool_traces": FAILED_ONCE}

    await replay(alice, **{ACT: act}).run(FLOWS["master"], webhook(TASK))
    assert seen[0]["memory_context"] == ""
    again = 'Add an "age" column to the users table'
    run = replay(alice, **{ACT: act})
    answer = await run.run(FLOWS["master"], webhook(again))
    assert quoted(TASK) in seen[1]["memory_context"]
    assert run.said["Answer"]["answer"] == "done"
    case = await alice.case(answer["case_id"])
    assert (case["task"], case["reward"], case["retrieval_id"]) == (again, 1, seen[1]["retrieval_id"])
    (logged,) = await alice.rows(
        "SELECT reward FROM decisions WHERE user_sub = :user_sub AND id = :id", id=case["retrieval_id"]
    )
    assert logged.reward == 1
    for request in run.sent:
        valid(alice.service, *request)


async def test_the_master_as_it_is_imported_leaves_an_aborted_run_that_teaches_nothing(alice: User):
    answer = await replay(alice).run(FLOWS["master"], webhook(TASK))
    case = await alice.case(answer["case_id"])
    assert (case["outcome"], case["plan"], case["tools"]) == ("aborted", [], [])
    assert answer["status"] == "no_failure_detected"


async def test_the_master_acts_without_memories_where_the_service_refuses_but_does_not_pretend_to_retain(
    service: Service,
):
    stranger = User("stranger", service, await service.http(None))
    run = replay(stranger, **{ACT: lambda _: {**DONE, "tool_traces": []}})
    with pytest.raises(FlowFailed):
        await run.run(FLOWS["master"], webhook(TASK))
    assert run.said["Prompt"] == {"task": TASK, "memory_context": "", "retrieval_id": None}
    assert run.said["Answer"]["answer"] == "done"
