"""The Python client does the loop against a real service, and never breaks the agent that uses it."""

import asyncio
import itertools
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
import tomllib
from collections.abc import ItemsView, Iterator
from contextlib import closing, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import casebank_client
import pytest
from casebank_client import (
    AsyncCasebank,
    AsyncRun,
    Casebank,
    CasebankRefused,
    CasebankUnreachable,
    DiskBuffer,
    Run,
    bodies,
)
from casebank_client.bodies import PAGE
from casebank_client.failed import may_have_failed
from casebank_client.outbox import Outbox, Refused
from casebank_client.watched import Watched
from casebank_client.wire import Patience, Request
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from app.auth.tokens import ACT_AS, issue_token
from app.settings import Settings
from tests.paths import ROOT
from tests.processes import Service, all_worked, bank, free_port, migrated_home, until
from writer.facts.extract import MOST_OF_TURN

AGENT = "db-operator"
LIMITED = {"CASEBANK_LIMITS": "user_writes=60,burst_s=1"}


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with migrated_home() as home:
        yield home


@pytest.fixture(scope="module")
def service(home: Path) -> Iterator[Service]:
    with Service(home) as service:
        yield service


ENOUGH_S = 60
"""Seconds in which a busy machine retrieves and advises."""
PATIENT = Patience(begin_s=ENOUGH_S)
NO_WAIT = Patience(timeout_s=2.0, attempts=1, total_s=2.0)


def token(service: Service, user: str, scope: str = "", now: datetime | None = None) -> str:
    own = Settings(home=service.home)
    whose = {"user": user, "issuer": own.jwt_issuer, "audience": own.jwt_audience, "scope": scope}
    return issue_token(own.signing_secret, **whose, ttl=timedelta(hours=1), now=now or datetime.now(UTC))


def memory(service: Service, user: str, **more: Any) -> Casebank:
    return Casebank(service.url, token(service, user), **{"patience": PATIENT, **more})


def cases(service: Service, user: str) -> list[dict[str, Any]]:
    with service.client(user) as client:
        all_worked(client)
        return sorted(bank(client), key=lambda case: case["case_id"])


def test_a_run_retrieves_on_the_way_in_and_is_retained_on_the_way_out(service: Service):
    with memory(service, "ann") as casebank:
        with casebank.run(AGENT, "rename a column", tags=["first"]) as run:
            run.plan("look at the table", "rename it")
            run.tool("sql", {"query": "ALTER TABLE a"}, "ok")
            run.success(reward=0.8)
        casebank.outbox.close()
        (case,) = cases(service, "ann")
        with casebank.run(AGENT, "rename a column of another table") as again:
            assert "rename a column" in again.context
    told = (case["task"], case["outcome"], case["reward"], case["tags"], case["plan"], case["retrieval_id"])
    assert told == ("rename a column", "success", 0.8, ["first"], ["look at the table", "rename it"], run.retrieval_id)


def test_the_example_of_the_clients_page_ends_in_a_case(service: Service):
    page = (ROOT / "clients" / "python" / "README.md").read_text()
    example = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    example = example.replace('"http://127.0.0.1:8700", token', f'"{service.url}", token, patience=patience')
    given: dict[str, Any] = {"token": token(service, "rita"), "patience": PATIENT}
    given["act"] = lambda context: f"did it with {len(context)} characters of memory"
    exec(example, given)  # noqa: S102 - it is ours
    given["memory"].close()
    (case,) = cases(service, "rita")
    assert (case["outcome"], case["retrieval_id"] is not None) == ("success", True)


def test_every_class_that_the_clients_page_makes_is_imported_from_the_package():
    page, _, _ = (ROOT / "clients" / "python" / "README.md").read_text().partition("## In a framework")
    made = set(re.findall(r"\b([A-Z]\w+)\(", page)) - {"Path"}
    assert {"Casebank", "DiskBuffer", "Patience"} <= made
    assert made <= set(casebank_client.__all__)


WITHOUT = {
    "stamina": "25.1.0",  # waits as long as a function of the error says
    "openai-agents": "0.7.0",  # SessionSettings
    "langchain": "1.2.8",  # a ModelRequest of a type
    "langgraph-checkpoint": "4.2.0",  # writes_sort_key
    "claude-agent-sdk": "0.1.45",  # hooks for a prompt that is a text
}
"""Versions of other packages that lack what the client and its modules use."""


def test_no_version_of_a_framework_is_admitted_that_lacks_what_its_module_uses():
    project = tomllib.loads((ROOT / "clients" / "python" / "pyproject.toml").read_text())["project"]
    needed = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    admitted = {each.name: each.specifier for each in map(Requirement, needed)}
    assert [name for name, old in WITHOUT.items() if admitted.get(name, SpecifierSet()).contains(old)] == []


def test_a_run_of_a_session_reads_its_turns_where_the_retrieve_names_it_and_needs_its_first_turn(service: Service):
    with memory(service, "una") as early, early.run(AGENT, "name the columns", session_id="monday") as run:
        run.success()
    assert not early.outbox.refused
    with memory(service, "una") as casebank:
        casebank.add_turns(AGENT, "monday", [{"role": "user", "content": "Columns are named in German here."}])
        with casebank.run(AGENT, "name the columns", options={"session_id": "monday"}, session_id="monday") as run:
            assert "named in German" in run.context
    assert {case["session_id"] for case in cases(service, "una")} == {None, "monday"}


async def test_a_run_may_recall_what_was_said_before(service: Service):
    with memory(service, "ida") as casebank:
        casebank.add_turns(AGENT, "monday", [{"role": "user", "content": "Columns are named in German here."}])
        with casebank.run(AGENT, "rename the columns", recall=True) as run:
            assert "named in German" in run.context
        with casebank.run(AGENT, "rename the columns") as run:
            assert "named in German" not in run.context
        recalled = casebank.retrieve(AGENT, "rename the columns", recall=True)["recalled"]
        assert recalled is not None
        assert [each["source"]["session_id"] for each in recalled["memories"]] == ["monday"]
    async with AsyncCasebank(service.url, token(service, "ida")) as later:
        answer = await later.retrieve(AGENT, "rename the columns", recall=True)
        assert "named in German" in answer["memory_context"]


