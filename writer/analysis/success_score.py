"""Success score of a run, 0 to 1, which decides whether a procedure is learned from it."""

from collections.abc import Mapping, Sequence

from retrieval.tables.kinds import is_trusted
from writer.analysis.calls import StoredRun
from writer.analysis.empty_output import is_empty

ERRORS, RESPONSE, TIME = 0.4, 0.4, 0.2
"""Weights of the share of calls without an error, of a response, and of an end in time; their sum is 1."""
IN_TIME_MS = 30_000.0
MOST_MS = 1e12
"""Longest duration of a run in milliseconds; longer durations are cut to this value."""
OUTCOME = {"success": 1.0, "partial": 0.5, "unknown": 1.0}
"""Factor of the score for each outcome; other outcomes, and "unknown" for a run without calls, have the factor 0."""


def success_score(run: StoredRun, reward: float | None, source: str | None) -> float:
    """Returns the reward of a run if its source is trusted, else an estimate from the run itself.

    The estimate is ``outcome * (0.4 * share of calls without an error + 0.4 * a response was produced + 0.2 * under
    30 s)``. A response is a turn of the agent with content; without turns, a result of the last call. A run without
    turns and calls, or a last call whose output was not recorded, counts as having a response. Calls without a duration
    count as 0 ms, and a run without calls as free of errors. A run that failed scores 0, whatever its reward; a run
    with the outcome "unknown" scores its trusted reward, or else what its calls show.
    """
    outcome = OUTCOME.get(run.outcome, 0.0) if run.outcome != "unknown" or run.calls else 0.0
    if reward is not None and is_trusted(source):
        return reward if outcome or run.outcome == "unknown" else 0.0
    calls = run.calls
    worked = sum(not call.failed for call in calls) / len(calls) if calls else 1.0
    if run.turns:
        contents = (
            turn.get("content")
            for turn in run.turns
            if isinstance(turn, Mapping) and str(turn.get("role")).casefold() not in {"user", "human", "system", "tool"}
        )
        responded = any(content.strip() if isinstance(content, str) else content for content in contents)
    else:
        responded = not calls or (not calls[-1].failed and not is_empty(calls[-1].output))
    in_time = (duration_ms(run.tool_traces) or 0.0) < IN_TIME_MS
    return outcome * (ERRORS * worked + RESPONSE * responded + TIME * in_time)


def duration_ms(traces: Sequence[object]) -> float | None:
    """Returns the sum of the calls' durations in milliseconds, to a microsecond; None if no call has a duration."""
    values = [trace.get("duration_ms") for trace in traces if isinstance(trace, Mapping)]
    times = [time for time in values if isinstance(time, int | float)]
    return min(round(float(sum(times)), 3), MOST_MS) if times else None
