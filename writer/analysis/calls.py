"""The calls of a finished run, each with what its failure said if it failed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Literal

from writer.analysis.error_output import error_in
from writer.analysis.placeholders import TEXT_CHARS

Evidence = Literal["status", "output", "empty_output", "complaint"]
MOST_CALLS = 10_000


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool, and what its failure said; None where it did not fail."""

    index: int
    tool: str
    given: Any
    output: Any
    failure: str | None = None
    evidence: Evidence = "output"


@dataclass(frozen=True)
class StoredRun:
    """A finished run as it was stored: redacted, and of whatever shape its tools gave it."""

    task: str
    outcome: str
    tool_traces: Sequence[Any] = ()
    turns: Sequence[Any] = ()
    plan: Sequence[str] = ()

    @cached_property
    def calls(self) -> Sequence[Call]:
        """The calls of its tools, each with its failure; looked at once, for outputs may be megabytes."""
        return calls_in(self.tool_traces)


def calls_in(traces: Iterable[Any]) -> list[Call]:
    """Returns the first MOST_CALLS calls, each with its failure if it failed by its status or by its output.

    Traces are of retain's shape; what has another keeps its place, and nothing of it counts.
    """
    return [_call(index, trace) for index, trace in enumerate(islice(traces, MOST_CALLS))]


def _call(index: int, trace: Any) -> Call:
    if not isinstance(trace, Mapping) or not isinstance(trace.get("tool"), str):
        return Call(index, "", None, None)
    given, output = trace.get("input"), trace.get("output")
    said = error_in(output)
    if trace.get("status") == "error":
        return Call(index, trace["tool"], given, output, said or _beginning(output), "status")
    return Call(index, trace["tool"], given, output, said)


def _beginning(output: Any) -> str:
    return output[:TEXT_CHARS] if isinstance(output, str) else "an error"
