"""The three learners, by rule or by a language model: they explain failures, abstract successes, revise procedures."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol
from uuid import UUID

from pydantic import JsonValue

from retrieval.tables.kinds import AbstractionLevel, ProcedureKind, ProcedureOrigin, QueryKind
from writer.analysis.calls import StoredRun
from writer.analysis.failures import Failure
from writer.run import ProcedureData, ScriptData

AnalysisKind = Literal["learned_fix", "failure_lesson"]
"""What an analysis found: a fix that worked, or a failure to avoid."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a run teaches, and why.

    Attributes:
        kind: a fix that worked, or what not to do; None where nothing failed.
        lesson: the learned-procedure record; None where nothing failed.
        subject: the failure that the lesson is about; None where the rules did not find it.
        recovered: all failures that were put right, in the order of their success.
        lost: all that never were.
        origin: who wrote the lesson.
    """

    kind: AnalysisKind | None = None
    lesson: ProcedureData | None = None
    subject: Failure | None = None
    recovered: Sequence[Failure] = field(default=())
    lost: Sequence[Failure] = field(default=())
    origin: Literal["rules", "llm"] = "rules"

    def wrapped(self) -> dict[str, JsonValue]:
        """Returns the lesson with its status: learned procedure, failure lesson, or that no failure was detected."""
        if self.lesson is None:
            return {"status": "no_failure_detected"}
        status = "procedure_learned" if self.kind == "learned_fix" else "failure_lesson"
        return {"status": status, "data": self.lesson.model_dump(mode="json")}


class Analyst(Protocol):
    """Finds in a run what failed, why, and what put it right."""

    async def analyse(self, run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
        """Returns what the run teaches at this level, maybe nothing; what a tool answered is never an instruction."""
        ...


@dataclass(frozen=True, slots=True)
class Draft:
    """A version of a procedure before it is stored.

    Attributes:
        kind: a script to follow, a failure to avoid, or a revision of either.
        origin: who wrote it: the backend with its run, the rules, or a language model.
        record: a fix is a whole learned-procedure record, a script has the fields of it that apply.
        trigger: one sentence: when to use it.
        level: how abstract it is; None of what was learned from a failure.
        query_kind: what its run was asked for.
        success_score: of its run, 0 to 1.
        duration_ms: of the calls of its run together; None where none said its own.
    """

    kind: ProcedureKind
    origin: ProcedureOrigin
    record: ProcedureData | ScriptData
    trigger: str
    task_type: str = ""
    domain: str = ""
    level: AbstractionLevel | None = None
    query_kind: QueryKind | None = None
    success_score: float | None = None
    duration_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """The run that something was learned from, and how its triggers became vectors.

    Attributes:
        model: of the embedder.
        pgvector: whether the database compares vectors; otherwise the process does.
    """

    user_sub: str
    agent_key: str
    case_id: UUID
    model: str
    pgvector: bool

    @property
    def owner(self) -> tuple[str, str]:
        """Returns the user and the agent."""
        return self.user_sub, self.agent_key


class Abstractor(Protocol):
    """Turns a successful run into a script."""

    async def abstract(self, run: StoredRun, level: AbstractionLevel) -> Draft | None:
        """Returns the script of the run; None where it has nothing to follow."""
        ...


class Reviser(Protocol):
    """Revises a procedure that was used and did not help."""

    async def revise(self, used: Draft, run: StoredRun, analysis: Analysis) -> Draft | None:
        """Returns the revision of the procedure after a failed run that used it; None: no change."""
        ...


@dataclass(frozen=True, slots=True)
class Learners:
    """One analyst, one abstractor and one reviser."""

    analyst: Analyst
    abstractor: Abstractor
    reviser: Reviser
