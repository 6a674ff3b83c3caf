"""Memories of the scripted agent: none, words in common, or casebank over HTTP."""

import asyncio
import math
import re
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Protocol

import httpx
from pydantic import Field, TypeAdapter

from retrieval.sections.cases import CasesSection, Remembered
from retrieval.sections.context import memory_context

TOKEN_BUDGET = 600
"""Maximum tokens of the memory text in the agent's prompt."""

PRECISION = 0.1
"""Share of told fixes that should be right; low, because without advice the operator tries all its repairs in turn."""

MOST_PLANS = 4
"""Maximum plans of like runs in advice."""

_MEMORY_ERRORS = (httpx.HTTPError, TimeoutError, ValueError, KeyError, TypeError)


@dataclass(frozen=True)
class Trace:
    """One step: tool, input and output."""

    tool: str
    input: str | Mapping[str, str]
    output: str
    status: str
    duration_ms: float


@dataclass(frozen=True)
class RememberedCase:
    """One remembered run on a slate."""

    case_id: str
    task: str
    plan: tuple[str, ...]
    outcome: str


@dataclass(frozen=True)
class RememberedProcedure:
    """One learned procedure that fits the task, in the served version."""

    id: str
    version: int
    kind: str
    steps: tuple[str, ...]


@dataclass(frozen=True)
class RetrievedCases:
    """The answer of a memory: cases and procedures, the best first, their text, and the cost of the answer."""

    cases: tuple[RememberedCase, ...] = ()
    procedures: tuple[RememberedProcedure, ...] = ()
    text: Annotated[str, Field(validation_alias="memory_context")] = ""
    """Text for the agent's prompt, and the only part that the agent reads."""
    retrieval_id: str | None = None
    tokens: int = 0
    latency_ms: float | None = None

    def case_id(self, place: int) -> str | None:
        """Returns the id of the case at a 0-based place; None for a run outside the slate."""
        return self.cases[place].case_id if place < len(self.cases) else None


def slate_of(cases: Sequence[RememberedCase]) -> RetrievedCases:
    """Returns the slate of another memory, with its text in casebank's format."""
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
    """True if the harness checked the work; a planted run is not checked."""


class AgentMemory(Protocol):
    """A memory: stores runs and returns them for a task."""

    async def retrieve(self, task: str) -> RetrievedCases:
        """Returns the slate for a new task."""

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:
        """Stores a run and returns its id, normally once it can be retrieved; None: not stored."""


class FailureMemory(Protocol):
    """A memory that can be asked when a call has failed."""

    async def at_failure(self, task: str, failed: Trace, slate: RetrievedCases) -> str:
        """Returns a text about failures like that of this call; empty without any."""


_RETRIEVED = TypeAdapter(RetrievedCases)


class NoMemory:
    """A memory that stores no run."""

    async def retrieve(self, task: str) -> RetrievedCases:  # noqa: ARG002 (the protocol's signature)
        """Returns an empty slate."""
        return RetrievedCases()

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:  # noqa: ARG002 (the protocol's signature)
        """Returns None: the run is not stored."""
        return None


class HttpMemory:
    """casebank over HTTP; if it fails or sends an invalid response, the agent works without memory.

    The client has a service's token. A run is retained with the outcome it reports. The result measured by the harness
    follows as feedback, because a reward from the run itself is no proof.
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
        self.errors: list[str] = []  # errors of the memory, for the report

    async def retrieve(self, task: str) -> RetrievedCases:
        """Returns the service's slate for a task; an empty one after an error."""
        body = {**self._options, "query": task}
        started = time.perf_counter()
        try:
            answer = await self._post("/v1/retrieve", body)
            latency_ms = (time.perf_counter() - started) * 1000
            return replace(_RETRIEVED.validate_json(answer.content), latency_ms=latency_ms)
        except _MEMORY_ERRORS as error:
            self.errors.append(f"retrieve: {error!r}")
            return RetrievedCases()

    async def at_failure(self, task: str, failed: Trace, slate: RetrievedCases) -> str:
        """Returns the service's advice for a failed call; empty after an error."""
        body = {
            "agent": self.agent,
            "task": task,
            "tool": failed.tool,
            "input": failed.input,
            "output": failed.output,
            "status": failed.status,
            "retrieval_id": slate.retrieval_id,
            "precision": PRECISION,
            "plans": MOST_PLANS,
            "token_budget": TOKEN_BUDGET,
        }
        try:
            return str((await self._post("/v1/advice", body)).json()["text"])
        except _MEMORY_ERRORS as error:
            self.errors.append(f"advice: {error!r}")
            return ""

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:
        """Stores a run, waits for its lessons, for some seconds at most, and returns its id; None: not stored."""
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
            case_id = str(answer.json()["case_id"])
            async with asyncio.timeout(15):  # so that each task meets the same bank in every run
                while True:
                    response = await self._client.get(f"/v1/cases/{case_id}")
                    if response.raise_for_status().json()["lessons"] != "pending":
                        break
                    await asyncio.sleep(0.01)
            if run.checked:
                await self._post("/v1/feedback", {"case_id": case_id, "reward": float(run.success), "source": "metric"})
        except _MEMORY_ERRORS as error:
            self.errors.append(f"retain: {error!r}")
        return case_id

    async def _post(
        self, path: str, body: Mapping[str, object], headers: dict[str, str] | None = None
    ) -> httpx.Response:
        return (await self._client.post(path, json=body, headers=headers)).raise_for_status()


PLACES = 4


class KeywordMemory:
    """A memory of all runs, told by words: the runs whose tasks share the rarest words with a new task.

    Of runs with one plan it tells the one nearest to the task; of equally near runs, the newest.

    It trusts the outcome that a run reports, and forgets no run.
    """

    def __init__(self, *, with_errors: bool = False) -> None:
        self._with_errors = with_errors
        self._runs: list[tuple[set[str], RememberedCase]] = []

    async def retrieve(self, task: str) -> RetrievedCases:
        """Returns at most four runs, by the cosine of their words' idf (Salton and Buckley 1988, without counts)."""
        return self._nearest(_words(task))

    async def at_failure(self, task: str, failed: Trace, slate: RetrievedCases) -> str:  # noqa: ARG002 (the protocol's signature)
        """Returns the text of at most four runs, the nearest to the words of the task and of this failure."""
        return self._nearest(_words(f"{task} {failed.output}")).text

    def _nearest(self, query: set[str]) -> RetrievedCases:
        known = Counter(word for words, _ in self._runs for word in words)

        def weight(words: set[str]) -> float:
            return sum(math.log(1 + len(self._runs) / (1 + known[word])) ** 2 for word in words)

        def nearness(run: tuple[set[str], RememberedCase]) -> float:
            return weight(query & run[0]) / math.sqrt(weight(query) * weight(run[0]) or 1)

        unlike: dict[tuple[str, ...], RememberedCase] = {}
        newest_first = self._runs[::-1]
        for _, case in sorted(newest_first, key=nearness, reverse=True):
            unlike.setdefault(case.plan, case)
        return slate_of([*unlike.values()][:PLACES])

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:  # noqa: ARG002 (the protocol's signature)
        """Adds the run to the list and returns its place there."""
        case = RememberedCase(str(len(self._runs)), run.task, run.plan, "success" if run.success else "failure")
        error = next((trace.output for trace in run.traces if trace.status == "error"), "")
        self._runs.append((_words(f"{run.task} {error}" if self._with_errors else run.task), case))
        return case.case_id


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
