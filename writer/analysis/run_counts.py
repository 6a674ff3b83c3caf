"""What is counted of a run's calls in the row of its case: errors, effects, and whether a tool was left on an error."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from writer.analysis.call_status import failed_by_status
from writer.analysis.state_changes import effects


@dataclass(frozen=True, slots=True)
class RunCounts:
    """What the calls of a run come to.

    Attributes:
        error_count: calls that failed.
        effects: see ``state_changes.effects``.
        unresolved: whether the last call of some tool failed.
    """

    error_count: int
    effects: list[str]
    unresolved: bool

    @classmethod
    def of(cls, calls: Sequence[tuple[str, bool]], plan: Sequence[str]) -> Self:
        """Returns the counts of a run with this plan; of each call, in order, its tool's name and whether it failed."""
        return cls(
            error_count=sum(failed for _, failed in calls),
            effects=effects(calls, plan),
            unresolved=any(dict(calls).values()),
        )


def counted_by_status(traces: Iterable[Mapping[str, object]], plan: Sequence[str]) -> RunCounts:
    """Returns the counts as far as the calls' statuses tell, without a look at any output."""
    return RunCounts.of([(str(trace["tool"]), failed_by_status(trace["status"])) for trace in traces], plan)
