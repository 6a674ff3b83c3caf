"""What nobody should send: a clear problem document, nothing of the value in it, and the queue keeps moving."""

import gzip
from collections.abc import Iterator
from secrets import token_hex
from typing import Any
from uuid import uuid4

import pytest

from tests.app.bad_input import CANARY, is_problem, queue_moves, raw, run, send
from tests.service import AGENT, User


def trace(output: Any) -> dict[str, Any]:
    return run(tool_traces=[{"tool": "hose", "output": output}])


NOBODYS = "00000000-0000-4000-8000-000000000000"
"""The id of a case that nobody has."""

BAD_RUNS = {
    "unknown field": run(colour=CANARY),
    "unknown field in a trace": run(tool_traces=[{"tool": "hose", "colour": CANARY}]),
    "no task": {"agent": AGENT, "outcome": "success", "plan": [CANARY]},
    "empty task": run(task="", plan=[CANARY]),
    "empty agent": run(agent="", task=CANARY),
    "empty step": run(plan=["", CANARY]),
    "task of a wrong type": run(task=[CANARY]),
    "task too long": run(task=CANARY * 2_000),
    "agent too long": run(agent=CANARY * 20),
    "too many steps": run(plan=[CANARY] * 201),
    "too many tags": run(tags=[CANARY] * 51),
    "NUL in the agent": run(agent=f"{CANARY}\x00"),
    "lone surrogate in the task": run(task=f"{CANARY}\ud800"),
    "lone surrogate in the agent": run(agent=f"{CANARY}\udfff"),
    "lone surrogate in a tag": run(tags=[f"{CANARY}\ud800"]),
    "lone surrogate in an output": trace(f"{CANARY}\ud800"),
    "lone surrogate in a key of an output": trace({f"{CANARY}\ud800": 1}),
    "lone surrogate in a turn": run(turns=[{"role": "user", "content": f"{CANARY}\ud800"}]),
    "lone surrogate in the prompt": run(prompt_snapshot={"system": [f"{CANARY}\ud800"]}),
    "unknown outcome": run(outcome=CANARY),
    "unknown source": run(reward=1, reward_source=CANARY),
    "unknown status of a tool": run(tool_traces=[{"tool": "hose", "status": CANARY}]),
    "reward in words": run(reward=CANARY),
    "reward of NaN": run(reward=float("nan")),
    "reward of infinity": run(reward=float("inf")),
    "reward over 1": run(reward=1.0000001),
    "reward under 0": run(reward=-0.1),
    "negative duration": run(tool_traces=[{"tool": "hose", "duration_ms": -1}]),
    "no id of a retrieval": run(retrieval_id=CANARY),
    "no ids of cases": run(used_case_ids=[CANARY]),
    "incomplete procedure": run(procedure={"data": {"procedure_name": CANARY}}),
    "a list": [CANARY],
    "a text": CANARY,
    "null": None,
}

BAD_BYTES = {
    "nothing": b"",
    "no JSON": f"agent={CANARY}".encode(),
    "half of it": raw(run(plan=[CANARY]))[:-1],
    "two of them": raw(run()) * 2,
    "no UTF-8": b'{"agent": "\xff", "task": "' + CANARY.encode() + b'"}',
    "a number nobody needs": b'{"agent": ' + b"9" * 5_000 + b', "task": "' + CANARY.encode() + b'"}',
    "brackets that never close": b"[" * 100_000,
    "objects that never close": b'{"a":' * 100_000,
}


@pytest.mark.parametrize("name", BAD_RUNS)
async def test_a_bad_run_is_refused_and_stores_nothing(name: str, alice: User):
    answer = await send(alice, "/v1/retain", raw(BAD_RUNS[name]))
    assert answer.status_code == 422
    problem = is_problem(answer)
    assert problem["errors"]
    assert await alice.cases(status="any") == []
    await queue_moves(alice)