async def test_an_asynchronous_run_does_the_same(service: Service):
    async with AsyncCasebank(service.url, token(service, "ben"), patience=PATIENT) as casebank:
        async with casebank.run(AGENT, "rename a column") as run:
            run.tool("sql", {"query": "ALTER TABLE a"}, "no such table", status="error")
            run.failure()
        receipt = await casebank.retain(AGENT, "drop a column", "success", retrieval_id=run.retrieval_id)
        rewarded = await casebank.feedback(case_id=receipt["case_id"], thumb="up")
        assert rewarded["reward"] == 1
    kept = {case["task"]: (case["outcome"], case["retrieval_id"]) for case in cases(service, "ben")}
    assert kept == {"rename a column": ("failure", run.retrieval_id), "drop a column": ("success", run.retrieval_id)}


@pytest.mark.parametrize(
    ("error", "outcome"),
    [(RuntimeError("no"), "failure"), (KeyboardInterrupt(), "aborted"), (None, "unknown")],
    ids=["an error", "broken off", "nothing said"],
)
def test_a_run_that_does_not_say_how_it_ended_is_judged_by_how_it_was_left(
    service: Service, error: BaseException | None, outcome: str
):
    user = f"left-{outcome}"
    with memory(service, user) as casebank:
        goes_on = pytest.raises(type(error)) if error is not None else nullcontext()
        with goes_on, casebank.run(AGENT, "rename a column"):
            if error is not None:
                raise error
    assert [case["outcome"] for case in cases(service, user)] == [outcome]


def test_a_run_whose_judge_raises_is_kept_as_unknown(service: Service, caplog: pytest.LogCaptureFixture):
    def judge(answer: str) -> Any:
        raise LookupError(f"no verdict on {answer}")

    with memory(service, "judy") as casebank:
        Watched(casebank.run(AGENT, "rename a column"), judge).ended("done")
    assert [case["outcome"] for case in cases(service, "judy")] == ["unknown"]
    assert "the judge failed, and the outcome of the run is unknown" in caplog.text
    assert "no verdict on done" in caplog.text


RULE = "Error: opened packages are refunded as store credit only"
REFUND = {"order_id": "O-1041", "method": "original"}
CREDIT = {"order_id": "O-1041", "method": "store_credit"}


def learn_the_refund(service: Service, user: str) -> None:
    with memory(service, user) as casebank, casebank.run(AGENT, "give the money back") as run:
        assert run.tool("refund_order", REFUND, RULE) is None
        assert run.tool("refund_order", CREDIT, "refunded") is None
        run.success()
    assert len(cases(service, user)) == 1


def test_a_failed_call_is_answered_with_what_put_such_a_failure_right(service: Service):
    learn_the_refund(service, "liv")
    with memory(service, "liv") as casebank:
        answer = casebank.advice(AGENT, "refund_order", REFUND, RULE, task="give the money back")
        assert [each["worked"] for each in answer["fixes"]] == [1]
        assert casebank.advice(AGENT, "refund_order", REFUND, "refunded", status="ok")["why_empty"] == "not_failed"
        with casebank.run(AGENT, "give the money back", advice_s=ENOUGH_S) as run:
            assert "store_credit" in (run.tool("refund_order", REFUND, RULE) or "")
            assert run.tool("refund_order", REFUND, RULE) is None, "told once in a run"
        with casebank.run(AGENT, "give the money back", advice_s=0) as run:
            assert run.tool("refund_order", REFUND, RULE) is None


async def test_an_asynchronous_run_asks_for_advice_where_it_is_awaited(service: Service):
    learn_the_refund(service, "ole")
    async with AsyncCasebank(service.url, token(service, "ole"), patience=PATIENT) as casebank:
        assert (await casebank.advice(AGENT, "refund_order", REFUND, RULE))["advice_id"]
        async with casebank.run(AGENT, "give the money back", advice_s=ENOUGH_S) as run:
            advice = await run.tool("refund_order", REFUND, RULE)
            assert "store_credit" in (advice or "")
            assert await run.tool("refund_order", CREDIT, "refunded") is None
            run.tool("look", {}, "Error: not awaited, and noted all the same")


def test_what_the_run_tried_since_a_failure_is_not_told(service: Service):
    learn_the_refund(service, "tom")
    with memory(service, "tom") as casebank, casebank.run(AGENT, "give the money back", advice_s=ENOUGH_S) as run:
        run.advice_s = 0
        run.tool("refund_order", REFUND, RULE)
        run.advice_s = ENOUGH_S
        assert run.tool("refund_order", CREDIT, RULE) is None


class Slow(BaseHTTPRequestHandler):
    """A casebank that answers retrieves at once, and advice never, byte by byte."""

    def do_POST(self):
        body = b'{"retrieval_id": "r", "memory_context": ""}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for byte in body if "advice" in self.path else ():
            with suppress(OSError):
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
            time.sleep(0.2)
        if "advice" not in self.path:
            self.wfile.write(body)


