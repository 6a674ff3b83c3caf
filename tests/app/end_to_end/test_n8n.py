"""The n8n workflows as files: such as n8n can import, whose requests the service knows."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.app.n8n import FLOWS, following, kind, nodes, operation, trigger
from tests.service import Service

SCHEMA = json.loads((Path(__file__).parent / "n8n_workflow.schema.json").read_text())
EACH = pytest.mark.parametrize("flow", FLOWS.values(), ids=FLOWS)


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
        after = {each for output in range(2) for each in following(flow, name, output)}
        pending += after - reached
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


@EACH
async def test_every_request_is_one_that_the_service_documents(service: Service, flow: dict[str, Any]):
    found = [node["parameters"] for owner, node in nodes("httpRequest") if owner is flow]
    assert found
    for parameters in found:
        path = re.sub(r"\{\{.*?\}\}", "x", parameters["url"].split("casebank_url }}")[1])
        assert operation(service, parameters["method"], path) is not None, path
