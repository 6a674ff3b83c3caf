"""Statements that read entries of knowledge (notes about a domain), and the text of an entry."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import Table, select

from retrieval.database.rows import Rows
from retrieval.pages.listing import paged
from retrieval.tables.columns import columns_of
from retrieval.tables.memories import knowledge, shared_knowledge


@dataclass(frozen=True, slots=True)
class KnowledgePage:
    """Filters of a page of at most ``limit`` entries of knowledge older than ``before``; None allows all."""

    agent_key: str | None
    category: str | None
    entry_type: str | None
    before: UUID | None
    limit: int
    said: bytes | None = None
    """Keyed hash that an entry's content must have; None: any."""


def text_of(said: Mapping[str, str]) -> str:
    """Returns the text of an entry of knowledge, below its title if it has one."""
    return f"{said['title']}\n{said['text']}" if said["title"] else said["text"]


def one_entry(user_sub: str, entry_id: UUID) -> Rows:
    """Returns the statement for the entry of knowledge with this id."""
    return _entries().where(knowledge.c.user_sub == user_sub, knowledge.c.id == entry_id)


def page_of_knowledge(user_sub: str, page: KnowledgePage) -> Rows:
    """Returns the statement for a page of the user's entries of knowledge, the newest first; ids rise with time."""
    return _paged(_entries().where(knowledge.c.user_sub == user_sub), knowledge, page)


def page_of_shared(page: KnowledgePage) -> Rows:
    """Returns the statement for a page of entries that all users of an agent share, the newest first."""
    shown = columns_of(shared_knowledge, "id category entry_type title text")
    return _paged(select(*shown), shared_knowledge, page)


def _paged(entries: Rows, table: Table, page: KnowledgePage) -> Rows:
    only = {"agent_key": page.agent_key, "category": page.category, "entry_type": page.entry_type, "said": page.said}
    return paged(entries, table, only, page.before, page.limit)


def _entries() -> Rows:
    return select(*columns_of(knowledge, "id agent_key category entry_type words created_at updated_at"))