async def test_a_failed_call_waits_for_advice_no_longer_than_it_may(caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO", "casebank")
    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with Casebank(url, "token", patience=NO_WAIT) as casebank, casebank.run(AGENT, "refund") as run:
            began = time.perf_counter()
            assert [run.tool("refund", number, RULE) for number in range(3)] == [None] * 3
            assert time.perf_counter() - began < 20  # all bytes would take 26 s
        async with AsyncCasebank(url, "token", patience=NO_WAIT) as casebank, casebank.run(AGENT, "refund") as run:
            began = time.perf_counter()
            assert [await run.tool("refund", number, RULE) for number in range(3)] == [None] * 3
            assert time.perf_counter() - began < 20  # all bytes would take 26 s
        server.shutdown()
    assert len(re.findall("no advice for refund: no answer in time", caplog.text)) == 6


@pytest.mark.parametrize("way", ["down", "refuses", "something else"])
async def test_every_failed_call_without_advice_has_its_reason_in_the_log(
    way: str, service: Service, caplog: pytest.LogCaptureFixture
):
    class SomethingElse(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"[]")

    with ThreadingHTTPServer(("127.0.0.1", 0), SomethingElse) as server:
        threading.Thread(target=server.serve_forever).start()
        ports = {"down": free_port(), "something else": server.server_port}
        url = f"http://127.0.0.1:{ports[way]}" if way in ports else service.url
        with Casebank(url, "no token", patience=NO_WAIT) as casebank:
            run = Run(AGENT, "refund", client=casebank)
            assert [run.tool("refund", number, RULE) for number in range(50)] == [None] * 50
        async with AsyncCasebank(url, "no token", patience=NO_WAIT) as casebank:
            later = AsyncRun(AGENT, "refund", client=casebank)
            assert [await later.tool("refund", number, RULE) for number in range(50)] == [None] * 50
        server.shutdown()
    assert caplog.text.count("casebank: no advice for refund: ") == 100


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("Error: no such order", True),
        ({"error": {"code": 7}}, True),
        ({"isError": True, "content": []}, True),
        ({"success": False}, True),
        ({"exit_code": 2, "stdout": ""}, True),
        ("ran for long\n" * 10_000 + "Process exited with code 1", True),
        ("HTTP 404", True),
        ({"error": None, "success": True, "exit_code": 0, "errors": [], "rows": 404}, False),
        ("3 rows, 0 errors", False),
        ("done", False),
        (None, False),
    ],
)
def test_no_advice_is_asked_for_where_nothing_looks_like_an_error(output: Any, failed: object):
    assert may_have_failed(output) is failed


def test_a_status_that_is_told_wins_over_the_output():
    run = Run(AGENT, "refund")
    assert run.note("refund", None, "Error: as expected", status="ok") is None
    assert run.note("refund", None, "as usual", status="error") is not None


def test_advice_is_asked_for_with_the_beginning_and_the_end_of_a_long_output():
    asked = Run(AGENT, "refund").note("refund", None, "Error: " + "x" * 5_000_000 + " the end")
    assert asked is not None
    assert len(asked["output"]) < 10_000
    assert asked["output"].startswith("Error: ")
    assert asked["output"].endswith(" the end")


def test_advice_is_asked_for_with_the_session_of_the_run():
    asked = Run(AGENT, "refund", more={"session_id": "chat-7"}).note("refund", None, "Error: no")
    assert asked is not None
    assert (asked["session_id"], asked["run_id"]) == ("chat-7", None)


def test_every_one_of_forty_runs_ends_in_a_case_that_is_joined_to_its_retrieval(service: Service):
    receipts = {}
    with memory(service, "many") as casebank:
        for number in range(40):
            with casebank.run(AGENT, f"do job number {number}") as run:
                run.tool("sh", {"line": f"job {number}"}, number)
                run.success()
            receipts[run.task] = run.retrieval_id
        casebank.outbox.close(within_s=60)
    assert {case["task"]: case["retrieval_id"] for case in cases(service, "many")} == receipts


def test_what_json_cannot_say_is_noted_as_text(service: Service):
    with memory(service, "odd") as casebank, casebank.run(AGENT, "measure it") as run:
        run.tool("measure", {"path": Path("a/b"), "least": float("nan")}, {1, 2}.__class__)
        run.tool("group", {("a", "b"): 1})
        run.success()
    (case,) = cases(service, "odd")
    with service.client("odd") as client:
        trace, grouped = client.get(f"/v1/cases/{case['case_id']}").json()["tool_traces"]
    assert grouped["input"] == "{('a', 'b'): 1}"
    assert (trace["input"], trace["output"]) == ({"path": "a/b", "least": "NaN"}, "<class 'set'>")


class Untold:
    """A record whose database has gone: it can be told in no words."""

    def __repr__(self) -> str:
        raise RuntimeError("the connection is closed")


@pytest.mark.parametrize("untold", [Untold(), 10**5_000], ids=["an error of its own", "thousands of digits"])
def test_what_has_no_words_is_noted_by_its_kind(untold: Any):
    run = Run(AGENT, "read it")
    asked = run.note("read", {}, untold, status="error")
    assert asked is not None
    assert asked["output"] == f"<{type(untold).__name__}>"


def test_a_run_with_half_a_character_is_retained_with_a_sign_in_its_place(service: Service):
    with memory(service, "half") as casebank, casebank.run(AGENT, "rename caf\udce9.txt") as run:
        run.tool("ls", {"path": "."}, "caf\udce9.txt, \ud83d\ude00, 😀")
        run.success()
    (case,) = cases(service, "half")
    assert (case["task"], case["retrieval_id"]) == ("rename caf\ufffd.txt", run.retrieval_id)
    with service.client("half") as client:
        (trace,) = client.get(f"/v1/cases/{case['case_id']}").json()["tool_traces"]
    assert trace["output"] == "caf\ufffd.txt, 😀, 😀"


@pytest.mark.parametrize("empty", ["", " \n"])
def test_a_run_whose_task_has_no_words_is_kept_and_says_so(service: Service, empty: str):
    user = f"wordless-{len(empty)}"
    with memory(service, user) as casebank, casebank.run(AGENT, empty) as run:
        assert run.retrieval_id is not None
        run.success()
    assert [(case["task"], case["outcome"]) for case in cases(service, user)] == [("No task was given.", "success")]


def test_a_task_longer_than_casebank_takes_is_kept_with_its_beginning_and_its_end(service: Service):
    with memory(service, "lena") as casebank:
        with casebank.run(AGENT, "rename a column " + "🦉" * 30_000 + " by noon") as run:
            assert run.retrieval_id is not None
            run.success()
        casebank.outbox.close(within_s=60)
        (case,) = cases(service, "lena")
        task = casebank.case(case["case_id"])["task"]
    assert task.startswith("rename a column 🦉")
    assert task.endswith("🦉 by noon")
    assert "… 10064 characters left out" in task
    assert len(task) <= 20_000


