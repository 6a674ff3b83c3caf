"""The benchmark of cases made ready: it reads recorded runs, and a machine without the data is told so."""

import json
import math
from pathlib import Path

from bench.ready import ready
from bench.real import real_runs


def test_a_recorded_run_keeps_its_calls_turns_and_end(tmp_path: Path):
    step = {"tool": "find_order", "input": {"id": 7}, "output": "Error: not found", "error": True}
    run = {"task_text": "where is it?", "user_turns": ["where is it?"], "steps": [step], "reward": 0}
    domain = tmp_path / "tau" / "retail"
    domain.mkdir(parents=True)
    (domain / "runs.jsonl").write_text(f"{json.dumps(run)}\n")
    (read,) = real_runs(tmp_path)
    assert (read.task, read.outcome, read.turns[0].content) == ("where is it?", "failure", "where is it?")
    assert [(call.tool, call.input, call.status) for call in read.tool_traces] == [("find_order", {"id": 7}, "error")]


async def test_without_the_data_the_benchmark_is_skipped_and_says_so(tmp_path: Path):
    (row,) = await ready(tmp_path, tmp_path)
    assert row.name == "ready: SKIPPED"
    assert math.isnan(row.value)
