"""One task in one arm, within a budget of steps and of time; each end of a run has a name."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from app.demo.memory import AgentMemory, AgentRun, RetrievedCases, Trace
from app.demo.operator.scratch import StepsSpent
from examples.world import Adapter, Briefing, Environment, Own, Task
from retrieval.tokens import count_tokens

STEP_TIMEOUT_S = 60.0

AnswerT = TypeVar("AnswerT")
Ended = Literal["success", "failure", "out of steps", "environment failed"]


class EnvironmentFailed(Exception):
    """The environment raised, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Episode:
    """The result of one task in one arm."""

    task_id: str
    family: str
    ended: Ended
    reward: float
    steps: int
    injected: int
    """Cases on the slate."""
    reused: Sequence[str]
    """Ids of the cases and procedures that the agent followed."""
    tokens_added: int
    """Tokens of the injected text."""
    tokens_spent: int
    """Tokens of the agent's actions and their answers, each step counted once."""
    retrieve_ms: float | None
    wall_ms: float
    """Milliseconds of the retrieve and the run, without the layout of the task."""
    error: str = ""

    @property
    def success(self) -> bool:
        """Returns whether the run ended in success."""
        return self.ended == "success"


@dataclass(frozen=True, slots=True)
class EpisodeOutcome:
    """An episode with its run, which may be retained; ``run`` is None if none was made or the environment failed."""

    episode: Episode
    task: Task
    run: AgentRun | None
    slate: RetrievedCases


class BudgetedEnvironment:
    """An environment that takes at most ``budget`` steps, and fails with a named error."""

    def __init__(self, environment: Environment, budget: int) -> None:
        self._environment = environment
        self._budget = budget
        self._steps = 0
        self.spent = False
        """Set once a step was refused."""

    @property
    def done(self) -> bool:
        """Returns whether the task is over."""
        return self._environment.done

    @property
    def reward(self) -> float:
        """Returns the environment's reward."""
        return self._environment.reward

    @property
    def traces(self) -> Sequence[Trace]:
        """Returns the steps so far."""
        return self._environment.traces

    async def reset(self, task: Own) -> Own:
        """Lays out the task and allows the whole budget again.

        Raises:
            EnvironmentFailed: the environment raised or hung.
        """
        self._steps, self.spent = 0, False
        return await self._answer(self._environment.reset(task))

    async def step(self, action: Own) -> Own:
        """Does the action.

        Raises:
            StepsSpent: the budget is spent, or the task is over.
            EnvironmentFailed: the environment raised or hung.
        """
        # an environment without traces must end as well
        if self.done or max(self._steps, len(self.traces)) >= self._budget:
            self.spent = not self.done
            raise StepsSpent
        self._steps += 1
        return await self._answer(self._environment.step(action))

    async def _answer(self, work: Awaitable[AnswerT]) -> AnswerT:
        try:
            async with asyncio.timeout(STEP_TIMEOUT_S) as limit:
                return await work
        except StepsSpent:
            self.spent = True
            raise
        except Exception as error:
            reason = f"no answer within {STEP_TIMEOUT_S:g} s" if limit.expired() else repr(error)
            raise EnvironmentFailed(reason) from error


async def play(
    adapter: Adapter, world: BudgetedEnvironment, task: Task, memory: AgentMemory, alone: Episode | None = None
) -> EpisodeOutcome:
    """Runs the agent on the task with the slate of memory; the environment decides whether it succeeded.

    With an empty slate the run would repeat the one without memory: ``alone`` then stands for it.
    """
    slate = await memory.retrieve(task.text)
    if alone is not None and not slate.cases and not slate.procedures:
        waited = slate.latency_ms or 0.0
        same = replace(alone, retrieve_ms=slate.latency_ms, wall_ms=alone.wall_ms + waited)
        return EpisodeOutcome(same, task, None, slate)
    run, error, wall_ms = None, "", 0.0
    try:
        seen = await world.reset(task)
        started = time.perf_counter()
        run = await _run(adapter, world, Briefing(task, seen, slate, task.id))
        wall_ms = (time.perf_counter() - started) * 1000
    except EnvironmentFailed as failed:
        error = str(failed)
    success = run is not None and world.reward >= 1
    traces = world.traces
    episode = Episode(
        task_id=task.id,
        family=task.family,
        ended=_ended(run, world, success=success),
        reward=world.reward,
        steps=len(traces),
        injected=len(slate.cases),
        reused=() if run is None else (*run.used_case_ids, *run.used_procedure_ids),
        tokens_added=slate.tokens,
        tokens_spent=sum(count_tokens(str(trace.input)) + count_tokens(trace.output) for trace in traces),
        retrieve_ms=slate.latency_ms,
        wall_ms=wall_ms + (slate.latency_ms or 0.0),
        error=error,
    )
    return EpisodeOutcome(episode, task, None if run is None else replace(run, success=success), slate)


async def _run(adapter: Adapter, world: BudgetedEnvironment, briefing: Briefing) -> AgentRun:
    try:
        return await adapter.play(world, briefing)
    except StepsSpent:  # an agent may leave this to the harness
        return AgentRun(briefing.task.text, (), tuple(world.traces), success=False, first_try=False)


def _ended(run: AgentRun | None, world: BudgetedEnvironment, *, success: bool) -> Ended:
    if run is None:
        return "environment failed"
    if success:
        return "success"
    return "out of steps" if world.spent else "failure"
