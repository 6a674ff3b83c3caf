"""The demo: the same stream of tasks, first without memory, then with casebank."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import track

from app.agents.memory import HttpMemory, Memory, NoMemory, Slate
from app.agents.operator.families import Task, stream
from app.agents.operator.operator import STEP_BUDGET, Operator
from app.agents.operator.scratch import Scratch, scratch_database
from app.demo.files import write_files
from app.demo.report import Arm, DemoReport, Record, print_report

AGENT = "database-operator"


@dataclass(frozen=True)
class Kept:
    """What the harness knows about a retained run; never shown to the operator."""

    family: str
    success: bool


async def run_demo(  # noqa: PLR0913 (each is a choice of the command line)
    base_url: str,
    token: str,
    scratch_dsn: str,
    *,
    seed: int = 1,
    tasks: int = 120,
    out_dir: Path = Path("demo-out"),
    agent: str = AGENT,
    budget: int = STEP_BUDGET,
    console: Console | None = None,
) -> DemoReport:
    """Runs the stream in both arms, prints the report, writes demo.json and demo.png, answers the report.

    `base_url` and `token` are casebank's. `scratch_dsn` is any database on a Postgres where its role may
    create databases: a scratch database is made beside it and dropped at the end, and nothing else is touched.
    The agent's case bank should be empty; what it already holds helps from the first task on.
    """
    console = console or Console()
    work = stream(seed, tasks)
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        scratch_database(scratch_dsn, budget=budget) as scratch,
        httpx.AsyncClient(base_url=base_url, headers=headers, timeout=30) as client,
    ):
        without = await run_arm("without", NoMemory(), work, scratch, seed=seed, console=console)
        memory = HttpMemory(client, agent=agent)
        with_memory = await run_arm("with", memory, work, scratch, seed=seed, console=console)
    report = DemoReport(seed, budget, without, replace(with_memory, errors=tuple(memory.errors)))
    print_report(report, console)
    report = replace(report, files=write_files(report, out_dir))
    for kind, path in report.files.items():
        console.print(f"  {kind}: {path}")
    return report


async def run_with_memory(  # noqa: PLR0913 (each is a choice of the caller)
    base_url: str, token: str, scratch_dsn: str, *, name: str, seed: int, tasks: int, console: Console | None = None
) -> Arm:
    """Runs one stream on casebank as it is, and returns its records."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        scratch_database(scratch_dsn, budget=STEP_BUDGET) as scratch,
        httpx.AsyncClient(base_url=base_url, headers=headers, timeout=30) as client,
    ):
        memory = HttpMemory(client, agent=AGENT)
        return await run_arm(name, memory, stream(seed, tasks), scratch, seed=seed, console=console)


async def run_arm(  # noqa: PLR0913 (the arm's name, memory and work, and where they run)
    name: str, memory: Memory, work: list[Task], scratch: Scratch, *, seed: int, console: Console | None = None
) -> Arm:
    """The records of one pass over `work`; each task in an empty scratch schema."""
    bank: dict[str, Kept] = {}
    watched = track(work, f"{name} memory", console=console, disable=console is None, transient=True)
    records = [await _run_task(task, memory, scratch, bank, order_seed=f"{seed}:{task.id}") for task in watched]
    return Arm(name, tuple(records))


async def _run_task(task: Task, memory: Memory, scratch: Scratch, bank: dict[str, Kept], *, order_seed: str) -> Record:
    await scratch.reset(task)
    started = time.perf_counter()
    slate = await memory.retrieve(task.text)
    run = await Operator(task, slate, scratch, order_seed=order_seed).run()
    wall_ms = (time.perf_counter() - started) * 1000
    relevant = any(kept.family == task.family and kept.success for kept in bank.values())
    slate_relevant = _of_family(slate, bank, task.family)
    case_id = await memory.retain(run, slate)
    if case_id is not None:
        bank[case_id] = Kept(task.family, run.success)
    return Record(
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


def _of_family(slate: Slate, bank: dict[str, Kept], family: str) -> int:
    """How many cases of the slate came from tasks of `family`."""
    return sum(1 for case in slate.cases if case.case_id in bank and bank[case.case_id].family == family)
