"""What an environment must offer to be experimented with; the harness knows nothing else of it."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from app.demo.memory import AgentRun, RetrievedCases, Trace

Own = Any
"""What belongs to one environment alone: its tasks, its actions, what can be seen of it.

The harness only hands it from the environment to the agent and back. As type variables these (and the environment
itself) would stand in every signature of the harness, and be erased where environments are chosen by name.
"""


class StepsSpent(Exception):
    """The agent has no steps left for this task."""


class EnvironmentMissing(OSError):
    """This machine lacks what the environment needs."""


class MemoryUnusable(OSError):
    """The service cannot be reached, or refuses: there is no arm with memory to compare with."""


class Task(Protocol):
    """One task; what else belongs to it is between its adapter and its environment."""

    @property
    def id(self) -> str:
        """Unique within the adapter."""

    @property
    def family(self) -> str:
        """The kind of task, one of the adapter's families; the agent does not see it."""

    @property
    def text(self) -> str:
        """What the agent is given, and what memory is searched for."""


class Environment(Protocol):
    """One task at a time.

    Raises:
        StepsSpent: from ``step``, if the environment itself counts what is left.
    """

    @property
    def done(self) -> bool:
        """Whether the task is over, for good or bad."""

    @property
    def reward(self) -> float:
        """What the environment gives for the task so far; from 1 on it is a success."""

    @property
    def traces(self) -> Sequence[Trace]:
        """The steps since the last reset, one entry for each."""

    async def reset(self, task: Own) -> Own:
        """Lays out the task and returns what can be seen of it; costs no step."""

    async def step(self, action: Own) -> Own:
        """Does the action and returns what came of it."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """What an agent is given for one task; nothing else differs between the arms but the slate."""

    task: Own
    observation: Own
    slate: RetrievedCases
    seed: str


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done; ``practice`` and ``test`` are tasks of each family."""

    practice: int
    test: int
    seed: int = 1
    k: int = 4
    ks: Sequence[int] = (0, 1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks to gather experience on, and others to be tested with."""

    practice: Sequence[Task]
    test: Sequence[Task]


class Adapter(Protocol):
    """An environment, its tasks, and an agent that can act in it."""

    @property
    def name(self) -> str:
        """What the command line and the files call it."""

    @property
    def families(self) -> Sequence[str]:
        """The kinds of task."""

    @property
    def budget(self) -> int:
        """Most steps a task."""

    @property
    def min_similarity(self) -> float:
        """Cases less similar to the task than this are not injected: the null arm."""

    @property
    def size(self) -> Size:
        """How much is done where nobody says otherwise: what takes a few minutes at most."""

    @property
    def explanation(self) -> str:
        """What the agent is and is not, in a few sentences for the report."""

    def environment(self) -> AbstractAsyncContextManager[Own]:
        """The Environment, for as long as the block lasts.

        Raises:
            EnvironmentMissing: this machine lacks what it needs.
        """

    async def tasks(self, environment: Own, family: str, size: Size) -> Tasks:
        """Tasks of a family; none of the test tasks is among those practised on."""

    async def demonstrations(self, environment: Own, tasks: Sequence[Own]) -> Sequence[AgentRun]:
        """An expert's runs of the tasks, where the environment brings them; for an arm of their own only."""

    async def play(self, world: Environment, briefing: Briefing) -> AgentRun:
        """The agent's run of one task, to its end or to where it gives up."""


@runtime_checkable
class ChangingAdapter(Adapter, Protocol):
    """An adapter whose world can change its rules, so that what was learned before fails."""

    async def changed_tasks(self, environment: Own, family: str, size: Size) -> Tasks:
        """Tasks of a family under the new rules; no text is one of those that ``tasks`` gives."""
