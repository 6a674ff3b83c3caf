"""The fewest steps that memory allows in the demo's houses: an operator whose memory tells the solution alone.

The harness knows the solution of each task. A memory that tells it as soon as some run has found it, and what became of
a task that cannot be done, is the best that can be made of a house's own runs; one that tells it from the first
task on is the best that can be told at all.
"""

from pathlib import Path
from statistics import mean

from app.demo.memory import AgentMemory, AgentRun, KeywordMemory, RememberedCase, RetrievedCases, slate_of
from app.demo.operator.house import House
from app.demo.operator.operator import STEP_BUDGET, WORKED
from app.demo.operator.repairs import REPAIRS
from app.demo.operator.scratch import scratch_database
from app.demo.run import run_arm
from app.runtime import owner_url
from app.settings import Settings
from bench.measure import Measurement

SEEDS, TASKS = (31, 32, 33, 34, 35), 120
"""Houses of the demo's report, and tasks of each."""
_TITLES = {repair.key: repair.title for repair in REPAIRS}


class SolutionMemory:
    """A memory that the harness tells each task's solution; it tells the operator those that it may know."""

    def __init__(self, house: House, *, foreseen: bool) -> None:
        self._tasks = iter(house.tasks())
        self._solutions = iter(house.solutions())
        self._foreseen = foreseen
        self._found: set[tuple[str, ...]] = set()
        self._failed: dict[str, RememberedCase] = {}
        self._family = ""

    async def retrieve(self, task: str) -> RetrievedCases:
        """Returns a run with the task's solution, if a run has found it or all are foreseen, and the failed run."""
        self._family = next(self._tasks).family
        plan = tuple(WORKED + _TITLES[key] for key in next(self._solutions))
        is_told = bool(plan) and (self._foreseen or plan in self._found)
        told = [RememberedCase("solution", task, plan, "success")] if is_told else []
        return slate_of([*told, *filter(None, [self._failed.get(self._family)])])

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:  # noqa: ARG002 (the protocol's signature)
        """Learns which solution was found, or that the task could not be done; a planted run teaches nothing."""
        if run.checked and run.success:
            self._found.add(run.plan)
        elif run.checked:
            self._failed[self._family] = RememberedCase("failure", run.task, run.plan, "failure")
        return None


async def ceiling(home: Path) -> list[Measurement]:
    """Measures steps a task with each memory against keyword memory asked at the start, in the demo's five houses."""
    arms: dict[str, list[float]] = {"keywords": [], "found": [], "foreseen": []}
    async with owner_url(Settings(home=home, database_url=None)) as dsn:
        for seed in SEEDS:
            house = House(seed, TASKS)
            memories: dict[str, AgentMemory] = {
                "keywords": KeywordMemory(),
                "found": SolutionMemory(house, foreseen=False),
                "foreseen": SolutionMemory(house, foreseen=True),
            }
            async with scratch_database(dsn, budget=STEP_BUDGET) as scratch:
                for name, memory in memories.items():
                    arm = await run_arm(name, memory, house, scratch)
                    arms[name].append(mean(record.steps for record in arm.records))
    keywords, found, foreseen = (mean(steps) for steps in arms.values())
    detail = f"{len(SEEDS)} houses of {TASKS} tasks, keyword memory {keywords:.2f} steps a task"
    return [
        Measurement(
            "demo: steps if each solution is told once a run has found it / keyword memory",
            found / keywords,
            "x",
            f"{found:.2f} steps; {detail}",
        ),
        Measurement(
            "demo: steps if each solution is told from the first task on / keyword memory",
            foreseen / keywords,
            "x",
            f"{foreseen:.2f} steps; {detail}",
        ),
    ]
