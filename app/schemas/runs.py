"""Responses about runs in progress: the acknowledgement of new steps, and the state of a run."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field, JsonValue

from app.schemas.advice import AdviceOut
from app.schemas.loop import RedactionOut
from retrieval.tables.kinds import RunStatus


class AppendedOut(BaseModel):
    """The acknowledgement: the steps are on disk."""

    run_id: UUID
    status: RunStatus
    step_count: int = Field(description="number of steps of the run, including those of this call")
    redactions: list[RedactionOut]
    advice: AdviceOut | None = Field(
        default=None, description="advice for the last of these steps that failed; null: none failed"
    )


class RunOut(BaseModel):
    """A run whose steps are sent one by one, in progress or ended."""

    run_id: UUID
    agent: str
    status: RunStatus
    task: str
    retrieval_id: UUID | None
    step_count: int
    last_step_at: datetime
    ended_at: datetime | None
    case_id: UUID | None = Field(description="case of the run; null: the run is in progress, or its case was deleted")
    created_at: datetime


class WholeRunOut(RunOut):
    """A run with its steps in order; the steps of a retained run are in its case."""

    steps: list[dict[str, JsonValue]]


class RunsOut(BaseModel):
    """One page of runs, by falling id."""

    runs: list[RunOut]
    next_cursor: str | None
