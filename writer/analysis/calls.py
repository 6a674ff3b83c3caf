"""The calls of a finished run, and the one definition of a failed call.

**A call failed if its status is "error", or if its output reports an error** (`error_output.error_in`), whatever the
status is: many tools answer "Error: order not found" with the status "ok". Code that counts failed calls uses `failed`
or ``Call.failed``. Only retain, which must not read outputs, counts by ``run_counts``; the worker corrects its counts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Literal

from retrieval.patterns import patterns
from writer.analysis.causes import is_generic, marked_line, with_cause
from writer.analysis.command_goals import mains
from writer.analysis.command_names import READERS
from writer.analysis.commands import with_lines
from writer.analysis.error_output import SHORT_CHARS, TRACEBACK, both_ends, error_in, exception_in
from writer.analysis.placeholders import TEXT_CHARS
from writer.analysis.run_counts import failed_by_status
from writer.analysis.statements import statement_of

MOST_LINES = 5
"""Number of first lines of an output that are searched for a program's own error, as in ``sed: no such option``."""

_FORMS = patterns("writer.analysis", "command_output")


def error_in_command(line: str, output: object) -> str | None:
    """Returns the line in which a command's output reports an error; None: it reports none."""
    if not isinstance(output, str) or not output.strip():
        return None
    text = both_ends(output)
    if only_shows(line):
        return next((row for row in text.splitlines()[:MOST_LINES] if _is_own_error(line, row)), None)
    rows = [row for row in text.splitlines() if row.strip()]
    errors = [
        row
        for row in rows
        if (_FORMS["tools"].search(row) and not _FORMS["fine"].search(row)) or _FORMS["shell"].search(row)
    ]
    own = (row for row in rows[:MOST_LINES] if _is_own_error(line, row))
    error = next((row for row in errors if not is_generic(row)), None) or next(iter(errors), None) or next(own, None)
    if error and error.startswith(TRACEBACK):
        return exception_in(text)
    return error[:SHORT_CHARS] if error else None


def only_shows(line: str) -> bool:
    """Returns whether a command line only shows files or state, so that errors in its output may be content."""
    return all(each.program in READERS for each in mains(line))


def _is_own_error(line: str, row: str) -> bool:
    names = {each.program for each in mains(line)} | {"bash", "sh", "zsh", "/bin/sh"}
    return (
        row.split(":", 1)[0].rsplit("/", 1)[-1] in names
        and not _FORMS["fine"].search(row)
        and not _FORMS["no_harm"].search(row)
    )


Evidence = Literal["status", "output", "empty_output", "complaint"]
MOST_CALLS = 10_000
MOST_SIGNATURES = 20
SIGNATURE_CHARS = 200
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:[\[{\]\"\d-]|true\b|false\b|null\b))")
"""The beginning of an output that is JSON; "[ERROR] …" is a line."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool in a finished run.

    Attributes:
        index: position among the calls of the run, from 0.
        failure: the beginning of the error; None if the call succeeded.
        evidence: the part of the call that shows the failure: its status, its output, or a complaint of the user.
        line: the command line that the call ran; None: it ran no command line.
    """

    index: int
    tool: str
    arguments: object
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
    """A finished run as it is stored: redacted, with tool traces and turns in the form in which the backend sent them.

    Attributes:
        is_short: true if an analysis of the run takes only milliseconds, so that it may run on the event loop.
    """

    task: str
    outcome: str
    tool_traces: Sequence[object] = ()
    turns: Sequence[object] = ()
    plan: Sequence[str] = ()
    is_short: bool = False

    @cached_property
    def calls(self) -> Sequence[Call]:
        """Returns the calls of the run, each with its failure; computed once, because outputs may be megabytes."""
        return calls_in(self.tool_traces)


def failed(status: object, output: object, tool: str) -> bool:
    """Returns whether a call of a tool with this status and this output failed."""
    return failed_by_status(status) or error_in(output, tool) is not None


def calls_in(traces: Iterable[object]) -> list[Call]:
    """Returns the first MOST_CALLS calls of a run, each with its failure if it failed by its status or by its output.

    A trace of another form than retain's ``tool_traces`` becomes a call without a tool and data, so that the index of
    later calls stays right.
    """
    calls: list[Call] = []
    for index, trace in enumerate(islice(traces, MOST_CALLS)):
        if not isinstance(trace, Mapping) or not isinstance(trace.get("tool"), str):
            calls.append(Call(index, "", None, None))
            continue
        arguments, output = with_lines(trace.get("input")), trace.get("output")
        line = statement_of(arguments, "shell")
        if line is None or not isinstance(output, str) or _JSON.match(output):
            error = error_in(output, trace["tool"])
        else:
            error = error_in_command(line, output) or (None if only_shows(line) else error_in(output, trace["tool"]))
        evidence: Evidence = "output"
        if failed_by_status(trace.get("status")):
            evidence = "status"
            error = error or (marked_line(output) or output[:TEXT_CHARS] if isinstance(output, str) else "an error")
        error = error and with_cause(error, output)
        calls.append(Call(index, trace["tool"], arguments, output, error, evidence, line))
    return calls


def error_signatures(run: StoredRun) -> list[str]:
    """Returns the signatures of a run's errors, each once, in the order of the calls."""
    lines = (call.failure.strip().partition("\n")[0][:SIGNATURE_CHARS] for call in run.calls if call.failure)
    return list(dict.fromkeys(line for line in lines if line))[:MOST_SIGNATURES]
