"""Shows what is known of the user over all agents: search, deletion, export, and the erasure with its receipt.

The texts are encrypted with the user's key, so a search opens them page by page, the newest first, and compares them.
"""

import json
from asyncio import gather, to_thread
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal, get_args
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.admission.errors import TooManyAtOnce
from app.admission.turns import AT_ONCE
from app.console.page import COOKIE, PER_PAGE, ROOT, Form, Looking, Page, Visitor, doors, form, show, visitor
from app.console.routes.sign_in import end
from app.erasure.command import make_issuer
from app.routes.bank import list_cases
from app.routes.facts import list_facts
from app.routes.knowledge import list_knowledge
from retrieval.database.rows import AnyRow
from retrieval.pages import listing
from retrieval.sessions.messages import SessionTurn
from retrieval.tables.sessions import sessions
from retrieval.text import folded, shortened
from writer.privacy.words import Words
from writer.rights.erase import erase
from writer.rights.export import export

Kind = Literal["facts", "cases", "sessions", "knowledge"]

MOST_PAGES = 10
"""Maximum number of pages that one search reads; the link to more results goes on after them."""
ROWS = 200
"""Number of facts, cases or entries that a search reads at once."""
SESSIONS = 20
"""Number of sessions on a page that a search reads; it holds the turns of one session at a time."""
QUOTED = 160
"""Maximum characters of a turn that are quoted."""


@dataclass(frozen=True, slots=True)
class ListedMemory:
    """A memory as the page shows it.

    Attributes:
        id: id of its row; rows are ordered by it.
        text: text of the row, or the name of a session.
        detail: kind, state or size in a few words.
        matches: true if the row's texts contain every word of the query.
        page: address of its own page; empty: it has none.
    """

    id: UUID
    agent: str
    text: str
    detail: str
    at: datetime
    matches: bool
    page: str = ""


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """Memories of one kind, the newest first; ``older`` is the cursor of the next page, None at the end."""

    memories: list[ListedMemory]
    older: UUID | None


_Read = Callable[[Visitor, UUID | None, int, Sequence[str]], Awaitable[list[ListedMemory]]]


async def known(looking: Visitor, kind: Kind, query: str, cursor: UUID | None, limit: int) -> MemoryPage:
    """Returns the memories of a kind that contain every word of the query, at most ``limit``.

    The query's words may be parts of words; an empty query matches all. The page begins before the id ``cursor``.
    """
    wanted, memories = folded(query).split(), list[ListedMemory]()
    size = limit + 1 if not wanted else SESSIONS if kind == "sessions" else ROWS
    for _ in range(MOST_PAGES):
        page = await _READ[kind](looking, cursor, size, wanted)
        for memory in page:
            if len(memories) == limit:
                return MemoryPage(memories, cursor)
            cursor = memory.id
            if memory.matches:
                memories.append(memory)
        if len(page) < size:
            return MemoryPage(memories, None)
    return MemoryPage(memories, cursor)


async def _facts(looking: Visitor, cursor: UUID | None, size: int, wanted: Sequence[str]) -> list[ListedMemory]:
    page = await list_facts(looking.parts, looking.author, history=True, limit=size, cursor=cursor)
    return [
        ListedMemory(
            id=each.fact_id,
            agent=each.agent,
            text=each.text,
            detail=f"{each.kind}, {each.category}" + (", no longer holds" if each.valid_to else ""),
            at=each.created_at,
            matches=_matches(wanted, each.text, each.category, each.subject, each.attribute, each.value, each.unit),
        )
        for each in page.facts
    ]


async def _cases(looking: Visitor, cursor: UUID | None, size: int, wanted: Sequence[str]) -> list[ListedMemory]:
    page = await list_cases(looking.parts, looking.author, status="any", limit=size, cursor=cursor)
    return [
        ListedMemory(
            id=each.case_id,
            agent=each.agent,
            text=each.task,
            detail=f"{each.outcome}, {each.status}",
            at=each.created_at,
            matches=_matches(wanted, each.task, *each.plan, *each.tags, *each.tools),
            page=f"{ROOT}/cases/{each.case_id}?agent={quote(each.agent, safe='')}",
        )
        for each in page.cases
    ]


async def _knowledge(looking: Visitor, cursor: UUID | None, size: int, wanted: Sequence[str]) -> list[ListedMemory]:
    page = await list_knowledge(looking.parts, looking.author, limit=size, cursor=cursor)
    return [
        ListedMemory(
            id=each.knowledge_id,
            agent=each.agent,
            text=f"{each.title}: {each.text}" if each.title else each.text,
            detail=f"{each.category}, {each.type}",
            at=each.created_at,
            matches=_matches(wanted, each.title, each.text, each.category, each.type),
        )
        for each in page.knowledge
    ]


