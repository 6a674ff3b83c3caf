"""One run of an agent: what memory has for it, what it does, and how it ends; retained on the way out."""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from casebank_client import bodies
from casebank_client.answers import Outcome, Retrieved
from casebank_client.errors import ClientError
from casebank_client.wire import Request

log = logging.getLogger("casebank")


@dataclass(slots=True)
class Record:
    """The record of a run in progress.

    Attributes:
        agent: agent of the run.
        task: in words.
        options: further fields of the retrieve.
        more: further fields of the retain, such as ``tags`` or ``session_id``.
        retrieved: response of the retrieve; None: casebank was not reachable.
        outcome: as the agent said; None: it has not said yet.
        reward: 0 to 1; None: nobody knows.
        client: client that retrieves and retains.
    """

    agent: str
    task: str
    options: Mapping[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    retrieved: Retrieved | None = None
    outcome: Outcome | None = None
    reward: float | None = None
    client: Any = None
    _traces: list[dict[str, Any]] = field(default_factory=list)
    _plan: list[str] = field(default_factory=list)

    @property
    def context(self) -> str:
        """Memory text for the prompt; empty without memories, or if casebank was not reachable."""
        return self.retrieved["memory_context"] if self.retrieved is not None else ""

    @property
    def retrieval_id(self) -> str | None:
        """The receipt of the retrieve."""
        return self.retrieved["retrieval_id"] if self.retrieved is not None else None

    def tool(
        self,
        name: str,
        input: Any = None,  # noqa: A002 - the API's own name for it
        output: Any = None,
        *,
        status: Literal["ok", "error"] = "ok",
        duration_ms: float | None = None,
    ) -> None:
        """Notes a tool call with what went in and what came out; what JSON cannot say is noted as its text."""
        said = {"input": _as_json(input), "output": _as_json(output)}
        self._traces.append({"tool": name, **said, "status": status, "duration_ms": duration_ms})

    def plan(self, *steps: str) -> None:
        """Notes the plan, a step each; without one it is read off the tool calls."""
        self._plan = list(steps)

    def used(self, case_ids: Sequence[str] | None = None, procedure_ids: Sequence[str] | None = None) -> None:
        """Says which of the cases and procedures the agent went by; where nothing is said, all may have helped."""
        self.more |= {"used_case_ids": case_ids, "used_procedure_ids": procedure_ids}

    def success(self, reward: float | None = None) -> None:
        """Says that the task was done; with a reward, how well, 0 to 1."""
        self.end("success", reward)

    def failure(self, reward: float | None = None) -> None:
        """Says that the task was not done."""
        self.end("failure", reward)

    def end(self, outcome: Outcome, reward: float | None = None) -> None:
        """Says how the run ended; the last word counts."""
        self.outcome, self.reward = outcome, reward

    def finish(self, error: BaseException | None = None) -> None:
        """Retains the run, in the background; an error is how it ended where nothing was said.

        For who cannot use a ``with`` block: once, after ``begin``.
        """
        self.client.outbox.put(self._retain(error))

    def _retain(self, error: BaseException | None) -> Request:
        outcome = self.outcome or _outcome_of(error)
        more = {"reward": self.reward, "retrieval_id": self.retrieval_id, **self.more}
        run = bodies.finished_run(self.agent, self.task, outcome, tool_traces=self._traces, plan=self._plan, more=more)
        return bodies.retain(run)


def _as_json(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, default=str), parse_constant=str)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, or a value that holds itself
        return repr(value)


def _outcome_of(error: BaseException | None) -> Outcome:
    """Returns how a run ended that did not say so: broken off from outside, by its own error, or nobody knows."""
    if error is None:
        return "unknown"
    return "failure" if isinstance(error, Exception) and not isinstance(error, asyncio.CancelledError) else "aborted"


@dataclass(slots=True)
class Run(Record):
    """A run of a synchronous agent; ``with memory.run(agent, task) as run``."""

    def begin(self) -> None:
        """Retrieves; where casebank cannot be asked, the context is empty, and the log says why."""
        try:
            self.retrieved = self.client.retrieve(self.agent, self.task, **self.options)
        except ClientError as error:
            log.warning("casebank: the agent acts without memory: %s", error)

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.finish(error)


@dataclass(slots=True)
class AsyncRun(Record):
    """A run of an asynchronous agent; ``async with memory.run(agent, task) as run``."""

    async def begin(self) -> None:
        """See ``Run.begin``."""
        try:
            self.retrieved = await self.client.retrieve(self.agent, self.task, **self.options)
        except ClientError as error:
            log.warning("casebank: the agent acts without memory: %s", error)

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.finish(error)
