"""The digest of a run, which a language model reads: a part of bounded size, in which failed calls have priority."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

from pydantic import JsonValue

from writer.analysis.calls import Call, StoredRun
from writer.analysis.error_output import beginning, glimpse
from writer.analysis.failures import Failure
from writer.procedures.ports import Analysis

TASK_CHARS = 2_000
ARGUMENT_CHARS = 600
OUTPUT_CHARS = 600
TURN_CHARS = 400
PLAN_CHARS = 200
MOST_STEPS = 30
MOST_DIGEST_CALLS = 24
MOST_DIGEST_TURNS = 12
MOST_FAILURES = 5


@dataclass(frozen=True, slots=True)
class DigestCall:
    """A call in the digest, by its number in the run, with input and output as shortened texts."""

    call: int
    tool: str
    input: str
    status: str
    output: str


@dataclass(frozen=True, slots=True)
class DigestTurn:
    """A message of the conversation in the digest, shortened."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class RunDigest:
    """The part of a run that a model reads."""

    task: str
    outcome: str
    plan: Sequence[str]
    calls: Sequence[DigestCall]
    turns: Sequence[DigestTurn]

    def as_json(self) -> dict[str, JsonValue]:
        """Returns the digest as JSON for the model's input."""
        return asdict(self)


def digest_of(run: StoredRun, analysis: Analysis) -> RunDigest:
    """Returns the digest of a run, with the calls of the analysis' failures and then the latest calls, in run order."""
    failures = [*analysis.recovered[:MOST_FAILURES], *analysis.lost[:MOST_FAILURES]]
    ends = [index for failure in failures for index in (*failure.failed[-2:], failure.succeeded) if index is not None]
    newest_first = range(len(run.calls) - 1, -1, -1)
    indices = sorted(islice(dict.fromkeys([*ends, *newest_first]), MOST_DIGEST_CALLS))
    return RunDigest(
        task=beginning(run.task, TASK_CHARS),
        outcome=run.outcome,
        plan=[beginning(step, PLAN_CHARS) for step in run.plan[:MOST_STEPS]],
        calls=[_call(run.calls[index]) for index in indices],
        turns=[
            DigestTurn(beginning(str(turn.get("role", "")), PLAN_CHARS), glimpse(turn.get("content"))[:TURN_CHARS])
            for turn in list(run.turns)[-MOST_DIGEST_TURNS:]
            if isinstance(turn, Mapping)
        ],
    )


def evidence(analysis: Analysis) -> JsonValue:
    """Returns the failures in an analysis as JSON for the model, with the numbers of their calls."""
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


def _call(call: Call) -> DigestCall:
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return DigestCall(
        call.index,
        beginning(call.tool, PLAN_CHARS),
        beginning(text, ARGUMENT_CHARS),
        "error" if call.failed else "ok",
        glimpse(call.output)[:OUTPUT_CHARS],
    )
