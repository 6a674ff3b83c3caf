"""Routes for knowledge: entries about a domain that a user writes for an agent, by category and type."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from sqlalchemy import RowMapping

from app.edge.dependencies import AnyAgent, Caller, Cursor, Limit, Parts
from app.edge.routers import api_router
from app.schemas.responses import RowOut, next_cursor
from retrieval.errors import NotFound
from retrieval.pages.listing import one_of, page_of
from retrieval.tables.memories import knowledge
from writer.knowledge.entry import EntryTitle, KnowledgeWritten, hash_of_titled
from writer.knowledge.own import delete_knowledge, edit_knowledge, write_knowledge
from writer.privacy.words import Words
from writer.run import Tag


class KnowledgeOut(RowOut):
    """An entry of domain knowledge."""

    knowledge_id: UUID = Field(validation_alias="id")
    agent: str = Field(validation_alias="agent_key")
    category: str
    type: str = Field(validation_alias="entry_type")
    title: str = Field(description="title of the entry; empty: no title")
    text: str
    created_at: datetime
    updated_at: datetime


class KnowledgePageOut(BaseModel):
    """One page of knowledge, the newest first."""

    knowledge: list[KnowledgeOut]
    next_cursor: str | None


router = api_router("knowledge", "/v1/knowledge")


@router.post("", status_code=201)
async def add_knowledge(written: KnowledgeWritten, parts: Parts, caller: Caller) -> KnowledgeOut:
    """Stores an entry; an entry with the same category, type and title is updated."""
    await parts.admission.of_agent(caller, "writes", written.agent)
    (entry_id,) = await write_knowledge(parts.database, parts.keyring, written.agent, [written], caller)
    parts.worker.wake()
    return await get_knowledge(entry_id, parts, caller)


@router.get("")
async def list_knowledge(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: AnyAgent = None,
    category: Annotated[Tag | None, Query()] = None,
    type: Annotated[Tag | None, Query()] = None,  # noqa: A002 - its name in the API
    title: Annotated[
        EntryTitle | None,  # type: ignore[valid-type]
        Query(description="return the entry with this title; needs category and type"),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> KnowledgePageOut:
    """Returns a page of entries, the newest first."""
    if title is not None and (category is None or type is None):
        wanted = "a title is looked up in a category and a type: name both"
        raise RequestValidationError([{"loc": ("query", "title"), "msg": wanted, "type": "missing"}])
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        words = await parts.keyring.find_for_page(connection, caller.user_sub)
        if words is None:
            return KnowledgePageOut(knowledge=[], next_cursor=None)
        title_hash = hash_of_titled(words, category, type, title) if title and category and type else None
        only = {"agent_key": agent, "category": category, "entry_type": type, "said": title_hash}
        page = page_of(knowledge, caller.user_sub, only, before=cursor, limit=limit)
        rows = (await connection.execute(page)).mappings().all()
    return KnowledgePageOut(knowledge=[_shown(row, words) for row in rows], next_cursor=next_cursor(rows, limit))


@router.get("/{knowledge_id}")
async def get_knowledge(knowledge_id: UUID, parts: Parts, caller: Caller) -> KnowledgeOut:
    """Returns one entry."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        row = (await connection.execute(one_of(knowledge, caller.user_sub, knowledge_id))).mappings().one_or_none()
        words = await parts.keyring.find(connection, caller.user_sub)
    if row is None or words is None:
        raise NotFound("no such knowledge")
    return _shown(row, words)


@router.put("/{knowledge_id}")
async def change_knowledge(knowledge_id: UUID, written: KnowledgeWritten, parts: Parts, caller: Caller) -> KnowledgeOut:
    """Replaces category, type, title and text of an entry; its agent stays."""
    await parts.admission.of_agent(caller, "writes", written.agent)
    await edit_knowledge(parts.database, parts.keyring, knowledge_id, written, caller)
    parts.worker.wake()
    return await get_knowledge(knowledge_id, parts, caller)


@router.delete("/{knowledge_id}", status_code=204)
async def remove_knowledge(knowledge_id: UUID, parts: Parts, caller: Caller) -> None:
    """Deletes an entry permanently."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await delete_knowledge(connection, caller, knowledge_id)


def _shown(row: RowMapping, words: Words) -> KnowledgeOut:
    return KnowledgeOut.model_validate({**row, **words.open("knowledge", row["words"], row["id"])})
