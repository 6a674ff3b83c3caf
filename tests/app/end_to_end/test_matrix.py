"""Every endpoint against every kind of caller; an endpoint that is missing here fails the suite."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi.routing import iter_route_contexts

from app.console.page import Page
from app.mcp.installed import is_installed
from tests.policies import stored
from tests.service import AGENT, Service, User
from writer.training import lifecycle

MARK = "xylophone"
"""A word of Alice's that no answer to anybody else may hold."""


@dataclass(frozen=True)
class Things:
    """What a request may name: one user's own things, or things that nobody has."""

    case_id: str
    retrieval_id: str
    agent: str
    tool: str
    procedure_id: str
    run_id: str
    session_id: str
    fact_id: str
    knowledge_id: str


Body = Callable[[Things], dict[str, Any]]


@dataclass(frozen=True)
class Endpoint:
    """How to call it well, and with which status it then answers its owner."""

    method: str
    path: str
    status: int
    body: Body | None = None
    query: str = ""
    names: str = "nothing"  # nothing | a thing, which must then be the caller's own

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.names}"

    async def call(self, http: httpx.AsyncClient, things: Things) -> httpx.Response:
        path = self.path.format(**asdict(things), name=things.tool)
        path += self.query.format(agent=things.agent)
        return await http.request(self.method, path, json=self.body(things) if self.body else None)


def run(things: Things, **more: Any) -> dict[str, Any]:
    return {"agent": things.agent, "task": "tune a piano", "outcome": "success", **more}


def steps(things: Things) -> dict[str, Any]:
    return {"agent": things.agent, "task": "tune a piano", "steps": [{"number": 2, "tool": "tune"}]}


def written(things: Things) -> dict[str, Any]:
    finding = {"tool": "tune", "query": "a piano", "fact": "is out of tune"}
    return {"agent": things.agent, "task": "tune a piano", "findings": [finding]}


def failed(things: Things) -> dict[str, Any]:
    return {"agent": things.agent, "task": MARK, "tool": things.tool, "status": "error", "output": f"{MARK} is out"}


def turns(things: Things) -> dict[str, Any]:
    return {"agent": things.agent, "turns": [{"role": "user", "content": "tune a piano"}]}


def entry(things: Things) -> dict[str, Any]:
    return {"agent": things.agent, "category": "music", "text": "a piano has 88 keys"}


def checkpoint(things: Things) -> dict[str, Any]:
    return {"agent": things.agent, "thread_id": "a", "checkpoint_id": str(uuid4()), "parts": [{"value": MARK}]}


def tool(name: str, body: Body, names: str = "nothing") -> Endpoint:
    return Endpoint("POST", f"/v1/memory-tools/{name}", 200, body, "?agent={agent}", names)


