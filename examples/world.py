"""The interface of environments for experiments; the harness uses only this."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from app.demo.memory import AgentRun, RetrievedCases, Trace

Own = Any
"""Values that only one environment understands: its tasks, actions and observations.

The harness passes them between environment and agent. Type variables would appear in every signature of the harness,
and would be lost where an environment is chosen by name.
"""


class EnvironmentMissing(OSError):
    """Raised when this machine lacks a requirement of the environment."""


class MemoryUnusable(OSError):
    """Raised when the service cannot be reached or refuses, so that the arm with memory is impossible."""


class Task(Protocol):
    """One task; its other data is private to its adapter and environment."""

    @property
    def id(self) -> str:
        """Id, unique within the adapter."""

    @property
    def family(self) -> str:
        """The kind of task, one of the adapter's families; the agent does not see it."""

    @property
    def text(self) -> str:
        """Text for the agent, and query for the memory."""


class Environment(Protocol):
    """An environment that lays out one task at a time.

    Raises:
        StepsSpent: from ``step``, if the environment counts steps itself.
    """

    @property
    def done(self) -> bool:
        """True once the task has ended, with success or without."""

    @property
    def reward(self) -> float:
        """Reward of the task so far; at least 1 is a success."""

    @property
    def traces(self) -> Sequence[Trace]:
        """The steps since the last reset, one entry for each."""

    async def reset(self, task: Own) -> Own:
        """Lays out the task and returns its first observation; costs no step."""

    async def step(self, action: Own) -> Own:
        """Performs the action and returns the observation."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """The input of an agent for one task; only the slate differs between the arms."""

    task: Own
    observation: Own
    slate: RetrievedCases
    seed: str


@dataclass(frozen=True, slots=True)
class Size:
    """Size of an experiment; ``practice`` and ``test`` count tasks of each family."""

    practice: int
    test: int
    seed: int = 1
    k: int = 4
    ks: Sequence[int] = (0, 1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks for practice, and other tasks for the test."""

    practice: Sequence[Task]
    test: Sequence[Task]


class Adapter(Protocol):
    """An environment, its tasks, and an agent that can act in it."""

    @property
    def name(self) -> str:
        """Name on the command line and in files."""

    @property
    def families(self) -> Sequence[str]:
        """The kinds of task."""

    @property
    def budget(self) -> int:
        """Maximum number of steps of a task."""

    @property
    def min_similarity(self) -> float:
        """Least similarity of a case to the task; less similar ones are not served."""

    @property
    def size(self) -> Size:
        """Default size, which takes at most a few minutes."""

    @property
    def explanation(self) -> str:
        """Description of the agent and its limits, for the report."""

    def environment(self) -> AbstractAsyncContextManager[Own]:
        """Yields the Environment for the block.

        Raises:
            EnvironmentMissing: this machine lacks a requirement.
        """

    async def tasks(self, environment: Own, family: str, size: Size) -> Tasks:
        """Returns tasks of a family; test and practice tasks are disjoint."""

    async def demonstrations(self, environment: Own, tasks: Sequence[Own]) -> Sequence[AgentRun]:
        """Returns an expert's runs of the tasks, if the environment has them; they are used in a separate arm."""

    async def play(self, world: Environment, briefing: Briefing) -> AgentRun:
        """Runs the agent on one task until it ends or gives up."""


@runtime_checkable
class ChangingAdapter(Adapter, Protocol):
    """An adapter whose world can change its rules, so that earlier solutions fail."""

    async def changed_tasks(self, environment: Own, family: str, size: Size) -> Tasks:
        """Returns tasks of a family under the new rules; their texts differ from those of ``tasks``."""
