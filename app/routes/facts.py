"""Routes for facts about the user: write, list, read and delete."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy import RowMapping

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.schemas.facts import NO_FACTS, FactOut, FactsOut
from app.schemas.responses import next_cursor, without
from retrieval.errors import NotFound
from retrieval.facts.listing import FactPage, one_fact, page_of_facts
from retrieval.tables.kinds import FactKind
from writer.errors import MemoryOff, SecretInName
from writer.facts.by_hand import FactWritten, write_fact
from writer.facts.remove import delete_fact
from writer.moment import Moment
from writer.privacy.words import Words, words_of
from writer.run import AgentKey

router = APIRouter(prefix="/v1/facts", tags=["facts"], responses=DOCUMENTED, route_class=BodyRoute)


@router.post("", status_code=201, responses=raises(MemoryOff, SecretInName))
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
    agent: Annotated[AgentKey | None, Query()] = None,
    kind: Annotated[FactKind | None, Query()] = None,
    category: Annotated[str | None, Query(min_length=1, max_length=100)] = None,
    as_of: Annotated[Moment | None, Query(description="return facts that held at this time; null: now")] = None,
    history: Annotated[bool, Query(description="true: also return facts that no longer hold")] = False,  # noqa: FBT002
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[UUID | None, Query(description="next_cursor of the previous page")] = None,
) -> FactsOut:
    """Returns a page of the facts that hold now or held at a time, the newest first."""
    page = FactPage(agent, kind, category, as_of, history, cursor, limit)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(page_of_facts(caller.user_sub, page))).mappings().all()
        words = await words_of(parts.keyring, connection, caller.user_sub) if rows else None
    shown = [_shown(row, words) for row in rows if words is not None]
    return FactsOut(facts=shown, next_cursor=next_cursor(rows, limit), why_empty=None if shown else NO_FACTS)


@router.get("/{fact_id}")
async def get_fact(fact_id: UUID, parts: Parts, caller: Caller) -> FactOut:
    """Returns one fact, whether it holds or not."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        row = (await connection.execute(one_fact(caller.user_sub, fact_id))).mappings().one_or_none()
        words = await words_of(parts.keyring, connection, caller.user_sub)
    if row is None or words is None:
        raise NotFound("no such fact")
    return _shown(row, words)


@router.delete("/{fact_id}", status_code=204)
async def remove_fact(fact_id: UUID, parts: Parts, caller: Caller) -> None:
    """Deletes a fact permanently; the fact that it had replaced holds again."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await delete_fact(connection, caller, fact_id)


def _shown(row: RowMapping, words: Words) -> FactOut:
    """Returns the columns of a fact under the names of the API, with its words opened."""
    columns = without(row, {"id", "agent_key", "words"}) | words.open("fact", row["words"], row["id"])
    return FactOut.model_validate({"fact_id": row["id"], "agent": row["agent_key"], **columns})
