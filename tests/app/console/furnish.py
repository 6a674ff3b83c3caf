"""A user with something to show on every page, whose words are whatever a test puts in every field that takes some."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from policy.gate import GateSettings, judge
from tests.policies import stored
from tests.policy.worlds import two_arms
from tests.service import User
from writer.training import lifecycle


@dataclass(frozen=True)
class Furnished:
    """What there is, by what an address names it."""

    agent: str
    case_id: str
    retrieval_id: str
    procedure_id: str
    session: str
    tool: str
    fact_id: str
    knowledge_id: str
    run_id: str

    def pages(self) -> list[str]:
        """The address of every page that a user may look at."""
        plain = (
            "",
            "/decisions",
            "/bank",
            "/procedures",
            "/tools",
            "/sessions",
            "/facts",
            "/knowledge",
            "/shared-knowledge",
            "/runs",
            "/policy",
            "/known",
            "/user",
        )
        return [
            *(f"/console{path}" for path in plain),
            "/console/bank?q=restart",
            *self.named(),
            f"/console/procedures/{self.procedure_id}?before=1&after=2",
        ]

    def named(self) -> list[str]:
        """The address of every page about one of the things."""
        return [
            f"/console/decisions/{self.retrieval_id}",
            f"/console/cases/{self.case_id}",
            f"/console/procedures/{self.procedure_id}",
            f"/console/runs/{self.run_id}",
            str(httpx.URL("/console/session", params={"name": self.session})),
            str(httpx.URL("/console/tool", params={"name": self.tool})),
        ]


async def furnish(user: User, words: str = "restart the web server", agent: str = "operator") -> Furnished:
    """Returns a user's things: of each kind one at least, a procedure in two versions, and a policy with a verdict."""
    tool = f"tool {words}"[:180]
    first = await _retain(user, agent, words, tool)
    await user.settle()
    answer = await user.http.post("/v1/retrieve", json={"agent": agent, "query": words})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    (learned, *_) = (await _get(user, "/v1/procedures", agent=agent))["procedures"]
    body = {
        "agent": agent,
        "task": f"once more: {words}",
        "outcome": "failure",
        "retrieval_id": found["retrieval_id"],
        "used_procedure_ids": [learned["id"]],
        "tool_traces": [_call(tool, words, "error"), _call(tool, words, "error")],
    }
    assert (await user.http.post("/v1/retain", json=body)).status_code == 202
    session, said = f"chat {words.replace('/', '|')}"[:180], [{"role": "user", "content": f"I live in {words}"}]
    path = f"/v1/sessions/{quote(session, safe='')}/turns"
    told = await user.http.post(path, json={"agent": agent, "turns": said})
    assert told.status_code == 200, told.text
    await user.settle()
    fact = {"agent": agent, "kind": "fact", "text": words, "attribute": words[:60], "value": words[:60]}
    known = await user.http.post("/v1/facts", json=fact)
    assert known.status_code == 201, known.text
    entry = {"agent": agent, "category": words[:90], "type": words[:90], "title": words[:90], "text": words}
    kept = await user.http.post("/v1/knowledge", json=entry)
    assert kept.status_code == 201, kept.text
    await _policies(user, agent)
    tool = (await _get(user, "/v1/tools", agent=agent))["tools"][0]["tool"]
    ids = known.json()["fact_id"], kept.json()["knowledge_id"], await _run(user, agent, words)
    return Furnished(agent, first, found["retrieval_id"], learned["id"], session, tool, *ids)


async def _run(user: User, agent: str, words: str) -> str:
    """A run under way: it read a file, which it changed then, and looked something up."""
    run_id, path = str(uuid4()), f"notes/{words[:60]}.txt"
    steps: list[dict[str, Any]] = [
        {"number": 1, "tool": "read_file", "input": {"path": path}, "output": words},
        {"number": 2, "tool": "write_file", "input": {"path": path, "content": words}, "output": "written"},
        {
            "number": 3,
            "tool": "grep",
            "input": {"pattern": words[:60], "path": "logs"},
            "output": f"logs/a.txt:1:{words}",
        },
    ]
    body = {"agent": agent, "task": words, "steps": steps}
    answer = await user.http.post(f"/v1/runs/{run_id}/steps", json=body)
    assert answer.status_code == 200, answer.text
    return run_id


async def _retain(user: User, agent: str, words: str, tool: str) -> str:
    body: dict[str, Any] = {
        "agent": agent,
        "task": words,
        "plan": [words, "then look"],
        "tags": [words[:90]],
        "outcome": "success",
        "reward": 1,
        "reward_source": "user",
        "tool_traces": [_call(tool, words, "error"), _call(tool, f"{words} harder", "ok")],
        "turns": [{"role": words[:45], "content": words}],
        "prompt_snapshot": {words: words},
    }
    answer = await user.http.post("/v1/retain", json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()["case_id"]


def _call(tool: str, words: str, status: str) -> dict[str, Any]:
    output = f"error: {words} is missing" if status == "error" else words
    return {"tool": tool, "input": {"command": words}, "output": output, "status": status, "duration_ms": 20}


async def _policies(user: User, agent: str) -> None:
    verdict = judge(*two_arms(), GateSettings(resamples=50)).as_json()
    async with user.service.runtime.database.as_user(user.name, datetime.now(UTC)) as connection:
        await lifecycle.add(connection, user.name, agent, stored("serving"))
        await lifecycle.add(connection, user.name, agent, stored("candidate"))
        for row in await lifecycle.live_policies(connection, user.name, agent):
            await lifecycle.set_columns(connection, row, verdict=verdict)


async def _get(user: User, path: str, **query: Any) -> dict[str, Any]:
    answer = await user.http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def nobodys() -> Furnished:
    """Things that nobody has."""
    ids = [str(uuid4()) for _ in range(6)]
    return Furnished("operator", *ids[:3], "no session", "no tool", *ids[3:])