def message(_: Things) -> dict[str, Any]:
    params = {"name": "recall", "arguments": {"query": MARK}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


CLOSED = [
    Endpoint("POST", "/v1/retain", 202, run),
    Endpoint("POST", "/v1/retain", 202, lambda it: run(it, retrieval_id=it.retrieval_id)),
    Endpoint(
        "POST",
        "/rest/v1/context_eng_memories",
        201,
        lambda it: {"agent": it.agent, "content": MARK, "metadata": {"status": "no_failure_detected"}},
    ),
    Endpoint("POST", "/v1/retrieve", 200, lambda it: {"agent": it.agent, "query": MARK}),
    Endpoint("POST", "/v1/advice", 200, failed),
    Endpoint("POST", "/v1/feedback", 200, lambda it: {"case_id": it.case_id, "thumb": "up"}, names="case"),
    Endpoint(
        "POST", "/v1/feedback", 200, lambda it: {"retrieval_id": it.retrieval_id, "reward": 0.5}, names="retrieval"
    ),
    Endpoint(
        "POST",
        "/functions/v1/hybrid-search-context-eng",
        200,
        lambda it: {"query": MARK, "agent": it.agent},
    ),
    Endpoint("GET", "/v1/decisions", 200),
    Endpoint("GET", "/v1/impact", 200, query="?agent={agent}", names="profile"),
    Endpoint("GET", "/v1/decisions/{retrieval_id}", 200, names="retrieval"),
    Endpoint("DELETE", "/v1/decisions/{retrieval_id}", 204, names="retrieval"),
    Endpoint("POST", "/v1/runs/{run_id}/steps", 200, steps),
    Endpoint("GET", "/v1/runs", 200),
    Endpoint("GET", "/v1/runs/{run_id}", 200, names="run"),
    Endpoint("DELETE", "/v1/runs/{run_id}", 204, names="run"),
    Endpoint("POST", "/v1/runs/{run_id}/findings", 201, written),
    Endpoint("POST", "/v1/runs/{run_id}/known", 200, lambda _: {"tool": "cat", "query": MARK}),
    Endpoint("GET", "/v1/runs/{run_id}/summary", 200, names="run"),
    Endpoint("DELETE", "/v1/runs/{run_id}/summary", 204, names="run"),
    Endpoint("POST", "/v1/sessions/{session_id}/turns", 200, turns),
    Endpoint("GET", "/v1/sessions", 200),
    Endpoint("GET", "/v1/sessions/{session_id}", 200, names="session"),
    Endpoint("DELETE", "/v1/sessions/{session_id}", 204, names="session"),
    Endpoint("POST", "/v1/facts", 201, lambda it: {"agent": it.agent, "kind": "fact", "text": "plays the piano"}),
    Endpoint("GET", "/v1/facts", 200),
    Endpoint("GET", "/v1/facts/{fact_id}", 200, names="fact"),
    Endpoint("DELETE", "/v1/facts/{fact_id}", 204, names="fact"),
    Endpoint("POST", "/v1/knowledge", 201, entry),
    Endpoint("GET", "/v1/knowledge", 200),
    Endpoint("GET", "/v1/knowledge/{knowledge_id}", 200, names="knowledge"),
    Endpoint("PUT", "/v1/knowledge/{knowledge_id}", 200, entry, names="knowledge"),
    Endpoint("DELETE", "/v1/knowledge/{knowledge_id}", 204, names="knowledge"),
    Endpoint("PUT", "/v1/checkpoints", 204, checkpoint),
    Endpoint("GET", "/v1/checkpoints", 200, query="?agent={agent}"),
    Endpoint("DELETE", "/v1/checkpoints", 204, query="?agent={agent}&thread_id=a"),
    Endpoint("POST", "/v1/recall", 200, lambda it: {"agent": it.agent, "query": MARK}),
    Endpoint("POST", "/functions/v1/hybrid-search-context-eng", 200, lambda _: {"query": MARK}),  # of all agents
    Endpoint("GET", "/v1/cases", 200),
    Endpoint("GET", "/v1/cases/{case_id}", 200, names="case"),
    Endpoint("PATCH", "/v1/cases/{case_id}", 200, lambda _: {"tags": ["seen"]}, names="case"),
    Endpoint("DELETE", "/v1/cases/{case_id}", 204, names="case"),
    Endpoint("GET", "/v1/profiles", 200),
    Endpoint("GET", "/v1/profiles/{agent}", 200, names="profile"),
    Endpoint("PUT", "/v1/profiles/{agent}", 200, lambda _: {"k": 3}),
    Endpoint("GET", "/v1/policy", 200, query="?agent={agent}"),
    Endpoint("POST", "/v1/policy/train", 202, lambda it: {"agent": it.agent}, names="profile"),
    Endpoint("POST", "/v1/policy/rollback", 200, lambda it: {"agent": it.agent}, names="policy"),
    Endpoint("GET", "/v1/tools", 200, query="?agent={agent}"),
    Endpoint("GET", "/v1/tools/{name}/memory", 200, query="?agent={agent}", names="tool"),
    Endpoint("POST", "/v1/rewrite", 200, lambda it: {"agent": it.agent, "query": "tune a piano"}),
    Endpoint("GET", "/v1/profiles/{agent}/usage", 200),
    Endpoint("GET", "/v1/profiles/{agent}/statistics", 200, names="profile"),
    Endpoint("POST", "/v1/procedures/search", 200, lambda it: {"agent": it.agent, "trigger": MARK}),
    Endpoint("GET", "/v1/procedures", 200),
    Endpoint("GET", "/v1/procedures/sample", 200),
    Endpoint("POST", "/v1/procedures/{procedure_id}/review", 200, lambda _: {"verdict": "good"}, names="procedure"),
    Endpoint("GET", "/v1/procedures/{procedure_id}", 200, names="procedure"),
    Endpoint("GET", "/v1/procedures/{procedure_id}/versions", 200, names="procedure"),
    Endpoint("GET", "/v1/procedures/{procedure_id}/diff", 200, query="?from=1&to=1", names="procedure"),
    Endpoint("POST", "/v1/procedures/{procedure_id}/pin", 200, lambda _: {"version": 1}, names="procedure"),
    Endpoint("POST", "/v1/procedures/{procedure_id}/retire", 200, names="procedure"),
    Endpoint("GET", "/v1/memory-tools", 200),
    tool("get_my_goals", lambda _: {"query": MARK}),
    tool("get_tool_suggestions", lambda _: {"query": MARK}),
    tool("recall", lambda _: {"query": MARK}),
    tool("remember", lambda _: {"kind": "fact", "text": "plays the piano"}),
    tool("remember", lambda _: {"kind": "run", "text": "tune a piano", "outcome": "success"}),
    tool(
        "remember", lambda it: {"kind": "feedback", "outcome": "success", "retrieval_id": it.retrieval_id}, "retrieval"
    ),
    tool("forget", lambda it: {"id": it.fact_id}, "fact"),
    tool("forget", lambda it: {"id": it.procedure_id}, "procedure"),
    Endpoint("POST", "/mcp", 200 if is_installed() else 501, message, query="?agent={agent}"),
    Endpoint("GET", "/v1/audit", 200),
    Endpoint(
        "POST", "/v1/users/begin-again", 404, lambda _: {"erased_at": "2026-01-01T00:00:00Z"}
    ),  # nobody was erased
]
RESOURCE = "/.well-known/oauth-protected-resource"
OPEN = [Endpoint("GET", path, 200) for path in ("/", "/healthz", "/readyz", "/metrics", RESOURCE, f"{RESOURCE}/mcp")]
DOCUMENTATION = {("GET", path) for path in ("/openapi.json", "/docs", "/docs/oauth2-redirect")}
DOCUMENTATION |= {("ANY", "/static-offline-docs")}
READING = [endpoint for endpoint in CLOSED if endpoint.method == "GET"]
CHANGING = [endpoint for endpoint in CLOSED if endpoint.method != "GET"]
NAMING = [endpoint for endpoint in CLOSED if endpoint.names != "nothing"]


@pytest.fixture
async def hers(endpoint: Endpoint, alice: User) -> Things:
    """Alice's things, for a request that may change them; one that names none of them needs none."""
    return nobodys() if endpoint.names == "nothing" else await made_by(alice)


@pytest.fixture(scope="module")
async def carol(service: Service) -> User:
    return await service.user()


@pytest.fixture(scope="module")
async def kept(carol: User) -> Things:
    """Carol's things, for all the requests that must change none of them."""
    return await made_by(carol)


async def made_by(alice: User) -> Things:
    """Makes a profile, a ready case, the procedure learned from it, a retrieval that found both, and all the others."""
    agent = f"agent-{uuid4()}"
    tool = f"{MARK}/tune"
    traces = [{"tool": tool, "input": {MARK: MARK}}]
    case_id = await alice.retain(f"tune a {MARK}", agent=agent, tags=[MARK], prompt_snapshot=MARK, tool_traces=traces)
    await alice.settle()
    answer = await alice.http.post("/v1/retrieve", json={"agent": agent, "query": MARK})
    assert [slot["case_id"] for slot in answer.json()["cases"]] == [case_id]
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        await lifecycle.add(connection, alice.name, agent, stored("serving"))
    (told,) = answer.json()["procedures"]
    run_id = str(uuid4())
    step = {"number": 1, "tool": tool, "output": MARK}
    body = {"agent": agent, "task": f"tune a {MARK}", "steps": [step]}
    assert (await alice.http.post(f"/v1/runs/{run_id}/steps", json=body)).status_code == 200
    session_id = f"chat {uuid4()}"
    said = {"agent": agent, "turns": [{"role": "user", "content": MARK}]}
    assert (await alice.http.post(f"/v1/sessions/{session_id}/turns", json=said)).status_code == 200
    known = {"agent": agent, "kind": "fact", "text": f"plays the {MARK}"}
    fact_id = (await alice.http.post("/v1/facts", json=known)).json()["fact_id"]
    entry = {"agent": agent, "category": MARK, "title": MARK, "text": f"the {MARK} has bars"}
    knowledge_id = (await alice.http.post("/v1/knowledge", json=entry)).json()["knowledge_id"]
    ids = told["id"], run_id, session_id, fact_id, knowledge_id
    return Things(case_id, answer.json()["retrieval_id"], agent, tool, *ids)


def nobodys() -> Things:
    ids = [str(uuid4()) for _ in range(7)]
    return Things(ids[0], ids[1], f"agent-{uuid4()}", f"tool-{uuid4()}", *ids[2:])


def test_every_route_of_the_service_is_in_the_matrix(service: Service):
    served = {
        (method, route.path.replace(":path", ""))
        for route in iter_route_contexts(service.app.routes)
        if not isinstance(route.original_route, Page)  # of the console, whose every page tests/app/console asks for
        for method in route.methods or {"ANY"}
        if method != "HEAD"
    }
    tested = {(endpoint.method, endpoint.path) for endpoint in CLOSED + OPEN}
    assert served == tested | DOCUMENTATION


def test_the_documentation_lists_the_same_endpoints(service: Service):
    paths = service.app.openapi()["paths"]
    documented = {(method.upper(), path) for path, operations in paths.items() for method in operations}
    assert documented == {(endpoint.method, endpoint.path) for endpoint in CLOSED + OPEN}


@pytest.mark.parametrize("endpoint", CHANGING, ids=str)
async def test_the_owner_gets_what_they_ask_for(endpoint: Endpoint, alice: User, hers: Things):
    answer = await endpoint.call(alice.http, hers)
    assert answer.status_code == endpoint.status, answer.text


@pytest.mark.parametrize("endpoint", READING, ids=str)
async def test_the_owner_reads_what_they_ask_for(endpoint: Endpoint, carol: User, kept: Things):
    answer = await endpoint.call(carol.http, kept)
    assert answer.status_code == endpoint.status, answer.text


@pytest.mark.parametrize("endpoint", NAMING, ids=str)
async def test_another_users_things_answer_exactly_like_things_that_nobody_has(
    endpoint: Endpoint, bob: User, kept: Things
):
    await bob.retain("tune a piano")  # Bob is a user with a bank of his own
    theirs, unknown = await endpoint.call(bob.http, kept), await endpoint.call(bob.http, nobodys())
    assert theirs.status_code == unknown.status_code == 404
    assert theirs.content == unknown.content
    assert theirs.headers.pop("x-request-id") != unknown.headers.pop("x-request-id")
    assert dict(theirs.headers) == dict(unknown.headers)


@pytest.mark.parametrize("endpoint", CLOSED, ids=str)
async def test_nothing_of_another_user_is_in_any_answer_and_nothing_of_theirs_changes(
    endpoint: Endpoint, carol: User, bob: User, kept: Things
):
    before = [await carol.case(kept.case_id), await carol.rows("SELECT * FROM decisions WHERE user_sub = :user_sub")]
    answer = await endpoint.call(bob.http, kept)
    assert MARK not in answer.text
    assert kept.case_id not in answer.text
    await bob.settle()
    after = [await carol.case(kept.case_id), await carol.rows("SELECT * FROM decisions WHERE user_sub = :user_sub")]
    assert after == before


@pytest.mark.parametrize("endpoint", CLOSED, ids=str)
async def test_without_a_good_token_nobody_gets_in(endpoint: Endpoint, service: Service, carol: User, kept: Things):
    tokens = {
        "none": None,
        "expired": service.token(carol.name, age=timedelta(hours=2)),
        "wrong audience": service.token(carol.name, audience="another service"),
        "not a token": "let-me-in",
    }
    before = await carol.case(kept.case_id)
    for name, token in tokens.items():
        answer = await endpoint.call(await service.http(token), kept)
        assert answer.status_code == 401, name
        assert answer.headers["content-type"] == "application/problem+json", name
        assert answer.headers["www-authenticate"].split()[0] == "Bearer", name
        assert MARK not in answer.text, name
    assert await carol.case(kept.case_id) == before


@pytest.mark.parametrize("endpoint", CLOSED, ids=str)
async def test_acting_for_a_user_needs_the_scope_for_it(
    endpoint: Endpoint, service: Service, carol: User, kept: Things
):
    plain = await service.http(service.token("backend", scope="casebank:read"))
    plain.headers["X-Casebank-User"] = carol.name
    refused = await endpoint.call(plain, kept)
    assert refused.status_code == 403
    assert MARK not in refused.text


@pytest.mark.parametrize("endpoint", CHANGING, ids=str)
async def test_a_backend_with_the_scope_gets_what_the_user_gets(endpoint: Endpoint, alice: User, hers: Things):
    backend = await alice.backend()
    assert (await endpoint.call(backend.http, hers)).status_code == endpoint.status


@pytest.mark.parametrize("endpoint", READING, ids=str)
async def test_a_backend_with_the_scope_reads_what_the_user_reads(endpoint: Endpoint, carol: User, kept: Things):
    backend = await carol.backend()
    assert (await endpoint.call(backend.http, kept)).status_code == endpoint.status


@pytest.mark.parametrize("endpoint", OPEN, ids=str)
async def test_health_and_metrics_are_open_and_name_nobody(
    endpoint: Endpoint, service: Service, carol: User, kept: Things
):
    answer = await endpoint.call(await service.http(None), nobodys())
    assert answer.status_code == endpoint.status
    for told in (carol.name, kept.case_id, kept.agent, MARK):
        assert told not in answer.text


async def test_the_backend_is_the_actor_in_the_audit_of_the_user_it_acted_for(service: Service, alice: User):
    backend = await service.http(service.token("backend", scope="casebank:act-as"))
    body = {"agent": AGENT, "task": "tune a piano", "outcome": "success"}
    retained = await backend.post("/v1/retain", json=body, headers={"X-Casebank-User": alice.name})
    await alice.settle()  # the worker writes the entry
    (entry,) = (await alice.http.get("/v1/audit")).json()["entries"]
    assert (entry["actor"], entry["subject_id"]) == ("backend", retained.json()["case_id"])
    assert UUID(entry["id"])
