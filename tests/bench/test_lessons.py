"""The benchmark of lessons: it counts what it says, and a machine without the data is told so."""

import json
import math
from pathlib import Path
from typing import Any

from bench.lessons import all_ok, analyst, events, read
from writer.procedures.rules.learners import explain


def step(tool: str, given: Any, *, error: bool = False) -> dict[str, Any]:
    return {"tool": tool, "input": given, "output": "Error: not found" if error else "{}", "error": error}


def run(run_id: str, *steps: dict[str, Any], reward: float = 1.0) -> dict[str, Any]:
    fields = {"run_id": run_id, "task_text": "find it", "user_turns": []}
    return {**fields, "steps": list(steps), "reward": reward}


def event(run_id: str, fail: list[int], success: int, kind: str) -> dict[str, Any]:
    return {"run_id": run_id, "tool": "find", "fail_idx": fail, "success_idx": success, "kind": kind}


def folder(root: Path, runs: list[Any], labels: list[Any]) -> Path:
    domain = root / "tau" / "shop"
    domain.mkdir(parents=True)
    for name, rows in (("runs", runs), ("failure_events", labels)):
        (domain / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return domain


RUNS = [
    run("fixed", step("find", 1, error=True), step("look", 1), step("find", 2)),
    run("lost", step("find", 1, error=True), reward=0.0),
    run("mislabelled", step("find", 1, error=True), step("find", 1)),
]
LABELS = [event("fixed", [0], 2, "args_changed_after_other_tool"), event("gone", [0], 1, "args_changed")]


def test_precision_recall_and_false_fixes_are_counted_against_the_labels(tmp_path: Path):
    folder(tmp_path, RUNS, LABELS)
    rows = {row.name: row for row in analyst(tmp_path)}
    for name in ("lessons shop", "lessons shop, all ok"):
        assert rows[f"{name}: precision"].value == 0.5
        assert rows[f"{name}: recall"].value == 0.5
        assert rows[f"{name}: fixes of failures never recovered from"].value == 1  # as the labels have it
        assert "args_changed 0/1" in rows[f"{name}: recall"].detail
    assert rows["lessons shop: speed"].value > 0


def test_a_run_is_read_as_retain_would_store_it_and_blinded_without_its_statuses(tmp_path: Path):
    domain = read(folder(tmp_path, RUNS, LABELS))
    fixed = domain.runs["fixed"]
    assert [trace["status"] for trace in fixed.tool_traces] == ["error", "ok", "ok"]
    assert {trace["status"] for trace in all_ok(fixed).tool_traces} == {"ok"}
    assert set(events("fixed", explain(fixed))) == domain.labels - {("gone", "find", (0,), 1, "args_changed")}


def test_without_the_data_it_says_that_it_was_skipped(tmp_path: Path):
    (row,) = analyst(tmp_path)
    assert "SKIPPED" in row.name
    assert math.isnan(row.value)
