"""Counts of a run's calls that are stored with its case: errors, effects, and tools whose last call failed.

Retain counts by the calls' statuses alone: it must load no code that reads outputs, as ``analysis.calls`` does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from writer.analysis.state_changes import changes_state

MOST_EFFECTS = 200


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Counts of a run's calls: errors, effects, and whether a tool's last call failed.

    Attributes:
        effects: names of the tools that changed something, once for each successful call, at most MOST_EFFECTS; of a
            run without calls, the steps of its plan.
        unresolved: true if the last call of any tool failed.
    """

    error_count: int
    effects: list[str]
    unresolved: bool

    @classmethod
    def of(cls, calls: Sequence[tuple[str, bool]], plan: Sequence[str]) -> Self:
        """Returns the counts of a run.

        ``calls`` has for each call, in order, the name of its tool and whether it failed.
        """
        effects = [tool for tool, failed in calls if not failed and changes_state(tool)] if calls else list(plan)
        return cls(sum(failed for _, failed in calls), effects[:MOST_EFFECTS], unresolved=any(dict(calls).values()))


def counted_by_status(traces: Iterable[Mapping[str, object]], plan: Sequence[str]) -> RunCounts:
    """Returns the counts of a run by the statuses of its calls, without reading any output."""
    return RunCounts.of([(str(trace["tool"]), failed_by_status(trace["status"])) for trace in traces], plan)


def failed_by_status(status: object) -> bool:
    """Returns whether the status of a call says that the call failed."""
    return status == "error"
