"""The scripted explorer of text worlds: it reads simple orders, searches at random, and follows remembered plans.

It is not an LLM. It understands "focus on …", "… the red box", the names of rooms and a thermometer, in the order of
its task, and knows neither the places of things, nor animals, nor conductors. These it looks for, and tries, at random
(seeded).

With memory it first tries the plans of the slate, with the words of its own task in place of the remembered task's, and
gives a plan up if its things are not here. It avoids actions that ended a remembered run badly. After that, or if no
plan fits, it goes on exactly as without memory.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.demo.memory import AgentRun
from app.demo.operator.scratch import StepsSpent
from examples.scienceworld.plans import AVOID, MOST, Done, adapt, closest, content, essential, named, verb_of
from examples.world import Briefing, Environment

_EVERYWHERE = frozenset({"agent", "air", "door"})


@dataclass(frozen=True, slots=True)
class View:
    """The explorer's view: the text of the answer, its place, the valid actions, and the score so far."""

    text: str
    place: str
    valid: Sequence[str]
    score: int


class Explorer:
    """One run of one task."""

    def __init__(self, briefing: Briefing) -> None:
        self._text: str = briefing.task.text
        self._view: View = briefing.observation
        self._rng = random.Random(briefing.seed)
        self._targets = [named(target) for target in re.findall(r"focus on ([^.,]+)", self._text.lower())]
        self._boxes = list(dict.fromkeys(re.findall(r"\w+ box\b", self._text.lower())))
        self._limit = re.search(r"above (-?[\d.]+) degrees", self._text)
        self._measures = self._limit is not None
        self._thing: set[str] = set()
        self._carried = False
        self._cases = briefing.slate.cases
        self._bad = {line.removeprefix(AVOID) for case in self._cases for line in case.plan if line.startswith(AVOID)}
        self._taken: list[Done] = []
        self._used: list[str] = []

    async def run(self, world: Environment) -> AgentRun:
        """Returns the finished run: over, or the steps spent."""
        followed = 0
        try:
            await self._follow(world)
            followed = len(self._taken)
            while not world.done:
                await self._act(world, self._next())
        except StepsSpent:
            pass
        success = world.reward >= 1
        return AgentRun(
            task=self._text,
            plan=tuple(essential(self._taken) if success else self._blame()),
            traces=tuple(world.traces),
            success=success,
            first_try=success and followed == len(self._taken),
            used_case_ids=tuple(self._used),
        )

    async def _follow(self, world: Environment) -> None:
        """Tries the plans of the cases that fit, the most similar first, until one can be followed to its end."""
        fitting = [(adapted, case) for case in self._cases if (adapted := adapt(case, self._text)) is not None]
        for (_, plan), case in sorted(fitting, key=lambda each: each[0][0]):
            self._used.append(case.case_id)
            if await self._followed(world, plan):
                return

    async def _followed(self, world: Environment, plan: Sequence[str]) -> bool:
        """Does the plan to its end or the run's; returns False if its things are not here."""
        for line in plan:
            if world.done or (self._measures and line.endswith(" box")):
                return True  # the measurement decides on the box
            action = closest(line, self._view.valid)
            if action is None:
                return False
            if not self._is_idle(action):
                await self._act(world, action)
        return True

    def _is_idle(self, action: str) -> bool:
        """Returns whether the action would go to this place, or repeat an action done here."""
        if action.startswith("teleport"):
            return action == f"teleport to {self._view.place}"
        return any(done.action == action and done.place == self._view.place for done in self._taken)

    async def _act(self, world: Environment, action: str) -> None:
        before = self._view
        self._view = await world.step(action)
        gain = self._view.score - before.score
        self._taken.append(Done(action, before.place, gain))
        if self._view.text.startswith("You focus on"):
            self._thing, self._carried = content(action), False  # the task's "it" after this
            del self._targets[:1]
        elif action.startswith("pick up") and self._view.text.startswith("You move"):
            self._carried = True
        elif measured := re.search(r"measures a temperature of (-?[\d.]+)", self._view.text):
            self._judge(float(measured[1]))

    def _judge(self, measured: float) -> None:
        """Keeps the box that the task wants at this temperature."""
        if self._limit is not None:
            self._boxes = self._boxes[:1] if measured > float(self._limit[1]) else self._boxes[1:2]
            self._limit = None

    def _next(self) -> str:
        """Returns the next action by the words of the task, or a try."""
        if self._view.text.startswith("Ambiguous request"):
            return "0"
        take = [each for each in self._fresh("pick up") if self._is_it(each)]
        if take and not self._carried and (self._targets or self._limit is not None):
            return self._rng.choice(take)  # the first thing in focus is needed later
        if self._targets:
            return self._towards(self._targets[0])
        use = [each for each in self._fresh("use thermometer") if self._limit is not None and self._is_it(each)]
        return self._rng.choice(use) if use else self._place(take)

    def _is_it(self, action: str) -> bool:
        """Returns whether the action is about the thing in focus."""
        what = content(action.partition(" to ")[0])
        return bool(self._thing) and len(what & self._thing) > MOST * len(self._thing)

    def _towards(self, target: set[str]) -> str:
        """Returns a focus on the thing that the task names, or else a try or a look elsewhere."""
        here = self._fresh("focus on")
        if not target:
            return self._try([action for action in here if self._may_be_it(action)])
        enough = 0.0 if self._view.place in self._text else MOST * len(target)  # at its place, any word is enough
        matches = [action for action in here if len(target & content(action)) > enough]
        return self._rng.choice(matches) if matches else self._elsewhere()

    def _may_be_it(self, action: str) -> bool:
        """Returns whether the thing is no room or box, is not in every room, and fits the place that the task wants."""
        thing = action.removeprefix("focus on ")
        if content(thing) & _EVERYWHERE or thing in self._boxes or f"teleport to {thing}" in self._view.valid:
            return False
        if not self._boxes:  # then the thing is in the rooms of the task
            return self._view.place in self._text
        return f"pick up {thing}" in self._view.valid

    def _place(self, take: Sequence[str]) -> str:
        """Returns a move of the thing to one of the task's boxes, or the next action before it."""
        ends = tuple(f" to {box}" for box in self._boxes)
        into = [each for each in self._fresh("move") if each.endswith(ends) and self._is_it(each)]
        if into:
            return self._rng.choice(into)
        return self._elsewhere() if self._carried or not take else self._rng.choice(take)

    def _try(self, tries: Sequence[str]) -> str:
        """Returns one of the tries, or a look elsewhere, at even chances."""
        good = [action for action in tries if action not in self._bad]
        return self._rng.choice(good) if good and self._rng.getrandbits(1) else self._elsewhere()

    def _elsewhere(self) -> str:
        """Returns a move to a room: one in the task before others, a new one before a known one."""
        seen = {done.place for done in self._taken}
        rooms = [
            action.removeprefix("teleport to ") for action in self._view.valid if action.startswith("teleport to ")
        ]
        rooms = [room for room in rooms if room != self._view.place]
        fresh = [room for room in rooms if room not in seen] or rooms
        named = [room for room in fresh if room in self._text.lower()]
        return f"teleport to {self._rng.choice(named or fresh)}" if fresh else "look around"

    def _fresh(self, *verbs: str) -> list[str]:
        """Returns the valid actions with these verbs that were not taken yet."""
        taken = {done.action for done in self._taken}
        return [action for action in self._view.valid if verb_of(action) in verbs and action not in taken]

    def _blame(self) -> list[str]:
        """Returns the last action as one to avoid, if it lost score."""
        last = self._taken[-1:]
        return [AVOID + done.action for done in last if done.gain < 0]
