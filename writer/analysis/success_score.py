"""How well a run went, 0 to 1: what decides whether it becomes a procedure."""

from collections.abc import Mapping, Sequence

from retrieval.tables.kinds import is_trusted
from writer.analysis.calls import Call, StoredRun
from writer.analysis.empty_output import is_empty

ERRORS, RESPONSE, TIME = 0.4, 0.4, 0.2
"""What calls without an error, a response, and an end in time are worth; together 1."""
IN_TIME_MS = 30_000.0
MOST_MS = 1e12
"""Longest duration that is told."""
OUTCOME = {"success": 1.0, "partial": 0.5}
"""What the rest is multiplied by; any other outcome makes it 0."""


def success_score(run: StoredRun, reward: float | None, source: str | None) -> float:
    """Returns the reward that somebody gave who knows, or else what the run itself suggests.

    ``outcome * (0.4 * share of calls without an error + 0.4 * a response was produced + 0.2 * under 30 s)``: calls
    that nobody timed took no time, and a run without calls had no error. A run that did not succeed scores 0,
    whatever reward it got; one of which nobody said how it ended scores its trusted reward.
    """
    outcome = OUTCOME.get(run.outcome, 0.0)
    if reward is not None and is_trusted(source):
        return reward if outcome or run.outcome == "unknown" else 0.0
    calls = run.calls
    worked = sum(not call.failed for call in calls) / len(calls) if calls else 1.0
    in_time = (duration_ms(run.tool_traces) or 0.0) < IN_TIME_MS
    return outcome * (ERRORS * worked + RESPONSE * _responded(calls, run.turns) + TIME * in_time)


def _responded(calls: Sequence[Call], turns: Sequence[object]) -> bool:
    """Returns whether the agent said anything; without a conversation, whether the last call answered.

    A run that recorded neither is taken at its word, and so is a call without its output.
    """
    if turns:
        return any(_says_something(turn) for turn in turns)
    return not calls or (not calls[-1].failed and not is_empty(calls[-1].output))


def _says_something(turn: object) -> bool:
    if not isinstance(turn, Mapping) or str(turn.get("role")).casefold() in {"user", "human", "system", "tool"}:
        return False
    content = turn.get("content")
    return bool(content.strip() if isinstance(content, str) else content)


def duration_ms(traces: Sequence[object]) -> float | None:
    """Returns how long the calls took together, to a microsecond, as far as they say; None where none does."""
    told = [trace.get("duration_ms") for trace in traces if isinstance(trace, Mapping)]
    times = [time for time in told if isinstance(time, int | float)]
    return min(round(float(sum(times)), 3), MOST_MS) if times else None
