"""The bodies about facts: one with where it comes from and when it held, and pages of them."""

from datetime import date, datetime
from uuid import UUID

from pydantic import BaseModel, Field

from retrieval.tables.kinds import FactCategory, FactKind, FactOrigin, Speaker


class FactOut(BaseModel):
    """What is known of the user."""

    fact_id: UUID
    agent: str
    kind: FactKind
    category: FactCategory
    text: str = Field(description="as it was said")
    subject: str = Field(description="whom or what it is about; `user`: who said it")
    attribute: str = Field(description="what of it; of a goal the metric; empty: nothing that could be read off")
    value: str
    unit: str
    about_from: date | None = Field(description="first day that it speaks of; null: none that was named")
    about_to: date | None
    origin: FactOrigin
    said_by: Speaker = Field(description="only what the user says is the user's word")
    session_id: str | None = Field(description="where it was first told; null: elsewhere, or it is gone")
    turn_number: int | None
    case_id: UUID | None = Field(description="the run in whose turns it was first told")
    told: int = Field(description="how often it was told")
    last_told_at: datetime
    valid_from: datetime
    valid_to: datetime | None = Field(description="null: it holds")
    superseded_by: UUID | None = Field(description="the newer fact that contradicts it")
    created_at: datetime


class FactsOut(BaseModel):
    """One page of facts, the newest first."""

    facts: list[FactOut]
    next_cursor: str | None