def test_a_run_larger_than_casebank_takes_is_kept_with_its_longest_outputs_shortened(service: Service):
    with memory(service, "max-size") as casebank:
        with casebank.run(AGENT, "read the tables") as run:
            run.tool("read", {"table": "a"}, "a" * 5_000_000)
            run.tool("read", {"table": "b"}, [{"name": f"row {number}"} for number in range(100_000)])
            run.tool("read", {"table": "c"}, "c" * 10_000)
            run.success()
        casebank.outbox.close(within_s=60)
        (case,) = cases(service, "max-size")
        first, second, third = (each["output"] for each in casebank.case(case["case_id"])["tool_traces"])
    assert (first[:9], first[-9:]) == ("a" * 9, "a" * 9)
    assert (second[:15], second[-13:]) == ('[{"name": "row ', '"row 99999"}]')
    assert "characters left out" in first
    assert "characters left out" in second
    assert third == "c" * 10_000


def test_inputs_are_shortened_where_the_outputs_are_not_what_makes_a_run_too_large(service: Service):
    with memory(service, "max-input") as casebank:
        with casebank.run(AGENT, "write the page") as run:
            run.tool("write", {"text": "b" * 5_000_000}, "done")
            run.success()
        casebank.outbox.close(within_s=60)
        (case,) = cases(service, "max-input")
        (trace,) = casebank.case(case["case_id"])["tool_traces"]
    assert trace["output"] == "done"
    assert trace["input"].startswith('{"text": "bbb')
    assert "characters left out" in trace["input"]


