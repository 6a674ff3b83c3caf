"""Runs the workflow files as n8n would, a single item at a time; expressions and code are run by Node."""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx
import jsonschema

from tests.app.javascript import JavaScript
from tests.paths import ROOT
from tests.service import Service

FOLDER = ROOT / "app" / "n8n"
FLOWS: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
TRIGGERS = {"webhook", "executeWorkflowTrigger"}

_EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_EXECUTIONS = count(1)

Item = dict[str, Any]
Agent = Callable[[Item], Item]


def kind(node: Mapping[str, Any]) -> str:
    return str(node["type"]).removeprefix("n8n-nodes-base.")


def trigger(flow: Mapping[str, Any]) -> dict[str, Any]:
    (found,) = [node for node in flow["nodes"] if kind(node) in TRIGGERS]
    return found


def following(flow: Mapping[str, Any], name: str, output: int = 0) -> list[str]:
    outputs = flow["connections"].get(name, {"main": []})["main"]
    return [wire["node"] for wire in outputs[output]] if output < len(outputs) else []


def nodes(*kinds: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    return ((flow, node) for flow in FLOWS.values() for node in flow["nodes"] if kind(node) in kinds)


class FlowFailed(Exception):
    """A node failed, and the flow with it."""


@dataclass(frozen=True)
class Request:
    """What a node sent."""

    method: str
    path: str
    body: Any
    headers: Mapping[str, str]


def operation(service: Service, method: str, path: str) -> dict[str, Any] | None:
    """What the service documents of the request; None of a path that it has not."""
    for template, methods in service.app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\{[^}]+\}", "[^/]+", template), path):
            return methods.get(method.lower())
    return None


def valid(service: Service, request: Request) -> None:
    documented = operation(service, request.method, request.path)
    assert documented is not None, request
    if request.body is not None:
        schema = documented["requestBody"]["content"]["application/json"]["schema"]
        jsonschema.validate(request.body, {**schema, "components": service.app.openapi()["components"]})


