"""Runs the workflow files as n8n would: a single item, and of its expressions the few that the files use."""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.paths import ROOT

FOLDER = ROOT / "app" / "n8n"
FLOWS: dict[str, dict[str, Any]] = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
TRIGGERS = {"webhook", "executeWorkflowTrigger"}

_EXPRESSION = re.compile(r"\{\{([^{}]*)\}\}")
_PATH = re.compile(r"(?:\$json|\$\('(?P<node>[^']+)'\)\.first\(\)\.json)(?P<keys>(?:\??\.\w+)*)")

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


class FlowFailed(Exception):
    """A node failed, and the flow with it."""


@dataclass
class Replay:
    """One execution of a workflow against the service; ``pinned`` nodes answer what a test says."""

    client: httpx.AsyncClient
    pause: Callable[[], Awaitable[object]]
    pinned: Mapping[str, Agent] = field(default_factory=dict)
    sent: list[tuple[str, str, Any]] = field(default_factory=list)
    """Method, path and body of each request, those of the called workflows included."""
    said: dict[str, Item] = field(default_factory=dict)
    """What each node of this workflow gave last."""
    runs: Counter[str] = field(default_factory=Counter)

    async def run(self, flow: Mapping[str, Any], given: Item) -> Item:
        """Returns what the last node gave."""
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
        if kind(node) == "wait":
            await self.pause()
        act = {"set": self._set, "httpRequest": self._request, "executeWorkflow": self._call}.get(kind(node))
        return 0, item if act is None else await act(node, item)

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

    async def _request(self, node: Mapping[str, Any], item: Item) -> Item:
        parameters, name = node["parameters"], node["name"]
        url = httpx.URL(self.value(parameters["url"], item, name))
        body = None
        if parameters.get("specifyBody") == "json":
            body = self.value(parameters["jsonBody"], item, name)
        elif parameters.get("sendBody"):
            pairs = parameters["bodyParameters"]["parameters"]
            body = {pair["name"]: self.value(pair["value"], item, name) for pair in pairs}
        self.sent.append((parameters["method"], url.path, body))
        answer = await self.client.request(parameters["method"], url.path, json=body)
        if answer.is_success:
            return answer.json()
        if node.get("onError") != "continueRegularOutput":
            raise FlowFailed(answer.text)
        return {"error": answer.text}

    async def _call(self, node: Mapping[str, Any], item: Item) -> Item:
        wanted = node["parameters"]["workflowId"]["value"]
        (flow,) = [flow for flow in FLOWS.values() if flow["id"] == wanted]
        inputs = node["parameters"]["workflowInputs"]["value"]
        inner = Replay(self.client, self.pause, self.pinned, self.sent)
        return await inner.run(flow, {key: self.value(value, item, node["name"]) for key, value in inputs.items()})

    def value(self, text: Any, item: Item, node: str) -> Any:
        """Returns a parameter's value; one that is nothing but an expression keeps its type."""
        if not isinstance(text, str) or not text.startswith("="):
            return text
        if (whole := _EXPRESSION.fullmatch(text[1:])) is not None:
            return self._evaluated(whole[1], item, node)
        return _EXPRESSION.sub(lambda found: str(self._evaluated(found[1], item, node)), text[1:])

    def _evaluated(self, expression: str, item: Item, node: str) -> Any:
        found = None
        for part in expression.split("||"):
            found = self._term(part.strip(), item, node)
            if found:
                break
        return found

    def _term(self, term: str, item: Item, node: str) -> Any:
        if term == "$runIndex":
            return self.runs[node]
        if term == "null":
            return None
        if term[0] == term[-1] == "'":
            return term[1:-1]
        path = _PATH.fullmatch(term)
        assert path is not None, f"{term} is more than this reads"
        found: Any = self.said[path["node"]] if path["node"] else item
        for key in re.findall(r"\w+", path["keys"]):
            found = found.get(key) if isinstance(found, dict) else None
        return found


def _typed(wanted: str, value: Any) -> Any:
    """Returns a field's value as n8n's Set node gives it: null stays, and text is read as what was asked for."""
    if value is None or wanted == "string":
        return value
    value = json.loads(value) if isinstance(value, str) else value
    types = {"number": int | float, "boolean": bool, "array": list, "object": dict}
    assert isinstance(value, types[wanted]), f"{value!r} is no {wanted}"
    return value


def _compare(operation: str, left: Any, right: Any) -> bool:
    if operation == "exists":
        return left is not None
    return left == right if operation == "equals" else left < right
