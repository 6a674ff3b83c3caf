"""Requests and responses of the procedure registry."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field, JsonValue, model_validator
from sqlalchemy import RowMapping

from app.schemas.fields import K, Milliseconds, Real, SearchText, Share, Similarity
from app.schemas.loop import ThresholdOut, ToldProcedureOut
from app.schemas.responses import RowOut
from retrieval.pages.procedures import REVIEW, Measures
from retrieval.tables.kinds import (
    AbstractionLevel,
    ProcedureKind,
    ProcedureOrigin,
    ProcedureStatus,
    ReviewVerdict,
)
from writer.run import AgentKey, KindName, Strict, Tag


class ProcedureSearchIn(Strict):
    """A search for procedures by trigger, by attributes, or by both."""

    agent: AgentKey
    trigger: SearchText | None = Field(
        default=None, description="the task, or the situation in which the procedure should be used"
    )
    task_type: KindName | None = None
    domain: Tag | None = None
    tags: list[Tag] = Field(default_factory=list, max_length=50, description="tags that one of its runs must have")
    query_kind: KindName | None = Field(default=None, description="kind of request its run answered")
    min_success_score: Share | None = Field(default=None, description="least success of its run, 0 to 1")
    max_duration_ms: Milliseconds | None = Field(default=None, description="maximum total duration of its run's calls")
    min_similarity: Similarity | None = Field(
        default=None, description="least similarity of trigger and query, in place of the threshold"
    )
    limit: K = 10

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.trigger or self.task_type or self.domain or self.tags) and self.measures == Measures():
            raise ValueError("name a trigger, a task_type, a domain, tags, or what its run was like")
        return self

    @property
    def measures(self) -> Measures:
        """Requirements on the run that a procedure was learned from: kind of query, least success, longest duration."""
        return Measures(self.query_kind, self.min_success_score, self.max_duration_ms)


class ProcedureSearchOut(BaseModel):
    """Matching procedures, the best first."""

    procedures: list[ToldProcedureOut]
    threshold: ThresholdOut
    degraded: list[str]


class ReviewOut(BaseModel):
    """The newest review of a version."""

    verdict: ReviewVerdict
    note: str
    root_cause_right: bool | None
    steps_complete: bool | None
    actor: str
    created_at: datetime


class ProcedureOut(RowOut):
    """One version of a procedure."""

    id: UUID
    version: int
    agent: str = Field(validation_alias="agent_key")
    kind: ProcedureKind
    origin: ProcedureOrigin
    level: AbstractionLevel | None = Field(description="abstraction level; null: learned from a failure")
    status: ProcedureStatus
    pinned: bool
    parent_version: int | None
    task_type: str
    trigger: str
    domain: str
    query_kind: str | None = Field(description="kind of request its run answered; null: unknown")
    success_score: Real | None = Field(description="success of its run, 0 to 1; null: unknown")
    duration_ms: Real | None = Field(description="total duration of its run's calls; null: unknown")
    record: dict[str, JsonValue] = Field(description="procedure_name, semantic_description, learned_procedure_steps, …")
    case_id: UUID | None = Field(description="run it was learned from; null: that run was pruned")
    source_case_ids: list[UUID]
    occurrences: int
    uses: Real
    use_reward: Real
    last_used_at: datetime | None
    created_at: datetime
    review: ReviewOut | None = Field(description="newest review by a person; null: not reviewed")

    @classmethod
    def of(cls, row: RowMapping) -> Self:
        """Builds the response from a row of the query that lists procedures."""
        review = {name: row[f"review_{name}"] for name in REVIEW} if row["review_verdict"] else None
        return cls.model_validate({**row, "review": review})


class ProceduresOut(BaseModel):
    """One page of procedures, the newest first."""

    procedures: list[ProcedureOut]
    next_cursor: str | None


class SampleOut(BaseModel):
    """A random sample of the active procedures, for review."""

    procedures: list[ProcedureOut]
    seed: int = Field(description="seed of the sample; the same seed and procedures give the same sample")


class VersionsOut(BaseModel):
    """Every version of a procedure, the newest first."""

    versions: list[ProcedureOut]


class FieldChangeOut(BaseModel):
    """A field that differs between two versions."""

    field: str
    before: JsonValue
    after: JsonValue


class StepChangeOut(BaseModel):
    """A sequence of steps that differs; ``place`` is its 1-based position in the earlier version."""

    change: Literal["added", "removed", "changed"]
    place: int
    before: list[str]
    after: list[str]


class ChangesOut(BaseModel):
    """All differences between two versions."""

    fields: list[FieldChangeOut]
    steps: list[StepChangeOut]


class VersionChangesOut(BaseModel):
    """The changes from one version of a procedure to another."""

    before: int
    after: int
    changes: ChangesOut


class PinIn(Strict):
    """The version to pin or unpin."""

    version: int = Field(ge=1, le=2**31 - 1)
    pinned: bool = True
