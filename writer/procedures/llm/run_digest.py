"""What a language model is told of a run: a bounded part of it, with what failed before all else."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pydantic import JsonValue

from writer.analysis.calls import MOST_CALLS, StoredRun
from writer.analysis.error_output import beginning, glimpse
from writer.analysis.failures import Failure
from writer.procedures.ports import Analysis

TASK_CHARS = 2_000
GIVEN_CHARS = 600
OUTPUT_CHARS = 600
TURN_CHARS = 400
PLAN_CHARS = 200
MOST_STEPS = 30
MOST_TOLD_CALLS = 24
MOST_TOLD_TURNS = 12
MOST_FAILURES = 5


@dataclass(frozen=True, slots=True)
class ToldCall:
    """A call as a model is told of it."""

    index: int
    tool: str
    given: str
    output: str
    status: str


@dataclass(frozen=True, slots=True)
class ToldTurn:
    """A message of the conversation as a model is told of it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Told:
    """All that a model is told of a run."""

    task: str
    outcome: str
    plan: Sequence[str]
    calls: Sequence[ToldCall]
    turns: Sequence[ToldTurn]

    def material(self) -> dict[str, JsonValue]:
        """Returns it as JSON."""
        return {
            "task": self.task,
            "outcome": self.outcome,
            "plan": list(self.plan),
            "calls": [
                {
                    "call": call.index,
                    "tool": call.tool,
                    "input": call.given,
                    "status": call.status,
                    "output": call.output,
                }
                for call in self.calls
            ],
            "turns": [{"role": turn.role, "content": turn.content} for turn in self.turns],
        }


def told(run: StoredRun, analysis: Analysis) -> Told:
    """Returns what a model is told: of the calls those that the rules found to matter, then the latest."""
    traces = list(islice(run.tool_traces, MOST_CALLS))
    return Told(
        task=beginning(run.task, TASK_CHARS),
        outcome=run.outcome,
        plan=[beginning(step, PLAN_CHARS) for step in run.plan[:MOST_STEPS]],
        calls=[_call(index, traces[index]) for index in _told(analysis, len(traces))],
        turns=[_turn(turn) for turn in list(run.turns)[-MOST_TOLD_TURNS:] if isinstance(turn, Mapping)],
    )


def evidence(analysis: Analysis) -> JsonValue:
    """Returns the failures that the rules found, by the numbers of their calls."""
    return {
        "put_right": [_failure(failure) for failure in analysis.recovered[:MOST_FAILURES]],
        "never_put_right": [_failure(failure) for failure in analysis.lost[:MOST_FAILURES]],
    }


def _failure(failure: Failure) -> JsonValue:
    return {
        "tool": beginning(failure.tool, PLAN_CHARS),
        "failed_calls": list(failure.failed[:MOST_FAILURES]),
        "successful_call": failure.succeeded,
        "told_by": failure.evidence,
        "changed": [difference.how for difference in failure.differences[:MOST_FAILURES]],
    }


def _told(analysis: Analysis, count: int) -> list[int]:
    """Returns the indices of the calls to tell, rising."""
    matter: dict[int, None] = {}
    for failure in [*analysis.recovered[:MOST_FAILURES], *analysis.lost[:MOST_FAILURES]]:
        ends = [*failure.failed[-2:], *([] if failure.succeeded is None else [failure.succeeded])]
        matter.update(dict.fromkeys(ends))
    matter.update(dict.fromkeys(range(count - 1, -1, -1)))
    return sorted(islice((index for index in matter if index < count), MOST_TOLD_CALLS))


def _call(index: int, trace: Any) -> ToldCall:
    if not isinstance(trace, Mapping):
        return ToldCall(index, "", "", beginning(glimpse(trace), OUTPUT_CHARS), "")
    return ToldCall(
        index=index,
        tool=beginning(str(trace.get("tool", "")), PLAN_CHARS),
        given=beginning(_as_text(trace.get("input")), GIVEN_CHARS),
        output=glimpse(trace.get("output"))[:OUTPUT_CHARS],
        status=beginning(str(trace.get("status", "")), PLAN_CHARS),
    )


def _turn(turn: Mapping[Any, Any]) -> ToldTurn:
    return ToldTurn(beginning(str(turn.get("role", "")), PLAN_CHARS), glimpse(turn.get("content"))[:TURN_CHARS])


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
