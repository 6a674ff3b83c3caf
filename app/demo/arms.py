"""Results of the demo's tasks in each arm: the same agent and tasks with one of the memories, or with none."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from operator import attrgetter

PARTS = 10


@dataclass(frozen=True)
class TaskRecord:
    """Result of one task in one arm."""

    task_id: str
    family: str
    task: str
    steps: int
    success: bool
    first_try: bool
    relevant: bool  # a case of the same family that succeeded was in the bank beforehand
    reused: bool  # a remembered plan was tried
    slate: int  # cases in the slate
    slate_relevant: int  # of these, cases of the same family
    tokens: int
    latency_ms: float | None
    wall_ms: float


@dataclass(frozen=True)
class Arm:
    """Results of one arm on a stream of tasks, in the order of the tasks."""

    name: str
    records: Sequence[TaskRecord]
    errors: Sequence[str] = ()

    def parts(self) -> list[Sequence[TaskRecord]]:
        """Returns the records of each tenth of the stream."""
        size = len(self.records)
        return [self.records[size * i // PARTS : size * (i + 1) // PARTS] for i in range(PARTS)]

    def totals(self) -> dict[str, float | None]:
        """Returns means, sums and medians over the whole stream; rates from 0 to 1, None without data.

        ``slate_precision`` is the share of the cases on the slates that came from the task's own family.
        """
        relevant = [record for record in self.records if record.relevant]
        latencies = [record.latency_ms for record in self.records if record.latency_ms is not None]
        shown = sum(record.slate for record in self.records)
        return {
            "tasks": len(self.records),
            "steps": sum(record.steps for record in self.records),
            "steps_per_task": round(mean(self.records, STEPS), 3),
            "success": round(mean(self.records, SUCCESS), 3),
            "first_try": round(mean(self.records, FIRST_TRY), 3),
            "relevant_tasks": len(relevant),
            "relevant_success": round(mean(relevant, SUCCESS), 3) if relevant else None,
            "relevant_steps_per_task": round(mean(relevant, STEPS), 3) if relevant else None,
            "slate_precision": round(sum(r.slate_relevant for r in self.records) / shown, 3) if shown else None,
            "reused": round(mean(self.records, lambda record: record.reused), 3),
            "tokens": sum(record.tokens for record in self.records),
            "retrieve_p50_ms": round(statistics.median(latencies), 2) if latencies else None,
            "wall_s": round(sum(record.wall_ms for record in self.records) / 1000, 2),
            "memory_errors": len(self.errors),
        }

    def as_dict(self) -> dict[str, object]:
        """Returns every number of the arm, ready for JSON."""
        tenths = {name: [round(mean(part, value), 3) for part in self.parts()] for name, value in _TENTHS.items()}
        tasks = [asdict(record) for record in self.records]
        return {"totals": self.totals(), **tenths, "errors": list(self.errors)[:20], "tasks": tasks}


@dataclass(frozen=True)
class Stream:
    """Results of the four arms on one house's tasks; all arms get the same tasks in the same order."""

    seed: int
    without: Arm
    keywords: Arm
    at_failures: Arm
    """Arm whose keyword memory is asked at each failure, too, as casebank is."""
    casebank: Arm

    @property
    def arms(self) -> tuple[Arm, Arm, Arm, Arm]:
        """The arms in the order of the report."""
        return self.without, self.keywords, self.at_failures, self.casebank

    def as_dict(self) -> dict[str, object]:
        """Returns every number of the stream, ready for JSON."""
        return {"seed": self.seed, "arms": {arm.name: arm.as_dict() for arm in self.arms}}


def pooled(arms: Sequence[Arm]) -> Arm:
    """Returns one arm over several streams, so that its tenths hold the tenths of all."""
    parts = zip(*(arm.parts() for arm in arms), strict=True)
    records = [record for part in parts for each in part for record in each]
    return Arm(arms[0].name, records, [error for arm in arms for error in arm.errors])


def mean(records: Sequence[TaskRecord], value: Callable[[TaskRecord], float]) -> float:
    """Returns the mean of a value over the records."""
    return sum(map(value, records)) / len(records)


STEPS: Callable[[TaskRecord], float] = attrgetter("steps")
SUCCESS: Callable[[TaskRecord], float] = attrgetter("success")
FIRST_TRY: Callable[[TaskRecord], float] = attrgetter("first_try")
_TENTHS = {"steps_per_tenth": STEPS, "success_per_tenth": SUCCESS, "first_try_per_tenth": FIRST_TRY}