async def _sessions(looking: Visitor, cursor: UUID | None, size: int, wanted: Sequence[str]) -> list[ListedMemory]:
    """Returns a page of sessions: a search reads all turns of one after another, a list their first turns alone."""
    author, database = looking.author, looking.parts.database
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        newest = listing.page_of(sessions, author.user_sub, {}, before=cursor, limit=size)
        rows = (await connection.execute(newest)).all()
        words = await looking.parts.keyring.find_for_page(connection, author.user_sub) if rows else None
    memories = list[ListedMemory]()
    for group in [[row] for row in rows] if wanted else [rows]:
        if words is None:
            break
        turns = listing.turns_of_sessions(author.user_sub, [row.id for row in group], None if wanted else 1)
        async with database.as_user(author.user_sub, author.authorised_at) as connection:
            sealed = (await connection.execute(turns)).all()
        memories += await to_thread(_of_sessions, words, group, sealed, wanted)
    return memories


def _of_sessions(
    words: Words, rows: Sequence[AnyRow], sealed: Sequence[AnyRow], wanted: Sequence[str]
) -> list[ListedMemory]:
    turns: dict[UUID, list[str]] = defaultdict(list)
    for row in sealed:
        turn = SessionTurn(row.number, row.said_at, words.open("turn", row.payload, row.session_id, row.number))
        turns[row.session_id].append(turn.text or str(turn.message.get("refusal") or ""))
    return [
        ListedMemory(
            id=row.id,
            agent=row.agent_key,
            text=row.name,
            detail=f"{row.turn_count} turn{'' if row.turn_count == 1 else 's'}"
            + (f", beginning with “{shortened(turns[row.id][0], QUOTED)}”" if turns[row.id] else ""),
            at=row.created_at,
            matches=_matches(wanted, row.name, *turns[row.id]),
            page=f"{ROOT}/session?agent={quote(row.agent_key, safe='')}&name={quote(row.name, safe='')}",
        )
        for row in rows
    ]


_READ: dict[Kind, _Read] = {"facts": _facts, "cases": _cases, "sessions": _sessions, "knowledge": _knowledge}


def _matches(wanted: Sequence[str], *texts: str) -> bool:
    """Returns whether the texts together contain each of the words, which are folded."""
    searched = folded("\n".join(texts)) if wanted else ""
    return all(word in searched for word in wanted)


router = APIRouter(prefix=f"{ROOT}/known", route_class=Page, include_in_schema=False)

KINDS: tuple[Kind, ...] = get_args(Kind)
PER_KIND = 5
"""Number of memories of each kind on the page of all kinds."""
RETRY_S = 10.0
"""Seconds after which a refused export may be tried again."""


@router.get("")
async def known_page(
    request: Request,
    looking: Looking,
    q: Annotated[str, Query(max_length=200)] = "",
    kind: Kind | Literal[""] = "",
    cursor: Annotated[UUID | None, Query()] = None,
) -> Response:
    """Returns the newest memories of each kind, or a page of one kind: all of them, or those that a search finds."""
    kinds = [kind] if kind else KINDS
    parts = [known(looking, each, q, cursor if kind else None, PER_PAGE if kind else PER_KIND) for each in kinds]
    found = dict(zip(kinds, await gather(*parts), strict=True))
    return show(request, "known.html", looking, q=q.strip(), kind=kind, cursor=cursor, found=found)


async def exporter(
    request: Request, looking: Annotated[Visitor, Depends(visitor, scope="request")]
) -> AsyncIterator[Visitor]:
    """Yields the signed-in visitor, whose turn lasts until the whole answer is sent.

    Raises:
        FormRefused: the form does not belong to this visit.
        TooManyAtOnce: another export of the user is under way in this process.
    """
    await form(request, looking)
    user_sub, exporting = looking.author.user_sub, doors(request).exporting
    if user_sub in exporting:
        raise TooManyAtOnce("another export of yours is under way: try again once it has ended", RETRY_S, AT_ONCE)
    exporting.add(user_sub)
    try:
        yield looking
    finally:
        exporting.discard(user_sub)


@router.post("/export")
async def export_all(looking: Annotated[Visitor, Depends(exporter, scope="request")]) -> Response:
    """Returns all data of the user as a file, one JSON object per line."""

    async def lines() -> AsyncIterator[str]:
        async for row in export(looking.parts.database, looking.parts.keyring, looking.author.user_sub):
            yield await to_thread(json.dumps, row) + "\n"

    name = f"casebank-{datetime.now(UTC):%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(lines(), media_type="application/jsonl; charset=utf-8", headers=headers)


@router.post("/erase")
async def erase_all(request: Request, looking: Looking, fields: Form) -> Response:
    """Erases the user permanently, if the typed name is theirs, and returns the receipt."""
    if fields.get("name") != looking.visit.user_sub:
        raise HTTPException(422, "nothing was erased: the typed name is not yours")
    issuer = await make_issuer(looking.parts.database, looking.parts.settings)
    receipt = await issuer.issue(await erase(looking.parts.database, looking.visit.user_sub))
    await end(request, looking.visit)
    answer = show(request, "receipt.html", receipt=receipt, document=json.dumps(receipt))
    answer.delete_cookie(COOKIE, path=ROOT)
    return answer
