"""One run of an agent: what memory has for it, what it does, and how it ends; retained on the way out."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self

from casebank_client import bodies
from casebank_client.answers import Advice, Outcome, Retrieved
from casebank_client.errors import CasebankUnreachable
from casebank_client.failed import ADVICE_S, may_have_failed, question
from casebank_client.wire import Request

log = logging.getLogger("casebank")

Status = Literal["ok", "error"]


@dataclass(slots=True)
class Record:
    """The record of a run in progress.

    Attributes:
        agent: agent of the run.
        task: task in words; a longer one than casebank takes is shortened, an empty one says that there is none.
        options: further fields of the retrieve.
        more: further fields of the retain, such as ``tags`` or ``session_id``.
        retrieved: response of the retrieve; None: casebank was not reachable.
        outcome: outcome that the agent named; None: it has not named one yet.
        reward: 0 to 1; None: unknown.
        client: client that retrieves and retains.
        advice_s: seconds that a failed call may wait for advice; 0: none is asked for.
    """

    agent: str
    task: str
    options: Mapping[str, Any] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    retrieved: Retrieved | None = None
    outcome: Outcome | None = None
    reward: float | None = None
    client: Any = None
    advice_s: float = ADVICE_S
    _traces: list[dict[str, Any]] = field(default_factory=list)
    _plan: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.task = bodies.task_text(self.task)

    @property
    def context(self) -> str:
        """Memory text for the prompt; empty without memories, or if casebank was not reachable."""
        return self.retrieved["memory_context"] if self.retrieved is not None else ""

    @property
    def retrieval_id(self) -> str | None:
        """Id of the retrieve."""
        return self.retrieved["retrieval_id"] if self.retrieved is not None else None

    def note(
        self,
        name: str,
        input: Any,  # noqa: A002 - the API's own name for it
        output: Any,
        *,
        status: Status | None = None,
        duration_ms: float | None = None,
    ) -> dict[str, Any] | None:
        """Notes a tool call, and returns the arguments of the client's ``advice``; None if it did not fail.

        See ``Run.tool`` for the arguments.
        """
        trace = {"tool": name, "input": _as_json(input), "output": _as_json(output), "duration_ms": duration_ms}
        self._traces.append(trace if status is None else {**trace, "status": status})
        failed = status == "error" or (status is None and may_have_failed(trace["output"]))
        if not failed or self.advice_s <= 0:
            return None
        named = {name: _as_json(self.more.get(name)) for name in ("run_id", "session_id")}
        known = {"task": self.task, "retrieval_id": self.retrieval_id, **named}
        return {"agent": self.agent, "within_s": self.advice_s, **question(self._traces), **known}

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
        try:
            self.client.outbox.put(self._retain(error))
        except Exception as unexpected:  # noqa: BLE001 - memory never breaks the agent
            log.warning("casebank: a run is given up: %s", _why(unexpected))

    def _retain(self, error: BaseException | None) -> Request:
        outcome = self.outcome or _outcome_of(error)
        more = {"reward": self.reward, "retrieval_id": self.retrieval_id}
        more |= {name: _as_json(value) for name, value in self.more.items()}
        run = bodies.finished_run(self.agent, self.task, outcome, tool_traces=self._traces, plan=self._plan, more=more)
        return bodies.retain(bodies.fitting(run))


def _checked(answer: Retrieved) -> Retrieved:
    """Returns the answer to a retrieve; raises CasebankUnreachable if another service than casebank gave it."""
    if not isinstance(answer, dict) or not {"memory_context", "retrieval_id"} <= answer.keys():
        raise CasebankUnreachable("the answer is not one of casebank")
    return answer


def _text(tool: str, answer: Advice) -> str | None:
    """Returns the text of the advice; None without any, and the log says why."""
    if not answer["text"]:
        log.info("casebank: no advice for %s: %s", tool, answer["why_empty"])
    return answer["text"] or None


def _no_advice(tool: str, error: Exception) -> None:
    """Logs why advice cannot be had."""
    log.warning("casebank: no advice for %s: %s", tool, _why(error))


def _why(error: Exception) -> str:
    """Returns the error in words: one that has none is a wait that ended."""
    return str(error) or f"no answer in time ({type(error).__name__})"


def _as_json(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, default=str), parse_constant=str)
    except Exception:  # noqa: BLE001 - keys that are no text, a value that holds itself, or any error of its own
        with suppress(Exception):
            return repr(value)
        return f"<{type(value).__name__}>"


def _outcome_of(error: BaseException | None) -> Outcome:
    """Returns how a run ended that did not say so: broken off from outside, by its own error, or nobody knows."""
    if error is None:
        return "unknown"
    return "failure" if isinstance(error, Exception) and not isinstance(error, asyncio.CancelledError) else "aborted"


@dataclass(slots=True)
class Run(Record):
    """A run of a synchronous agent; ``with memory.run(agent, task) as run``."""

    def begin(self) -> None:
        """Retrieves, for ``begin_s`` of the patience at most; without an answer the context is empty, with a log."""
        try:
            within_s = self.client.patience.begin_s
            self.retrieved = _checked(self.client.retrieve(self.agent, self.task, within_s=within_s, **self.options))
        except Exception as error:  # noqa: BLE001 - memory never breaks the agent
            log.warning("casebank: the agent acts without memory: %s", _why(error))

    def tool(
        self,
        name: str,
        input: Any = None,  # noqa: A002 - the API's own name for it
        output: Any = None,
        *,
        status: Status | None = None,
        duration_ms: float | None = None,
    ) -> str | None:
        """Notes a tool call with what went in and what came out; what JSON cannot say is noted as its text.

        Returns, if the call failed, what put such a failure right in earlier runs, for the model to read before its
        next call; None where memory has nothing for it or cannot be asked in ``advice_s``, and the log says why.

        Args:
            name: name of the tool.
            input: arguments of the call.
            output: result or error.
            status: "error": the call failed, whatever its output says; None: the output is judged.
            duration_ms: duration of the call.
        """
        return self.advised(self.note(name, input, output, status=status, duration_ms=duration_ms))

    def advised(self, asked: dict[str, Any] | None) -> str | None:
        """Returns the advice for a call that was noted; never raises."""
        if asked is None:
            return None
        try:
            return _text(asked["tool"], self.client.advice(**asked))
        except Exception as error:  # noqa: BLE001 - memory never breaks the agent
            _no_advice(asked["tool"], error)
        return None

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.finish(error)


@dataclass(frozen=True, slots=True)
class _Later:
    """Advice that is asked for when it is awaited; a coroutine that nobody awaits would warn."""

    ask: Callable[[], Awaitable[str | None]]

    def __await__(self) -> Generator[Any, Any, str | None]:
        return self.ask().__await__()


@dataclass(slots=True)
class AsyncRun(Record):
    """A run of an asynchronous agent; ``async with memory.run(agent, task) as run``."""

    async def begin(self) -> None:
        """See ``Run.begin``."""
        try:
            within_s = self.client.patience.begin_s
            answer = await self.client.retrieve(self.agent, self.task, within_s=within_s, **self.options)
            self.retrieved = _checked(answer)
        except Exception as error:  # noqa: BLE001 - memory never breaks the agent
            log.warning("casebank: the agent acts without memory: %s", _why(error))

    def tool(
        self,
        name: str,
        input: Any = None,  # noqa: A002 - the API's own name for it
        output: Any = None,
        *,
        status: Status | None = None,
        duration_ms: float | None = None,
    ) -> Awaitable[str | None]:
        """Notes a tool call, at once; awaited, it asks for advice and returns it. See ``Run.tool``."""
        asked = self.note(name, input, output, status=status, duration_ms=duration_ms)
        return _Later(lambda: self.advised(asked))

    async def advised(self, asked: dict[str, Any] | None) -> str | None:
        """See ``Run.advised``."""
        if asked is None:
            return None
        try:
            return _text(asked["tool"], await self.client.advice(**asked))
        except Exception as error:  # noqa: BLE001 - memory never breaks the agent
            _no_advice(asked["tool"], error)
        return None

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.finish(error)
