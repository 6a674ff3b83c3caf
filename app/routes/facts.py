"""Routes for facts about the user: write, list, read and delete."""

from datetime import date, datetime
from typing import Annotated
from uuid import UUID

from fastapi import Query
from pydantic import BaseModel, Field
from sqlalchemy import RowMapping

from app.edge.dependencies import AnyAgent, Caller, Cursor, Limit, Parts
from app.edge.routers import api_router
from app.schemas.responses import RowOut, next_cursor
from retrieval.errors import NotFound
from retrieval.pages.listing import one_of, page_of
from retrieval.pages.memories import holds
from retrieval.tables.kinds import FactKind, FactOrigin, Speaker
from retrieval.tables.memories import facts
from writer.facts.by_hand import FactWritten, write_fact
from writer.facts.remove import delete_fact
from writer.moment import Moment
from writer.privacy.words import Words
from writer.run import Tag


class FactOut(RowOut):
    """A fact about the user, with its source and the time it held."""

    fact_id: UUID = Field(validation_alias="id")
    agent: str = Field(validation_alias="agent_key")
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


router = api_router("facts", "/v1/facts")


@router.post("", status_code=201)
async def tell_fact(written: FactWritten, parts: Parts, caller: Caller) -> FactOut:
    """Stores a fact; a repeated fact is counted, and a newer value ends the older one."""
    await parts.admission.of_agent(caller, "writes", written.agent)
    fact_id = await write_fact(parts.database, parts.keyring, written, caller)
    parts.worker.wake()
    return await get_fact(fact_id, parts, caller)


@router.get("")
async def list_facts(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: AnyAgent = None,
    kind: Annotated[FactKind | None, Query()] = None,
    category: Annotated[Tag | None, Query()] = None,
    as_of: Annotated[Moment | None, Query(description="return facts that held at this time; null: now")] = None,
    history: Annotated[bool, Query(description="true: also return facts that no longer hold")] = False,  # noqa: FBT002
    limit: Limit = 50,
    cursor: Cursor = None,
) -> FactsOut:
    """Returns a page of the facts that hold now or held at a time, the newest first."""
    only = {"agent_key": agent, "kind": kind, "category": category}
    page = page_of(facts, caller.user_sub, only, before=cursor, limit=limit)
    page = page if history else page.where(*holds(as_of))
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(page)).mappings().all()
        words = await parts.keyring.find_for_page(connection, caller.user_sub) if rows else None
    shown = [_shown(row, words) for row in rows if words is not None]
    return FactsOut(facts=shown, next_cursor=next_cursor(rows, limit), why_empty=None if shown else NO_FACTS)


@router.get("/{fact_id}")
async def get_fact(fact_id: UUID, parts: Parts, caller: Caller) -> FactOut:
    """Returns one fact, whether it holds or not."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        row = (await connection.execute(one_of(facts, caller.user_sub, fact_id))).mappings().one_or_none()
        words = await parts.keyring.find(connection, caller.user_sub)
    if row is None or words is None:
        raise NotFound("no such fact")
    return _shown(row, words)


@router.delete("/{fact_id}", status_code=204)
async def remove_fact(fact_id: UUID, parts: Parts, caller: Caller) -> None:
    """Deletes a fact permanently; the fact that it had replaced holds again."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await delete_fact(connection, caller, fact_id)


def _shown(row: RowMapping, words: Words) -> FactOut:
    return FactOut.model_validate({**row, **words.open("fact", row["words"], row["id"])})
