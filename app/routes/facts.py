"""Facts: what a user told of themselves, as it holds now or held then; written by hand, and deleted."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy import RowMapping

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.schemas.facts import FactOut, FactsOut
from retrieval.errors import NotFound
from retrieval.facts.listing import FactPage, one_fact, page_of_facts
from retrieval.tables.kinds import FactCategory, FactKind
from writer.errors import SecretInName
from writer.facts.by_hand import FactWritten, write_fact
from writer.facts.remove import delete_fact
from writer.moment import Moment
from writer.privacy.words import Words
from writer.run import AgentKey

router = APIRouter(prefix="/v1/facts", tags=["facts"], responses=DOCUMENTED, route_class=BodyRoute)


@router.post("", status_code=201, responses=raises(SecretInName))
async def tell_fact(written: FactWritten, parts: Parts, caller: Caller) -> FactOut:
    """Writes a fact down; the same again is counted, and a newer value closes the older one."""
    await parts.admission.of_agent(caller, "writes", written.agent)
    return await get_fact(await write_fact(parts.database, parts.keyring, written, caller), parts, caller)


@router.get("")
async def list_facts(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: Annotated[AgentKey | None, Query()] = None,
    kind: Annotated[FactKind | None, Query()] = None,
    category: Annotated[FactCategory | None, Query()] = None,
    as_of: Annotated[Moment | None, Query(description="what held then; unset: what holds now")] = None,
    history: Annotated[bool, Query(description="also what holds no more, whenever that was")] = False,  # noqa: FBT002
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[UUID | None, Query(description="next_cursor of the page before")] = None,
) -> FactsOut:
    """Returns the facts that hold, or held at a time, the newest first, a page at a time."""
    page = FactPage(agent, kind, category, as_of, history, cursor, limit)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(page_of_facts(caller.user_sub, page))).mappings().all()
        key = await parts.keyring.find(connection, caller.user_sub) if rows else None
    shown = [_shown(row, Words(caller.user_sub, key)) for row in rows if key is not None]
    return FactsOut(facts=shown, next_cursor=str(rows[-1]["id"]) if len(rows) == limit else None)


@router.get("/{fact_id}")
async def get_fact(fact_id: UUID, parts: Parts, caller: Caller) -> FactOut:
    """Returns one fact, whether it holds or not."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        row = (await connection.execute(one_fact(caller.user_sub, fact_id))).mappings().one_or_none()
        key = await parts.keyring.find(connection, caller.user_sub)
    if row is None or key is None:
        raise NotFound("no such fact")
    return _shown(row, Words(caller.user_sub, key))


@router.delete("/{fact_id}", status_code=204)
async def remove_fact(fact_id: UUID, parts: Parts, caller: Caller) -> None:
    """Deletes a fact for good; what it had closed holds again."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await delete_fact(connection, caller, fact_id)


def _shown(row: RowMapping, words: Words) -> FactOut:
    """Returns the columns of a fact under the names of the API, with its words opened."""
    columns = {name: value for name, value in row.items() if name not in {"id", "agent_key", "words"}}
    said = words.open_fact(row["id"], row["words"])
    return FactOut.model_validate({"fact_id": row["id"], "agent": row["agent_key"], **columns, **said})
