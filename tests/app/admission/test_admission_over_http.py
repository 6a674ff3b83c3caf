"""What a caller over a limit is answered, over HTTP, and what everybody else is."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import asyncpg
import httpx
import pytest
from prometheus_client import REGISTRY

from app.admission.admission import Wanted
from app.main import create_app
from app.postgres import EmbeddedPostgres
from app.postgres.pools import dsn
from app.settings import Settings
from tests.app.bad_input import is_problem, run
from tests.conftest import new_database
from tests.service import AGENT, Service, User
from writer.rights.erase import erase

AT_ONCE = {"user": 6, "agent": 5, "session": 3}
PENDING = 4
AN_HOUR_S = 3600.0


@pytest.fixture(scope="module")
async def service(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A service whose worker is somewhere else, so that what is retained stays in the queue."""
    per_minute = {f"{who}_{kind}": 600 for who in AT_ONCE for kind in ("reads", "writes")}
    settings = Settings(
        home=Path(tmp_path_factory.mktemp("home")),
        database_url=database_url,
        jwt_secret=os.urandom(32).hex(),
        master_key=os.urandom(32).hex(),
        explore=False,
        worker_in_service=False,
        timeouts_s={"turn": 0.001},
        limits={**per_minute, "burst_s": 60.0, "user_pending": PENDING, "pending": 1_000},
    )
    app = create_app(settings)
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        yield Service(app, settings, clients)


@pytest.fixture
def quotas(service: Service) -> Any:
    """Sets how many requests may come at once, one of which comes back in an hour."""
    before = dict(service.runtime.admission.quotas)
    mine = service.runtime.admission.quotas
    for (scope, kind), quota in before.items():
        mine[scope, kind] = type(quota)(quota.name, AT_ONCE[scope], AN_HOUR_S)
    yield mine
    mine.update(before)


async def ask(user: User, agent: str = AGENT, **headers: str) -> httpx.Response:
    return await user.http.post("/v1/retrieve", json={"agent": agent, "query": "water"}, headers=headers)


async def statuses(user: User, times: int, agent: str = AGENT, **headers: str) -> list[int]:
    return [(await ask(user, agent, **headers)).status_code for _ in range(times)]


def refused(limit: str) -> float:
    return REGISTRY.get_sample_value("casebank_refused_total", {"limit": limit}) or 0


async def test_an_agent_over_its_limit_is_told_when_to_come_back(quotas: Any, alice: User):
    before = refused("agent-reads")
    assert await statuses(alice, 5) == [200] * 5
    answer = await ask(alice)
    assert answer.status_code == 429
    problem = is_problem(answer)
    assert problem["type"] == "urn:casebank:problem:rate-exceeded"
    assert problem["violated-policies"] == ["agent-reads"]
    assert AN_HOUR_S - 60 < int(answer.headers["Retry-After"]) <= AN_HOUR_S
    wait = datetime.fromisoformat(problem["retry_at"]) - datetime.now(UTC)
    assert timedelta(minutes=59) < wait <= timedelta(hours=1)
    assert answer.headers["RateLimit-Policy"] == '"agent-reads";q=5;w=18000'
    assert answer.headers["RateLimit"] == f'"agent-reads";r=0;t={answer.headers["Retry-After"]}'
    assert refused("agent-reads") == before + 1


async def test_another_agent_goes_on_until_the_user_has_used_up_theirs(quotas: Any, alice: User):
    assert await statuses(alice, 4) == [200] * 4
    assert await statuses(alice, 3, "another") == [200, 200, 429]


