"""A model that calls tools drives the whole loop over the wire: it asks for its goals, acts, and what came is kept.

The model is scripted and speaks OpenAI's protocol from a server of its own; the backend is the ten lines that anybody
would write with OpenAI's package, casebank's client and the definitions as the service answers them.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from casebank_client import Casebank
from openai import OpenAI

from tests.fakes.chat_server import ChatServer, completion
from tests.fakes.openai_server import Response, as_json
from tests.processes import Service, bank, migrated_home, until, worked

AGENT = "coach"
ASKED = "How much do I have to put aside now? I moved to Leeds, by the way."
TRANSFER = {"type": "function", "function": {"name": "transfer", "parameters": {"type": "object", "properties": {}}}}


class CallingModel(ChatServer):
    """Asks for the user's goals, then does what they say, and then says so: each by what it was answered before."""

    def _chat(self, payload: dict[str, Any], _fault: object) -> Response:
        answers = [each["content"] for each in payload["messages"] if each["role"] == "tool"]
        offered = {tool["function"]["name"] for tool in payload["tools"]}
        assert {"get_my_goals", "recall", "transfer"} <= offered
        if not answers:
            return as_json(calling("get_my_goals", {"query": "put aside a month"}))
        if len(answers) == 1:
            amount = "500" if "500 EUR a month" in answers[0] else "nothing"
            return as_json(calling("transfer", {"amount": amount}))
        return as_json(completion(f"Done: {answers[1]}"))


def calling(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call-{name}", "type": "function", "function": function}
    return completion(None, "tool_calls", tool_calls=[call])


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with migrated_home() as home, Service(home) as service:
        yield service


def run_of_the_backend(model: OpenAI, service: Service, user: str) -> str:
    """One request of the user, as a backend serves it: the model acts by its tools, and the client keeps the run."""
    http = httpx.Client(base_url=service.url, headers=service.bearer(user), params={"agent": AGENT}, timeout=60)
    token = service.bearer(user)["Authorization"].removeprefix("Bearer ")
    definitions = httpx.get(f"{service.url}/v1/memory-tools", headers=service.bearer(user), timeout=60).json()["tools"]
    memory_tools = {each["function"]["name"] for each in definitions}
    messages: list[Any] = [{"role": "user", "content": ASKED}]
    with Casebank(service.url, token) as memory, memory.run(AGENT, ASKED, turns=messages) as run, http:
        while True:
            said = model.chat.completions.create(model="m", messages=messages, tools=[*definitions, TRANSFER])
            message = said.choices[0].message
            messages.append({"role": "assistant", "content": message.content or ""})
            for call in message.tool_calls or []:
                if call.function.name in memory_tools:
                    given = json.loads(call.function.arguments)
                    answer = http.post(f"/v1/memory-tools/{call.function.name}", json=given).json()["text"]
                else:
                    answer = f"transferred {json.loads(call.function.arguments)['amount']} EUR"
                    run.tool(call.function.name, json.loads(call.function.arguments), answer)
                messages[-1] |= {"tool_calls": [call.model_dump()]}
                messages.append({"role": "tool", "tool_call_id": call.id, "content": answer})
            if not message.tool_calls:
                run.success()
                return message.content or ""


def test_a_model_asks_for_its_goals_and_acts_and_the_run_and_the_new_facts_are_kept_without_a_further_call(
    service: Service,
):
    user = "ann"
    with service.client(user) as client, CallingModel() as fake:
        goal = {"agent": AGENT, "kind": "goal", "text": "I want to put aside 500 EUR a month"}
        assert client.post("/v1/facts", json=goal).status_code == 201
        model = OpenAI(base_url=fake.base_url, api_key="made-up", max_retries=0)
        assert run_of_the_backend(model, service, user) == "Done: transferred 500 EUR"

        (case,) = until(lambda: bank(client))
        worked(client, case["case_id"])
        assert (case["outcome"], case["retrieval_id"] is not None) == ("success", True)
        whole = client.get(f"/v1/cases/{case['case_id']}").json()
        assert [trace["tool"] for trace in whole["tool_traces"]] == ["transfer"]
        assert "500 EUR a month" in json.dumps(whole["turns"])  # what it was told, and so did
        facts = until(lambda: client.get("/v1/facts", params={"kind": "fact"}).json()["facts"])
        assert [(fact["said_by"], "Leeds" in fact["text"]) for fact in facts] == [("user", True)]

        told = client.post("/v1/memory-tools/recall", params={"agent": AGENT}, json={"query": ASKED}).json()["text"]
        assert "Leeds" in told
        assert "put aside 500 EUR" in told
