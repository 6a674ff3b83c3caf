"""Backfill: each line once, bad lines named, and real runs of agents come in as cases."""

import asyncio
import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import func, select, update

from bench.real import real_run
from retrieval.tables.cases import cases
from tests.cluster import one_postgres
from tests.paths import DATA
from tests.writer.conftest import AGENT, Bank
from writer.queue.statements import depth
from writer.retain.backfill import CHUNK_LINES, Backfilled, backfill
from writer.retain.retain import retain
from writer.retain.steps import StepsTaken, append_steps, prepare_steps
from writer.rights.export import export
from writer.run import FinishedRun


@pytest.fixture(params=["retail", "airline"])
def runs(request: pytest.FixtureRequest) -> list[bytes]:
    folder = DATA / "tau" / request.param
    if not folder.exists():
        pytest.skip("no τ-bench runs beside the repository; CASEBANK_DATA names another folder")
    with (folder / "runs.jsonl").open("rb") as lines:
        real = [real_run(json.loads(line)) for line in islice(lines, 150)]
    return [run.model_dump_json(exclude_unset=True).encode() for run in real]


def request(task: str, **more: Any) -> bytes:
    return json.dumps({"agent": "theirs", "task": task, "outcome": "success", **more}).encode()


async def take(bank: Bank, user: str, *lines: bytes, agent: str = AGENT, progress: Any = lambda _: None) -> Backfilled:
    return await backfill(bank.database, bank.keyring, lines, bank.author(user), agent, progress=progress)


async def test_the_same_file_twice_adds_nothing(bank: Bank, user: str):
    lines = [request(f"task {number}") for number in range(CHUNK_LINES + 10)]
    assert await take(bank, user, *lines) == Backfilled(read=len(lines), retained=len(lines))
    assert await take(bank, user, *lines) == Backfilled(read=len(lines), known=len(lines))
    assert (await bank.counts(user))["cases"] == len(lines)


async def test_a_file_that_was_read_half_way_adds_only_the_rest(bank: Bank, user: str):
    lines = [request(f"task {number}") for number in range(10)]
    await take(bank, user, *lines[:4])
    assert await take(bank, user, *lines) == Backfilled(read=10, retained=6, known=4)


async def test_a_file_that_was_read_before_keys_of_lines_were_keyed_hashes_adds_nothing_and_gets_them(
    bank: Bank, user: str
):
    line = request("task")
    await take(bank, user, line)
    plain = "backfill:" + hashlib.sha256(AGENT.encode() + b"\n" + line).hexdigest()
    key = select(cases.c.idempotency_key).where(cases.c.user_sub == user)
    ((stored,),) = await bank.read(user, key)
    assert stored.startswith("backfill:")
    assert stored != plain
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await connection.execute(update(cases).where(cases.c.user_sub == user).values(idempotency_key=plain))
    assert await take(bank, user, line, line) == Backfilled(read=2, known=2)
    assert await bank.read(user, key) == [(stored,)]


async def test_of_two_backfills_of_one_file_at_once_each_run_is_retained_by_one(bank: Bank, user: str):
    lines = [request(f"task {number}") for number in range(10)]
    both = await asyncio.gather(take(bank, user, *lines), take(bank, user, *lines))
    assert sum(each.retained for each in both) == sum(each.known for each in both) == len(lines)
    assert (await bank.counts(user))["cases"] == len(lines)


async def test_equal_lines_of_one_file_are_one_case(bank: Bank, user: str):
    assert await take(bank, user, request("a"), request("b"), request("a")) == Backfilled(3, 2, 1)
    assert (await bank.counts(user))["cases"] == 2


async def test_equal_lines_that_hold_no_run_are_known_by_none(bank: Bank, user: str):
    done = await take(bank, user, b"{}", b"{}", b'{"type": "facts"}', b'{"type": "facts"}', request("a"))
    assert (done.read, done.retained, done.known, done.passed_over) == (5, 1, 0, 2)
    assert [number for number, _ in done.refused] == [1, 2]


