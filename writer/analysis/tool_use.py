"""What each tool did in a run: how often it was called and failed, with which arguments it worked, what put it right.

Nothing of the run's data is in it: argument names, placeholders, the names of tools, and causes of the fixed list.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from writer.analysis.calls import Call, StoredRun
from writer.analysis.causes import cause_of
from writer.analysis.failures import find
from writer.analysis.placeholders import clean, form
from writer.analysis.remedy import remedy, tool_name

MOST_TOOLS = 50
"""Tools of one run that are remembered, the first that it called."""
MOST_FORMS = 8
MOST_FAILURES = 20
"""Failures of one tool in one run; repeated calls after one goal are one failure."""
LOOKED_AT = 200
"""Calls of one tool that worked and whose arguments are looked at."""
FORM_CHARS = 300
MOST_MS = 1e12
"""From which on a duration is none."""


@dataclass(slots=True)
class ToolUse:
    """One tool in one run.

    Attributes:
        errors: calls that failed, by their status or by what they answered.
        duration_ms: of all calls together; None unless each told its own.
        forms: arguments of calls that worked, the most frequent first.
        failures: cause and fix of each failure; the fix is None where nothing put it right.
    """

    tool: str
    calls: int = 0
    errors: int = 0
    duration_ms: float | None = 0.0
    forms: list[str] = field(default_factory=list)
    failures: list[dict[str, str | None]] = field(default_factory=list)


def tools_used(run: StoredRun) -> list[ToolUse]:
    """Returns what each tool did, in the order of first use; linear in the number of calls.

    A complaint of the user is no failure of a tool: which call it meant is inferred.
    """
    found = find(run.calls, (), succeeded=False)
    uses: dict[str, ToolUse] = {}
    worked: dict[str, list[Call]] = {}
    for call, trace in zip(found.calls, run.tool_traces, strict=False):
        name = tool_name(call.tool)
        if call.tool and (name in uses or len(uses) < MOST_TOOLS):
            _count(uses.setdefault(name, ToolUse(name)), call, trace)
            if call.failure is None:
                worked.setdefault(name, []).append(call)
    for name, calls in worked.items():
        uses[name].forms = _forms(calls[:LOOKED_AT])
    for failure in (*found.recovered, *found.lost):
        use = uses.get(tool_name(failure.tool))
        if use is not None and len(use.failures) < MOST_FAILURES:
            fix = None if failure.succeeded is None else clean(remedy(found, failure), FORM_CHARS)
            use.failures.append({"cause": cause_of(failure.message).name, "fix": fix})
    return list(uses.values())


def _count(use: ToolUse, call: Call, trace: Any) -> None:
    use.calls += 1
    use.errors += call.failure is not None
    took = trace.get("duration_ms")
    told = isinstance(took, int | float) and 0 <= took < MOST_MS
    use.duration_ms = round(use.duration_ms + took, 3) if told and use.duration_ms is not None else None


def _forms(calls: Iterable[Call]) -> list[str]:
    seen = Counter(clean(form(call.given), FORM_CHARS) for call in calls)
    return [shape for shape, _ in seen.most_common(MOST_FORMS)]
