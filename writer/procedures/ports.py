"""The interface of what learns procedures from runs, by rules or with a language model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol
from uuid import UUID

from pydantic import JsonValue

from retrieval.tables.kinds import AbstractionLevel, ProcedureKind, ProcedureOrigin
from writer.analysis.calls import StoredRun
from writer.analysis.failures import Failure
from writer.run import ProcedureData, ScriptData

AnalysisKind = Literal["learned_fix", "failure_lesson"]
"""Kind of a lesson: a fix that worked, or a failure to avoid."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The failures of a run and the lesson drawn from them.

    Attributes:
        kind: kind of the lesson; None if no call failed.
        lesson: the lesson as a learned-procedure record; None if no call failed.
        subject: the failure that the lesson is about; None if the rules did not find it.
        recovered: all failures with a fix, in the order of their success.
        lost: all failures without a fix.
        origin: author of the lesson, the rules or a language model.
    """

    kind: AnalysisKind | None = None
    lesson: ProcedureData | None = None
    subject: Failure | None = None
    recovered: Sequence[Failure] = field(default=())
    lost: Sequence[Failure] = field(default=())
    origin: Literal["rules", "llm"] = "rules"

    def wrapped(self) -> dict[str, JsonValue]:
        """Returns the lesson as JSON, with the status procedure_learned, failure_lesson or no_failure_detected."""
        if self.lesson is None:
            return {"status": "no_failure_detected"}
        status = "procedure_learned" if self.kind == "learned_fix" else "failure_lesson"
        return {"status": status, "data": self.lesson.model_dump(mode="json")}


@dataclass(frozen=True, slots=True)
class ProcedureDraft:
    """A version of a procedure before it is stored.

    Attributes:
        kind: a script to follow, a failure to avoid, or a revision of either.
        origin: author of the procedure: the backend with its run, the rules, or a language model.
        record: a complete learned-procedure record for a fix; for a script, the fields that need no failure.
        trigger: one sentence that describes when to use the procedure.
        level: level of abstraction of a script; None for a lesson from a failure.
        duration_ms: sum of the durations of the run's calls; None if no call has a duration.
    """

    kind: ProcedureKind
    origin: ProcedureOrigin
    record: ProcedureData | ScriptData
    trigger: str
    task_type: str = ""
    domain: str = ""
    level: AbstractionLevel | None = None
    query_kind: str | None = None
    success_score: float | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The run that a draft was learned from, and the embedder of the draft's trigger.

    Attributes:
        pgvector: true if the database can compare vectors; otherwise this process compares them.
    """

    user_sub: str
    agent_key: str
    case_id: UUID
    model: str
    pgvector: bool

    @property
    def owner(self) -> tuple[str, str]:
        """Returns the user and the agent of the run."""
        return self.user_sub, self.agent_key


class Learners(Protocol):
    """Learns procedures from runs; an implementation must not follow instructions in tool outputs."""

    async def analyse(self, run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
        """Returns the failures of a run with their causes and fixes, and a lesson at this level of abstraction."""
        ...

    async def abstract(self, run: StoredRun, level: AbstractionLevel) -> ProcedureDraft | None:
        """Returns the script of a successful run, or None if the run has no steps to follow."""
        ...

    async def revise(self, used: ProcedureDraft, run: StoredRun, analysis: Analysis) -> ProcedureDraft | None:
        """Returns the revision of a procedure that a failed run used, or None if the run suggests no change."""
        ...
