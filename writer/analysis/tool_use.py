"""Use of each tool in a run: calls, errors, forms of arguments that worked, and fixes of its failures.

The result contains no data of the run, only names of tools and arguments, placeholders, and causes from
``analysis.causes``.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from writer.analysis.calls import Call, StoredRun
from writer.analysis.causes import cause_of
from writer.analysis.failures import find
from writer.analysis.placeholders import clean, form
from writer.analysis.remedy import remedy, tool_name

MOST_TOOLS = 50
"""Maximum number of tools of one run that are counted, in the order of first use."""
MOST_FORMS = 8
MOST_FAILURES = 20
"""Maximum number of failures of one tool in one run; repeated calls with the same goal are one failure."""
LOOKED_AT = 200
"""Maximum number of successful calls of one tool whose arguments are read."""
FORM_CHARS = 300
MOST_MS = 1e12
"""Duration in milliseconds above which a call counts as one without a duration."""


@dataclass(slots=True)
class ToolUse:
    """Use of one tool in one run.

    Attributes:
        errors: number of calls that failed, by their status or by their output.
        duration_ms: sum of the calls' durations in milliseconds; None: a call has no duration.
        forms: forms of the arguments of successful calls, the most frequent first.
        failures: cause and fix of each failure of the tool; a fix of None: the run did not fix the failure.
    """

    tool: str
    calls: int = 0
    errors: int = 0
    duration_ms: float | None = 0.0
    forms: list[str] = field(default_factory=list)
    failures: list[dict[str, str | None]] = field(default_factory=list)


def tools_used(run: StoredRun) -> list[ToolUse]:
    """Returns the use of each tool, in the order of first use; linear in the number of calls.

    Complaints of the user do not count as failures of a tool, because it is only inferred which call they mean.
    """
    uses: dict[str, ToolUse] = {}
    worked: dict[str, list[Call]] = {}
    for call, trace in zip(run.calls, run.tool_traces, strict=False):
        name = tool_name(call.tool)
        if not call.tool or (name not in uses and len(uses) >= MOST_TOOLS):
            continue
        use = uses.setdefault(name, ToolUse(name))
        use.calls += 1
        use.errors += call.failed
        took = trace.get("duration_ms") if isinstance(trace, Mapping) else None
        total, use.duration_ms = use.duration_ms, None
        if total is not None and isinstance(took, int | float) and 0 <= took < MOST_MS:
            use.duration_ms = round(total + took, 3)
        if not call.failed:
            worked.setdefault(name, []).append(call)
    for name, calls in worked.items():
        forms = Counter(clean(form(call.arguments), FORM_CHARS) for call in calls[:LOOKED_AT])
        uses[name].forms = [shape for shape, _ in forms.most_common(MOST_FORMS)]
    failures = find(run.calls, (), succeeded=False, task=run.task)
    for failure in (*failures.recovered, *failures.lost):
        known = uses.get(tool_name(failure.tool))
        if known is not None and len(known.failures) < MOST_FAILURES:
            fix = None if failure.succeeded is None else clean(remedy(failures, failure), FORM_CHARS)
            known.failures.append({"cause": cause_of(failure.message).name, "fix": fix})
    return list(uses.values())