async def test_the_same_file_for_another_agent_is_another_agents(bank: Bank, user: str):
    for agent in ("one", "two"):
        assert (await take(bank, user, request("a"), agent=agent)).retained == 1
    agents = await bank.read(
        user, select(cases.c.agent_key).where(cases.c.user_sub == user).order_by(cases.c.agent_key)
    )
    assert [row.agent_key for row in agents] == ["one", "two"]


@pytest.mark.parametrize(
    "citus", [pytest.param(False, marks=one_postgres), True], ids=["one Postgres", "as on a cluster"]
)
async def test_a_run_comes_in_with_its_time(bank: Bank, user: str, *, citus: bool):
    old = "2024-02-29T12:00:00+01:00"
    other = replace(bank, database=replace(bank.database, citus=citus))
    await take(other, user, request("a", created_at=old), request("b"))
    times = await bank.read(user, select(cases.c.task, cases.c.created_at).where(cases.c.user_sub == user))
    assert [row.created_at for row in times].count(datetime.fromisoformat(old)) == 1
    (waiting,) = await bank.read(user, depth())
    assert datetime.now(UTC) - waiting.oldest < timedelta(hours=1)  # it has not waited for the worker since 2024


async def test_what_export_writes_comes_in_under_another_user_as_it_was(bank: Bank, user: str):
    traces = [{"tool": "hose", "input": {"litres": 2}, "output": "wet", "duration_ms": 7}]
    turns = [{"role": "user", "content": "please"}]
    more = {"plan": ["fill"], "tags": ["garden"], "tool_traces": traces, "turns": turns, "prompt_snapshot": "You are"}
    lines = [
        request("water the plants", created_at="2024-02-29T12:00:00Z", reward=0.5, reward_source="user", **more),
        request("go to bed", outcome="failure"),
    ]
    await take(bank, user, *lines)
    exported = [row async for row in export(bank.database, bank.keyring, user)]
    done = await take(bank, f"{user}-2", *(json.dumps(row).encode() for row in exported))
    assert (done.retained, done.refused, done.passed_over) == (2, [], len(exported) - 2)
    again = [row async for row in export(bank.database, bank.keyring, f"{user}-2") if row["type"] == "cases"]
    assert sorted(map(_said, again)) == sorted(_said(row) for row in exported if row["type"] == "cases")


async def test_a_case_that_the_export_could_not_decrypt_is_refused_and_does_not_come_in_without_its_traces(
    bank: Bank, user: str
):
    row = {"type": "cases", "task": "water the plants", "outcome": "success", "payload": "00ff", "unreadable": True}
    done = await take(bank, user, json.dumps(row).encode())
    assert (done.retained, done.refused) == (0, [(1, "the export could not decrypt this case")])


async def test_the_cases_that_the_upgrade_page_selects_of_an_older_export_come_in_as_they_were(bank: Bank, user: str):
    # made by `casebank export` of the last commit before 0001_baseline
    older = (Path(__file__).parent / "exported_before_baseline.jsonl").read_text().splitlines()
    page = (Path(__file__).parents[3] / "docs" / "upgrade.md").read_text()
    (pattern,) = re.findall("^grep '(.*)' U.jsonl > A.jsonl$", page, re.MULTILINE)
    selected = [line for line in older if re.match(pattern.replace('"A"', '"gardener"'), line)]
    assert len(selected) == 2 < len(older)
    done = await take(bank, user, *(line.encode() for line in selected))
    assert (done.retained, done.refused, done.passed_over) == (2, [], 0)
    again = [row async for row in export(bank.database, bank.keyring, user) if row["type"] == "cases"]
    assert sorted(map(_said, again)) == sorted(_said(json.loads(line)) for line in selected)


def _said(row: Any) -> str:
    names = ("task", "plan", "tags", "outcome", "reward", "reward_source", "kind", "created_at")
    told = {name: row["payload"][name] for name in ("tool_traces", "turns", "prompt_snapshot", "procedure")}
    return json.dumps({name: row[name] for name in names} | told, sort_keys=True)


