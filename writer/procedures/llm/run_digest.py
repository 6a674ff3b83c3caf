"""The digest of a run that a language model reads: a bounded part of it, with the failed calls first of all."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

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
MOST_DIGEST_CALLS = 24
MOST_DIGEST_TURNS = 12
MOST_FAILURES = 5


@dataclass(frozen=True, slots=True)
class DigestCall:
    """A call in the digest, cut to its bounds."""

    index: int
    tool: str
    given: str
    output: str
    status: str


@dataclass(frozen=True, slots=True)
class DigestTurn:
    """A message of the conversation in the digest."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class RunDigest:
    """All that a model reads of a run."""

    task: str
    outcome: str
    plan: Sequence[str]
    calls: Sequence[DigestCall]
    turns: Sequence[DigestTurn]

    def as_json(self) -> dict[str, JsonValue]:
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


def digest_of(run: StoredRun, analysis: Analysis) -> RunDigest:
    """Returns the digest: the calls of failures that the rules found, then the latest, in the order of the run."""
    traces = list(islice(run.tool_traces, MOST_CALLS))
    return RunDigest(
        task=beginning(run.task, TASK_CHARS),
        outcome=run.outcome,
        plan=[beginning(step, PLAN_CHARS) for step in run.plan[:MOST_STEPS]],
        calls=[_call(index, traces[index]) for index in _chosen_calls(analysis, len(traces))],
        turns=[_turn(turn) for turn in list(run.turns)[-MOST_DIGEST_TURNS:] if isinstance(turn, Mapping)],
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


def _chosen_calls(analysis: Analysis, count: int) -> list[int]:
    """Returns the indices of the calls in the digest, rising."""
    chosen: dict[int, None] = {}
    for failure in [*analysis.recovered[:MOST_FAILURES], *analysis.lost[:MOST_FAILURES]]:
        ends = [*failure.failed[-2:], *([] if failure.succeeded is None else [failure.succeeded])]
        chosen.update(dict.fromkeys(ends))
    chosen.update(dict.fromkeys(range(count - 1, -1, -1)))
    return sorted(islice((index for index in chosen if index < count), MOST_DIGEST_CALLS))


def _call(index: int, trace: object) -> DigestCall:
    if not isinstance(trace, Mapping):
        return DigestCall(index, "", "", beginning(glimpse(trace), OUTPUT_CHARS), "")
    return DigestCall(
        index=index,
        tool=beginning(str(trace.get("tool", "")), PLAN_CHARS),
        given=beginning(_as_text(trace.get("input")), GIVEN_CHARS),
        output=glimpse(trace.get("output"))[:OUTPUT_CHARS],
        status=beginning(str(trace.get("status", "")), PLAN_CHARS),
    )


def _turn(turn: Mapping[str, object]) -> DigestTurn:
    return DigestTurn(beginning(str(turn.get("role", "")), PLAN_CHARS), glimpse(turn.get("content"))[:TURN_CHARS])


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
