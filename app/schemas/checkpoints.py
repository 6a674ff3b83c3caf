"""Responses about checkpoints: states of a backend's graphs, by thread."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field


class CheckpointPartOut(BaseModel):
    """The state of a checkpoint, or a write that is pending on it."""

    task_id: str = Field(description="task of a pending write; empty: this part is the state")
    place: int
    value: str = Field(description="value as the backend sent it")


class CheckpointOut(BaseModel):
    """One checkpoint; ``parts`` holds its state, and after it the writes pending on it."""

    thread_id: str
    namespace: str
    checkpoint_id: UUID
    created_at: datetime
    parts: list[CheckpointPartOut]


class CheckpointsOut(BaseModel):
    """One page of checkpoints, by falling id."""

    checkpoints: list[CheckpointOut]
    next_cursor: str | None
