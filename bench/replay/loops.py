"""Closed loops: a scripted agent acts on remembered plans in the order of a memory, and pays for each call.

The agent tries the plans of the memory, best first, each with its own task's values. After a refused call it asks the
memory again with the error. Once its patience is spent it searches by itself: it tries the plans that this world knows
in an order drawn for the task, which is the same for every memory, until its calls are spent.
"""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bench.replay.runs import Call, Run

PATIENCE = 4
"""Number of wrong calls after which the agent no longer follows the memory."""
BUDGET = 12
"""Largest number of calls in a task of most worlds; a task that needs more is not solved."""
A_DAY = 8
"""Number of tasks a day."""

Plan = tuple[Call, ...]


class Memory(Protocol):
    """A memory of runs."""

    def recall(self, task: str, error: str | None) -> Sequence[Plan]:
        """Returns remembered plans, the best first.

        Args:
            task: the text of the task.
            error: output of the last refused call in this task, or the error that it begins with; None without one.
        """

    def keep(self, run: Run) -> None:
        """Keeps a finished run, in the order of time."""


class Attempt(Protocol):
    """One task in progress."""

    @property
    def text(self) -> str:
        """Text of the task."""

    @property
    def kind(self) -> str:
        """True kind, for reports."""

    @property
    def budget(self) -> int:
        """Largest number of calls."""

    @property
    def error(self) -> str | None:
        """Error that the agent has met before its first call; None in most worlds."""

    @property
    def solved(self) -> bool:
        """True once the task is solved."""

    @property
    def done(self) -> Sequence[Call]:
        """Calls that took effect, in order; a world that rolls back forgets those of a plan that failed."""

    def adapted(self, plan: Plan) -> Plan:
        """Returns a remembered plan with this task's own values."""

    def act(self, call: Call) -> Call:
        """Makes a call, and returns it with its result."""

    def give_up(self) -> None:
        """Ends a plan that failed; a world that rolls back does it here."""

    def known(self) -> Sequence[Plan]:
        """Returns the plans that the agent can think of by itself, in any order."""


class World(Protocol):
    """A world of tasks."""

    @property
    def name(self) -> str:
        """Name, for reports."""

    def demonstrations(self, seed: int) -> Sequence[Run]:
        """Returns runs of an expert, which the memory keeps before the first task; none in most worlds."""

    def attempts(self, seed: int) -> Iterator[Attempt]:
        """Yields the tasks of a seed in the order of time; the one before is finished."""


@dataclass(frozen=True, slots=True)
class Played:
    """One task as the agent played it.

    Attributes:
        calls: number of all calls, those refused included; the whole budget if the task is not solved.
        refused: number of calls that were refused or rolled back.
    """

    kind: str
    calls: int
    refused: int
    solved: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """The tasks of one world and seed, in the order of time."""

    played: tuple[Played, ...]

    @property
    def calls(self) -> float:
        """Calls a task; one without solution counts its whole budget."""
        return sum(each.calls for each in self.played) / len(self.played)

    @property
    def solved(self) -> float:
        """Share of tasks solved."""
        return sum(each.solved for each in self.played) / len(self.played)

    @property
    def first_try(self) -> float:
        """Share of tasks solved without a refused call."""
        return sum(each.solved and not each.refused for each in self.played) / len(self.played)


def play(world: World, memory: Memory, seed: int) -> Loop:
    """Plays the tasks of a seed one after another; the memory keeps each run when it is finished."""
    for run in world.demonstrations(seed):
        memory.keep(run)
    played = []
    for number, attempt in enumerate(world.attempts(seed)):
        calls = _play_one(attempt, memory, random.Random(f"{seed}:{world.name}:{number}"))
        memory.keep(Run(attempt.text, tuple(calls), attempt.solved, number // A_DAY, attempt.kind))
        spent = len(calls) if attempt.solved else attempt.budget
        played.append(Played(attempt.kind, spent, sum(not call.ok for call in calls), attempt.solved))
    return Loop(tuple(played))


class _Agent:
    """The agent in one task.

    Attributes:
        made: calls so far; those that were rolled back count as failed.
        dead: ways that were tried in vain, each as the names of its calls; "" ends one that was refused nothing.
    """

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self.made: list[Call] = []
        self.dead: set[tuple[str, ...]] = set()

    @property
    def over(self) -> bool:
        """True once the task is solved or its calls are spent."""
        return self._attempt.solved or len(self.made) >= self._attempt.budget

    def follow(self, plan: Plan) -> str | None:
        """Makes the calls of a plan that are not done yet; returns the output of a refused one, which ends it."""
        way, done = [_name(call) for call in self._attempt.done], Counter(map(_name, self._attempt.done))
        steps = []
        for call in self._attempt.adapted(plan):
            if done[_name(call)]:
                done[_name(call)] -= 1
            else:
                steps.append(call)
        names = [*way, *map(_name, steps), ""]
        if not steps or any(tuple(names[:end]) in self.dead for end in range(len(way) + 1, len(names) + 1)):
            return None  # it is known to fail
        first = len(self.made)
        for number, call in enumerate(steps, len(way) + 1):
            self.made.append(result := self._attempt.act(call))
            if not result.ok:
                self.dead.add(tuple(names[:number]))
                self._give_up(first)
                return str(result.output)
            if self.over:
                return None
        self.dead.add(tuple(names))
        self._give_up(first)
        return None

    def _give_up(self, first: int) -> None:
        self._attempt.give_up()
        stands = Counter(map(_name, self._attempt.done))
        for place in range(first, len(self.made)):
            if self.made[place].ok and not stands[_name(self.made[place])]:
                self.made[place] = replace(self.made[place], ok=False)


def _name(call: Call) -> str:
    return repr((call.tool, call.input))


def _play_one(attempt: Attempt, memory: Memory, rng: random.Random) -> list[Call]:
    agent, error = _Agent(attempt), attempt.error
    plans = iter(memory.recall(attempt.text, error))
    while not agent.over and len(agent.dead) < PATIENCE and (plan := next(plans, None)) is not None:
        refusal = agent.follow(plan)
        if refusal not in {None, error}:
            error, plans = refusal, iter(memory.recall(attempt.text, refusal))
    own = list(attempt.known())
    rng.shuffle(own)
    for plan in own:
        if agent.over:
            break
        agent.follow(plan)
    return agent.made


class NoMemory:
    """The agent alone."""

    def recall(self, task: str, error: str | None) -> Sequence[Plan]:  # noqa: ARG002 - the protocol's
        """Returns no plans."""
        return ()

    def keep(self, run: Run) -> None:
        """Keeps no run."""


class WordsInCommon:
    """The simplest rival: plans of the runs that share most words with the task, the newer of equals first."""

    def __init__(self) -> None:
        self._runs: list[tuple[frozenset[str], Plan]] = []

    def recall(self, task: str, error: str | None) -> Sequence[Plan]:  # noqa: ARG002 - the protocol's
        """Returns the plans of the runs that went well, without their refused calls."""
        words = _words(task)
        newest_first = self._runs[::-1]
        return [plan for _, plan in sorted(newest_first, key=lambda run: len(words & run[0]), reverse=True)]

    def keep(self, run: Run) -> None:
        """Keeps the run if it went well."""
        if run.succeeded:
            self._runs.append((_words(run.task), tuple(call for call in run.calls if call.ok)))


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))
