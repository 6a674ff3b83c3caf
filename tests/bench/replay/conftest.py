"""A folder with made-up runs in the form of tau-bench's."""

from pathlib import Path

import orjson
import pytest

from bench.replay import tau_folds
from bench.replay.tau_folds import Domain

USERS, TASKS, TRIALS = 10, 20, 6


@pytest.fixture(scope="package")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of made-up runs: two tasks a user, six trials a task, every third of which fails."""
    folder = tmp_path_factory.mktemp("data") / "tau" / "retail"
    folder.mkdir(parents=True)
    tasks = [f"task {number}" for number in range(TASKS)]
    tools = ["cancel_order", "return_order", "change_address", "exchange_item"]
    runs = [
        {
            "run_id": f"{task}, trial {trial}",
            "started_at": "",
            "user": f"user {number % USERS}",
            "task_id": task,
            "task_text": f"I am user {number % USERS}, please {tools[number % 4].replace('_', ' ')} number {number}",
            "reward": float(trial % 3 > 0),
            "steps": [
                {"tool": "get_order", "input": {"id": number}, "output": "{}", "error": None},
                {
                    "tool": tools[(number + (trial % 3 == 0)) % 4],
                    "input": {"id": number},
                    "output": "ok",
                    "error": None,
                },
            ],
        }
        for number, task in enumerate(tasks)
        for trial in range(TRIALS)
    ]
    gold = [
        {"task_key": task, "gold_actions": [{"name": "get_order"}, {"name": tools[number % 4]}]}
        for number, task in enumerate(tasks)
    ]
    for name, rows in (("runs", runs), ("tasks", gold)):
        (folder / f"{name}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return folder.parents[1]


@pytest.fixture(scope="package")
def domain(data: Path) -> Domain:
    return tau_folds.read("retail", data)
