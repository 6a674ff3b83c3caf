"""A bank of real runs for benchmarks: what a worker learned is in it, and a machine without the data is told so."""

import json
import math
from pathlib import Path

from app import postgres
from bench.real import remembered, skipped
from tests.processes import migrated_home


async def test_a_bank_of_recorded_runs_has_ready_cases_and_asks_with_further_runs(tmp_path: Path):
    domain = tmp_path / "data" / "tau" / "retail"
    domain.mkdir(parents=True)
    names = ["red shirt", "blue lamp", "green sofa", "white desk", "black tent", "grey boot"]
    runs = [
        {
            "task_text": f"exchange my {name} for a larger one",
            "user_turns": [f"exchange my {name} for a larger one"],
            "steps": [{"tool": "find_order", "input": {"name": name}, "output": "found", "error": False}],
            "reward": 1,
        }
        for name in names
    ]
    (domain / "runs.jsonl").write_text("\n".join(map(json.dumps, runs)))
    with migrated_home() as home:
        async with remembered(home, tmp_path / "data", users=2, count=4) as bank:
            assert bank is not None
            rows = await bank.bare.fetch("SELECT user_sub, status FROM cases ORDER BY id")
            assert [(row["user_sub"], row["status"]) for row in rows] == [("user-1", "ready"), ("user-2", "ready")] * 2
            assert bank.asked(0, 3) == [runs[4]["task_text"], runs[5]["task_text"], runs[4]["task_text"]]
        postgres.release(home)


async def test_without_the_data_there_is_no_bank_and_the_row_says_so(tmp_path: Path):
    async with remembered(tmp_path, None) as bank:
        assert bank is None
    assert math.isnan(skipped("retrieve").value)
