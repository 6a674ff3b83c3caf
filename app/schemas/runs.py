"""The bodies about a run under way: what an append is answered with, and the run as it stands."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field, JsonValue

from app.schemas.loop import RedactionOut
from retrieval.tables.kinds import RunStatus


class AppendedOut(BaseModel):
    """The acknowledgement: the steps are on disk."""

    run_id: UUID
    status: RunStatus
    step_count: int = Field(description="of the run, those of this call included")
    redactions: list[RedactionOut]


class RunOut(BaseModel):
    """A run whose steps are told while it is under way, or one that has ended since."""

    run_id: UUID
    agent: str
    status: RunStatus
    task: str
    retrieval_id: UUID | None
    step_count: int
    last_step_at: datetime
    ended_at: datetime | None
    case_id: UUID | None = Field(description="the case that it became; null: it is under way, or its case is gone")
    created_at: datetime


class WholeRunOut(RunOut):
    """A run with its steps, in their order; those of one that was retained are in its case."""

    steps: list[dict[str, JsonValue]]


class RunsOut(BaseModel):
    """One page of runs, by falling id."""

    runs: list[RunOut]
    next_cursor: str | None
