"""Responses about facts: one fact with its source and validity, and a page of facts."""

from datetime import date, datetime
from uuid import UUID

from pydantic import BaseModel, Field

from retrieval.tables.kinds import FactKind, FactOrigin, Speaker


class FactOut(BaseModel):
    """A fact about the user, with its source and the time it held."""

    fact_id: UUID
    agent: str
    kind: FactKind
    category: str = Field(description="subject of the fact, in a word of the caller or by the words of the text")
    text: str = Field(description="the fact in the words of its source")
    subject: str = Field(description="person or thing the fact is about; `user`: the user")
    attribute: str = Field(description="attribute of the subject; for a goal, its metric; empty: not recognised")
    value: str
    unit: str
    about_from: date | None = Field(description="first day the fact refers to; null: no date given")
    about_to: date | None
    origin: FactOrigin
    said_by: Speaker = Field(description="speaker of the fact; only `user` counts as the user's own statement")
    session_id: str | None = Field(
        description="session in which it was first stated; null: no session, or a deleted one"
    )
    turn_number: int | None
    case_id: UUID | None = Field(description="run whose turns first stated it")
    told: int = Field(description="number of times it was stated")
    last_told_at: datetime
    valid_from: datetime
    valid_to: datetime | None = Field(description="time at which it stopped holding; null: it still holds")
    superseded_by: UUID | None = Field(description="newer fact that replaced it")
    created_at: datetime


NO_FACTS = (
    "No fact fits these filters. Facts are read off what users say in English, and in fewer forms in German, Spanish"
    " and French; facts said in other languages must be written with POST /v1/facts."
)


class FactsOut(BaseModel):
    """One page of facts, the newest first."""

    facts: list[FactOut]
    next_cursor: str | None
    why_empty: str | None = Field(description="reason why the page has no facts; null: it has some")
