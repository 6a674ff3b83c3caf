"""Responses about knowledge: one entry, and a page of entries."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field


class KnowledgeOut(BaseModel):
    """An entry of domain knowledge."""

    knowledge_id: UUID
    agent: str
    category: str
    type: str
    title: str = Field(description="title of the entry; empty: no title")
    text: str
    created_at: datetime
    updated_at: datetime


class KnowledgePageOut(BaseModel):
    """One page of knowledge, the newest first."""

    knowledge: list[KnowledgeOut]
    next_cursor: str | None