async def test_an_integer_over_64_bits_comes_in_as_it_was(bank: Bank, user: str):
    output = {"account": 2**70 + 1}
    await take(bank, user, request("a", tool_traces=[{"tool": "hose", "output": output}]))
    exported = [json.dumps(row).encode() async for row in export(bank.database, bank.keyring, user)]
    assert (await take(bank, f"{user}-2", *exported)).refused == []
    (row,) = [row async for row in export(bank.database, bank.keyring, f"{user}-2") if row["type"] == "cases"]
    payload: Any = row["payload"]
    assert payload["tool_traces"][0]["output"] == output


async def test_a_line_that_ends_a_run_that_ended_before_stops_nothing(bank: Bank, user: str):
    run_id = uuid4()
    step = {"number": 1, "tool": "hose"}
    taken = StepsTaken.model_validate({"agent": AGENT, "task": "water", "steps": [step]})
    await append_steps(bank.database, bank.keyring, run_id, prepare_steps(taken), bank.author(user))
    await retain(bank.database, bank.keyring, FinishedRun(agent=AGENT, task="water", run_id=run_id), bank.author(user))
    done = await take(bank, user, request("water", run_id=str(run_id)), request("after"))
    assert (done.retained, done.refused) == (1, [(1, "this run ended before")])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b'{"agent": "a", "task": ' + b"[" * 100_000, "not JSON"),
        (b'{"agent": "a", "task": ' + b"1" * 5_000 + b"}", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (request("a", tool_traces=[{"tool": "hose", "output": float("nan")}]), "a number is not finite"),
        (request("a", tool_traces=[{"tool": "hose", "input": {"litres": float("-inf")}}]), "a number is not finite"),
        (b'{"task_text": "a", "task_id": "0", "domain": "x", "steps": [], "reward": 1e999}', "a number is not finite"),
        (b"[]", "not a JSON object"),
        (b"{}", "task: Field required"),
        (request("a", surprise=1), "surprise: Extra inputs"),
        (request(""), "task: String should have at least 1"),
        (request("a", created_at="yesterday"), "created_at: Input should be a valid datetime"),
        (request("a", created_at="2024-02-29T12:00:00"), "created_at: Input should have timezone info"),
        (request("a", created_at="2999-01-01T00:00:00Z"), "created_at: Input should be in the past"),
        (b'{"type": "cases"}', "task: Field required"),
        (request("a", reward=2), "reward: Input should be less than or equal to 1"),
        (request("a", parent_case_id=str(uuid4())), "parent_case_id names a case that there is not"),
        (b'{"type": "cases", "payload": 7}', "wrong type"),
    ],
)
async def test_a_bad_line_is_reported_by_number_and_stops_nothing(bank: Bank, user: str, line: bytes, reason: str):
    done = await take(bank, user, request("before"), b"", line, request("after"))
    assert (done.read, done.retained) == (3, 2)
    ((number, why),) = done.refused
    assert number == 3
    assert reason in why


async def test_a_report_quotes_nothing_of_a_bad_line(bank: Bank, user: str):
    done = await take(bank, user, request("hunter2" * 5_000, outcome="hunter2"), b'{"hunter2: ')
    assert len(done.refused) == 2
    assert "hunter2" not in str(done.refused)


async def test_the_progress_adds_up_to_the_lines_read(bank: Bank, user: str):
    told: list[int] = []
    lines = [request(f"task {number}") for number in range(CHUNK_LINES + 1)]
    await take(bank, user, *lines, b"{", progress=told.append)
    assert told == [CHUNK_LINES, 2]


async def test_real_runs_come_in_whole_and_once(bank: Bank, user: str, runs: list[bytes]):
    whole = {line: json.loads(line) for line in runs}
    done = await take(bank, user, *runs)
    assert (done.retained, done.refused) == (len(whole), [])
    sums = select(func.count(), func.sum(cases.c.step_count)).where(cases.c.user_sub == user)
    ((count, steps),) = await bank.read(user, sums)
    assert count == len(whole)
    assert steps >= sum(len(run["tool_traces"]) for run in whole.values())
    assert await take(bank, user, *runs) == Backfilled(read=len(runs), known=len(runs))
