"""Statements that read entries of knowledge (notes about a domain), and the text of an entry."""

from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import select

from retrieval.database.rows import Rows
from retrieval.pages.listing import paged
from retrieval.tables.columns import columns_of
from retrieval.tables.memories import knowledge, shared_knowledge


def text_of(said: Mapping[str, str]) -> str:
    """Returns the text of an entry of knowledge, below its title if it has one."""
    return f"{said['title']}\n{said['text']}" if said["title"] else said["text"]


def one_entry(user_sub: str, entry_id: UUID) -> Rows:
    """Returns the statement for the entry of knowledge with this id."""
    return _entries().where(knowledge.c.user_sub == user_sub, knowledge.c.id == entry_id)


def page_of_knowledge(user_sub: str, only: Mapping[str, object], *, before: UUID | None, limit: int) -> Rows:
    """Returns the statement for the user's newest ``limit`` entries older than ``before``; ids rise with time.

    ``only`` has, by column, the values that an entry must have; None: any value.
    """
    return paged(_entries(), knowledge, {"user_sub": user_sub, **only}, before, limit)


def page_of_shared(only: Mapping[str, object], *, before: UUID | None, limit: int) -> Rows:
    """Returns the statement that ``page_of_knowledge`` returns, for the entries that all users of an agent share."""
    shown = columns_of(shared_knowledge, "id category entry_type title text")
    return paged(select(*shown), shared_knowledge, only, before, limit)


def _entries() -> Rows:
    return select(*columns_of(knowledge, "id agent_key category entry_type words created_at updated_at"))
