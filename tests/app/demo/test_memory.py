"""Memory over HTTP: what is sent, and that an operator works on where memory is broken."""

import json

import httpx
import pytest

from app.demo.memory import HttpMemory, NoMemory, RememberedCase, RememberedProcedure, slate_of
from app.demo.operator.house import House
from app.demo.operator.scratch import Scratch
from app.demo.run import run_arm


@pytest.mark.parametrize("answer", [httpx.Response(500), httpx.Response(200, json={"cases": 7}), httpx.Response(200)])
async def test_a_broken_memory_service_is_the_same_as_none(answer: httpx.Response, scratch: Scratch):
    transport = httpx.MockTransport(lambda _: answer)
    async with httpx.AsyncClient(transport=transport, base_url="http://memory") as client:
        memory = HttpMemory(client, agent="a")
        broken = await run_arm("with", memory, House(1, 8), scratch)
    alone = await run_arm("without", NoMemory(), House(1, 8), scratch)
    assert [record.steps for record in broken.records] == [record.steps for record in alone.records]
    assert len(memory.errors) == 16


async def test_the_http_memory_speaks_the_api(scratch: Scratch):
    seen: list[tuple[str, dict[str, object]]] = []
    states = iter(["pending", "ready"])

    def service(request: httpx.Request) -> httpx.Response:
        if request.method == "GET":
            return httpx.Response(200, json={"lessons": next(states)})
        seen.append((request.url.path, json.loads(request.content)))
        if request.url.path == "/v1/retain":
            assert request.headers["Idempotency-Key"]
            return httpx.Response(202, json={"case_id": "c1", "status": "pending", "redactions": []})
        plan = ["apply repair: append a data type to ADD COLUMN"]
        slate = [{"case_id": "c0", "task": "t", "plan": plan, "outcome": "success"}]
        told = [{"id": "p0", "version": 2, "kind": "revision", "steps": ["Call sql with `SELECT 1`."], "uses": 1.5}]
        text = slate_of([RememberedCase("c0", "t", tuple(plan), "success")]).text
        answer = {"retrieval_id": "r1", "cases": slate, "procedures": told, "memory_context": text, "tokens": 12}
        return httpx.Response(200, json=answer)

    async with httpx.AsyncClient(transport=httpx.MockTransport(service), base_url="http://memory") as client:
        memory = HttpMemory(client, agent="a")
        arm = await run_arm("with", memory, House(1, 1), scratch)
        (procedure,) = (await memory.retrieve("a task")).procedures
    (_, asked), (_, kept), (path, judged), _ = seen
    assert (path, judged) == ("/v1/feedback", {"case_id": "c1", "reward": 1.0, "source": "metric"})
    assert "reward" not in kept  # a reward that comes with its run proves nothing
    assert procedure == RememberedProcedure("p0", 2, "revision", ("Call sql with `SELECT 1`.",))
    assert asked["query"] == kept["task"] == "Add a last_name column to the users table"
    assert kept["outcome"] == "success"
    assert (kept["retrieval_id"], kept["used_case_ids"], kept["used_procedure_ids"]) == ("r1", ["c0"], [])
    assert (arm.records[0].first_try, arm.records[0].steps, arm.records[0].tokens) == (True, 3, 12)
