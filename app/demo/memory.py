"""What a scripted agent may remember with: nothing, or casebank over HTTP."""

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol

import httpx
from pydantic import BaseModel

from retrieval.sections.cases import CasesSection, Remembered
from retrieval.sections.context import memory_context

TOKEN_BUDGET = 600
"""Of what stands in the agent's prompt."""

_MEMORY_ERRORS = (httpx.HTTPError, TimeoutError, ValueError, KeyError, TypeError)


@dataclass(frozen=True)
class Trace:
    """One step: which tool, what went in, what came out."""

    tool: str
    input: str | Mapping[str, str]
    output: str
    status: str
    duration_ms: float


@dataclass(frozen=True)
class RememberedCase:
    """One remembered run, as a slate shows it."""

    case_id: str
    task: str
    plan: tuple[str, ...]
    outcome: str


@dataclass(frozen=True)
class RememberedProcedure:
    """One learned procedure that fits the task, in the version that is told."""

    procedure_id: str
    version: int
    kind: str
    steps: tuple[str, ...]


@dataclass(frozen=True)
class RetrievedCases:
    """What memory answered: cases and procedures best first, the text that tells them, and what the answer cost."""

    cases: tuple[RememberedCase, ...] = ()
    procedures: tuple[RememberedProcedure, ...] = ()
    text: str = ""
    """What stands in the agent's prompt; with no text an agent that reads is told nothing."""
    retrieval_id: str | None = None
    tokens: int = 0
    latency_ms: float | None = None
    degraded: tuple[str, ...] = ()

    def case_id(self, place: int) -> str | None:
        """Returns the id of the case in a place from 0 on; None of a run that the text tells beside the slate."""
        return self.cases[place].case_id if place < len(self.cases) else None


def slate_of(cases: Sequence[RememberedCase]) -> RetrievedCases:
    """Returns the slate of a memory that is not casebank, told in casebank's words."""
    remembered = [Remembered(case.task, case.plan, case.outcome, None) for case in cases]
    context = memory_context(TOKEN_BUDGET, CasesSection(remembered))
    return RetrievedCases(tuple(cases), text=context.text, tokens=context.tokens)


@dataclass(frozen=True)
class AgentRun:
    """One finished run of an agent."""

    task: str
    plan: tuple[str, ...]
    traces: tuple[Trace, ...]
    success: bool
    first_try: bool
    used_case_ids: tuple[str, ...] = field(default=())
    used_procedure_ids: tuple[str, ...] = field(default=())
    checked: bool = True
    """Whether somebody else than the run looked at its work; what was planted is only what it calls itself."""


class Memory(Protocol):
    """Where runs are kept and looked up."""

    async def retrieve(self, task: str) -> RetrievedCases:
        """The slate for a task about to be done."""

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:
        """The id under which `run` was kept, normally once it can be retrieved; None if it was not kept."""


class _RetrievedCase(BaseModel):
    case_id: str
    task: str
    plan: Sequence[str] | None = None
    outcome: str


class _ToldProcedure(BaseModel):
    id: str
    version: int
    kind: str
    steps: Sequence[str]


class _RetrieveAnswer(BaseModel):
    """What is used of the answer of POST /v1/retrieve."""

    cases: Sequence[_RetrievedCase]
    procedures: Sequence[_ToldProcedure] = ()
    memory_context: str = ""
    retrieval_id: str | None = None
    tokens: int | None = None
    degraded: Sequence[str] | None = None


class _RetainAnswer(BaseModel):
    """What is used of the answer of POST /v1/retain."""

    case_id: str


class NoMemory:
    """Remembers nothing."""

    async def retrieve(self, task: str) -> RetrievedCases:  # noqa: ARG002 (the protocol's signature)
        """An empty slate."""
        return RetrievedCases()

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:  # noqa: ARG002 (the protocol's signature)
        """None."""
        return None


class HttpMemory:
    """casebank over HTTP; where it fails or answers nonsense, the agent works without it.

    The client speaks with a service's token. A run is retained as what it calls itself; what the harness measured of it
    comes after, as feedback, for a reward that comes with its own run proves nothing.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        *,
        agent: str,
        k: int = 4,
        token_budget: int = TOKEN_BUDGET,
        min_similarity: float | None = None,
    ) -> None:
        self._client = client
        self.agent = agent
        self._options = {"agent": agent, "k": k, "token_budget": token_budget, "min_similarity": min_similarity}
        self.errors: list[str] = []  # what went wrong with memory; the report shows it

    async def retrieve(self, task: str) -> RetrievedCases:
        """The service's slate for `task`; an empty one if it cannot be had."""
        body = {**self._options, "query": task}
        started = time.perf_counter()
        try:
            answer = await self._post("/v1/retrieve", body)
            latency_ms = (time.perf_counter() - started) * 1000
            return _cases(_RetrieveAnswer.model_validate_json(answer), latency_ms)
        except _MEMORY_ERRORS as error:
            self.errors.append(f"retrieve: {error!r}")
            return RetrievedCases()

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:
        """The id of the case made of `run`, once it is ready to be retrieved or the wait for that is over."""
        body = {
            "agent": self.agent,
            "task": run.task,
            "plan": run.plan,
            "tool_traces": [asdict(trace) for trace in run.traces],
            "outcome": "success" if run.success else "failure",
            "tags": ["demo"],
        }
        if slate.retrieval_id is not None:
            body |= {"retrieval_id": slate.retrieval_id}
            body |= {"used_case_ids": run.used_case_ids, "used_procedure_ids": run.used_procedure_ids}
        case_id = None
        try:
            answer = await self._post("/v1/retain", body, {"Idempotency-Key": str(uuid.uuid4())})
            case_id = _RetainAnswer.model_validate_json(answer).case_id
            await self._until_ready(case_id)
            if run.checked:
                await self._post("/v1/feedback", {"case_id": case_id, "reward": float(run.success), "source": "metric"})
        except _MEMORY_ERRORS as error:
            self.errors.append(f"retain: {error!r}")
        return case_id

    async def _post(self, path: str, body: Mapping[str, object], headers: dict[str, str] | None = None) -> bytes:
        response = await self._client.post(path, json=body, headers=headers)
        return response.raise_for_status().content

    async def _until_ready(self, case_id: str, timeout_s: float = 15.0) -> None:
        """Wait for the worker, so that each task meets the same bank in every run."""
        async with asyncio.timeout(timeout_s):
            while True:
                response = await self._client.get(f"/v1/cases/{case_id}")
                if response.raise_for_status().json()["status"] != "pending":
                    return
                await asyncio.sleep(0.01)


def _cases(answer: _RetrieveAnswer, latency_ms: float) -> RetrievedCases:
    return RetrievedCases(
        cases=tuple(
            RememberedCase(case.case_id, case.task, tuple(case.plan or ()), case.outcome) for case in answer.cases
        ),
        procedures=tuple(
            RememberedProcedure(each.id, each.version, each.kind, tuple(each.steps)) for each in answer.procedures
        ),
        text=answer.memory_context,
        retrieval_id=answer.retrieval_id,
        tokens=answer.tokens or 0,
        latency_ms=latency_ms,
        degraded=tuple(answer.degraded or ()),
    )
