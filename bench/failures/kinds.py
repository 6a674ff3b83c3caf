"""Tasks of a world: kinds, each with several ways to try and one that works, by rules that change at half time.

The names of a task belong to one of two teams, which its text does not tell; a world's rule says for each kind and team
which way works.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

TEAMS = 2
Names = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Way:
    """One thing to try.

    Attributes:
        title: name of the way in plans.
        act: template of the statement or command line.
        setup: template that lays out a task in which this way alone works; None: it never works.
        answer: template of the right answer of such a task; empty: the kind's.
    """

    title: str
    act: str
    setup: str | None = None
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of task.

    Attributes:
        setup: template that lays out every task of the kind; a kind whose ways have no setup cannot be done.
        goal: template of what reads the answer after an attempt; empty: the attempt's own output is the answer.
        answer: template of the right answer.
    """

    key: str
    wordings: Sequence[str]
    ways: Sequence[Way]
    setup: str = ""
    goal: str = ""
    answer: str = ""

    @property
    def working(self) -> list[Way]:
        """Returns the ways that may work."""
        return [way for way in self.ways if way.setup is not None]


@dataclass(frozen=True, slots=True)
class Task:
    """One task: `text` and `acts` are for the agent, the rest is known only to the harness.

    Attributes:
        acts: statement or command line of each way, by its title.
        works: title of the way that works; empty: none does.
    """

    id: str
    kind: str
    text: str
    acts: Mapping[str, str]
    works: str
    setup: str
    goal: str
    answer: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of an attempt: the task done, or the error."""

    done: bool
    output: str


class World(Protocol):
    """Tasks of one sort, and what carries out their attempts."""

    name: str
    tool: str
    argument: str
    """Name of the tool's argument."""
    kinds: Sequence[Kind]
    names: Sequence[Names]
    """Names that belong together; each task has one of them."""
    values: Mapping[str, Sequence[str]]
    """Values of tasks, drawn freely."""

    def attempt(self, task: Task, act: str) -> Result:
        """Lays out the task, carries out the act, and returns its result; nothing of it stays."""


class Attempts:
    """The attempts in a world, each made once: the same attempt has the same result in every arm."""

    def __init__(self, world: World) -> None:
        self.tool, self.argument = world.tool, world.argument
        self._world = world
        self._results: dict[tuple[str, str], Result] = {}

    def __call__(self, task: Task, act: str) -> Result:
        """Returns the result of the attempt."""
        if (task.id, act) not in self._results:
            self._results[task.id, act] = self._world.attempt(task, act)
        return self._results[task.id, act]


def draw_tasks(world: World, seed: int, count: int) -> list[Task]:
    """Returns the tasks of a seed in the order of time; the same seed gives the same tasks."""
    rng = random.Random(f"{world.name}:{seed}")
    rules = [_rules(world.kinds, rng)]
    changing = {kind.key for kind in rng.sample(world.kinds, len(world.kinds) // 2)}
    other = _rules(world.kinds, rng, rules[0])
    rules.append({key: other[key] if key[0] in changing else way for key, way in rules[0].items()})
    names = rng.sample(world.names, len(world.names))
    tasks = []
    for number in range(count):
        kind, place = rng.choice(world.kinds), rng.randrange(len(names))
        way = rules[number >= count // 2][kind.key, place % TEAMS]
        values = {key: rng.choice(pool) for key, pool in world.values.items()} | dict(names[place])
        tasks.append(fill(kind, way, values, rng.choice(kind.wordings), f"{world.name}-{seed}-{number}"))
    return tasks


Rules = dict[tuple[str, int], Way | None]
"""The way that works, by kind and team; None: none does."""


def _rules(kinds: Sequence[Kind], rng: random.Random, before: Rules | None = None) -> Rules:
    """Returns rules that differ from those before everywhere, where a kind has ways."""
    rules: Rules = {}
    for kind in kinds:
        for team in range(TEAMS):
            old = None if before is None else before[kind.key, team]
            rules[kind.key, team] = rng.choice([way for way in kind.working if way is not old] or [None])
    return rules


def fill(kind: Kind, way: Way | None, names: Names, wording: str, task_id: str) -> Task:
    """Returns the task of a kind in which this way works, with these names in the place of holes."""
    setup, answer = (kind.setup, kind.answer) if way is None else (kind.setup + (way.setup or ""), way.answer)
    return Task(
        id=task_id,
        kind=kind.key,
        text=wording.format_map(names),
        acts={each.title: each.act.format_map(names) for each in kind.ways},
        works="" if way is None else way.title,
        setup=setup.format_map(names),
        goal=kind.goal.format_map(names),
        answer=(answer or kind.answer).format_map(names),
    )