@pytest.mark.parametrize("name", BAD_BYTES)
async def test_what_is_not_json_is_refused(name: str, alice: User):
    hosted = "/functions/v1/hybrid-search-context-eng", "/rest/v1/context_eng_memories"
    for path in ("/v1/retain", "/v1/retrieve", "/v1/feedback", *hosted):
        answer = await send(alice, path, BAD_BYTES[name])
        assert answer.status_code in {413, 422}, path
        is_problem(answer)
    await queue_moves(alice)


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
@pytest.mark.parametrize("size", [1, 40_000])
async def test_a_number_that_is_not_finite_is_refused_wherever_it_stands(number: bytes, size: int, alice: User):
    call = b'{"number": 1, "tool": "hose", "input": {"litres": %s}, "output": "%s"}' % (number, b"x" * size)
    steps = b'{"agent": "operator", "task": "water the garden", "steps": [%s]}' % call
    retained = raw(run(prompt_snapshot={"seen": 0})).replace(b"0", number)
    for path, body in ((f"/v1/runs/{uuid4()}/steps", steps), ("/v1/retain", retained)):
        answer = await send(alice, path, body)
        assert answer.status_code == 422, path
        (error,) = is_problem(answer)["errors"]
        assert error["message"] == "A number is not finite: send null or a text in its place"
    assert await alice.cases(status="any") == []


