"""A made-up environment to experiment in: rooms that ask for one action of twelve, and a scripted guesser."""

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Console

from app.demo.memory import AgentRun, Trace
from app.demo.operator.scratch import StepsSpent
from examples.experiment.report import Report
from examples.experiment.run import run_experiment
from examples.world import Briefing, Environment, Size, Tasks
from tests.service import Service

TEXTS = {
    "vault": "Open the iron vault number {} in the cellar of the bank",
    "dog": "Calm the barking terrier of neighbour {} in the garden",
    "soup": "Season the lentil soup for table {} before dinner",
}
ANSWERS = {"vault": "turn the wheel", "dog": "throw a stick", "soup": "add cumin"}
ACTIONS = (*ANSWERS.values(), *(f"wave {number} times" for number in range(9)))


@dataclass(frozen=True)
class Riddle:
    id: str
    family: str
    text: str


class Room:
    """Asks for one action of twelve."""

    def __init__(self) -> None:
        self.done, self.reward, self.traces = False, 0.0, []

    async def reset(self, task: Riddle) -> None:
        self.task, self.done, self.reward, self.traces = task, False, 0.0, []

    async def step(self, action: str) -> None:
        self.done = action == ANSWERS[self.task.family]
        self.reward = float(self.done)
        self.traces.append(Trace("act", action, "click" if self.done else "nothing happens", "ok", 0.1))


class Riddles:
    """A scripted guesser: first what the slate's successes did, then its own list."""

    name, families, budget, min_similarity = "riddles", tuple(TEXTS), 6, 0.4
    explanation = "A guesser, not an LLM."
    size = Size(practice=4, test=3)
    room = Room

    @asynccontextmanager
    async def environment(self) -> AsyncIterator[Room]:
        yield self.room()

    async def tasks(self, environment: Any, family: str, size: Size) -> Tasks:  # noqa: ARG002 - the protocol's
        numbers = range(size.practice + size.test)
        tasks = [Riddle(f"{family}-{number}", family, TEXTS[family].format(number)) for number in numbers]
        return Tasks(tasks[: size.practice], tasks[size.practice :])

    async def demonstrations(self, environment: Any, tasks: Sequence[Riddle]) -> Sequence[AgentRun]:  # noqa: ARG002
        return [AgentRun(task.text, (ANSWERS[task.family],), (), success=True, first_try=True) for task in tasks]

    async def play(self, world: Environment, briefing: Briefing) -> AgentRun:
        tips = [case for case in briefing.slate.cases if case.outcome == "success"]
        own = random.Random(briefing.seed).sample(ACTIONS, len(ACTIONS))
        action = ""
        try:
            for action in dict.fromkeys([case.plan[0] for case in tips] + own):
                await world.step(action)
                if world.done:
                    break
        except StepsSpent:
            pass
        used = tuple(case.case_id for case in tips)
        # it claims success whatever happens: the harness must not take its word
        return AgentRun(briefing.task.text, (action,), tuple(world.traces), True, False, used)


async def run(service: Service, adapter: Any, console: Console | None = None, **size: Any) -> Report:
    user = await service.user()
    return await run_experiment(adapter, (await user.backend()).http, replace(adapter.size, **size), console)
