"""The bodies of the registry of procedures."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator
from sqlalchemy import RowMapping

from app.schemas.fields import CleanNote, K, Milliseconds, Real, SearchText, Share, Similarity
from app.schemas.loop import ThresholdOut, ToldProcedureOut
from retrieval.pages.listing import REVIEW, Measures
from retrieval.tables.kinds import (
    AbstractionLevel,
    ProcedureKind,
    ProcedureOrigin,
    ProcedureStatus,
    QueryKind,
    ReviewVerdict,
)
from writer.run import AgentKey, Strict, Tag


class ProcedureSearchIn(Strict):
    """Which procedures to look for; a trigger, or attributes, or both."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"agent": "db-operator", "trigger": "Add a column to a table"}]},
    )

    agent: AgentKey
    trigger: SearchText | None = Field(default=None, description="the task, or when the procedure should be used")
    task_type: Tag | None = None
    domain: Tag | None = None
    tags: list[Tag] = Field(default_factory=list, max_length=50, description="of a run that says so")
    query_kind: QueryKind | None = Field(default=None, description="what kind of thing its run was asked for")
    min_success_score: Share | None = Field(default=None, description="of its run")
    max_duration_ms: Milliseconds | None = Field(default=None, description="of the calls of its run together")
    min_similarity: Similarity | None = Field(default=None, description="in place of the threshold")
    limit: K = 10

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.trigger or self.task_type or self.domain or self.tags) and self.measures == Measures():
            raise ValueError("name a trigger, a task_type, a domain, tags, or what its run was like")
        return self

    @property
    def measures(self) -> Measures:
        """What its run must have been like."""
        return Measures(self.query_kind, self.min_success_score, self.max_duration_ms)


class ProcedureSearchOut(BaseModel):
    """The procedures found, the best first."""

    procedures: list[ToldProcedureOut]
    threshold: ThresholdOut
    degraded: list[str]


class ReviewIn(Strict):
    """What a person found a version of a procedure to be."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"verdict": "incomplete", "steps_complete": False, "note": "Drain it first."}]},
    )

    verdict: ReviewVerdict = Field(description="right and whole, right but not whole, or wrong")
    note: CleanNote = ""
    root_cause_right: bool | None = None
    steps_complete: bool | None = None
    version: int | None = Field(default=None, ge=1, le=2**31 - 1, description="null: the active one")


class ReviewOut(BaseModel):
    """The newest review of a version."""

    verdict: ReviewVerdict
    note: str
    root_cause_right: bool | None
    steps_complete: bool | None
    actor: str
    created_at: datetime


class ProcedureOut(BaseModel):
    """One version of a procedure."""

    id: UUID
    version: int
    agent: str
    kind: ProcedureKind
    origin: ProcedureOrigin
    level: AbstractionLevel | None = Field(description="null: learned from a failure")
    status: ProcedureStatus
    pinned: bool
    parent_version: int | None
    task_type: str
    trigger: str
    domain: str
    query_kind: QueryKind | None = Field(description="what kind of thing its run was asked for; null: not known")
    success_score: Real | None = Field(description="of its run, 0 to 1; null: not known")
    duration_ms: Real | None = Field(description="of the calls of its run together; null: not known")
    record: dict[str, JsonValue] = Field(description="procedure_name, semantic_description, learned_procedure_steps, …")
    case_id: UUID | None = Field(description="the run whose words it is made of; null once that was pruned")
    source_case_ids: list[UUID]
    occurrences: int
    uses: Real
    use_reward: Real
    last_used_at: datetime | None
    created_at: datetime
    review: ReviewOut | None = Field(description="what a person found it to be; null: nobody said")

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        """Returns the version in a row of the registry."""
        shown = {"agent" if name == "agent_key" else name: value for name, value in row.items()}
        review = {name: row[f"review_{name}"] for name in REVIEW} if row["review_verdict"] else None
        return cls.model_validate({**shown, "review": review})


class ProceduresOut(BaseModel):
    """One page of procedures, the newest first."""

    procedures: list[ProcedureOut]
    next_cursor: str | None


class SampleOut(BaseModel):
    """A sample of the active procedures, to be reviewed."""

    procedures: list[ProcedureOut]
    seed: int = Field(description="draws the same again, while the procedures are the same")


class VersionsOut(BaseModel):
    """Every version of a procedure, the newest first."""

    versions: list[ProcedureOut]


class FieldChangeOut(BaseModel):
    """A field that differs between two versions."""

    field: str
    before: JsonValue
    after: JsonValue


class StepChangeOut(BaseModel):
    """A run of steps that differs; ``place`` is 1-based, in the earlier version."""

    change: Literal["added", "removed", "changed"]
    place: int
    before: list[str]
    after: list[str]


class ChangesOut(BaseModel):
    """Everything in which two versions differ."""

    fields: list[FieldChangeOut]
    steps: list[StepChangeOut]


class DifferenceOut(BaseModel):
    """What the later of two versions changed of the earlier one."""

    before: int
    after: int
    changes: ChangesOut


class PinIn(Strict):
    """Which version to pin, or to let go of."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"version": 1, "pinned": True}]})

    version: int = Field(ge=1, le=2**31 - 1)
    pinned: bool = True