async def test_a_message_of_the_model_context_protocol_counts_for_the_agent_of_the_settings(quotas: Any, alice: User):
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    message, accept = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, "application/json, text/event-stream"
    answers = [await alice.http.post("/mcp", json=message, headers={"Accept": accept}) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert answers[-1].json()["violated-policies"] == ["agent-writes"]


async def test_every_request_that_names_an_agent_counts_once_for_it(quotas: Any, alice: User, bob: User):
    assert (await alice.http.put(f"/v1/profiles/{AGENT}", json={"k": 2})).status_code == 200
    impact = [await alice.http.get("/v1/impact", params={"agent": AGENT}) for _ in range(5)]
    assert [answer.status_code for answer in impact] == [200] * 5
    posts = ["/v1/policy/rollback"] * 3 + ["/v1/policy/train"] * 3
    answers = [await bob.http.post(path, json={"agent": AGENT}) for path in posts]
    assert [answer.status_code for answer in answers] == [404] * 5 + [429]
    assert answers[-1].json()["violated-policies"] == ["agent-writes"]


async def test_a_question_for_a_known_call_counts_for_the_agent_in_its_body(quotas: Any, alice: User, bob: User):
    path, call = f"/v1/runs/{uuid4()}/known", {"tool": "read_file", "query": "/a.py"}
    answers = [await alice.http.post(path, json={**call, "agent": AGENT}) for _ in range(6)]
    assert [answer.status_code for answer in answers] == [200] * 5 + [429]
    assert is_problem(answers[-1])["violated-policies"] == ["agent-reads"]
    answers = [await bob.http.post(path, json=call) for _ in range(7)]
    assert is_problem(answers[-1])["violated-policies"] == ["user-reads"]


async def test_of_a_list_of_memories_beyond_the_limit_of_its_agent_no_memory_is_stored(quotas: Any, alice: User):
    memory = {"metadata": {"status": "no_failure_detected"}, "agent": AGENT}
    rows = [memory | {"content": f"add a column named {name}"} for name in "abcdef"]
    refused = await alice.http.post("/rest/v1/context_eng_memories", json=rows)
    assert (refused.status_code, is_problem(refused)["violated-policies"]) == (429, ["agent-writes"])
    assert await alice.rows("SELECT 1 FROM cases WHERE user_sub = :user_sub") == []


async def test_a_session_has_a_limit_of_its_own_and_names_made_up_widen_nothing(quotas: Any, alice: User):
    assert await statuses(alice, 4, **{"X-Casebank-Session": "s"}) == [200] * 3 + [429]
    made_up = [(await ask(alice, **{"X-Casebank-Session": f"s{n}"})).status_code for n in range(4)]
    assert made_up == [200, 200, 429, 429]  # the fourth of the session counted for the user, too


@pytest.mark.parametrize("name", ["", "s" * 129])
async def test_a_session_without_a_name_or_with_a_long_one_is_no_session(name: str, alice: User):
    answer = await ask(alice, **{"X-Casebank-Session": name})
    assert answer.status_code == 422
    is_problem(answer)


async def test_reads_and_writes_and_users_are_limited_apart(quotas: Any, alice: User, bob: User):
    assert await statuses(alice, 7) == [200] * 5 + [429] * 2
    assert (await alice.http.put(f"/v1/profiles/{AGENT}", json={"k": 2})).status_code == 200
    assert await statuses(bob, 5) == [200] * 5


async def test_a_good_answer_tells_what_is_left(quotas: Any, alice: User):
    for left in (5, 4):
        answer = await alice.http.get("/v1/cases")
        assert answer.headers["RateLimit-Policy"] == '"user-reads";q=6;w=21600'
        assert answer.headers["RateLimit"].startswith(f'"user-reads";r={left};t=')
    answer = await alice.http.get("/v1/tools", params={"agent": AGENT}, headers={"X-Casebank-Session": "s"})
    told = [item.partition(";t=")[0] for item in answer.headers["RateLimit"].split(", ")]
    assert told == ['"user-reads";r=3', '"session-reads";r=2', '"agent-reads";r=4']


async def test_who_may_not_come_in_at_all_uses_up_nothing(quotas: Any, service: Service, alice: User):
    stranger = await service.http(service.token(alice.name, audience="elsewhere"))
    for _ in range(10):
        assert (await stranger.get("/v1/cases")).status_code == 401
    assert (await alice.http.get("/v1/cases")).status_code == 200


async def test_a_token_of_an_erased_user_is_gone_and_not_limited(quotas: Any, service: Service):
    user = await service.user()
    await erase(service.runtime.database, user.name)
    assert await statuses(user, 8) == [410] * 8


async def test_a_user_with_too_many_runs_in_the_queue_keeps_nothing_more_until_there_is_room(
    service: Service, alice: User, bob: User, database_url: str
):
    backlog = service.runtime.admission.backlog
    for number in range(PENDING):
        while (await alice.http.post("/v1/retain", json=run(task=f"task {number}"))).status_code == 429:
            await backlog.look()  # what came during the last look was counted twice
    answer = await alice.http.post("/v1/retain", json=run())
    assert answer.status_code == 429
    problem = is_problem(answer)
    assert (problem["type"], problem["violated-policies"]) == ("urn:casebank:problem:backlog-full", ["user-pending"])
    assert int(answer.headers["Retry-After"]) >= 1
    assert (await ask(alice)).status_code == 200  # to read, and to give feedback, needs no room
    await bob.retain("task")
    owner = await asyncpg.connect(dsn(database_url))
    await owner.execute("UPDATE cases SET status = 'dead' WHERE user_sub = $1", alice.name)
    await owner.close()
    await backlog.look()
    await alice.retain("one more")


async def test_when_the_queue_is_full_everybody_is_told_when_to_come_back(service: Service, alice: User):
    backlog = service.runtime.admission.backlog
    backlog.in_all, before = backlog.bounds.in_all, backlog.in_all
    answer = await alice.http.post("/v1/retain", json=run())
    backlog.in_all = before
    assert answer.status_code == 503
    problem = is_problem(answer)
    assert problem["type"] == "urn:casebank:problem:queue-full"
    assert 1 <= int(answer.headers["Retry-After"]) <= AN_HOUR_S
    assert datetime.fromisoformat(problem["retry_at"]) > datetime.now(UTC)


async def test_a_flood_gets_an_answer_to_each_request_and_a_bystander_theirs(service: Service, alice: User, bob: User):
    answers = await asyncio.gather(*(ask(alice) for _ in range(80)))
    counted = {status: sum(answer.status_code == status for answer in answers) for status in (200, 429)}
    assert counted[200] > 0
    assert sum(counted.values()) == 80
    assert (await ask(bob)).status_code == 200
    assert service.runtime.admission.turns.running == 0


async def test_readyz_tells_the_bounds_of_the_queue(service: Service):
    anybody = await service.http(None)
    assert (await anybody.get("/readyz")).json()["bounds"] == {"per_user": PENDING, "in_all": 1_000}


def test_every_post_that_reads_is_known_as_such(service: Service):
    posts = {path for path, methods in service.app.openapi()["paths"].items() if "post" in methods}
    reading = {
        *("/v1/retrieve", "/v1/recall", "/v1/advice", "/v1/rewrite", "/v1/procedures/search"),
        "/v1/runs/{run_id}/known",
        *(f"/v1/memory-tools/{name}" for name in ("recall", "get_my_goals", "get_tool_suggestions")),
        "/functions/v1/hybrid-search-context-eng",
    }
    assert {path for path in posts if Wanted("POST", path).kind == "reads"} == reading
    assert [Wanted(*of).kind for of in (("GET", "/v1/cases"), ("DELETE", "/v1/cases/1"))] == ["reads", "writes"]


def test_the_documentation_tells_of_the_limits(service: Service):
    for path, methods in service.app.openapi()["paths"].items():
        for operation in methods.values():
            if path.startswith("/v1/"):
                assert set(operation["responses"]["429"]["headers"]) == {"Retry-After", "RateLimit", "RateLimit-Policy"}
                names = {parameter["name"] for parameter in operation["parameters"]}
                assert "X-Casebank-Session" in names


async def test_limits_can_be_switched_off(postgres: EmbeddedPostgres, tmp_path: Path):
    settings = Settings(
        home=tmp_path,
        jwt_secret=os.urandom(32).hex(),
        master_key=os.urandom(32).hex(),
        database_url=await new_database(postgres),
        limits="off",
        worker_in_service=False,
    )
    app = create_app(settings)
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        user = await Service(app, settings, clients).user()
        assert await statuses(user, 5) == [200] * 5
        for number in range(3):
            await user.retain(f"task {number}")
        assert "RateLimit" not in (await ask(user)).headers
