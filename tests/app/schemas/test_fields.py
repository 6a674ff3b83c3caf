"""A number that its column cannot hold is refused, and not met by the database."""

from typing import Any

import pytest

from tests.service import AGENT, User

TINY = 1e-50
RUN = {"agent": AGENT, "task": "water the garden", "outcome": "success"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/retain", RUN | {"reward": TINY}),
        ("POST", "/v1/retrieve", {"agent": AGENT, "query": "q", "min_similarity": 1e-320}),
        ("POST", "/v1/retrieve", {"agent": AGENT, "query": "q", "full_text_weight": TINY}),
        ("POST", "/v1/retrieve", {"agent": AGENT, "query": "q", "rrf_k": 1e-300}),
        ("POST", "/v1/retrieve", {"agent": AGENT, "query": "q", "semantic_weight": TINY}),
        ("PUT", f"/v1/profiles/{AGENT}", {"explore": TINY}),
        ("PUT", f"/v1/profiles/{AGENT}", {"canary": TINY}),
        ("PUT", f"/v1/profiles/{AGENT}", {"shares": {"session": TINY}}),
        ("PUT", f"/v1/profiles/{AGENT}", {"procedure_similarity": 1e-46}),
        ("PUT", f"/v1/profiles/{AGENT}", {"llm_tokens_per_day": 2**31}),
        ("POST", "/v1/procedures/search", {"agent": AGENT, "trigger": "t", "min_similarity": 1e-320}),
    ],
    ids=str,
)
async def test_a_number_out_of_its_columns_range_is_refused(alice: User, method: str, path: str, body: dict[str, Any]):
    await alice.retain("so that there is a profile")
    answer = await alice.http.request(method, path, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["type"] == "urn:casebank:problem:invalid-request"


async def test_a_reward_out_of_its_columns_range_is_refused_when_it_comes_later(alice: User):
    case_id = await alice.retain("water the garden")
    answer = await alice.http.post("/v1/feedback", json={"case_id": case_id, "reward": TINY})
    assert answer.status_code == 422, answer.text


async def test_a_call_that_took_no_time_to_speak_of_leaves_its_case_ready(alice: User):
    traces = [{"tool": "sql", "input": "SELECT 1", "output": "1", "duration_ms": TINY}]
    case_id = await alice.retain("count to one", tool_traces=traces)
    await alice.settle()
    assert (await alice.case(case_id))["status"] == "ready"
