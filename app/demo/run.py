"""The demo: the same stream of tasks without memory, with keyword memory, and with casebank."""

import time
from dataclasses import replace

import httpx
from rich.console import Console
from rich.progress import track

from app.demo.arms import Arm, Stream, TaskRecord
from app.demo.memory import AgentMemory, FailureMemory, HttpMemory, KeywordMemory, NoMemory, RetrievedCases
from app.demo.operator.house import House
from app.demo.operator.operator import STEP_BUDGET, Operator
from app.demo.operator.scratch import Scratch, scratch_database

AGENT = "database-operator"


async def run_stream(client: httpx.AsyncClient, scratch_dsn: str, house: House, *, console: Console) -> Stream:
    """Runs the house's tasks in the four arms, and returns the results; the bank should be empty.

    Args:
        client: client that calls casebank as the agent's backend, for one user.
        scratch_dsn: Postgres with a role that may create databases; scratch databases are dropped at the end.
        house: tasks of the stream.
        console: console that shows the progress.
    """
    async with scratch_database(scratch_dsn, budget=STEP_BUDGET) as scratch:
        without = await run_arm("no memory", NoMemory(), house, scratch, console=console)
        keywords = await run_arm("keyword memory", KeywordMemory(), house, scratch, console=console)
        both = KeywordMemory(with_errors=True)
        at_failures = await run_arm("keyword memory at failures", both, house, scratch, both, console=console)
    casebank = await run_with_memory(client, scratch_dsn, house, console=console)
    return Stream(house.seed, without, keywords, at_failures, casebank)


async def run_with_memory(
    client: httpx.AsyncClient, scratch_dsn: str, house: House, *, console: Console | None = None
) -> Arm:
    """Runs the house's tasks with the present bank and policy, and returns the records; see ``run_stream``."""
    async with scratch_database(scratch_dsn, budget=STEP_BUDGET) as scratch:
        memory = HttpMemory(client, agent=AGENT)
        arm = await run_arm("casebank", memory, house, scratch, memory, console=console)
    return replace(arm, errors=tuple(memory.errors))


async def run_arm(  # noqa: PLR0913 - the memory that is asked at a failure may be none
    name: str,
    memory: AgentMemory,
    house: House,
    scratch: Scratch,
    at_failures: FailureMemory | None = None,
    *,
    console: Console | None = None,
) -> Arm:
    """Runs the tasks once, each in an empty scratch schema, with the planted runs between, and returns the records."""
    bank: dict[str, TaskRecord] = {}  # known to the harness alone
    planted, records = house.planted(), []
    for place, task in enumerate(track(house.tasks(), name, console=console, disable=console is None, transient=True)):
        for forged in planted.get(place, ()):
            await memory.retain(forged, RetrievedCases())
        await scratch.reset(task)
        started = time.perf_counter()
        slate = await memory.retrieve(task.text)
        seed = f"{house.seed}:{task.id}"
        run = await Operator(task, slate, scratch, order_seed=seed, memory=at_failures).run()
        wall_ms = (time.perf_counter() - started) * 1000
        relevant = any(kept.family == task.family and kept.success for kept in bank.values())
        families = [bank[case.case_id].family for case in slate.cases if case.case_id in bank]
        case_id = await memory.retain(run, slate)
        record = TaskRecord(
            task_id=task.id,
            family=task.family,
            task=task.text,
            steps=scratch.steps,
            success=run.success,
            first_try=run.first_try,
            relevant=relevant,
            reused=bool(run.used_case_ids),
            slate=len(slate.cases),
            slate_relevant=families.count(task.family),
            tokens=slate.tokens,
            latency_ms=slate.latency_ms,
            wall_ms=round(wall_ms, 2),
        )
        records.append(record)
        if case_id is not None:
            bank[case_id] = record
    return Arm(name, tuple(records))
