"""The bodies about knowledge: an entry, and pages of them."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field


class KnowledgeOut(BaseModel):
    """What is known of a domain."""

    knowledge_id: UUID
    agent: str
    category: str
    type: str
    title: str = Field(description="empty: it has none")
    text: str
    created_at: datetime
    updated_at: datetime


class KnowledgePageOut(BaseModel):
    """One page of knowledge, the newest first."""

    knowledge: list[KnowledgeOut]
    next_cursor: str | None
