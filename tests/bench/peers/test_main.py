"""The benchmark of memories asks each the same, and says which it skips; other memories need not be installed."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app import postgres
from bench.peers.casebank import in_process, over_http
from bench.peers.main import peers, sign_test
from bench.peers.memory import Memory, task_vectors
from bench.peers.runs import read
from tests.processes import migrated_home

CUSTOMERS = {"ann": ("shirt", 1), "bob": ("lamp", 0), "cat": ("lamp", 1)}
"""Task and reward of each customer's runs, which cancel once; the shirt wants one cancelled order, the lamp two."""
ORDERS = {"shirt": 1, "lamp": 2}
RUNS, QUERIES = 12, 6


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "tau" / "retail"
    folder.mkdir(parents=True)
    step = {"tool": "cancel_order", "input": {"id": 7}, "output": "done", "error": False}
    runs = [
        {
            "user": customer,
            "task_id": task,
            "task_text": f"please send my {task} back",
            "user_turns": [f"please send my {task} back"],
            "steps": [step, {**step, "tool": "get_order"}, {**step, "error": True}],
            "reward": reward,
        }
        for customer, (task, reward) in CUSTOMERS.items()
        for _ in range(6)
    ]
    tasks = [{"task_key": task, "gold_actions": [{"name": "cancel_order"}] * times} for task, times in ORDERS.items()]
    (folder / "runs.jsonl").write_text("\n".join(map(json.dumps, runs)))
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    return tmp_path


@asynccontextmanager
async def missing(_home: Path) -> AsyncIterator[Memory]:
    raise ImportError("neither psycopg nor psycopg2 is available")
    yield


async def test_each_memory_finds_the_users_own_runs_that_solved_the_task_and_a_missing_one_is_named(
    data: Path, capsys: pytest.CaptureFixture[str]
):
    memories = {"vectors": task_vectors, "another": missing, "process": in_process, "http": over_http}
    with migrated_home() as home:
        rows = await peers(home, data, RUNS, QUERIES, memories)
        postgres.release(home)
    bank, asking = read(data, RUNS, QUERIES)
    users = {query.user for query in asking}
    assert (len(bank), len(asking), len(users)) == (RUNS, QUERIES, len(CUSTOMERS))
    ann, bob, _ = sorted(users)
    assert [row.name for row in rows] == ["vectors", "process", "http"]
    for row in rows:
        assert row.same_task == [query.user != bob for query in asking], row.name
        assert row.same_tools == [query.user == ann for query in asking], row.name
        assert row.acknowledged >= row.ready > 0, row.name
        assert row.cold_s > 0 < row.resident_mb, row.name
    assert [row.row_kb[0] > 0 for row in rows] == [False, True, True]  # vectors stay in memory
    printed = capsys.readouterr().out
    assert "another is skipped: neither psycopg nor psycopg2 is available" in printed
    assert "Hindsight is skipped: it needs a server of its own" in printed


@pytest.mark.parametrize(
    ("won", "lost", "p"), [(0, 0, 1.0), (1, 0, 1.0), (3, 3, 1.0), (0, 6, 0.03125), (3, 17, 0.002577), (17, 3, 0.002577)]
)
def test_the_sign_test_is_two_sided(won: int, lost: int, p: float):
    assert sign_test(won, lost) == pytest.approx(p, abs=1e-6)


async def test_without_the_data_the_benchmark_is_skipped_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert await peers(tmp_path, tmp_path, RUNS, QUERIES) == []
    assert "peers is skipped" in capsys.readouterr().out