@dataclass
class Replay:
    """One execution of a workflow against the service; ``pinned`` nodes answer what a test says."""

    client: httpx.AsyncClient
    javascript: JavaScript
    pause: Callable[[str, float], Awaitable[object]]
    """What happens while a Wait node waits: its name, and how long in its unit."""
    pinned: Mapping[str, Agent] = field(default_factory=dict)
    sent: list[Request] = field(default_factory=list)
    """Each request, those of the called workflows included."""
    said: dict[str, Item] = field(default_factory=dict)
    """What each node of this workflow gave last."""
    called: dict[str, Item] = field(default_factory=dict)
    """What the workflows gave that this one called."""
    response: tuple[int, Any] | None = None
    """Status and body that the webhook was answered with."""
    runs: Counter[str] = field(default_factory=Counter)
    flow: Mapping[str, Any] = field(default_factory=dict)
    execution: int = field(default_factory=lambda: next(_EXECUTIONS))

    async def run(self, flow: Mapping[str, Any], given: Item) -> Item:
        """Returns what the last node gave."""
        self.flow = flow
        nodes = {node["name"]: node for node in flow["nodes"]}
        start = trigger(flow)["name"]
        self.said[start] = last = given
        pending = [(name, given) for name in following(flow, start)]
        while pending:
            name, item = pending.pop(0)
            output, last = await self._node(nodes[name], item)
            self.runs[name] += 1
            self.said[name] = last
            pending += [(after, last) for after in following(flow, name, output)]
        return last

    async def _node(self, node: Mapping[str, Any], item: Item) -> tuple[int, Item]:
        """Returns the number of the output that the item leaves by, and the item."""
        if node["name"] in self.pinned:
            return 0, self.pinned[node["name"]](item)
        if kind(node) == "if":
            return (0 if self.holds(node, item) else 1), item
        if kind(node) == "httpRequest":
            return await self._request(node, item)
        acts = {"set": self._set, "executeWorkflow": self._call, "code": self._code, "wait": self._wait}
        acts |= {"respondToWebhook": self._respond, "stopAndError": self._stop}
        return 0, await acts[kind(node)](node, item)

    def holds(self, node: Mapping[str, Any], item: Item) -> bool:
        """Returns whether all conditions of the node hold."""
        return all(
            _compare(
                condition["operator"]["operation"],
                self.value(condition["leftValue"], item, node["name"]),
                self.value(condition["rightValue"], item, node["name"]),
            )
            for condition in node["parameters"]["conditions"]["conditions"]
        )

    async def _set(self, node: Mapping[str, Any], item: Item) -> Item:
        parameters = node["parameters"]
        given = {
            each["name"]: _typed(each["type"], self.value(each["value"], item, node["name"]))
            for each in parameters["assignments"]["assignments"]
        }
        return {**item, **given} if parameters.get("includeOtherFields") else given

    async def _code(self, node: Mapping[str, Any], item: Item) -> Item:
        return self._run(node["parameters"]["jsCode"], item, node["name"])

    async def _wait(self, node: Mapping[str, Any], item: Item) -> Item:
        await self.pause(node["name"], self.value(node["parameters"]["amount"], item, node["name"]))
        return item

    async def _respond(self, node: Mapping[str, Any], item: Item) -> Item:
        parameters = node["parameters"]
        body = self.value(parameters["responseBody"], item, node["name"])
        self.response = parameters["options"].get("responseCode", 200), body
        return item

    async def _stop(self, node: Mapping[str, Any], item: Item) -> Item:
        raise FlowFailed(self.value(node["parameters"]["errorMessage"], item, node["name"]))

    async def _request(self, node: Mapping[str, Any], item: Item) -> tuple[int, Item]:
        error: Item = {}
        for _ in range(node.get("maxTries", 1) if node.get("retryOnFail") else 1):
            try:
                answer = await self._send(node, item)
            except httpx.TransportError as gone:
                error = {"message": str(gone)}
                continue
            if answer.is_success:
                return 0, answer.json()
            error = {"message": answer.text, "status": answer.status_code}
        if node.get("onError") == "continueErrorOutput":
            return 1, {**item, "error": error}
        if node.get("onError") == "continueRegularOutput":
            return 0, {"error": error}
        raise FlowFailed(error["message"])

    async def _send(self, node: Mapping[str, Any], item: Item) -> httpx.Response:
        parameters, name = node["parameters"], node["name"]
        url = httpx.URL(self.value(parameters["url"], item, name))
        body = None
        if parameters.get("specifyBody") == "json":
            body = self.value(parameters["jsonBody"], item, name)
        elif parameters.get("sendBody"):
            body = self._pairs(parameters["bodyParameters"], item, name)
        headers = self._pairs(parameters["headerParameters"], item, name) if parameters.get("sendHeaders") else {}
        self.sent.append(Request(parameters["method"], url.path, body, headers))
        return await self.client.request(parameters["method"], url.path, json=body, headers=headers)

    def _pairs(self, given: Mapping[str, Any], item: Item, node: str) -> dict[str, Any]:
        return {pair["name"]: self.value(pair["value"], item, node) for pair in given["parameters"]}

    async def _call(self, node: Mapping[str, Any], item: Item) -> Item:
        wanted = node["parameters"]["workflowId"]["value"]
        (flow,) = [flow for flow in FLOWS.values() if flow["id"] == wanted]
        inputs = node["parameters"]["workflowInputs"]["value"]
        inner = Replay(self.client, self.javascript, self.pause, self.pinned, self.sent)
        given = {key: self.value(value, item, node["name"]) for key, value in inputs.items()}
        self.called[node["name"]] = answer = await inner.run(flow, given)
        return answer if node["parameters"]["options"]["waitForSubWorkflow"] else item

    def value(self, text: Any, item: Item, node: str) -> Any:
        """Returns a parameter's value; one that is nothing but an expression keeps its type."""
        if not isinstance(text, str) or not text.startswith("="):
            return text
        first = _EXPRESSION.match(text[1:])
        if first is not None and first.end() == len(text) - 1:
            return self._run(f"return ({first[1]});", item, node)
        return _EXPRESSION.sub(lambda found: str(self._run(f"return ({found[1]});", item, node)), text[1:])

    def _run(self, code: str, item: Item, node: str) -> Any:
        names = {"json": item, "runIndex": self.runs[node], "execution": {"id": str(self.execution)}}
        return self.javascript.run(code, self.said, **names, workflow={"id": self.flow.get("id")})


def _typed(wanted: str, value: Any) -> Any:
    """Returns a field's value as n8n's Set node gives it: null stays, and text is read as what was asked for."""
    if value is None or wanted == "string":
        return value
    value = json.loads(value) if isinstance(value, str) else value
    types = {"number": int | float, "boolean": bool, "array": list, "object": dict}
    assert isinstance(value, types[wanted]), f"{value!r} is no {wanted}"
    return value


def _compare(operation: str, left: Any, right: Any) -> bool:
    if operation in {"exists", "notEmpty", "true"}:
        return {"exists": left is not None, "notEmpty": bool(left), "true": left is True}[operation]
    return {"equals": left == right, "lt": left < right, "lte": left <= right}[operation]
