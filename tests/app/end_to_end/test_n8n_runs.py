"""The n8n workflows as they run: what they ask of the service, what comes of it, and what they answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from retrieval.sections.quoting import quoted
from tests.app.javascript import JavaScript, javascript
from tests.app.n8n import FLOWS, FlowFailed, Item, Replay, following, nodes, valid
from tests.service import AGENT, Service, User
from writer.run import LearnedProcedure

TASK = 'Add a "last_name" column to the {{ users }} table'


@pytest.fixture(scope="module")
def js() -> Iterator[JavaScript]:
    with javascript() as process:
        yield process


class Replays:
    """Makes executions for a user; while a flow waits, the worker works."""

    def __init__(self, js: JavaScript) -> None:
        self.js = js

    def __call__(self, user: User, **pinned: Any) -> Replay:
        async def pause(_name: str, _amount: float) -> None:
            await user.settle()

        return Replay(user.http, self.js, pause, pinned)


@pytest.fixture
def replay(js: JavaScript) -> Replays:
    return Replays(js)


def webhook(task: Any = None, agent: str = AGENT, **body: Any) -> Item:
    given = {"agent": agent, **({} if task is None else {"task": task}), **body}
    return {"headers": {}, "params": {}, "query": {}, "body": given}


FAILED_ONCE = [
    {
        "tool": "sql",
        "input": {"statement": "ALTER TABLE users ADD COLUMN last_name;"},
        "output": 'syntax error at or near ";"',
        "status": "error",
    },
    {
        "tool": "sql",
        "input": {"statement": "ALTER TABLE users ADD COLUMN last_name text;"},
        "output": "ALTER TABLE",
        "status": "ok",
    },
]
DONE = {"answer": "done", "outcome": "success", "plan": ["ALTER TABLE with the type"], "turns": [], "reward": 1}
ACT = "Act (replace me)"


def steps(*observations: Any) -> Item:
    """What an AI Agent of n8n 2.41 answers that called the tool once for each observation."""
    calls = [
        {
            "action": {
                "tool": "sql",
                "toolInput": {"input": f"statement {number}"},
                "log": "Calling sql",
                "messageLog": [],
                "toolCallId": f"call_{number}",
                "type": "tool_call",
            },
            "observation": seen,
        }
        for number, seen in enumerate(observations)
    ]
    return {"output": "The column is there.", "intermediateSteps": calls}


# The rewriter


async def test_the_rewriter_sends_what_is_documented_and_without_a_model_gives_the_message_back(
    alice: User, replay: Replays
):
    run = replay(alice)
    answer = await run.run(FLOWS["rewriter"], {"agent": AGENT, "query": "Hi, could you add an age column? Thanks!"})
    assert answer == {"query": "Hi, could you add an age column? Thanks!"}
    (request,) = run.sent
    valid(alice.service, request)
    assert request.body["rewrite"] == "llm"


async def test_the_rewriter_gives_the_message_back_where_the_service_refuses(service: Service, replay: Replays):
    stranger = User("stranger", service, await service.http(None))
    assert await replay(stranger).run(FLOWS["rewriter"], {"agent": AGENT, "query": TASK}) == {"query": TASK}


# The analyst


async def test_the_analyst_answers_with_the_procedure_that_was_learned(alice: User, replay: Replays):
    run = replay(alice)
    finished = {"agent": AGENT, "task": TASK, "outcome": "success", "tool_traces": FAILED_ONCE}
    answer = await run.run(FLOWS["analyst"], {"run": finished})
    case = await alice.case(answer.pop("case_id"))
    assert answer == case["procedure"]
    assert "syntax error" in LearnedProcedure.model_validate(answer).data.initial_failure_summary
    for request in run.sent:
        valid(alice.service, request)


async def test_the_analyst_says_that_no_failure_was_detected(alice: User, replay: Replays):
    finished = {"agent": AGENT, "task": TASK, "outcome": "success", "tool_traces": FAILED_ONCE[1:]}
    answer = await replay(alice).run(FLOWS["analyst"], {"run": finished})
    assert answer["status"] == "no_failure_detected"
    assert set(answer) == {"status", "case_id"}


async def test_the_analyst_does_not_say_so_of_a_run_that_was_not_analysed(alice: User, replay: Replays):
    read = {"case_id": "its id", "lessons": "dead", "procedure": None}
    run = replay(alice, **{"Read case": lambda _item: read})
    finished = {"agent": AGENT, "task": TASK, "outcome": "success", "tool_traces": FAILED_ONCE}
    assert await run.run(FLOWS["analyst"], {"run": finished}) == {"status": "unknown", "case_id": "its id"}


async def test_the_analyst_calls_a_failure_that_nothing_put_right_a_failure_lesson(alice: User, replay: Replays):
    finished = {"agent": AGENT, "task": TASK, "outcome": "failure", "tool_traces": FAILED_ONCE[:1]}
    answer = await replay(alice).run(FLOWS["analyst"], {"run": finished})
    case = await alice.case(answer.pop("case_id"))
    assert answer == case["procedure"]
    assert answer["status"] == "failure_lesson"


@pytest.mark.parametrize("run", [{"agent": AGENT}, {"agent": AGENT, "task": "x" * 20_001}])
async def test_a_run_that_casebank_refuses_ends_the_analyst_with_the_reason(alice: User, replay: Replays, run: Item):
    with pytest.raises(FlowFailed, match=r"casebank refused the run: .*task"):
        await replay(alice).run(FLOWS["analyst"], {"run": run})


async def test_two_runs_that_are_equal_are_two_unless_their_key_is_one(alice: User, replay: Replays):
    finished = {"run": {"agent": AGENT, "task": TASK, "outcome": "success"}}
    ids = [(await replay(alice).run(FLOWS["analyst"], finished | more))["case_id"] for more in ({}, {})]
    again = [(await replay(alice).run(FLOWS["analyst"], finished | {"key": "k"}))["case_id"] for _ in range(2)]
    assert len({*ids, *again}) == 3
    assert again[0] == again[1]


@pytest.mark.parametrize(
    ("status", "times", "again"), [("pending", 0, True), ("pending", 29, True), ("pending", 30, False)]
)
def test_the_analyst_waits_while_the_case_is_pending_but_not_for_ever(
    alice: User, replay: Replays, status: str, times: int, *, again: bool
):
    (node,) = [node for _, node in nodes("if") if node["name"] == "Still pending?"]
    run = replay(alice)
    run.runs[node["name"]] = times
    assert run.holds(node, {"lessons": status}) is again
    assert not run.holds(node, {"lessons": "ready"})
    assert following(FLOWS["analyst"], node["name"], 0) == ["Wait"]


# While casebank is away


class Line(httpx.AsyncBaseTransport):
    """A line to the service that may be cut: before a request comes through, or after, so that its answer is lost."""

    def __init__(self, service: Service) -> None:
        self.cut: str | None = None
        self._service = httpx.ASGITransport(service.app)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.cut == "before":
            raise httpx.ConnectError("connect ECONNREFUSED 127.0.0.1:8700")
        answer = await self._service.handle_async_request(request)
        if self.cut == "after" and request.method == "POST":
            await answer.aread()
            raise httpx.ReadError("socket hang up")
        return answer


@pytest.fixture
async def line(alice: User) -> AsyncIterator[tuple[Line, User]]:
    """The line of a flow, and Alice at the end of it."""
    cut = Line(alice.service)
    async with httpx.AsyncClient(transport=cut, base_url="http://casebank", headers=alice.http.headers) as http:
        yield cut, User(alice.name, alice.service, http)


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_no_run_is_lost_or_doubled_while_casebank_is_away(
    alice: User, line: tuple[Line, User], js: JavaScript, cut: str
):
    waited: list[float] = []

    async def pause(name: str, amount: float) -> None:
        if name != "casebank is away":
            await alice.settle()
            return
        waited.append(amount)
        if len(waited) == 7:
            line[0].cut = None

    line[0].cut = cut
    run = Replay(line[1].http, js, pause, {ACT: lambda _: {**DONE, "tool_traces": FAILED_ONCE}})
    await asyncio.wait_for(run.run(FLOWS["master"], webhook(TASK)), 60)
    assert run.response == (200, {"answer": "done", "outcome": "success", "retrieval_id": None, "case_id": None})
    assert waited == [2, 4, 8, 16, 30, 30, 30]
    (case,) = await alice.cases(status="any")
    assert (case["case_id"], case["task"]) == (run.called["Analyse"]["case_id"], TASK)
    retains = [request for request in run.sent if request.path == "/v1/retain"]
    (key,) = {request.headers["Idempotency-Key"] for request in retains}
    assert key
    assert len(retains) > 7


async def test_a_token_that_is_refused_is_no_reason_to_lose_the_run(alice: User, service: Service, js: JavaScript):
    class Mended(Exception):
        pass

    async def pause(name: str, _amount: float) -> None:
        assert name == "casebank is away"
        raise Mended

    stranger = await service.http(None)
    with pytest.raises(Mended):
        await Replay(stranger, js, pause).run(FLOWS["analyst"], {"run": {"agent": AGENT, "task": TASK}})


# The master


async def test_the_master_retrieves_what_the_analyst_stored_and_rewards_the_retrieval(alice: User, replay: Replays):
    seen: list[Item] = []

    def act(prompt: Item) -> Item:
        seen.append(prompt)
        return {**DONE, "tool_traces": FAILED_ONCE}

    await replay(alice, **{ACT: act}).run(FLOWS["master"], webhook(TASK))
    assert seen[0]["memory_context"] == ""
    again = 'Add an "age" column to the users table'
    run = replay(alice, **{ACT: act})
    await run.run(FLOWS["master"], webhook(again))
    assert quoted(TASK) in seen[1]["memory_context"]
    assert run.response is not None
    status, answer = run.response
    assert (status, answer) == (
        200,
        {
            "answer": "done",
            "outcome": "success",
            "retrieval_id": seen[1]["retrieval_id"],
            "case_id": run.called["Analyse"]["case_id"],
        },
    )
    case = await alice.case(answer["case_id"])
    assert (case["task"], case["reward"], case["retrieval_id"]) == (again, 1, seen[1]["retrieval_id"])
    (logged,) = await alice.rows(
        "SELECT reward FROM decisions WHERE user_sub = :user_sub AND id = :id", id=case["retrieval_id"]
    )
    assert logged.reward == 1
    for request in run.sent:
        valid(alice.service, request)


@pytest.mark.parametrize(
    "body",
    [{}, {"task": ""}, {"task": " \n "}, {"task": None}, {"task": "a" * 20_001}],
    ids=["none", "empty", "blank", "null", "too long"],
)
async def test_without_a_task_that_can_be_kept_the_webhook_answers_400_and_nothing_is_asked_or_kept(
    alice: User, replay: Replays, body: Item
):
    run = replay(alice)
    await run.run(FLOWS["master"], {"body": body})
    assert run.response is not None
    status, answer = run.response
    assert (status, "task" in answer["error"]) == (400, True)
    assert run.sent == []
    assert ACT not in run.said


async def test_the_steps_of_an_ai_agent_become_tool_traces_from_which_casebank_learns(alice: User, replay: Replays):
    failed, worked = [{"error": 'syntax error at or near ";"'}], [{"response": "ALTER TABLE"}]
    run = replay(alice, **{ACT: lambda _: steps(json.dumps(failed), json.dumps(worked))})
    await run.run(FLOWS["master"], webhook(TASK))
    assert run.response is not None
    assert (run.response[1]["answer"], run.response[1]["outcome"]) == ("The column is there.", "unknown")
    case = await alice.case(run.response[1]["case_id"])
    traces = [(trace["tool"], trace["input"], trace["output"], trace["status"]) for trace in case["tool_traces"]]
    assert traces == [
        ("sql", {"input": "statement 0"}, 'syntax error at or near ";"', "error"),
        ("sql", {"input": "statement 1"}, "ALTER TABLE", "ok"),
    ]
    assert run.called["Analyse"]["status"] == "procedure_learned"


@pytest.mark.parametrize(
    ("observation", "output", "status"),
    [
        ('{"error": "no such table", "errorType": "NodeOperationError"}', "no such table", "error"),
        ('There was an error: "no such table"', 'There was an error: "no such table"', "error"),
        ('[{"response": "HTTP 404 There was an error: \\"gone\\""}]', 'HTTP 404 There was an error: "gone"', "error"),
        ('[{"id": 1}, {"id": 2}]', [{"id": 1}, {"id": 2}], "ok"),
        ('[{"error": null, "rows": 3}]', {"error": None, "rows": 3}, "ok"),
        ("there was an error in line 3, now mended", "there was an error in line 3, now mended", "ok"),
        ("12", 12, "ok"),
        ("", "", "ok"),
        ('""', "", "ok"),
        (None, None, "ok"),
        ({"rows": 3}, {"rows": 3}, "ok"),
    ],
)
async def test_an_observation_is_an_error_where_the_tool_says_so(
    alice: User, replay: Replays, observation: Any, output: Any, status: str
):
    run = replay(alice, **{ACT: lambda _: steps(observation)})
    await run.run(FLOWS["master"], webhook(TASK))
    (trace,) = run.said["Finished run"]["run"]["tool_traces"]
    assert (trace["output"], trace["status"]) == (output, status)
    assert run.response is not None
    assert run.response[1]["case_id"]


async def test_a_run_that_ends_with_a_failed_call_is_tried_once_more_with_what_put_such_a_failure_right(
    alice: User, bob: User, replay: Replays
):
    rule = "Error: opened packages are refunded as store credit only"
    failed = {"tool": "refund", "input": {"order": "O-1", "method": "original"}, "output": rule, "status": "error"}
    mended = {**failed, "input": {"order": "O-1", "method": "store_credit"}, "output": "done", "status": "ok"}
    seen: list[str] = []

    def act(prompt: Item) -> Item:
        seen.append(prompt["memory_context"])
        return {"output": "…", "tool_traces": [mended if "store_credit" in prompt["memory_context"] else failed]}

    unknown = replay(bob, **{ACT: act})
    await unknown.run(FLOWS["master"], webhook("give the money back"))
    assert [request.path for request in unknown.sent].count("/v1/advice") == len(seen) == 1
    await alice.retain("give it back", plan=[], tool_traces=[failed, mended], reward=1)
    await alice.settle()
    seen.clear()
    run = replay(
        alice, **{ACT: lambda prompt: act({"memory_context": prompt["memory_context"].partition("first att")[2]})}
    )
    await run.run(FLOWS["master"], webhook("give all the money back"))
    assert [("store_credit" in each, "which stay done" in each) for each in seen] == [(False, False), (True, True)]
    assert run.response is not None
    case = await alice.case(run.response[1]["case_id"])
    assert [trace["status"] for trace in case["tool_traces"]] == ["error", "ok"]
    for request in (*unknown.sent, *run.sent):
        valid(alice.service, request)


async def test_an_agent_that_broke_off_with_an_error_leaves_a_failed_run(alice: User, replay: Replays):
    run = replay(alice, **{ACT: lambda _: {"error": "Max iterations reached"}})
    await run.run(FLOWS["master"], webhook(TASK))
    assert run.response is not None
    assert run.response[1] | {"answer": None, "outcome": "failure"} == run.response[1]
    assert (await alice.case(run.response[1]["case_id"]))["outcome"] == "failure"


async def test_the_master_as_it_is_imported_leaves_an_aborted_run_that_teaches_nothing(alice: User, replay: Replays):
    run = replay(alice)
    await run.run(FLOWS["master"], webhook(TASK))
    assert run.response is not None
    case = await alice.case(run.response[1]["case_id"])
    assert (case["outcome"], case["plan"], case["tools"]) == ("aborted", [], [])
    assert run.called["Analyse"]["status"] == "no_failure_detected"
