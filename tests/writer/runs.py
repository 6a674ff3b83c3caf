"""Runs as tests of the analyst write them: calls, what a user said, and what the rules make of both."""

from typing import Any

from writer.analysis.calls import StoredRun
from writer.procedures.ports import Analysis
from writer.procedures.rules.learners import explain

FAILED = "Error: user not found"


def call(tool: str, given: Any = None, output: Any = "done", status: str = "ok") -> dict[str, Any]:
    return {"tool": tool, "input": given, "output": output, "status": status, "duration_ms": None}


def analysed(*calls: Any, outcome: str = "success", turns: Any = (), task: str = "find the user") -> Analysis:
    return explain(StoredRun(task, outcome, list(calls), turns))


def asked(*said: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in said]
