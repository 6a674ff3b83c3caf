"""The arms of a world: the same tasks without memory, with keyword memory asked once or at failures, with casebank."""

from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from app.demo.memory import AgentMemory, FailureMemory, HttpMemory, KeywordMemory, NoMemory
from bench.failures.agent import Agent
from bench.failures.kinds import Attempts, Task, World, draw_tasks

AGENT = "worker"


@dataclass(frozen=True, slots=True)
class Played:
    """One task in one arm; see ``Finished`` for the counts.

    Attributes:
        tokens: length of the text that memory gave at the start.
    """

    kind: str
    calls: int
    success: bool
    first_try: bool
    failed: int
    advised: int
    helped: int
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Arms:
    """The tasks of one seed in the four arms, task by task the same."""

    without: Sequence[Played]
    keywords: Sequence[Played]
    at_failures: Sequence[Played]
    """Keyword memory that is asked at each failure, too, as casebank is."""
    casebank: Sequence[Played]
    errors: Sequence[str] = ()
    """Errors of casebank."""


async def play_arms(world: World, seed: int, count: int, client: httpx.AsyncClient) -> Arms:
    """Plays the tasks of a seed in each arm; the client's user should have an empty bank."""
    tasks, attempts = draw_tasks(world, seed, count), Attempts(world)
    both, casebank = KeywordMemory(with_errors=True), HttpMemory(client, agent=AGENT)
    return Arms(
        await play(attempts, tasks, NoMemory()),
        await play(attempts, tasks, KeywordMemory()),
        await play(attempts, tasks, both, both),
        await play(attempts, tasks, casebank, casebank),
        casebank.errors,
    )


async def play(
    attempts: Attempts, tasks: Sequence[Task], memory: AgentMemory, at_failures: FailureMemory | None = None
) -> list[Played]:
    """Plays the tasks in order, each with the memory of those before it.

    Args:
        attempts: carries out what the agent tries.
        tasks: the tasks in the order of time.
        memory: the memory that is asked with the task and given the run.
        at_failures: the memory that is asked when a call has failed; None: none is.
    """
    played = []
    for task in tasks:
        slate = await memory.retrieve(task.text)
        done = await Agent(task, attempts, slate, at_failures, order_seed=task.id).run()
        await memory.retain(done.run, slate)
        counts = len(done.tried), done.run.success, done.run.first_try, done.failed, done.advised, done.helped
        played.append(Played(task.kind, *counts, slate.tokens))
    return played