def test_a_part_of_a_large_run_is_measured_once_however_often_others_are_shortened():
    class Counted(dict[str, Any]):
        written = 0

        def items(self) -> ItemsView[str, Any]:
            Counted.written += 1
            return super().items()

    most, written = bodies.MOST_BODY_BYTES, []
    for length in (5_000, most):
        Counted.written, reads = 0, [{"tool": "read", "output": "🦉" * length}] * (most // length)
        last = {"tool": "write", "input": Counted(text="done"), "output": Counted(text="done")}
        body = bodies.fitting({"tool_traces": [*reads, last]})
        written.append(Counted.written)
        assert len(bodies.retain(body).arguments()["content"]) <= most
        assert body["tool_traces"][-1] == last
    assert written[0] == written[1] <= 4


async def test_what_was_deleted_before_an_answer_was_lost_counts_as_deleted():
    class Loses(BaseHTTPRequestHandler):
        deleted = False

        def do_DELETE(self):
            self.send_response(404 if Loses.deleted else 502)  # by a proxy, which lost the answer
            Loses.deleted = True
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", 0), Loses) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with Casebank(url, "token") as casebank:
            casebank.delete("01a204ec-e485-71e0-a11b-3ff90d82dbeb")
            with pytest.raises(CasebankRefused, match="404"):
                casebank.delete("01a204ec-e485-71e0-a11b-3ff90d82dbeb")
        Loses.deleted = False
        async with AsyncCasebank(url, "token") as later:
            await later.delete_session("monday")
        server.shutdown()


def test_what_casebank_will_not_do_is_told_with_its_problem(service: Service):
    with memory(service, "wrong") as casebank:
        with pytest.raises(CasebankRefused, match="422") as refused:
            casebank.retrieve(AGENT, "rename a column", k=-1)
        assert refused.value.problem["errors"]
        assert "body.k: " in str(refused.value)
        with pytest.raises(CasebankRefused) as unknown:
            casebank.feedback(case_id="01a204ec-e485-71e0-a11b-3ff90d82dbeb", thumb="up")
        assert unknown.value.status == 404


def test_an_agent_acts_without_memory_where_nobody_answers(caplog: pytest.LogCaptureFixture):
    with Casebank(f"http://127.0.0.1:{free_port()}", "no token", patience=NO_WAIT) as casebank:
        with pytest.raises(CasebankUnreachable):
            casebank.retrieve(AGENT, "rename a column")
        with casebank.run(AGENT, "rename a column") as run:
            assert (run.context, run.retrieval_id) == ("", None)
            run.success()
    assert "a run is given up" in caplog.text


async def test_an_agent_acts_without_memory_after_some_seconds_where_casebank_hangs(caplog: pytest.LogCaptureFixture):
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        url, began = f"http://127.0.0.1:{hangs.getsockname()[1]}", time.perf_counter()
        run = Casebank(url, "token").run(AGENT, "rename a column")
        run.begin()
        later = AsyncCasebank(url, "token", patience=Patience(begin_s=0.5)).run(AGENT, "rename a column")
        await later.begin()
        assert time.perf_counter() - began < 15  # one of them would take 30 s with the patience of other calls
    assert (run.context, later.context) == ("", "")
    assert caplog.text.count("the agent acts without memory: casebank did not answer") == 2


def test_a_token_read_from_a_file_may_end_in_a_newline(service: Service):
    with Casebank(service.url, f" {token(service, 'nel')}\n") as casebank:
        assert casebank.retrieve(AGENT, "rename a column")["cases"] == []


def test_a_service_acts_for_a_user_of_any_name(service: Service):
    with Casebank(service.url, token(service, "backend", ACT_AS), user="Zoë Łuk") as casebank:
        casebank.retain(AGENT, "rename a column")
    assert [case["task"] for case in cases(service, "Zoë Łuk")] == ["rename a column"]


@pytest.mark.parametrize("none", ["", "two\nlines", "t\u00f6ken"])
def test_what_can_be_no_token_is_refused_and_stands_in_no_log(
    none: str, service: Service, caplog: pytest.LogCaptureFixture
):
    with Casebank(service.url, none, patience=PATIENT) as casebank, casebank.run(AGENT, "rename a column") as run:
        assert run.context == ""
        run.success()
    assert "the agent acts without memory: 401" in caplog.text
    assert not none or none.split(maxsplit=1)[0] not in caplog.text


@pytest.mark.parametrize("client", [Casebank, AsyncCasebank])
def test_an_address_that_is_none_of_http_is_refused_at_once(client: type[Casebank] | type[AsyncCasebank]):
    with pytest.raises(ValueError, match="must begin with http:// or https://"):
        client("127.0.0.1:8700", "token")


@pytest.mark.parametrize("client", [Casebank, AsyncCasebank])
@pytest.mark.parametrize("name", [" alice", "alice ", "\talice", "alice\n", "al\ud83dice", ""])
def test_a_name_that_would_arrive_as_another_users_is_refused_at_once(
    client: type[Casebank] | type[AsyncCasebank], name: str
):
    with pytest.raises(ValueError, match="user must be a name without spaces around it"):
        client("http://127.0.0.1:9", "token", user=name)


def test_an_agent_acts_without_memory_where_its_token_is_refused(service: Service):
    with Casebank(service.url, "no token") as casebank, casebank.run(AGENT, "rename a column") as run:
        assert run.context == ""
        run.success()


def test_a_limit_is_waited_for_and_nothing_is_kept_twice():
    patience = Patience(attempts=10, total_s=60, begin_s=ENOUGH_S)
    with (
        migrated_home() as home,
        Service(home, **LIMITED) as service,
        memory(service, "quick", patience=patience) as casebank,
    ):
        kept = [casebank.retain(AGENT, f"do job number {number}")["case_id"] for number in range(4)]
        assert sorted(case["case_id"] for case in cases(service, "quick")) == kept


def test_runs_of_an_outage_wait_on_disk_for_their_owner_alone_and_are_kept_once(home: Path, tmp_path: Path):
    buffer = DiskBuffer(tmp_path / "out" / "box.sqlite")
    away = Service(home)
    with memory(away, "away", patience=NO_WAIT, buffer=buffer) as casebank:
        for number in range(3):
            with casebank.run(AGENT, f"do job number {number}") as run:
                run.success()
    assert buffer.path.stat().st_mode & 0o077 == 0
    assert len(buffer.waiting()) == 3
    with away, memory(away, "away", buffer=buffer):
        until(lambda: not buffer.waiting())
        again = Outbox(lambda _: None, buffer)
        again.start()
        again.close()
        assert [case["task"] for case in cases(away, "away")] == [f"do job number {number}" for number in range(3)]


def ended(casebank: Casebank, task: str) -> None:
    with casebank.run(AGENT, task) as run:
        run.success()


WAITS = "a run waits to be sent again"


def test_runs_that_end_while_casebank_is_away_are_kept_once_it_is_back(home: Path, caplog: pytest.LogCaptureFixture):
    away, jobs = Service(home), [f"do job number {number}" for number in range(3)]
    with memory(away, "rex", patience=NO_WAIT) as casebank:
        casebank.outbox.try_again_s = 0.05
        for job in jobs:
            ended(casebank, job)
        until(lambda: caplog.text.count(WAITS) > len(jobs))
        with away:
            with away.client("rex") as client:
                until(lambda: len(bank(client)) == len(jobs))
            assert sorted(case["task"] for case in cases(away, "rex")) == jobs


def test_what_waits_is_sent_once_more_when_the_client_is_closed(home: Path, caplog: pytest.LogCaptureFixture):
    away = Service(home)
    casebank = memory(away, "roy", patience=NO_WAIT)
    casebank.outbox.try_again_s = 3600
    ended(casebank, "do the job")
    until(lambda: WAITS in caplog.text)
    with away:
        casebank.outbox.close(within_s=60)
        assert [case["task"] for case in cases(away, "roy")] == ["do the job"]
    casebank.close()
    assert "given up" not in caplog.text


def test_a_run_that_casebank_never_answers_holds_up_no_other():
    sent = list[int]()

    def send(request: Request) -> None:
        sent.append(request.body["task"])
        if sent[-1] == 0:
            raise CasebankUnreachable("too slow")

    outbox = Outbox(send, try_again_s=0.01)
    for number in range(4):
        outbox.put(numbered(number))
    until(lambda: {1, 2, 3} <= set(sent) and sent.count(0) > 1)
    outbox.close()


def test_a_run_under_way_when_its_client_is_closed_stays_on_disk(tmp_path: Path):
    asked, let_go = threading.Event(), threading.Event()

    class Hangs(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.set()
            let_go.wait(60)  # and the connection ends without an answer

    buffer, others = DiskBuffer(tmp_path / "box.sqlite"), set(threading.enumerate())
    with ThreadingHTTPServer(("127.0.0.1", 0), Hangs) as server:
        threading.Thread(target=server.serve_forever).start()
        casebank = Casebank(f"http://127.0.0.1:{server.server_port}", "token", buffer=buffer)
        Run(AGENT, "do the job", client=casebank).finish()
        (sends,) = [each for each in set(threading.enumerate()) - others if each.name == "casebank-outbox"]
        assert asked.wait(60)
        casebank.outbox.close(within_s=0)
        casebank.close()
        let_go.set()
        sends.join(60)
        server.shutdown()
    assert not sends.is_alive()
    assert buffer.take_refused() == []
    assert [request.body["task"] for request in buffer.waiting()] == ["do the job"]


def test_an_asynchronous_client_serves_one_event_loop_after_another(service: Service):
    casebank = AsyncCasebank(service.url, token(service, "pam"), patience=PATIENT)

    async def job(number: int) -> None:
        async with casebank.run(AGENT, f"do job number {number}") as run:
            assert run.retrieval_id is not None
            run.success()

    for number in range(3):
        asyncio.run(job(number))
    asyncio.run(casebank.aclose())
    assert [case["task"] for case in cases(service, "pam")] == [f"do job number {number}" for number in range(3)]


async def test_an_agent_acts_without_memory_where_its_client_is_closed(caplog: pytest.LogCaptureFixture):
    with Casebank("http://127.0.0.1:9", "token") as casebank:
        pass
    with casebank.run(AGENT, "rename a column") as run:
        assert run.context == ""
    async with AsyncCasebank("http://127.0.0.1:9", "token") as later:
        pass
    async with later.run(AGENT, "rename a column") as second:
        assert second.context == ""
    assert caplog.text.count("the agent acts without memory: Cannot send a request, as the client has been closed") == 2


def test_a_run_that_cannot_be_told_is_given_up_and_does_not_break_the_agent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    buffer = DiskBuffer(tmp_path / "box.sqlite")
    with Casebank("http://127.0.0.1:9", "token", patience=NO_WAIT, buffer=buffer) as casebank:
        run = Run(AGENT, "rename a column", client=casebank)
        steps: Any = [object()]
        run.plan(*steps)
        run.finish()
    assert "a run is given up: Object of type object is not JSON serializable" in caplog.text


@pytest.mark.parametrize("on_disk", [False, True])
def test_the_runs_of_a_forked_process_and_of_its_parent_are_kept_once_each(
    service: Service, tmp_path: Path, *, on_disk: bool
):
    user = f"forked-{on_disk}"
    agent = f"""
        import os, pathlib, sys
        from casebank_client import Casebank, DiskBuffer, Patience
        buffer = DiskBuffer(pathlib.Path({str(tmp_path / "box.sqlite")!r})) if {on_disk} else None
        casebank = Casebank({service.url!r}, {token(service, user)!r}, patience={PATIENT!r}, buffer=buffer)
        def end(task):
            with casebank.run({AGENT!r}, task) as run:
                run.success()
        end("before the fork")
        if child := os.fork():
            end("in the parent")
            _, status = os.waitpid(child, 0)
            casebank.close()
            sys.exit(status)
        end("in the child")
        casebank.close()
    """
    done = subprocess.run((sys.executable, "-c", textwrap.dedent(agent)), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert {case["task"] for case in cases(service, user)} == {"before the fork", "in the parent", "in the child"}


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_run_that_ends_after_its_client_is_closed_waits_on_disk_or_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, on_disk: bool
):
    buffer = DiskBuffer(tmp_path / "box.sqlite")
    url = f"http://127.0.0.1:{free_port()}"
    with Casebank(url, "token", patience=NO_WAIT, buffer=buffer if on_disk else None) as casebank:
        ended(casebank, "end in time")
    late = Run(AGENT, "end too late", client=casebank)
    late.finish()
    assert [request.body["task"] for request in buffer.waiting()] == (["end in time", late.task] if on_disk else [])
    assert ("a run is given up, for the client is closed" in caplog.text) is not on_disk


@pytest.mark.parametrize("by_a_service", [False, True], ids=["their tokens", "a service's token"])
def test_clients_that_share_a_file_send_the_runs_of_their_own_user(home: Path, tmp_path: Path, *, by_a_service: bool):
    buffer, away = DiskBuffer(tmp_path / "box.sqlite"), Service(home)
    users = [f"{name}-{by_a_service}" for name in ("sam", "tia")]

    def client(user: str, **more: Any) -> Casebank:
        if by_a_service:
            return Casebank(away.url, token(away, "backend", ACT_AS), user=user, buffer=buffer, **more)
        return memory(away, user, buffer=buffer, **more)

    for user in users:
        with client(user, patience=NO_WAIT) as casebank:
            ended(casebank, f"a job of {user}")
    with away:
        for user in users:
            with client(user) as casebank:  # which has a token of its own
                until(lambda casebank=casebank: not casebank.outbox.disk.waiting())
        assert buffer.waiting() == []
        for user in users:
            assert [case["task"] for case in cases(away, user)] == [f"a job of {user}"]


def test_a_refused_run_on_disk_is_listed_and_sent_again_by_clients_of_its_own_user(service: Service, tmp_path: Path):
    buffer = DiskBuffer(tmp_path / "box.sqlite")
    with Casebank(service.url, token(service, "uwe", now=datetime.now(UTC) - timedelta(hours=2)), buffer=buffer) as old:
        ended(old, "a job of uwe")
        until(lambda: old.outbox.refused)
    with memory(service, "vera", buffer=buffer) as other:
        assert other.outbox.refused == []
        other.outbox.send_refused()
    with memory(service, "uwe", buffer=buffer) as renewed:
        assert [each.request.body["task"] for each in renewed.outbox.refused] == ["a job of uwe"]
        renewed.outbox.send_refused()
        until(lambda: not buffer.waiting())
    assert [len(cases(service, user)) for user in ("uwe", "vera")] == [1, 0]


def test_a_token_that_is_no_jwt_stands_for_itself(tmp_path: Path):
    buffer, away = DiskBuffer(tmp_path / "box.sqlite"), f"http://127.0.0.1:{free_port()}"
    for opaque in ("one", "one.of.three", "other"):
        with Casebank(away, opaque, patience=NO_WAIT, buffer=buffer) as casebank:
            ended(casebank, opaque)
            assert [each.body["task"] for each in casebank.outbox.disk.waiting()] == [opaque]


def test_runs_that_an_older_client_left_on_disk_stay_there_and_no_client_sends_them(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    buffer = DiskBuffer(tmp_path / "box.sqlite")
    with closing(sqlite3.connect(buffer.path)) as file, file:
        columns = "number INTEGER PRIMARY KEY, key TEXT UNIQUE, path TEXT, body TEXT"
        file.execute(f"CREATE TABLE waiting ({columns})")
        file.execute(f"CREATE TABLE refused ({columns}, reason TEXT)")
        body = json.dumps({"agent": AGENT, "task": "a job of who knows"})
        file.execute("INSERT INTO waiting (key, path, body) VALUES ('1', '/v1/retain', ?)", (body,))
    with memory(service, "wim", buffer=buffer) as casebank:
        ended(casebank, "a job of wim")
        until(lambda: not casebank.outbox.disk.waiting())
        assert [each.body["task"] for each in buffer.waiting()] == ["a job of who knows"]
        assert [case["task"] for case in cases(service, "wim")] == ["a job of wim"]
        for run in buffer.waiting():  # as the client's page says
            casebank.ask(run)
            buffer.forget(run)
    assert [case["task"] for case in cases(service, "wim")] == ["a job of wim", "a job of who knows"]
    assert "runs of an older client name no user and stay waiting: 1" in caplog.text


def test_a_run_of_an_agent_that_is_killed_before_it_was_sent_is_kept(home: Path, tmp_path: Path):
    """The agent is killed while casebank is away: what its buffer holds is retained by whoever opens it next."""
    away, buffer = Service(home), DiskBuffer(tmp_path / "box.sqlite")
    agent = f"""
        import os, pathlib, signal
        from casebank_client import Casebank, DiskBuffer, Patience
        buffer = DiskBuffer(pathlib.Path({str(buffer.path)!r}))
        casebank = Casebank({away.url!r}, {token(away, "killed")!r}, patience={NO_WAIT!r}, buffer=buffer)
        with casebank.run({AGENT!r}, "do the job") as run:
            run.success()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run((sys.executable, "-c", textwrap.dedent(agent)), check=False)
    assert done.returncode == -signal.SIGKILL
    with away, memory(away, "killed", buffer=buffer):
        until(lambda: not buffer.waiting())
        assert [case["task"] for case in cases(away, "killed")] == ["do the job"]


def test_a_full_buffer_gives_up_the_oldest(tmp_path: Path):
    buffer = DiskBuffer(tmp_path / "box.sqlite", most=3)
    for number in range(5):
        buffer.save(Request("POST", "/v1/retain", {"task": number}, {"Idempotency-Key": str(number)}))
    assert [request.body["task"] for request in buffer.waiting()] == [2, 3, 4]


def numbered(number: int) -> Request:
    return Request("POST", "/v1/retain", {"task": number}, {"Idempotency-Key": str(number)})


def test_what_an_outage_left_on_disk_is_sent_though_new_runs_never_pause(tmp_path: Path):
    buffer, sent, ended = DiskBuffer(tmp_path / "box.sqlite"), list[int](), threading.Event()

    def send(request: Request) -> None:
        sent.append(request.body["task"])
        if sent.count(0) == 3 or len(sent) == 100:
            ended.set()
            return
        outbox.put(numbered(len(sent)))  # the agent's next run is there before this one is answered
        if sent[-1] == 0:
            raise CasebankUnreachable("away")

    outbox = Outbox(send, buffer, try_again_s=0)
    outbox.put(numbered(0))
    assert ended.wait(60)
    outbox.close()
    assert sent.count(0) == 3


def test_a_refused_run_waits_on_disk_from_the_moment_at_which_it_is_taken(tmp_path: Path):
    buffer = DiskBuffer(tmp_path / "box.sqlite")
    buffer.set_aside(Refused(numbered(0), "401"))
    taken = [each.request for each in buffer.take_refused(keep=False)]
    assert taken == buffer.waiting() == [numbered(0)]
    assert buffer.take_refused() == []


@pytest.mark.parametrize("odd", [uuid4(), {("a", "b"): 1}], ids=["an id", "keys that are no text"])
def test_any_field_of_a_run_can_wait_on_disk(odd: Any, tmp_path: Path):
    buffer = DiskBuffer(tmp_path / "box.sqlite")
    with (
        Casebank(f"http://127.0.0.1:{free_port()}", "no token", patience=NO_WAIT, buffer=buffer) as casebank,
        casebank.run(AGENT, "rename a column", prompt_snapshot=odd) as run,
    ):
        run.success()
    assert [request.body["prompt_snapshot"] for request in buffer.waiting()] == [str(odd)]


def test_a_buffer_that_cannot_be_written_costs_the_run_and_not_the_agent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "file").touch()
    buffer = DiskBuffer(tmp_path / "file" / "box.sqlite")
    outbox = Outbox(lambda _: None, buffer)
    outbox.put(Request("POST", "/v1/retain", {}, {"Idempotency-Key": "1"}))
    assert "buffer on disk fails" in caplog.text
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208 - names alone


async def test_a_session_is_begun_read_and_deleted_by_either_client(service: Service):
    said = [{"role": "user", "content": "rename a column"}]
    async with AsyncCasebank(service.url, token(service, "talks")) as casebank:
        assert (await casebank.add_turns(AGENT, "a chat", said))["turn_count"] == 1
        assert [turn["content"] for turn in (await casebank.read_session("a chat"))["turns"]] == ["rename a column"]
    with memory(service, "talks") as casebank:
        assert casebank.add_turns(AGENT, "a chat", said)["last"] == 2
        assert casebank.read_session("a chat", token_budget=0)["left_out"] == 2
        casebank.delete_session("a chat")
        with pytest.raises(CasebankRefused) as unknown:
            casebank.read_session("a chat")
        assert unknown.value.status == 404


def test_what_was_added_is_found_listed_and_deleted(service: Service):
    with memory(service, "mia") as casebank:
        lisbon = casebank.add("I live in Lisbon and I am vegetarian")
        again = casebank.add("I live in Lisbon and I am vegetarian")
        casebank.add("save 500 EUR a month", kind="goal", value="500", unit="EUR")
        casebank.add("Tests run with make check", agent=AGENT)
        assert (again["fact_id"], again["told"]) == (lisbon["fact_id"], 2)
        found = casebank.search("which food may I eat as a vegetarian?")
        assert found[0]["source"]["fact_id"] == lisbon["fact_id"]
        assert [(each["kind"], each["text"]) for each in casebank.get_all()] == [
            ("goal", "save 500 EUR a month"),
            ("fact", "I live in Lisbon and I am vegetarian"),
        ]
        casebank.delete(lisbon["fact_id"])
        assert [each["kind"] for each in casebank.get_all()] == ["goal"]
        assert [each["text"] for each in casebank.get_all(agent=AGENT)] == ["Tests run with make check"]
        with pytest.raises(CasebankRefused, match="404"):
            casebank.delete(lisbon["fact_id"])


async def test_messages_given_to_add_raise_an_error_that_names_add_turns(service: Service):
    said: Any = [{"role": "user", "content": "I live in Lisbon"}]
    with memory(service, "mia") as casebank, pytest.raises(TypeError, match="messages go into add_turns"):
        casebank.add(said)
    async with AsyncCasebank(service.url, token(service, "mia")) as later:
        with pytest.raises(TypeError, match="messages go into add_turns"):
            await later.add(said)


async def test_a_user_id_raises_an_error_that_names_the_token(service: Service):
    user: Any = {"user_id": "ben"}
    with memory(service, "mia") as casebank:
        for call in (casebank.add, casebank.search):
            with pytest.raises(TypeError, match="'user_id': the user is the one of the token"):
                call("I live in Lisbon", **user)
        with pytest.raises(TypeError, match="'user_id'"):
            casebank.get_all(**user)
    async with AsyncCasebank(service.url, token(service, "mia")) as later:
        for work in (later.add("I live in Lisbon", **user), later.search("home", **user), later.get_all(**user)):
            with pytest.raises(TypeError, match="'user_id'"):
                await work


async def test_everything_that_was_added_is_listed_beyond_one_page(service: Service):
    said = [" ".join(f"I like w{turn}q{each}." for each in range(MOST_OF_TURN)) for turn in range(PAGE // MOST_OF_TURN)]
    with memory(service, "max") as casebank:
        casebank.add_turns(AGENT, "likes", [{"role": "user", "content": each} for each in said])
        until(lambda: len(casebank.get_all(agent=AGENT)) == PAGE)
        added = [casebank.add(f"Rule {number} is kept", agent=AGENT)["fact_id"] for number in range(5)]
        everything = [each["fact_id"] for each in casebank.get_all(agent=AGENT)]
    assert everything[:5] == added[::-1]
    assert len(set(everything)) == len(everything) == PAGE + 5
    async with AsyncCasebank(service.url, token(service, "max")) as casebank:
        assert [each["fact_id"] for each in await casebank.get_all(agent=AGENT)] == everything


async def test_facts_knowledge_and_cases_are_read_and_deleted_by_either_client(service: Service):
    with memory(service, "noa") as casebank:
        entry = casebank.add_knowledge(AGENT, "banking", "Savings earn 2.1 percent.", title="Overnight rate")
        casebank.add("I bank in Porto", agent=AGENT)
        casebank.add_turns(AGENT, "monday", [{"role": "user", "content": "Which savings rate do I get?"}])
        recalled = casebank.recall(AGENT, "savings rate", kinds=["knowledge"])
        assert [each["source"]["knowledge_id"] for each in recalled["memories"]] == [entry["knowledge_id"]]
        assert {each["kind"] for each in casebank.recall(AGENT, "savings rate")["memories"]} >= {"turn", "knowledge"}
        assert casebank.facts(agent=AGENT, kind="goal")["why_empty"]
        receipt = casebank.retain(AGENT, "read the rate", "success", plan=["look"])
    cases(service, "noa")
    async with AsyncCasebank(service.url, token(service, "noa")) as later:
        assert [each["text"] for each in (await later.facts(agent=AGENT, history=True))["facts"]] == ["I bank in Porto"]
        assert (await later.knowledge(agent=AGENT, category="banking"))["knowledge"] == [entry]
        assert (await later.search("where do I bank?", agent=AGENT))[0]["text"] == "I bank in Porto"
        (kept,) = (await later.cases(agent=AGENT))["cases"]
        assert kept["case_id"] == receipt["case_id"]
        assert (await later.case(receipt["case_id"]))["plan"] == ["look"]
        await later.delete_case(receipt["case_id"])
        await later.delete_knowledge(entry["knowledge_id"])
        await later.delete((await later.get_all(agent=AGENT))[0]["fact_id"])
        assert not (await later.cases())["cases"] + (await later.knowledge())["knowledge"] + (await later.get_all())


@pytest.mark.parametrize("answer", [b"<html>please sign in</html>", b"[]", b'{"sign": "in"}'])
def test_an_agent_acts_without_memory_where_something_else_answers(answer: bytes):
    class SomethingElse(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

    with ThreadingHTTPServer(("127.0.0.1", 0), SomethingElse) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}"
        with Casebank(url, "no token", patience=NO_WAIT) as casebank, casebank.run(AGENT, "rename a column") as run:
            assert run.context == ""
        server.shutdown()


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_run_that_is_refused_is_kept_and_can_be_sent_again(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture, *, on_disk: bool
):
    buffer = DiskBuffer(tmp_path / "box.sqlite") if on_disk else None
    user = f"refused-{on_disk}"
    expired = token(service, user, now=datetime.now(UTC) - timedelta(hours=2))
    with Casebank(service.url, expired, patience=NO_WAIT, buffer=buffer) as casebank:
        with casebank.run(AGENT, "rename a column") as run:
            run.success()
        until(lambda: casebank.outbox.refused)
        (refused,) = casebank.outbox.refused
        assert refused.request.body["task"] == "rename a column"
        assert refused.reason.startswith("401")
    assert "refused" in caplog.text
    if buffer is not None:  # and a later process has it
        with memory(service, user, buffer=buffer) as casebank:
            casebank.outbox.send_refused()
            until(lambda: not buffer.waiting())
            assert casebank.outbox.refused == []
        assert [case["task"] for case in cases(service, user)] == ["rename a column"]


def test_refused_runs_in_memory_are_sent_again_by_the_same_client():
    answers = [CasebankRefused(422, {"title": "invalid"}), None]
    sent: list[Request] = []

    def send(request: Request) -> None:
        sent.append(request)
        if (error := answers[len(sent) - 1]) is not None:
            raise error

    outbox = Outbox(send)
    outbox.put(Request("POST", "/v1/retain", {"task": "a"}, {"Idempotency-Key": "1"}))
    until(lambda: outbox.refused)
    outbox.send_refused()
    until(lambda: len(sent) == 2)
    outbox.close()
    assert outbox.refused == []
    assert sent[0] == sent[1]
