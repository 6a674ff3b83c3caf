"""The calls of a finished run, and the one definition of a call that failed.

**A call failed if its status is "error", or if its output reports an error** (`error_output.error_in`), whatever the
status says: many tools answer "Error: order not found" with the status "ok". Whoever counts failed calls asks `failed`,
or looks at ``Call.failed``; retain alone, which must not look at outputs, begins with ``call_status``, and the worker
puts right what that missed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

from writer.analysis.call_status import failed_by_status
from writer.analysis.command_output import error_in_command, only_shows
from writer.analysis.commands import with_lines
from writer.analysis.error_output import error_in
from writer.analysis.placeholders import TEXT_CHARS
from writer.analysis.statements import command_in

Evidence = Literal["status", "output", "empty_output", "complaint"]
MOST_CALLS = 10_000


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool, what its failure said, and the command line that it ran; None where there is none."""

    index: int
    tool: str
    given: object
    output: object
    failure: str | None = None
    evidence: Evidence = "output"
    line: str | None = None

    @property
    def failed(self) -> bool:
        """Returns whether the call failed."""
        return self.failure is not None


@dataclass(frozen=True)
class StoredRun:
    """A finished run as it was stored: redacted, and of whatever shape its tools gave it."""

    task: str
    outcome: str
    tool_traces: Sequence[object] = ()
    turns: Sequence[object] = ()
    plan: Sequence[str] = ()

    @cached_property
    def calls(self) -> Sequence[Call]:
        """The calls of its tools, each with its failure; looked at once, for outputs may be megabytes."""
        return calls_in(self.tool_traces)


def failed(status: object, output: object) -> bool:
    """Returns whether a call with this status and this output failed."""
    return failed_by_status(status) or error_in(output) is not None


def calls_in(traces: Iterable[object]) -> list[Call]:
    """Returns the first MOST_CALLS calls, each with its failure if it failed by its status or by its output.

    Traces are of retain's shape; what has another keeps its place, and nothing of it counts.
    """
    return [_call(index, trace) for index, trace in enumerate(islice(traces, MOST_CALLS))]


def _call(index: int, trace: object) -> Call:
    if not isinstance(trace, Mapping) or not isinstance(trace.get("tool"), str):
        return Call(index, "", None, None)
    given, output = with_lines(trace.get("input")), trace.get("output")
    line = command_in(given)
    said = error_in(output) if line is None else _error_of(line, output)
    if failed_by_status(trace.get("status")):
        return Call(index, trace["tool"], given, output, said or _beginning(output), "status", line)
    return Call(index, trace["tool"], given, output, said, line=line)


def _error_of(line: str, output: object) -> str | None:
    """Returns the error that a command's output reports, in whichever of its lines."""
    if not isinstance(output, str) or output.lstrip().startswith(("{", "[")):
        return error_in(output)
    return error_in_command(line, output) or (None if only_shows(line) else error_in(output))


def _beginning(output: object) -> str:
    return output[:TEXT_CHARS] if isinstance(output, str) else "an error"
