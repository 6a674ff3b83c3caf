"""ScienceWorld as an environment: school experiments in a text world of ten rooms. Needs Java.

Source: Wang et al. 2022, ScienceWorld: Is your Agent Smarter than a 5th Grader?
"""

import asyncio
import random
import re
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypedDict

from app.demo.memory import AgentRun, Trace
from examples.scienceworld.explorer import Explorer, View
from examples.world import Briefing, Environment, EnvironmentMissing, Size, Tasks

try:
    from scienceworld import ScienceWorldEnv
except ImportError:  # an extra
    ScienceWorldEnv = None

SIMPLIFICATIONS = "easy"
"""The environment's own simplifications: open doors and containers, teleports to rooms, plants that need no water."""


FAMILIES = (
    "find-animal",
    "find-non-living-thing",
    "use-thermometer",
    "test-conductivity",
)
"""Short tasks that the explorer can read and sometimes solves alone; the first two look alike but differ."""


@dataclass(frozen=True, slots=True)
class Variation:
    """One variation of one of ScienceWorld's tasks."""

    id: str
    family: str
    number: int
    text: str


class Info(TypedDict):
    """The used keys of the program's information beside its answer."""

    look: str
    valid: list[str]
    score: int


class Game(Protocol):
    """The part of ``ScienceWorldEnv`` that is used here; every call blocks."""

    def load(self, taskName: str, variationIdx: int, simplificationStr: str, generateGoldPath: bool = False) -> None:  # noqa: FBT001, FBT002, N803 - the library's
        """Lays out a variation of a task."""

    def reset(self) -> tuple[str, Info]:
        """Begins the variation again."""

    def step(self, inputStr: str) -> tuple[str, float, bool, Info]:  # noqa: N803 - the library's
        """Returns the text, the reward, whether the task is over, and the rest."""

    def get_max_variations(self, taskName: str) -> int:  # noqa: N803 - the library's
        """Returns the number of variations of a task."""

    def get_task_description(self) -> str:
        """Returns the words of the task."""

    def get_gold_action_sequence(self) -> list[str]:
        """Returns the program's own solution."""


class World:
    """The Java program behind a port; its calls block, so they run in a thread."""

    def __init__(self, game: Game) -> None:
        self._game = game
        self.traces: list[Trace] = []
        self.done = False
        self.reward = 0.0

    async def reset(self, task: Variation) -> View:
        """Lays out the variation."""
        self.traces, self.done, self.reward = [], False, 0.0
        return await asyncio.to_thread(self._reset, task)

    async def step(self, action: str) -> View:
        """Does the action."""
        started = time.perf_counter()
        text, _, done, info = await asyncio.to_thread(self._game.step, action)
        self.done = done
        self.reward = max(info["score"], 0) / 100
        known = "error" if text.startswith(("No known action", "Ambiguous")) else "ok"
        self.traces.append(Trace("act", action, text, known, round((time.perf_counter() - started) * 1000, 3)))
        return _view(text, info)

    async def draw(self, family: str, size: Size) -> Tasks:
        """Returns variations in the order of the seed; practice and test share none."""
        return await asyncio.to_thread(self._draw, family, size)

    async def expert(self, task: Variation) -> list[str]:
        """Returns the environment's own solution of a task."""
        return await asyncio.to_thread(self._expert, task)

    def _draw(self, family: str, size: Size) -> Tasks:
        self._game.load(family, 0, SIMPLIFICATIONS)
        numbers = range(self._game.get_max_variations(family))
        wanted = random.Random(f"{size.seed}:{family}").sample(numbers, min(size.practice + size.test, len(numbers)))
        tasks = [self._variation(family, number) for number in wanted]
        return Tasks(tasks[: size.practice], tasks[size.practice :])

    def _variation(self, family: str, number: int) -> Variation:
        self._game.load(family, number, SIMPLIFICATIONS)
        text = " ".join(self._game.get_task_description().split())
        return Variation(f"{family}-{number}", family, number, text.removeprefix("Your task is to "))

    def _expert(self, task: Variation) -> list[str]:
        self._game.load(task.family, task.number, SIMPLIFICATIONS, generateGoldPath=True)
        return list(self._game.get_gold_action_sequence())

    def _reset(self, task: Variation) -> View:
        self._game.load(task.family, task.number, SIMPLIFICATIONS)
        return _view(*self._game.reset())


def _view(text: str, info: Info) -> View:
    place = re.search(r"(?:called the|is the) ([\w ]+?)\.", info["look"])
    return View(text, place[1] if place else "", info["valid"], info["score"])


class ScienceWorld:
    """Four kinds of short task, and the scripted explorer."""

    name = "scienceworld"
    families = FAMILIES
    budget = 30
    min_similarity = 0.35
    size = Size(practice=15, test=6)
    explanation = (
        "A scripted explorer, not an LLM: it reads the orders in its task (focus on, the boxes, the rooms) and a "
        "thermometer. What the orders do not say it looks for and tries at random: where things are, what is an "
        "animal, what conducts (it builds no circuit, it picks a box). With memory it first tries the plans of the "
        "injected cases, with their words replaced by its task's. Success is ScienceWorld's own full score, with its "
        "'easy' simplifications; a wrong focus or a wrong box ends the task at once. A step is one action."
    )

    @asynccontextmanager
    async def environment(self) -> AsyncIterator[World]:
        """Yields the Java program, ended after the block."""
        if ScienceWorldEnv is None:
            raise EnvironmentMissing("the package scienceworld is not installed: it is an extra of that name")
        if shutil.which("java") is None:
            raise EnvironmentMissing("ScienceWorld needs Java, and there is no java on the PATH")
        game = await asyncio.to_thread(ScienceWorldEnv, "", envStepLimit=10 * self.budget)
        try:
            yield World(game)
        finally:
            await asyncio.to_thread(game.close)

    async def tasks(self, environment: World, family: str, size: Size) -> Tasks:
        """Returns variations of the task, different ones for practice and test."""
        return await environment.draw(family, size)

    async def demonstrations(self, environment: World, tasks: Sequence[Variation]) -> Sequence[AgentRun]:
        """Returns ScienceWorld's own solutions, with walks from room to room shortened to their ends."""
        plans = [shortened(await environment.expert(task)) for task in tasks]
        return [
            AgentRun(task.text, tuple(plan), (), success=True, first_try=False)
            for task, plan in zip(tasks, plans, strict=True)
        ]

    async def play(self, world: Environment, briefing: Briefing) -> AgentRun:
        """Returns the explorer's run."""
        return await Explorer(briefing).run(world)


def shortened(actions: Sequence[str]) -> list[str]:
    """Returns the actions with each walk through doors made one teleport, and without looking and waiting."""
    short: list[str] = []
    for action in actions:
        if action.startswith(("open door", "look", "wait")):
            continue
        step = action.replace("go to", "teleport to", 1) if action.startswith("go to") else action
        if step.startswith("teleport") and short and short[-1].startswith("teleport"):
            short.pop()
        short.append(step)
    return short
