"""The demo: the same stream of tasks without memory, with keyword memory, and with casebank."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import httpx
from rich.console import Console
from rich.progress import track

from app.demo.arms import Arm, Stream, TaskRecord
from app.demo.keyword_memory import KeywordMemory
from app.demo.memory import HttpMemory, Memory, NoMemory, RetrievedCases
from app.demo.operator.house import House
from app.demo.operator.operator import STEP_BUDGET, Operator
from app.demo.operator.scratch import Scratch, scratch_database
from app.demo.operator.tasks import Task

AGENT = "database-operator"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a demo runs: casebank's URL and the headers of a backend; and a Postgres whose role may create databases.

    A scratch database is made beside that of ``scratch_dsn`` and dropped at the end; nothing else there is touched.
    """

    base_url: str
    headers: Mapping[str, str] = field(repr=False)
    scratch_dsn: str = field(repr=False)

    def client(self) -> httpx.AsyncClient:
        """Returns a client of the backend."""
        return httpx.AsyncClient(base_url=self.base_url, headers=dict(self.headers), timeout=30)


@dataclass(frozen=True, slots=True)
class RetainedRun:
    """What the harness knows about a run in the bank; never shown to the operator."""

    family: str
    success: bool


async def run_stream(place: Place, house: House, *, console: Console) -> Stream:
    """Returns what the house's tasks came to in the three arms.

    The agent's case bank should be empty; what it already holds helps from the first task on.
    """
    rivals = await run_rivals(place, house, console=console)
    return Stream(house.seed, *rivals, await run_with_memory(place, "casebank", house, console=console))


async def run_rivals(place: Place, house: House, *, console: Console | None = None) -> tuple[Arm, Arm]:
    """Runs the house's tasks without memory and with keyword memory, and returns the records of both."""
    async with scratch_database(place.scratch_dsn, budget=STEP_BUDGET) as scratch:
        return (
            await run_arm("no memory", NoMemory(), house, scratch, console=console),
            await run_arm("keyword memory", KeywordMemory(), house, scratch, console=console),
        )


async def run_with_memory(place: Place, name: str, house: House, *, console: Console | None = None) -> Arm:
    """Runs the house's tasks with the bank and the policy as they are, and returns the records."""
    async with scratch_database(place.scratch_dsn, budget=STEP_BUDGET) as scratch, place.client() as client:
        memory = HttpMemory(client, agent=AGENT)
        arm = await run_arm(name, memory, house, scratch, console=console)
    return replace(arm, errors=tuple(memory.errors))


async def run_arm(name: str, memory: Memory, house: House, scratch: Scratch, *, console: Console | None = None) -> Arm:
    """Returns the records of one pass over the tasks, each in an empty scratch schema; the forger's runs between."""
    bank: dict[str, RetainedRun] = {}
    planted, records = house.planted(), []
    for place, task in enumerate(track(house.tasks(), name, console=console, disable=console is None, transient=True)):
        for forged in planted.get(place, ()):
            await memory.retain(forged, RetrievedCases())
        records.append(await _run_task(task, memory, scratch, bank, order_seed=f"{house.seed}:{task.id}"))
    return Arm(name, tuple(records))


async def _run_task(
    task: Task, memory: Memory, scratch: Scratch, bank: dict[str, RetainedRun], *, order_seed: str
) -> TaskRecord:
    await scratch.reset(task)
    started = time.perf_counter()
    slate = await memory.retrieve(task.text)
    run = await Operator(task, slate, scratch, order_seed=order_seed).run()
    wall_ms = (time.perf_counter() - started) * 1000
    relevant = any(kept.family == task.family and kept.success for kept in bank.values())
    slate_relevant = _of_family(slate, bank, task.family)
    case_id = await memory.retain(run, slate)
    if case_id is not None:
        bank[case_id] = RetainedRun(task.family, run.success)
    return TaskRecord(
        task_id=task.id,
        family=task.family,
        task=task.text,
        steps=scratch.steps,
        success=run.success,
        first_try=run.first_try,
        relevant=relevant,
        reused=bool(run.used_case_ids),
        slate=len(slate.cases),
        slate_relevant=slate_relevant,
        tokens=slate.tokens,
        latency_ms=slate.latency_ms,
        wall_ms=round(wall_ms, 2),
    )


def _of_family(slate: RetrievedCases, bank: dict[str, RetainedRun], family: str) -> int:
    """How many cases of the slate came from tasks of `family`."""
    return sum(1 for case in slate.cases if case.case_id in bank and bank[case.case_id].family == family)