@pytest.mark.parametrize("size", [1, 40_000])
async def test_a_body_that_does_not_say_it_is_json_is_a_415(size: int, alice: User):
    body = raw(run(plan=["step"] * (size // 200), prompt_snapshot="x" * size))
    answer = await send(alice, "/v1/retain", body, **{"Content-Type": "text/plain"})
    assert answer.status_code == 415
    assert is_problem(answer)["type"] == "urn:casebank:problem:body-not-json"
    assert "application/json" in answer.json()["detail"]


@pytest.mark.parametrize("size", [1, 40_000])
async def test_a_compressed_body_is_a_415_that_says_so(size: int, alice: User):
    body = gzip.compress(raw(run(prompt_snapshot=token_hex(size))))
    answer = await send(alice, "/v1/retain", body, **{"Content-Encoding": "gzip"})
    assert answer.status_code == 415
    assert "without compression" in is_problem(answer)["detail"]


@pytest.mark.parametrize("depth", [100, 200, 240, 250, 260, 300, 500, 900, 1_500, 20_000])
async def test_deeply_nested_json_is_kept_or_refused(depth: int, alice: User):
    deep = b'{"agent": "operator", "task": "water the garden", "outcome": "success", "prompt_snapshot": %s%s}'
    answer = await send(alice, "/v1/retain", deep % (b"[" * depth, b"]" * depth))
    if answer.status_code == 202:
        await alice.settle()
        case = await alice.case(answer.json()["case_id"])
        assert case["status"] == "ready"
        assert case["prompt_snapshot"] is not None
    else:
        assert answer.status_code in {400, 413, 422}
        is_problem(answer)
    await queue_moves(alice)


async def test_nesting_that_tools_really_answer_with_is_kept(alice: User):
    deep: Any = "core"
    for _ in range(100):
        deep = {"in": [deep]}
    case_id = await alice.retain("water the garden", prompt_snapshot=deep)
    await alice.settle()
    assert (await alice.case(case_id))["prompt_snapshot"] == deep


@pytest.mark.parametrize(
    "value",
    [2**63, 2**64, -(2**70), 10**100, 1e308, "\x00", {"\x00": "\x00"}, "", {}, [], [None, True]],
    ids=repr,
)
async def test_any_json_that_a_tool_may_answer_is_kept_as_it_is(value: Any, alice: User):
    case_id = await alice.retain("water the garden", tool_traces=[{"tool": "hose", "output": value}])
    await alice.settle()
    case = await alice.case(case_id)
    assert case["status"] == "ready"
    assert case["tool_traces"][0]["output"] == value


NUL_IN_EACH_TEXT = [
    ("/v1/retain", run(task="a\x00b", plan=["c\x00"], tags=["d\x00"])),
    ("/v1/retain", run(tool_traces=[{"tool": "e\x00", "input": {"\x00": "\x00"}, "output": "f\x00"}])),
    ("/v1/retain", run(tool_traces=[{"tool": "e", "output": "Error: f\x00 not found", "status": "error"}])),
    ("/v1/retain", run(turns=[{"role": "user\x00", "name": "g\x00", "content": "h\x00"}])),
    (
        "/v1/sessions/nul/turns",
        {"agent": AGENT, "turns": [{"role": "tool", "tool_call_id": "c\x001", "content": "a\x00b\x00"}]},
    ),
    (
        "/v1/sessions/nul/turns",
        {"agent": AGENT, "turns": [{"role": "user", "content": [{"type": "text", "text": "i\x00"}]}]},
    ),
    (
        "/v1/runs/01990a51-5f10-7c22-8d41-9c1e2a3b4c5d/steps",
        {"agent": AGENT, "task": "j\x00", "steps": [{"number": 1, "tool": "k\x00", "output": "l\x00"}]},
    ),
    ("/v1/retrieve", {"agent": AGENT, "query": "m\x00n", "filters": {"tags": ["o\x00"]}}),
    ("/v1/recall", {"agent": AGENT, "query": "p\x00q"}),
    ("/v1/facts", {"agent": AGENT, "kind": "goal", "text": "r\x00s"}),
    ("/v1/knowledge", {"agent": AGENT, "category": "x\x00", "title": "t\x00", "text": "u\x00v"}),
    ("/v1/procedures/search", {"agent": AGENT, "trigger": "w\x00x"}),
]


@pytest.mark.parametrize(("path", "body"), NUL_IN_EACH_TEXT, ids=str)
async def test_a_nul_is_taken_in_every_text(path: str, body: dict[str, Any], alice: User):
    answer = await send(alice, path, raw(body))
    assert answer.status_code in {200, 201, 202}, answer.text
    await alice.settle()
    assert await alice.cases(status="dead") == []


async def test_nan_in_a_tools_answer_is_kept_as_null_or_refused(alice: User):
    answer = await send(alice, "/v1/retain", raw(trace(float("nan"))))
    assert answer.status_code in {202, 422}
    if answer.status_code == 202:
        await alice.settle()
        assert (await alice.case(answer.json()["case_id"]))["tool_traces"][0]["output"] is None


def steps(words: Iterator[str]) -> list[str]:
    """As many of the words as a search text of 100,000 characters can hold, in steps."""
    plan, step = [], ""
    for word in words:
        if step and len(step) + len(word) + 1 > 499:
            plan.append(step)
            step = ""
        if len(plan) == 200:
            break
        step += f"{word} "
    return plan


def _rare(number: int) -> str:
    """A word of two letters of four bytes each, another one for each number."""
    return chr(0x20000 + number % 40_000) + chr(0x20000 + number // 40_000)


HARD_TO_INDEX = {
    "distinct words": (f"{number:x}" for number in range(100_000)),
    "distinct words of four-byte letters": (_rare(number) for number in range(100_000)),
    "distinct compounds of four-byte letters": (f"{_rare(n)}-{_rare(n + 70_000)}" for n in range(30_000)),
    "distinct addresses": (f"h{n:x}.example.com/p{n:x}/q{n:x}" for n in range(30_000)),
    "one word without end": ("x" * 499 for _ in range(300)),
    "one sign": ("\U0001f600" * 499 for _ in range(300)),
}


@pytest.mark.parametrize("name", HARD_TO_INDEX)
async def test_a_text_of_any_words_can_be_indexed_and_found(name: str, alice: User):
    plan = steps(HARD_TO_INDEX[name])
    assert sum(map(len, plan)) > 90_000
    case_id = await alice.retain("water the garden", plan=plan)
    await alice.settle()
    assert (await alice.case(case_id))["status"] == "ready"
    found = await alice.retrieve("water the garden")
    assert [slot["case_id"] for slot in found["cases"]] == [case_id]


BAD_QUESTIONS = {
    "unknown field": {"colour": CANARY},
    "empty query": {"query": ""},
    "query of a wrong type": {"query": [CANARY]},
    "query too long": {"query": CANARY * 2_000},
    "lone surrogate in the query": {"query": f"{CANARY}\ud800"},
    "empty agent": {"agent": ""},
    "k of 0": {"k": 0},
    "k of 1000": {"k": 1_000},
    "k of a half": {"k": 1.5},
    "k without end": {"k": 10**30},
    "negative budget": {"token_budget": -1},
    "similarity over 1": {"min_similarity": 1.1},
    "similarity of NaN": {"min_similarity": float("nan")},
    "negative weight": {"full_text_weight": -1},
    "infinite weight": {"semantic_weight": float("inf")},
    "rrf_k of 0": {"rrf_k": 0},
    "unknown kind": {"filters": {"kinds": [CANARY]}},
    "unknown outcome": {"filters": {"outcomes": [CANARY]}},
    "unknown filter": {"filters": {CANARY[:4]: [CANARY]}},
    "lone surrogate in a tag": {"filters": {"tags": [f"{CANARY}\ud800"]}},
}


@pytest.mark.parametrize("name", BAD_QUESTIONS)
async def test_a_bad_question_is_refused_and_not_logged(name: str, alice: User):
    body = {"agent": AGENT, "query": "water", **BAD_QUESTIONS[name]}
    answer = await send(alice, "/v1/retrieve", raw(body))
    assert answer.status_code == 422
    assert is_problem(answer)["errors"]
    assert await alice.rows("SELECT id FROM decisions WHERE user_sub = :user_sub") == []


@pytest.mark.parametrize("query", ["&|!:*()<->'\"\\", "';--", "the of and", "\U0001f600", "%s %(x)s :name"])
async def test_a_query_of_signs_alone_is_answered(query: str, alice: User):
    await alice.retain("water the garden")
    await alice.settle()
    answer = await alice.retrieve(query)
    assert answer["mode"] in {"hybrid", "keyword", "empty"}


BAD_FEEDBACK = {
    "nothing": {},
    "no subject": {"reward": 1},
    "no reward": {"case_id": str(uuid4())},
    "two rewards": {"case_id": str(uuid4()), "reward": 1, "thumb": "up"},
    "reward of NaN": {"case_id": str(uuid4()), "reward": float("nan")},
    "reward over 1": {"case_id": str(uuid4()), "reward": 2},
    "unknown thumb": {"case_id": str(uuid4()), "thumb": CANARY},
    "unknown source": {"case_id": str(uuid4()), "reward": 1, "source": CANARY},
    "no id": {"case_id": CANARY, "reward": 1},
    "unknown field": {"case_id": str(uuid4()), "reward": 1, "colour": CANARY},
}


@pytest.mark.parametrize("name", BAD_FEEDBACK)
async def test_bad_feedback_is_refused(name: str, alice: User):
    answer = await send(alice, "/v1/feedback", raw(BAD_FEEDBACK[name]))
    assert answer.status_code == 422
    assert is_problem(answer)["errors"]


BAD_REQUESTS = [
    ("GET", "/v1/cases?limit=0", None, 422),
    ("GET", "/v1/cases?limit=201", None, 422),
    ("GET", f"/v1/cases?limit={CANARY}", None, 422),
    ("GET", f"/v1/cases?cursor={CANARY}", None, 422),
    ("GET", f"/v1/cases?status={CANARY}", None, 422),
    ("GET", "/v1/cases?agent=", None, 422),
    ("GET", f"/v1/cases?agent={CANARY}%00", None, 422),
    ("GET", f"/v1/cases/{CANARY}", None, 422),
    ("GET", f"/v1/cases/{NOBODYS}", None, 404),
    ("PATCH", f"/v1/cases/{NOBODYS}", {}, 422),
    ("PATCH", f"/v1/cases/{NOBODYS}", {"tags": [CANARY, ""]}, 422),
    ("PATCH", f"/v1/cases/{NOBODYS}", {"tags": [], "reward": CANARY}, 422),
    ("PATCH", f"/v1/cases/{NOBODYS}", {"tags": [CANARY]}, 404),
    ("DELETE", f"/v1/cases/{CANARY}", None, 422),
    ("GET", f"/v1/profiles/{CANARY}%00", None, 422),
    ("GET", f"/v1/profiles/{CANARY}", None, 404),
    ("PUT", f"/v1/profiles/{AGENT}", {"k": 0}, 422),
    ("PUT", f"/v1/profiles/{AGENT}", {"k": 1_000}, 422),
    ("PUT", f"/v1/profiles/{AGENT}", {"window_size": 0}, 422),
    ("PUT", f"/v1/profiles/{AGENT}", {"ttl_days": 0}, 422),
    ("PUT", f"/v1/profiles/{AGENT}", {"enabled": CANARY}, 422),
    ("PUT", f"/v1/profiles/{AGENT}", {"colour": CANARY}, 422),
    ("PUT", f"/v1/profiles/{CANARY * 20}", {}, 422),
    ("GET", f"/v1/audit?limit=0&agent={CANARY}", None, 422),
    ("GET", f"/v1/audit?cursor={CANARY}", None, 422),
    ("GET", f"/v1/{CANARY}", None, 404),
    ("PUT", "/v1/retain", {"task": CANARY}, 405),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), BAD_REQUESTS)
async def test_a_bad_request_is_answered_with_a_problem(method: str, path: str, body: Any, status: int, alice: User):
    answer = await alice.http.request(method, path, json=body)
    assert answer.status_code == status
    is_problem(answer)


@pytest.mark.parametrize("key", ["", "k" * 256], ids=["empty", "too long"])
async def test_a_bad_idempotency_key_is_refused(key: str, alice: User):
    answer = await alice.http.post("/v1/retain", json=run(), headers={"Idempotency-Key": key})
    assert answer.status_code == 422
    is_problem(answer)


async def test_the_same_key_with_the_same_body_is_the_same_case(alice: User):
    first = await alice.retain("water the garden", key="monday", tags=["a", "b"])
    await alice.settle()
    turned = raw({"tags": ["a", "b"], **run()})  # the order of the fields is no difference
    answer = await send(alice, "/v1/retain", turned, **{"Idempotency-Key": "monday"})
    assert answer.status_code == 202
    assert answer.json()["case_id"] == first
    assert answer.json()["status"] == "ready"
    assert [case["case_id"] for case in await alice.cases(status="any")] == [first]


@pytest.mark.parametrize("change", [{"task": CANARY}, {"tags": [CANARY]}, {"reward": 0.5}, {"prompt_snapshot": CANARY}])
async def test_the_same_key_with_another_body_is_a_conflict(change: dict[str, Any], alice: User):
    first = await alice.retain("water the garden", key="monday")
    answer = await alice.http.post("/v1/retain", json=run(**change), headers={"Idempotency-Key": "monday"})
    assert answer.status_code == 409
    assert is_problem(answer)["type"] == "urn:casebank:problem:idempotency-conflict"
    assert [case["case_id"] for case in await alice.cases(status="any")] == [first]
    await queue_moves(alice)


async def test_two_users_may_use_the_same_key(alice: User, bob: User):
    hers, his = await alice.retain("water the garden", key="monday"), await bob.retain("mow the lawn", key="monday")
    assert hers != his


async def test_an_unknown_agent_is_made_by_retain_and_has_nothing_to_retrieve(alice: User):
    unknown = await alice.http.post("/v1/retrieve", json={"agent": "newcomer", "query": "water"})
    assert unknown.status_code == 200
    answer = unknown.json()
    assert (answer["cases"], answer["memory_context"], answer["tokens"], answer["mode"]) == ([], "", 0, "empty")
    assert (await alice.http.get("/v1/profiles/newcomer")).status_code == 404
    await alice.retain("water the garden", agent="newcomer")
    assert (await alice.http.get("/v1/profiles/newcomer")).json()["cases"] == {"pending": 1}


async def test_a_run_on_a_retrieval_that_is_not_known_is_kept_without_it_and_the_answer_says_so(alice: User, bob: User):
    """As after a crash, which may take the last decisions; another's retrieval is no more known than that."""
    await bob.retain("water the garden")
    for unknown in (str(uuid4()), (await bob.retrieve("water the garden"))["retrieval_id"]):
        answer = await alice.http.post("/v1/retain", json=run(retrieval_id=unknown))
        assert answer.status_code == 202, answer.text
        assert answer.json()["retrieval_id"] is None
        assert (await alice.case(answer.json()["case_id"]))["retrieval_id"] is None
    await queue_moves(alice)


async def test_a_run_on_a_retrieval_of_ones_own_says_that_it_is_joined_to_it(alice: User):
    known = (await alice.retrieve("water the garden"))["retrieval_id"]
    for _ in range(2):
        headers = {"Idempotency-Key": "the same"}
        answer = await alice.http.post("/v1/retain", json=run(retrieval_id=known), headers=headers)
        assert answer.json()["retrieval_id"] == known
